//! Runs with memory.

use crate::domain::message::Part;
use crate::ports::model::ModelEvent;
use crate::ports::model::scripted::{ScriptedAnswer, ScriptedModel, ScriptedPiece};
use crate::ports::store::{Conversation, ConversationPatch, Conversations as _, PageSize};
use crate::requests::Unavailable;

use super::*;

fn remembers(agent: &mut AgentDefinition) {
    with_tools(agent);
    agent.memory = true;
}

fn world(script: impl IntoIterator<Item = ScriptedAnswer>) -> World {
    World::with(ScriptedModel::local(script), History::default(), remembers)
}

fn asks(id: &str, words: &str) -> GenerationRequest {
    let message = Message { id: Some(id.to_owned()), ..Message::text(Role::User, words) };
    GenerationRequest {
        messages: vec![message],
        conversation_id: Some("talk".to_owned()),
        ..request(None)
    }
}

impl World {
    async fn run_as(
        &self,
        id: &str,
        request: GenerationRequest,
    ) -> Result<Generation, GenerateError> {
        let arbiter = actix::Arbiter::current();
        spawn_generation(&arbiter, self.deps.clone(), request, id.to_owned(), None).outcome().await
    }

    /// Returns id and text of every stored message.
    async fn stored(&self) -> Vec<String> {
        let messages = self.history.store.messages(&key(), None, PageSize::of(100)).await.unwrap();
        let shown = messages.into_iter().map(|stored| {
            let message = Message { id: None, role: stored.role, parts: stored.parts };
            format!("{}:{}", stored.id, message.plain_text())
        });
        shown.collect()
    }

    /// Returns the last prompt without the agent's instructions.
    fn asked(&self) -> Vec<String> {
        let requests = self.model.requests();
        let messages = &requests.last().unwrap().messages;
        messages.iter().skip(1).map(Message::plain_text).collect()
    }
}

#[actix::test]
async fn question_and_answer_are_remembered() {
    tokio::time::pause();
    let world = world([text("one"), text("two")]);
    world.run_as("g1", asks("u1", "first")).await.unwrap();
    let generation = world.run_as("g2", asks("u2", "second")).await.unwrap();
    assert_eq!(generation.message_id, "g2");
    assert_eq!(world.asked(), ["first", "one", "second"]);
    assert_eq!(world.stored().await, ["u1:first", "g1:one", "u2:second", "g2:two"]);
    assert_eq!(world.history.statuses().len(), 2, "messages and end are one record");
}

#[actix::test]
async fn nothing_is_stored_without_memory_conversation_or_for_another_user() {
    tokio::time::pause();
    let rows = [
        ("no conversation", true, None, "anna"),
        ("an agent without memory", false, Some("talk"), "anna"),
        ("of another user", true, Some("talk"), "bert"),
    ];
    for (name, memory, conversation_id, user) in rows {
        let model = ScriptedModel::local([text("one")]);
        let world = World::with(model, History::default(), |agent| agent.memory = memory);
        let request = GenerationRequest {
            conversation_id: conversation_id.map(str::to_owned),
            user_id: Some(user.to_owned()),
            ..asks("u1", "first")
        };
        world.run(request).await.unwrap();
        assert!(world.stored().await.is_empty(), "{name}");
    }
}

#[actix::test]
async fn a_run_with_tools_is_one_message() {
    tokio::time::pause();
    let world = world([calls([call("c1", "add", 0)]), text("done"), text("later")]);
    world.run_as("g1", asks("u1", "add")).await.unwrap();
    let stored = world.history.store.messages(&key(), None, PageSize::of(100)).await.unwrap();
    let [_, said] = stored.as_slice() else { panic!("{stored:?}") };
    let shapes: Vec<_> = said
        .parts
        .iter()
        .map(|part| match part {
            Part::ToolCall(_) => "call",
            Part::ToolResult(_) => "result",
            Part::Text { .. } => "text",
            part => panic!("{part:?}"),
        })
        .collect();
    assert_eq!(shapes, ["call", "result", "text"]);

    world.run_as("g2", asks("u2", "and now")).await.unwrap();
    let roles: Vec<_> =
        world.model.requests().last().unwrap().messages.iter().map(|m| m.role).collect();
    let expected =
        [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User];
    assert_eq!(roles, expected);
}

#[actix::test]
async fn the_caller_chooses_the_number_of_messages() {
    tokio::time::pause();
    let rows: [(Option<u32>, &[&str]); 4] = [
        (None, &["q0", "a0", "q1", "a1", "now"]),
        (Some(2), &["q1", "a1", "now"]),
        // an answer without its question is left out
        (Some(3), &["q1", "a1", "now"]),
        (Some(0), &["now"]),
    ];
    for (context_limit, expected) in rows {
        let world = world([text("a0"), text("a1"), text("end")]);
        world.run_as("g0", asks("u0", "q0")).await.unwrap();
        world.run_as("g1", asks("u1", "q1")).await.unwrap();
        let request = GenerationRequest { context_limit, ..asks("u2", "now") };
        world.run_as("g2", request).await.unwrap();
        assert_eq!(world.asked(), expected, "{context_limit:?}");
    }
}

#[actix::test]
async fn working_memory_is_part_of_the_system_message() {
    tokio::time::pause();
    let world = world([text("one")]);
    let conversation = Conversation {
        key: key(),
        title: None,
        metadata: serde_json::Map::new(),
        working_memory: None,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
    };
    let store = &world.history.store;
    store.create_conversation(conversation).await.unwrap();
    let patch = ConversationPatch {
        working_memory: Some(Some("likes tea".to_owned())),
        ..ConversationPatch::default()
    };
    store.change_conversation(key(), patch, Timestamp(1)).await.unwrap();
    world.run(asks("u1", "first")).await.unwrap();
    let system = world.model.requests()[0].messages[0].plain_text();
    assert!(system.starts_with("Be kind.") && system.ends_with("likes tea"), "{system}");
}

#[actix::test]
async fn a_cancelled_answer_is_remembered_a_failed_one_is_not() {
    tokio::time::pause();
    let piece = |words: &str| ScriptedPiece::Say(ModelEvent::TextDelta(words.to_owned()));
    let error =
        crate::ports::model::ModelError::new(crate::ports::model::ModelErrorKind::Other, "defect");
    let hangs = vec![piece("half a"), ScriptedPiece::Hang];
    let fails = vec![piece("half a"), ScriptedPiece::Fail(error)];
    let rows: [(&str, Vec<ScriptedPiece>, &[&str]); 3] = [
        ("cancelled after output", hangs, &["u1:first", "g1:half a"]),
        ("cancelled before", vec![ScriptedPiece::Hang], &[]),
        ("failed", fails, &[]),
    ];
    for (name, pieces, expected) in rows {
        let world = world([ScriptedAnswer::Pieces(pieces)]);
        let (handle, _recorder, _actor) = world.spawn_recorded(asks("u1", "first"));
        settle().await;
        handle.cancel();
        handle.outcome().await.unwrap_err();
        assert_eq!(world.stored().await, expected, "{name}");
    }
}

#[actix::test]
async fn a_regenerated_answer_replaces_the_old_one() {
    tokio::time::pause();
    let world = world([text("one"), text("two"), text("other")]);
    world.run_as("g1", asks("u1", "first")).await.unwrap();
    world.run_as("g2", asks("u2", "second")).await.unwrap();
    let message = |id: &str, role, words: &str| Message {
        id: Some(id.to_owned()),
        ..Message::text(role, words)
    };
    let list = vec![
        message("u1", Role::User, "first"),
        message("g1", Role::Assistant, "one"),
        message("u2", Role::User, "second"),
    ];
    let request = GenerationRequest { messages: list, is_whole: true, ..asks("", "") };
    world.run_as("g3", request).await.unwrap();
    assert_eq!(world.asked(), ["first", "one", "second"]);
    assert_eq!(world.stored().await, ["u1:first", "g1:one", "u2:second", "g3:other"]);
}

#[actix::test]
async fn a_continued_answer_keeps_its_id() {
    tokio::time::pause();
    let world = world([text("and more")]);
    let begun = Message { id: Some("a1".to_owned()), ..Message::text(Role::Assistant, "some") };
    let mut request = asks("u1", "first");
    request.messages.push(begun);
    let generation = world.run_as("g1", request).await.unwrap();
    assert_eq!(generation.message_id, "a1");
    assert_eq!(world.stored().await, ["u1:first", "a1:some\nand more"]);
}

#[actix::test]
async fn a_step_that_runs_again_stores_once() {
    tokio::time::pause();
    let world = world([text("one"), text("one again")]);
    let path: crate::domain::ids::StepPath = Arc::from("ask");
    let origin = crate::ports::store::StepOrigin {
        execution_id: crate::domain::ids::ExecutionId::trusted("e1"),
        path,
    };
    for _ in 0..2 {
        let request = GenerationRequest {
            messages: vec![Message::text(Role::User, "first")],
            origin: Some(origin.clone()),
            ..asks("", "")
        };
        world.run_as("g1", request).await.unwrap();
        assert_eq!(world.asked(), ["first"]);
    }
    assert_eq!(world.stored().await, ["g1-0:first", "g1:one again"]);
}

#[actix::test]
async fn a_run_whose_memory_is_unreadable_fails_before_the_model() {
    tokio::time::pause();
    for model in [ScriptedModel::local([text("hi")]), ScriptedModel::remote([text("hi")])] {
        let world = World::with(model, History::default(), remembers);
        world.history.store.set_readable(false);
        let refused = world.run(asks("u1", "first")).await.unwrap_err();
        let reason = Arc::from("reads are switched off");
        assert_eq!(refused, Unavailable::Store { reason, execution: None }.into());
        assert!(world.model.requests().is_empty());
        assert!(world.history.statuses().is_empty(), "nothing has happened");
    }
}
