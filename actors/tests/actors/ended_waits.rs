//! Runs that wait for people and end, or forget, without an answer: cancelled by id, with their
//! conversation or their user, and beside chats of the same conversation.

use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use greenroom_actors::ports::store::{
    AskState, AskSubject, GenerationEntry, GenerationStatus, Status,
};
use greenroom_actors::requests::{ApproveCall, AskError, Unavailable};
use greenroom_actors::runtime::CancelGenerationError;
use greenroom_actors::testkit::{World, pass, start, target};
use greenroom_actors::visibility::Visibility;
use serde_json::json;

use crate::approvals::{
    Effects, answer, ask, calls, decision, generate, guarded, key, open_asks, over_100, recorded,
    registry, request, text, world,
};
use crate::approved_runs::with_boss;

const ALL: Visibility = Visibility::Everything;

fn ask_for(id: &str) -> ScriptedAnswer {
    calls(&[(id, "refund", json!({ "amount": 500 }))])
}

/// Returns the generation of the only open ask.
async fn asking(world: &World) -> Arc<str> {
    let open = open_asks(world).await;
    assert_eq!(open.len(), 1, "{open:?}");
    let AskSubject::Call(call) = &open[0].subject else { panic!("{open:?}") };
    Arc::clone(&call.generation_id)
}

async fn entry(world: &World, agent: &str, id: &str) -> GenerationEntry {
    world.runtime.generation(agent, id, &ALL).await.unwrap().unwrap()
}

/// Starts a workflow of `ann` whose step asks `desk` in the conversation `talk`, until it waits.
async fn step_of_ann(world: &World) {
    let mut asked = start("w", "e", json!({}));
    asked.user_id = Some("ann".to_owned());
    asked.conversation_id = Some("talk".to_owned());
    let halted = world.runtime.execute(asked).await.unwrap();
    assert_eq!(halted.status(), Status::Suspended);
}

#[actix::test]
async fn the_step_of_a_cancelled_generation_fails() {
    tokio::time::pause();
    let effects = Effects::default();
    let (world, _) = world([ask_for("c1")], vec![guarded(&effects, over_100())]).await;
    step_of_ann(&world).await;
    let (id, open) = (asking(&world).await, open_asks(&world).await);
    world.runtime.cancel_generation("desk", &id, &ALL).await.unwrap();
    pass(Duration::from_millis(100)).await;
    assert_eq!(recorded(&world, &id).await.0, GenerationStatus::Cancelled);
    assert_eq!(ask(&world, &open[0].id).await.state, AskState::Withdrawn);
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, effects.all().len()), (Status::Error, 0));
    assert_eq!(state.steps[0].generation_id.as_deref(), Some(&*id), "of the attempt that failed");
    let again = world.runtime.cancel_generation("desk", &id, &ALL).await;
    assert!(again.is_err(), "it has ended");
}

#[actix::test]
async fn the_caller_of_a_cancelled_sub_agent_goes_on() {
    tokio::time::pause();
    let script = [
        calls(&[("d1", "delegate_task", json!({ "agent": "desk", "task": "refund" }))]),
        ask_for("c1"),
        text("outer done"),
    ];
    let effects = Effects::default();
    let model = ScriptedModel::local(script);
    let registry = with_boss(registry(&model, vec![guarded(&effects, over_100())]));
    let world = World::launch(registry, RuntimeLimits::default()).await;
    let asked = GenerationRequest { agent_id: "boss".to_owned(), ..request() };
    let waiting = world.runtime.generate(asked).await.unwrap();
    let inner = asking(&world).await;
    world.runtime.cancel_generation("desk", &inner, &ALL).await.unwrap();
    pass(Duration::from_millis(100)).await;
    assert_eq!(entry(&world, "desk", &inner).await.record.status, GenerationStatus::Cancelled);
    let outer = entry(&world, "boss", &waiting.id).await;
    assert_eq!(outer.record.status, GenerationStatus::Completed);
    let outcome = &outer.steps[0].tool_results[0].outcome;
    assert!(matches!(outcome, ToolOutcome::Error(_)), "the model reads it: {outcome:?}");
    assert_eq!((open_asks(&world).await, effects.all().len()), (vec![], 0));
}

#[actix::test]
async fn a_chat_does_not_end_what_a_step_asks_in_its_conversation() {
    tokio::time::pause();
    let effects = Effects::default();
    let script = [ask_for("c1"), text("hello"), text("refunded")];
    let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
    step_of_ann(&world).await;
    let of_step = asking(&world).await;
    assert_eq!(generate(&world).await.text, "hello");
    assert_eq!(asking(&world).await, of_step);
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_millis(100)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, effects.all().len()), (Status::Completed, 1));
}

#[actix::test]
async fn what_is_asked_in_a_deleted_conversation_is_withdrawn() {
    tokio::time::pause();
    let (world, _) = world([ask_for("c1")], vec![guarded(&Effects::default(), over_100())]).await;
    let waiting = generate(&world).await;
    let open = open_asks(&world).await;
    assert_eq!(world.runtime.delete_conversation(key()).await, Ok(true));
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Cancelled);
    assert_eq!(ask(&world, &open[0].id).await.state, AskState::Withdrawn);
    let late = decision(json!({ "approved": true }));
    assert!(world.runtime.answer_ask(open[0].clone(), late).await.is_err());
    assert!(world.runtime.conversations().conversation(&key()).await.unwrap().is_none());
    assert_eq!(world.runtime.delete_conversation(key()).await, Ok(false));
}

#[actix::test]
async fn a_step_goes_on_without_its_deleted_conversation() {
    tokio::time::pause();
    let effects = Effects::default();
    let (world, _) =
        world([ask_for("c1"), text("refunded")], vec![guarded(&effects, over_100())]).await;
    step_of_ann(&world).await;
    assert_eq!(world.runtime.delete_conversation(key()).await, Ok(true));
    answer(&world, json!({ "approved": true })).await;
    pass(Duration::from_millis(100)).await;
    let state = world.runtime.describe(&target("w", "e")).await.unwrap();
    assert_eq!((state.status, effects.all().len()), (Status::Completed, 1));
    let conversation = world.runtime.conversations().conversation(&key()).await.unwrap();
    assert!(conversation.is_none(), "it stays deleted: {conversation:?}");
}

#[actix::test]
async fn a_run_waits_for_a_limited_number_of_answers() {
    tokio::time::pause();
    let refund = |id| (id, "refund", json!({ "amount": 500 }));
    let delegate = |id| (id, "delegate_task", json!({ "agent": "desk", "task": "refund" }));
    let two = || calls(&[refund("c1"), refund("c2")]);
    let too_many = "not asked: more than 2 questions would wait for people at once; ask fewer, or \
                    wait for their answers";
    let rows = [
        ("desk", vec![calls(&[refund("c1"), refund("c2"), refund("c3")])]),
        ("boss", vec![calls(&[delegate("d1"), delegate("d2")]), two(), two()]),
    ];
    for (agent, script) in rows {
        let effects = Effects::default();
        let script = script.into_iter().chain([text("done"), text("done")]);
        let model = ScriptedModel::local(script);
        let registry = with_boss(registry(&model, vec![guarded(&effects, over_100())]));
        let limits = RuntimeLimits { generation_asks_max: 2, ..RuntimeLimits::default() };
        let world = World::launch(registry, limits).await;
        let asked = GenerationRequest { agent_id: agent.to_owned(), ..request() };
        let waiting = world.runtime.generate(asked).await.unwrap();
        assert_eq!((waiting.asks.len(), open_asks(&world).await.len()), (2, 2), "{agent}");
        let failed = waiting.tool_results.iter().map(|result| result.outcome.clone());
        assert_eq!(failed.collect::<Vec<_>>(), [ToolOutcome::Error(too_many.to_owned())]);
        for open in open_asks(&world).await {
            let yes = decision(json!({ "approved": true }));
            world.runtime.answer_ask(open, yes).await.unwrap();
        }
        pass(Duration::from_millis(100)).await;
        let ended = entry(&world, agent, &waiting.id).await;
        assert_eq!(ended.record.status, GenerationStatus::Completed, "{agent}");
        assert_eq!(effects.all().len(), 2, "{agent}");
    }
}

#[actix::test]
async fn a_cancellation_in_an_outage_is_made_after_it() {
    tokio::time::pause();
    let model = ScriptedModel::local([ask_for("c1")]);
    let registry = registry(&model, vec![guarded(&Effects::default(), over_100())]);
    let limits =
        RuntimeLimits { store_patience: Duration::from_secs(5), ..RuntimeLimits::default() };
    let world = World::launch(registry, limits).await;
    let waiting = generate(&world).await;
    world.store.begin_outage();
    let cancelled = world.runtime.cancel_generation("desk", &waiting.id, &ALL).await;
    let refusal =
        matches!(cancelled, Err(CancelGenerationError::Unavailable(Unavailable::Store { .. })));
    assert!(refusal, "{cancelled:?}");
    world.store.end_outage();
    pass(Duration::from_secs(60)).await;
    assert_eq!(recorded(&world, &waiting.id).await.0, GenerationStatus::Cancelled);
    assert_eq!(open_asks(&world).await, []);
}

#[actix::test]
async fn of_two_cancellations_at_once_neither_fails_the_step_in_another_way() {
    tokio::time::pause();
    for moments in 0..24 {
        let (world, _) =
            world([ask_for("c1")], vec![guarded(&Effects::default(), over_100())]).await;
        step_of_ann(&world).await;
        let id = asking(&world).await;
        let second = async {
            for _ in 0..moments {
                tokio::task::yield_now().await;
            }
            world.runtime.cancel_generation("desk", &id, &ALL).await
        };
        let first = world.runtime.cancel_generation("desk", &id, &ALL);
        let (first, second) = tokio::join!(first, second);
        let ended = Err(CancelGenerationError::Ended {
            id: id.to_string(),
            status: GenerationStatus::Cancelled,
        });
        assert_eq!(first, Ok(()), "after {moments}");
        assert!(second == Ok(()) || second == ended, "after {moments}: {second:?}");
        pass(Duration::from_millis(100)).await;
        let record = entry(&world, "desk", &id).await.record;
        assert_eq!((record.status, record.error), (GenerationStatus::Cancelled, None));
        let state = world.runtime.describe(&target("w", "e")).await.unwrap();
        assert_eq!(state.status, Status::Error);
        let failure = state.steps.iter().find_map(|step| step.error.as_deref());
        assert_eq!(failure, Some("the generation was cancelled"), "after {moments}");
    }
}

#[actix::test]
async fn an_answer_and_a_cancellation_at_once_have_one_winner() {
    tokio::time::pause();
    for moments in 0..48 {
        let effects = Effects::default();
        let script = [ask_for("c1"), text("done")];
        let (world, _) = world(script, vec![guarded(&effects, over_100())]).await;
        let waiting = generate(&world).await;
        let open = ask(&world, &waiting.asks[0].ask_id).await;
        let answering = world.runtime.answer_ask(open, decision(json!({ "approved": true })));
        let cancelling = async {
            for _ in 0..moments {
                tokio::task::yield_now().await;
            }
            world.runtime.cancel_generation("desk", &waiting.id, &ALL).await
        };
        let (_, cancelled) = tokio::join!(answering, cancelling);
        let (status, _, _) = recorded(&world, &waiting.id).await;
        match cancelled {
            Ok(()) => assert_eq!(status, GenerationStatus::Cancelled, "after {moments}"),
            Err(CancelGenerationError::Ended { status: ended, .. }) => {
                assert_eq!(
                    (ended, status),
                    (GenerationStatus::Completed, ended),
                    "after {moments}"
                );
            }
            Err(other) => panic!("after {moments}: {other:?}"),
        }
    }
}

#[actix::test]
async fn an_approval_that_is_sent_twice_answers_one_ask_of_a_sub_agent() {
    tokio::time::pause();
    let effects = Effects::default();
    let refund = |id| (id, "refund", json!({ "amount": 500 }));
    let delegate = || calls(&[("d1", "delegate_task", json!({ "agent": "desk", "task": "x" }))]);
    let one_by_one = vec![ask_for("c1"), ask_for("c2")];
    let at_once = vec![calls(&[refund("c1"), refund("c2")])];
    for (script, asked) in [(at_once, 2), (one_by_one, 1)] {
        let script = [delegate()].into_iter().chain(script).chain([text("in"), text("out")]);
        let model = ScriptedModel::local(script);
        let registry = with_boss(registry(&model, vec![guarded(&effects, over_100())]));
        let world = World::launch(registry, RuntimeLimits::default()).await;
        let boss = GenerationRequest { agent_id: "boss".to_owned(), ..request() };
        let waiting = world.runtime.generate(boss).await.unwrap();
        assert_eq!(waiting.asks.len(), asked);
        let approve = || ApproveCall {
            agent_id: "boss".to_owned(),
            generation_id: waiting.id.clone(),
            tool_call_id: "d1".to_owned(),
            visibility: ALL,
            answer: decision(json!({ "approved": true })),
        };
        let first = world.runtime.approve_call(approve()).await;
        pass(Duration::from_millis(100)).await;
        let open = open_asks(&world).await;
        let asks = open.iter().map(|ask| Arc::clone(&ask.id)).collect();
        let second = world.runtime.approve_call(approve()).await;
        assert_eq!(second.err(), Some(AskError::Ambiguous { asks }));
        // the only one is answered; of two, none is
        assert_eq!((first.is_ok(), open.len()), (asked == 1, asked), "{first:?}");
    }
}
