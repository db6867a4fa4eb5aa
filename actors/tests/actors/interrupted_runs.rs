//! Runs that an orderly shutdown or a kill interrupts.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::OnCrash;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::agent::tool::ToolDefinition;
use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::ports::model::ModelEvent;
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};
use greenroom_actors::ports::store::GenerationStatus;
use greenroom_actors::runtime::CancelGenerationError;
use greenroom_actors::testkit::{World, pass};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::approvals::{
    Effects, answer, calls, done, open_asks, recorded, refund, registry, request, text, world,
};
use crate::approved_runs::{slow, with_boss};

/// Shuts the process down, with less grace than a slow tool needs, and launches another one.
async fn deploy(world: World) -> World {
    world.runtime.drain(Duration::from_millis(10)).await;
    world.restart().await
}

#[actix::test]
async fn a_call_that_a_shutdown_interrupts_is_treated_as_after_a_crash() {
    tokio::time::pause();
    let interrupted = "interrupted by a restart; it may or may not have had its effect";
    let rows = [
        (OnCrash::Repeat, done(), 2),
        (OnCrash::Tell, ToolOutcome::Error(interrupted.to_owned()), 1),
        (OnCrash::Ask, done(), 2),
    ];
    for (on_crash, outcome, made) in rows {
        let effects = Effects::default();
        let tool = ToolDefinition { on_crash, ..slow(&effects) };
        let (world, _) =
            world([calls(&[("c1", "slow", json!({}))]), text("done")], vec![tool]).await;
        let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
        pass(Duration::from_secs(1)).await;
        let world = deploy(world).await;
        pass(Duration::from_secs(1)).await;
        if on_crash == OnCrash::Ask {
            assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Suspended);
            assert_eq!(effects.all().len(), 1, "before the answer");
            answer(&world, json!({ "approved": true })).await;
        }
        pass(Duration::from_secs(20)).await;
        let (status, _, outcomes) = recorded(&world, &id).await;
        assert_eq!((status, outcomes), (GenerationStatus::Completed, vec![outcome]));
        assert_eq!(effects.all().len(), made, "{on_crash:?}");
    }
}

/// Has the store refuse writes while the run ends, and accept them afterwards.
async fn outlive_refusals(world: &World) {
    pass(Duration::from_secs(1)).await;
    world.store.set_writable(false);
    pass(Duration::from_secs(20)).await;
    world.store.set_writable(true);
    pass(Duration::from_secs(40)).await;
}

#[actix::test]
async fn runs_whose_end_the_store_refuses_do_not_stay_working() {
    tokio::time::pause();
    let pieces = [
        ScriptedPiece::Pause(Duration::from_secs(10)),
        ScriptedPiece::Say(ModelEvent::TextDelta("late".to_owned())),
    ];
    let (world, model) =
        world([ScriptedAnswer::Pieces(pieces.to_vec()), text("now")], vec![]).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    outlive_refusals(&world).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Error);
    let entry = world.runtime.generation("desk", &id, &Visibility::Everything).await.unwrap();
    let error = entry.unwrap().record.error;
    assert_eq!(error.as_deref(), Some("the store did not accept its end"));
    assert_eq!(model.requests().len(), 1, "it does not run again");
    assert!(world.runtime.generate(request()).await.is_ok());
}

#[actix::test]
async fn cancelled_runs_whose_end_the_store_refuses_stay_cancelled() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [calls(&[("c1", "slow", json!({}))]), text("never")];
    let (world, model) = world(script, vec![slow(&effects)]).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    pass(Duration::from_secs(1)).await;
    world.store.set_writable(false);
    let everything = Visibility::Everything;
    let refused = world.runtime.cancel_generation("desk", &id, &everything).await;
    assert!(matches!(refused, Err(CancelGenerationError::Unavailable(_))), "{refused:?}");
    pass(Duration::from_secs(20)).await;
    world.store.set_writable(true);
    pass(Duration::from_secs(40)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Cancelled);
    assert_eq!((effects.all().len(), model.requests().len()), (1, 1));
}

#[actix::test]
async fn runs_with_calls_continue_when_the_store_accepts_writes_again() {
    tokio::time::pause();
    let effects = Effects::default();
    let tool = ToolDefinition { on_crash: OnCrash::Repeat, ..slow(&effects) };
    // the model is asked again, as its answer is not recorded
    let script = [calls(&[("c1", "slow", json!({}))]), text("lost"), text("done")];
    let (world, _) = world(script, vec![tool]).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    outlive_refusals(&world).await;
    let (status, _, outcomes) = recorded(&world, &id).await;
    assert_eq!((status, outcomes), (GenerationStatus::Completed, vec![done()]));
    let keys: BTreeSet<_> = effects.keys().into_iter().collect();
    assert_eq!(keys.len(), 1, "a call that is made again has the same key");
}

#[actix::test]
async fn an_answer_before_a_shutdown_says_nothing_about_the_call_that_it_interrupts() {
    tokio::time::pause();
    let effects = Effects::default();
    let tool = ToolDefinition { on_crash: OnCrash::Ask, ..slow(&effects) };
    let (mut world, _) =
        world([calls(&[("c1", "slow", json!({}))]), text("done")], vec![tool]).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    // more often than crashes are allowed
    for made in 1..5 {
        pass(Duration::from_secs(1)).await;
        assert_eq!(effects.all().len(), made);
        world = deploy(world).await;
        pass(Duration::from_secs(1)).await;
        assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Suspended);
        answer(&world, json!({ "approved": true })).await;
    }
    pass(Duration::from_secs(20)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Completed);
    assert_eq!(open_asks(&world).await, []);
}

#[actix::test]
async fn shutdowns_while_the_model_answers_are_no_crashes() {
    tokio::time::pause();
    let effects = Effects::default();
    let hang = || ScriptedAnswer::Hang;
    let script =
        [calls(&[("c1", "refund", json!({}))]), hang(), hang(), hang(), hang(), text("done")];
    let (mut world, _) = world(script, vec![refund(&effects)]).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    for _ in 0..4 {
        pass(Duration::from_secs(1)).await;
        assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Working);
        world = deploy(world).await;
    }
    pass(Duration::from_secs(1)).await;
    let (status, said, outcomes) = recorded(&world, &id).await;
    assert_eq!((status, said.as_str()), (GenerationStatus::Completed, "done"));
    assert_eq!((outcomes, effects.all().len()), (vec![done()], 1));
}

#[actix::test]
async fn what_sub_agents_have_used_counts_after_a_crash() {
    tokio::time::pause();
    let mut used = Vec::new();
    for crashes in [false, true] {
        let mut script = vec![
            calls(&[("d1", "delegate_task", json!({ "agent": "desk", "task": "refund" }))]),
            text("inner done"),
            text("outer done"),
        ];
        if crashes {
            script.insert(2, ScriptedAnswer::Hang);
        }
        let registry = with_boss(registry(&ScriptedModel::remote(script), Vec::new()));
        let mut world = World::launch(registry, RuntimeLimits::default()).await;
        let asked = GenerationRequest { agent_id: "boss".to_owned(), ..request() };
        let id = world.runtime.begin_generation(asked).await.unwrap().id.to_string();
        pass(Duration::from_secs(1)).await;
        if crashes {
            world = world.restart().await;
            pass(Duration::from_secs(20)).await;
        }
        let entry = world.runtime.generation("boss", &id, &Visibility::Everything).await.unwrap();
        let record = entry.unwrap().record;
        assert_eq!(record.output, Some(json!("outer done")));
        used.push(record.usage.unwrap());
    }
    assert_eq!(used[0], used[1]);
}
