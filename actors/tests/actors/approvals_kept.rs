//! Approvals that are not lost where there is no room, a request is refused, or the store fails.

use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};
use greenroom_actors::ports::store::GenerationStatus;
use greenroom_actors::testkit::{World, pass};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::approvals::{
    Effects, answer, calls, generate, guarded, open_asks, over_100, recorded, registry, request,
    text, world,
};
use crate::approved_runs::{slow, with_boss};

/// A request in another conversation.
fn elsewhere() -> GenerationRequest {
    GenerationRequest { conversation_id: Some("other".to_owned()), ..request() }
}

#[actix::test]
async fn an_approved_call_of_a_sub_agent_is_made_however_many_run() {
    tokio::time::pause();
    let effects = Effects::default();
    let model = ScriptedModel::local([
        calls(&[("d1", "delegate_task", json!({ "agent": "desk", "task": "refund" }))]),
        calls(&[("c1", "refund", json!({ "amount": 500 }))]),
        ScriptedAnswer::Hang,
        text("inner done"),
        text("outer done"),
    ]);
    let registry = with_boss(registry(&model, vec![guarded(&effects, over_100())]));
    let limits = RuntimeLimits { generations_live_max: 2, ..RuntimeLimits::default() };
    let world = World::launch(registry, limits).await;
    let asked = GenerationRequest { agent_id: "boss".to_owned(), ..request() };
    let waiting = world.runtime.generate(asked).await.unwrap();
    assert!(waiting.is_suspended());
    world.runtime.begin_generation(elsewhere()).await.unwrap();
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_millis(100)).await;
    let all = &Visibility::Everything;
    let entry = world.runtime.generation("boss", &waiting.id, all).await.unwrap().unwrap();
    assert_eq!(entry.record.output, Some(json!("outer done")));
    assert_eq!(effects.all(), [json!({ "amount": 500 })]);
}

#[actix::test]
async fn a_message_that_is_refused_withdraws_nothing() {
    tokio::time::pause();
    let model = ScriptedModel::local([
        calls(&[("c1", "refund", json!({ "amount": 500 }))]),
        ScriptedAnswer::Hang,
    ]);
    let registry = registry(&model, vec![guarded(&Effects::default(), over_100())]);
    let limits = RuntimeLimits { generations_live_max: 1, ..RuntimeLimits::default() };
    let world = World::launch(registry, limits).await;
    let waiting = generate(&world).await;
    let invalid = GenerationRequest { schema: Some(json!({ "type": 5 })), ..request() };
    assert!(world.runtime.generate(invalid).await.is_err(), "invalid");
    let known = GenerationRequest { chosen_id: Some(waiting.id.clone()), ..request() };
    assert!(world.runtime.generate(known).await.is_err(), "a known id");
    world.store.set_writable(false);
    assert!(world.runtime.generate(request()).await.is_err(), "no writes");
    world.store.set_writable(true);
    world.runtime.begin_generation(elsewhere()).await.unwrap();
    assert!(world.runtime.generate(request()).await.is_err(), "busy");
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Suspended);
    assert_eq!(open_asks(&world).await.len(), 1);
    world.runtime.drain(Duration::from_millis(10)).await;
    assert!(world.runtime.generate(request()).await.is_err(), "draining");
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Suspended);
}

#[actix::test]
async fn a_run_that_could_not_be_put_down_waits_after_the_outage() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [
        calls(&[("s1", "slow", json!({})), ("c1", "refund", json!({ "amount": 500 }))]),
        text("refunded"),
    ];
    let tools = vec![guarded(&effects, over_100()), slow(&Effects::default())];
    let (world, _) = world(script, tools).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    pass(Duration::from_secs(5)).await;
    world.store.set_writable(false);
    pass(Duration::from_secs(10)).await;
    world.store.set_writable(true);
    pass(Duration::from_secs(60)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Suspended);
    answer(&world, json!({ "approved": true })).await;
    let (status, said, _) = recorded(&world, &id).await;
    assert_eq!((status, said.as_str()), (GenerationStatus::Completed, "refunded"));
    assert_eq!(effects.all().len(), 1);
}

#[actix::test]
async fn a_run_that_could_not_be_taken_up_is_taken_up_after_the_outage() {
    tokio::time::pause();
    let script = [calls(&[("s1", "slow", json!({}))]), text("done")];
    let (world, _) = world(script, vec![slow(&Effects::default())]).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    pass(Duration::from_secs(1)).await;
    let world = world.restart().await;
    world.store.set_writable(false);
    pass(Duration::from_secs(1)).await;
    world.store.set_writable(true);
    pass(Duration::from_secs(60)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Completed);
}

#[actix::test]
async fn a_run_that_no_process_runs_can_be_cancelled() {
    tokio::time::pause();
    let pause = ScriptedPiece::Pause(Duration::from_secs(5));
    let script = [ScriptedAnswer::Pieces(vec![pause])];
    let (world, _) = world(script, Vec::new()).await;
    let id = world.runtime.begin_generation(request()).await.unwrap().id.to_string();
    pass(Duration::from_secs(1)).await;
    world.store.set_writable(false);
    // between two attempts to record its end
    pass(Duration::from_millis(10_500)).await;
    world.store.set_writable(true);
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Working, "its end is not recorded");
    let all = &Visibility::Everything;
    world.runtime.cancel_generation("desk", &id, all).await.unwrap();
    pass(Duration::from_secs(10)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Cancelled);
}
