//! Runs whose memory cannot be read.

use std::future::ready;

use crate::ports::model::scripted::ScriptedModel;
use crate::ports::store::{
    Conversation, ConversationFilter, ConversationKey, ConversationPatch, Conversations, ReadError,
    StoredMessage, Written,
};
use crate::requests::Unavailable;

use super::*;

/// Refuses everything.
struct Unreadable;

fn unread<'a, T: Send + 'a>() -> Read<'a, T> {
    ready(Err(ReadError::Unavailable(Arc::from("disk gone")))).boxed()
}

fn unwritten<T: Send + 'static>() -> Written<T> {
    ready(Err(AppendError::Unavailable(Arc::from("disk gone")))).boxed()
}

impl Conversations for Unreadable {
    fn conversation<'a>(&'a self, _: &'a ConversationKey) -> Read<'a, Option<Conversation>> {
        unread()
    }

    fn conversations<'a>(
        &'a self,
        _: &'a ConversationFilter,
        _: u64,
        _: usize,
    ) -> Read<'a, (Vec<Conversation>, u64)> {
        unread()
    }

    fn messages<'a>(
        &'a self,
        _: &'a ConversationKey,
        _: Option<&'a str>,
        _: usize,
    ) -> Read<'a, Vec<StoredMessage>> {
        unread()
    }

    fn search_messages<'a>(
        &'a self,
        _: &'a str,
        _: Option<&'a str>,
        _: &'a str,
        _: usize,
    ) -> Read<'a, Vec<(ConversationKey, StoredMessage)>> {
        unread()
    }

    fn create_conversation(&self, _: Conversation) -> Written<()> {
        unwritten()
    }

    fn change_conversation(
        &self,
        _: ConversationKey,
        _: ConversationPatch,
        _: Timestamp,
    ) -> Written<bool> {
        unwritten()
    }

    fn delete_conversation(&self, _: ConversationKey) -> Written<bool> {
        unwritten()
    }

    fn clone_conversation(&self, _: ConversationKey, _: Arc<str>, _: Timestamp) -> Written<bool> {
        unwritten()
    }

    fn forget_user(&self, _: String) -> Written<u64> {
        unwritten()
    }
}

#[actix::test]
async fn a_run_without_its_memory_asks_nothing() {
    tokio::time::pause();
    for model in [ScriptedModel::local([text("hi")]), ScriptedModel::remote([text("hi")])] {
        let world = World::with(model, History::default(), |agent| agent.memory = true);
        let deps = GenerationDeps { conversations: Arc::new(Unreadable), ..world.deps.clone() };
        let world = World { deps, ..world };
        let asked = GenerationRequest { conversation_id: Some("talk".to_owned()), ..request(None) };
        let refused = world.run(asked).await;
        assert_eq!(
            refused,
            Err(Unavailable::Store { reason: Arc::from("disk gone"), execution: None }.into())
        );
        assert!(world.model.requests().is_empty());
        assert!(world.history.statuses().is_empty(), "nothing has happened");
    }
}
