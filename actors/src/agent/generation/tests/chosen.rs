//! Ids that callers choose for their generations.

use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel};

use super::*;

/// Sets the id `g1`, which every generation of these tests has, as chosen by the caller.
fn chosen(request: GenerationRequest) -> GenerationRequest {
    GenerationRequest { chosen_id: Some("g1".to_owned()), ..request }
}

fn exists() -> GenerateError {
    GenerateError::Exists("g1".to_owned())
}

#[actix::test]
async fn an_id_is_taken_during_and_after_its_generation() {
    tokio::time::pause();
    let model = ScriptedModel::local([ScriptedAnswer::Hang, text("never asked")]);
    let world = World::new(model, History::default());
    let first = world.spawn(chosen(request(None)));
    settle().await;
    assert_eq!(world.run(chosen(request(None))).await, Err(exists()), "while it works");
    assert!(world.deps.live.find("writer", "g1", &Visibility::Everything).is_some());
    first.cancel();
    assert_eq!(first.outcome().await, Err(GenerateError::Cancelled));
    let recorded = world.history.statuses();

    assert_eq!(world.run(chosen(request(None))).await, Err(exists()), "after its end");
    let second = world.spawn(chosen(request(None)));
    second.cancel();
    assert!(second.outcome().await.is_err(), "cancelled while it checks the id");
    assert_eq!(world.history.statuses(), recorded, "the first stays as it was");
    assert_eq!(world.history.last().status, GenerationStatus::Cancelled);
}

#[actix::test]
async fn a_generation_that_is_cancelled_before_its_id_was_checked_is_recorded() {
    tokio::time::pause();
    let world = World::new(ScriptedModel::local([text("never asked")]), History::default());
    let early = world.spawn(chosen(request(None)));
    early.cancel();
    assert_eq!(early.outcome().await, Err(GenerateError::Cancelled));
    assert_eq!(world.history.statuses(), [GenerationStatus::Cancelled]);
}

#[actix::test]
async fn a_refused_id_leaves_a_running_chat_registered() {
    tokio::time::pause();
    let resumable = |agent: &mut AgentDefinition| {
        agent.is_resumable = true;
        agent.memory = true;
    };
    let model = ScriptedModel::local([text("done"), ScriptedAnswer::Hang]);
    let world = World::with(model, History::default(), resumable);
    world.run(chosen(request(None))).await.unwrap();

    let conversation_id = Some("talk".to_owned());
    let chat = GenerationRequest { is_chat: true, conversation_id, ..request(None) };
    let arbiter = actix::Arbiter::current();
    let deps = world.deps.clone();
    let running = spawn_generation(&arbiter, deps, chat.clone(), "g2".to_owned(), None);
    settle().await;
    assert_eq!(world.run(chosen(chat)).await, Err(exists()));
    assert!(world.deps.live.chat(&key()).is_some());
    drop(running);
}

#[actix::test]
async fn an_id_is_free_after_a_refused_request() {
    tokio::time::pause();
    let world = World::local([text("hi")]);
    let wrong = world.run(chosen(request(Some(json!({ "type": "car" }))))).await;
    assert!(matches!(wrong, Err(GenerateError::InvalidSchema(_))), "{wrong:?}");
    assert_eq!(world.run(chosen(request(None))).await.unwrap().id, "g1");
}

#[actix::test]
async fn a_run_that_continues_a_live_one_is_refused() {
    tokio::time::pause();
    let world = World::new(ScriptedModel::local([ScriptedAnswer::Hang]), History::default());
    let first = world.spawn(request(None));
    settle().await;
    let recorded = world.history.statuses();
    let second = world.run(GenerationRequest { continues: true, ..request(None) }).await;
    assert_eq!(second, Err(exists()));
    assert_eq!(world.history.statuses(), recorded, "nothing is recorded over the first one");
    assert!(world.deps.live.find("writer", "g1", &Visibility::Everything).is_some());
    first.cancel();
    assert_eq!(first.outcome().await, Err(GenerateError::Cancelled));
}
