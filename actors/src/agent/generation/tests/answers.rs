//! One question and its recorded answer, without tools and subscribers.

use crate::requests::Unavailable;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::json;

use crate::domain::time::Timestamp;
use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel};
use crate::ports::model::{ModelError, ModelErrorKind};
use crate::ports::store::GenerationStatus;

use super::*;

/// Returns the output of a future if it is ready once everything else waits.
async fn is_done<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    settle().await;
    future.now_or_never()
}

#[actix::test]
async fn a_local_answer_costs_one_record() {
    tokio::time::pause();
    let world = World::local([text("hi")]);

    let generation = world.run(request(None)).await.unwrap();

    assert_eq!(generation.text, "hi");
    assert_eq!(world.history.statuses(), [GenerationStatus::Completed]);
    assert_eq!(world.history.steps(), ["0:hi"]);
    let record = world.history.last();
    assert_eq!(record.output, Some(json!("hi")));
    assert_eq!(record.input, json!("hello"));
    assert_eq!(record.user_id.as_deref(), Some("anna"));
    assert_eq!(record.end_time, Some(Timestamp(43_200_000)));
    assert_eq!(record.usage.unwrap().total_tokens, 2);
    let asked = &world.model.requests()[0];
    assert_eq!(asked.messages[0].plain_text(), "Be kind.");
    assert_eq!(asked.options.max_output_tokens, Some(4000));
}

#[actix::test]
async fn an_answer_waits_until_it_is_durable() {
    tokio::time::pause();
    let history = History::gated();
    let world = World::new(ScriptedModel::local([text("hi")]), history);
    let mut outcome = Box::pin(world.run(request(None)));
    assert!((&mut outcome).now_or_never().is_none());

    assert!(is_done(&mut outcome).await.is_none(), "answered before the record was durable");
    assert_eq!(world.history.statuses(), [GenerationStatus::Completed]);
    assert_eq!(world.active.live(), 1);

    world.history.commit();
    assert_eq!(outcome.await.unwrap().text, "hi");
    assert_eq!(world.active.live(), 0);
}

#[actix::test]
async fn a_remote_model_is_asked_after_the_start_is_durable() {
    tokio::time::pause();
    let history = History::gated();
    let world = World::new(ScriptedModel::remote([text("hi")]), history);
    let handle = world.spawn(request(None));
    settle().await;
    assert_eq!(world.history.statuses(), [GenerationStatus::Working]);
    assert!(world.model.requests().is_empty(), "asked before the start was durable");

    world.history.commit();
    settle().await;
    assert_eq!(world.model.requests().len(), 1);
    world.history.commit();

    assert_eq!(handle.outcome().await.unwrap().text, "hi");
    let expected = [GenerationStatus::Working, GenerationStatus::Completed];
    assert_eq!(world.history.statuses(), expected);
}

#[actix::test]
async fn cancel_drops_the_models_future_and_is_recorded() {
    tokio::time::pause();
    let world = World::local([ScriptedAnswer::Hang]);
    let handle = world.spawn(request(None));
    settle().await;
    assert_eq!(world.model.requests().len(), 1);

    handle.cancel();
    handle.cancel();

    assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
    assert_eq!(world.model.abandoned(), 1);
    assert_eq!(world.history.statuses(), [GenerationStatus::Cancelled]);
    tokio::time::timeout(Duration::from_secs(1), world.active.idle()).await.unwrap();
}

/// Cancels a run while its first record is being committed.
async fn cancelled_at_the_first_commit(model: ScriptedModel) -> (World, GenerationHandle) {
    tokio::time::pause();
    let world = World::new(model, History::gated());
    let handle = world.spawn(request(None));
    settle().await;
    handle.cancel();
    settle().await;
    world.history.commit();
    (world, handle)
}

#[actix::test]
async fn a_cancel_before_the_start_is_durable_asks_nothing() {
    let (world, handle) = cancelled_at_the_first_commit(ScriptedModel::remote([text("hi")])).await;

    assert_eq!(handle.outcome().await, Err(GenerateError::Cancelled));
    let expected = [GenerationStatus::Working, GenerationStatus::Cancelled];
    assert_eq!(world.history.statuses(), expected);
    assert!(world.model.requests().is_empty());
}

#[actix::test]
async fn a_cancel_after_the_end_changes_nothing() {
    let (world, handle) = cancelled_at_the_first_commit(ScriptedModel::local([text("hi")])).await;

    assert_eq!(handle.outcome().await.unwrap().text, "hi");
    assert_eq!(world.history.statuses(), [GenerationStatus::Completed]);
}

#[actix::test]
async fn a_dropped_handle_or_wait_cancels_the_run() {
    tokio::time::pause();
    type Leave = fn(GenerationHandle);
    let cases: [(&str, Leave); 2] = [
        ("with the handle", drop),
        ("while waiting", |handle| {
            let mut outcome = Box::pin(handle.outcome());
            assert!((&mut outcome).now_or_never().is_none());
        }),
    ];
    for (name, leave) in cases {
        let world = World::local([ScriptedAnswer::Hang]);
        let handle = world.spawn(request(None));
        settle().await;
        leave(handle);
        tokio::time::timeout(Duration::from_secs(1), world.active.idle()).await.unwrap();
        assert_eq!(world.model.abandoned(), 1, "{name}");
        assert_eq!(world.history.statuses(), [GenerationStatus::Cancelled], "{name}");
    }
}

#[actix::test]
async fn a_handle_dropped_at_once_cancels_the_run() {
    tokio::time::pause();
    let world = World::local([ScriptedAnswer::Hang]);
    drop(world.spawn(request(None)));
    tokio::time::timeout(Duration::from_secs(1), world.active.idle()).await.unwrap();
    assert_eq!(world.history.statuses(), [GenerationStatus::Cancelled]);
}

#[actix::test]
async fn failures_are_recorded_with_their_reason() {
    tokio::time::pause();
    let limited = ModelError::new(ModelErrorKind::RateLimited, "slow down");
    let stopped = ModelError::new(ModelErrorKind::Other, "the model stopped unexpectedly");
    let cases = [
        ("an error", ScriptedAnswer::Error(limited.clone()), GenerateError::Model(limited)),
        ("a panic", ScriptedAnswer::Panic, GenerateError::Model(stopped)),
    ];
    for (name, answer, expected) in cases {
        let world = World::local([answer]);
        assert_eq!(world.run(request(None)).await, Err(expected.clone()), "{name}");
        let record = world.history.last();
        assert_eq!(record.status, GenerationStatus::Error, "{name}");
        assert_eq!(record.error, Some(expected.to_string()), "{name}");
        tokio::time::timeout(Duration::from_secs(1), world.active.idle()).await.unwrap();
    }
}

#[actix::test]
async fn refusals_are_not_in_the_history() {
    tokio::time::pause();
    let world = World::local([]);
    let unknown = GenerationRequest { agent_id: "missing".to_owned(), ..request(None) };
    let lost = GenerationRequest { agent_id: "lost".to_owned(), ..request(None) };

    let refused = world.run(unknown).await;
    assert_eq!(refused, Err(GenerateError::UnknownAgent("missing".to_owned())));
    let refused = world.run(lost).await;
    assert_eq!(refused, Err(GenerateError::Failed("model nowhere is not registered".to_owned())));
    let refused = world.run(request(Some(json!({ "type": 1 })))).await;
    assert!(matches!(refused, Err(GenerateError::InvalidSchema(_))), "{refused:?}");
    assert!(world.history.statuses().is_empty());
    tokio::time::timeout(Duration::from_secs(1), world.active.idle()).await.unwrap();
}

#[actix::test]
async fn instructions_and_model_see_user_and_conversation() {
    tokio::time::pause();
    let model = ScriptedModel::local([text("hi")]);
    let world = World::with(model, History::default(), |agent| {
        let source = "{{ context.userId }} in {{ context.conversationId }}, {{ context.tone }}";
        agent.instructions = Some(Choice::Source(source.to_owned()));
        agent.model = Choice::Function(Arc::new(|context| match context["tone"].as_str() {
            Some("dry") => Ok("scripted".to_owned()),
            _ => Err("no such tone".to_owned()),
        }));
    });
    let asked = |tone: &str| GenerationRequest {
        conversation_id: Some("talk".to_owned()),
        context: serde_json::from_value(json!({ "tone": tone, "userId": "forged" })).unwrap(),
        ..request(None)
    };
    world.run(asked("dry")).await.unwrap();
    assert_eq!(world.model.requests()[0].messages[0].plain_text(), "anna in talk, dry");
    let refused = world.run(asked("loud")).await.unwrap_err();
    assert_eq!(refused.to_string(), "model: no such tone");
}

#[actix::test]
async fn an_object_is_repaired_once() {
    tokio::time::pause();
    let world = World::local([text("{}"), text("```json\n{\"n\":1}\n```")]);
    let schema = json!({ "type": "object", "required": ["n"] });

    let generation = world.run(request(Some(schema))).await.unwrap();

    assert_eq!(generation.object, Some(json!({ "n": 1 })));
    assert_eq!(generation.usage.total_tokens, 4);
    assert_eq!(world.history.last().output, Some(json!({ "n": 1 })));
    assert_eq!(world.model.requests().len(), 2);
    assert_eq!(world.model.requests()[1].messages.len(), 4);
}

#[actix::test]
async fn an_answer_that_cannot_be_recorded_is_an_error() {
    tokio::time::pause();
    let models = [
        ("a local model", ScriptedModel::local([text("hi")]), 1),
        ("a remote model", ScriptedModel::remote([text("hi")]), 0),
    ];
    for (name, model, asked) in models {
        let world = World::new(model, History::refusing());
        let expected = GenerateError::Unavailable(Unavailable::Store {
            reason: Arc::from("disk full"),
            execution: None,
        });
        assert_eq!(world.run(request(None)).await, Err(expected), "{name}");
        assert_eq!(world.model.requests().len(), asked, "{name}");
    }
}

#[actix::test]
async fn an_arbiter_that_has_stopped_gives_an_error() {
    let world = World::local([text("hi")]);
    let arbiter = actix::Arbiter::new();
    let handle = arbiter.handle();
    arbiter.stop();
    arbiter.join().unwrap();

    let generation =
        spawn_generation(&handle, world.deps.clone(), request(None), "g1".to_owned(), None);
    let expected = Err(GenerateError::Unavailable(Unavailable::ActorLost));
    assert_eq!(generation.outcome().await, expected);
    assert_eq!(world.active.live(), 0);
}

#[actix::test]
async fn a_run_whose_record_was_deleted_before_it_was_taken_up_does_not_begin_anew() {
    let world = World::local([ScriptedAnswer::Panic]);
    let taken_up = GenerationRequest { continues: true, ..request(None) };
    let outcome = world.run(taken_up).await;
    assert!(matches!(outcome, Err(GenerateError::Cancelled)), "{outcome:?}");
    assert_eq!(world.model.requests().len(), 0);
    assert_eq!(world.history.writes.lock().unwrap().len(), 0);
}
