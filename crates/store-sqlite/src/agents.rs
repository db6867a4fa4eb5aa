//! The ports of agents: their history and their conversations.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    AppendError, Conversation, ConversationFilter, ConversationKey, ConversationPatch,
    Conversations, GenerationEntry, GenerationPage, GenerationWrite, Generations, Read, Row,
    StoredMessage, Written,
};

use super::changes::Change;
use super::generations::PreparedGeneration;
use super::job::Job;
use super::prepared::{PreparedConversation, PreparedPatch};
use super::{SqliteStore, history, recall};

/// What cannot be written down as JSON.
fn refusal<T: Send + 'static>(error: &serde_json::Error) -> Written<T> {
    Box::pin(ready(Err(AppendError::Unavailable(Arc::from(error.to_string())))))
}

fn name_of(key: &ConversationKey) -> String {
    format!("conversation {}", key.conversation_id)
}

impl SqliteStore {
    /// How many conversations were changed, or log records dropped.
    pub(super) fn change(&self, change: Change) -> Written<u64> {
        self.ask(|done| Job::Change { change, changed: 0, done })
    }

    /// Whether a conversation was changed.
    fn change_one(&self, change: Change) -> Written<bool> {
        self.change(change).map(|changed| changed.map(|changed| changed > 0)).boxed()
    }
}

impl Generations for SqliteStore {
    fn next_generation_row(&self) -> Row {
        self.last_generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn record_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        match PreparedGeneration::new(write) {
            Ok(prepared) => self.ask(|done| Job::Generation { write: Box::new(prepared), done }),
            Err(error) => refusal(&error),
        }
    }

    fn generation<'a>(&'a self, id: &'a str) -> Read<'a, Option<GenerationEntry>> {
        Box::pin(async move {
            self.readers.read(|| format!("generation {id}"), |it| history::generation(it, id))
        })
    }

    fn generations<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        offset: u64,
        limit: usize,
    ) -> Read<'a, GenerationPage> {
        Box::pin(async move {
            let record = || format!("the history of agent {agent_id}");
            self.readers.read(record, |reading| match user_id {
                Some(user) => history::of_user(reading, agent_id, user, offset, limit),
                None => history::generations(reading, agent_id, offset, limit),
            })
        })
    }

    fn interrupt_working(&self, now: Timestamp) -> BoxFuture<'static, Result<(), AppendError>> {
        self.ask(|done| Job::Interrupt { now, done })
    }
}

impl Conversations for SqliteStore {
    fn conversation<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Option<Conversation>> {
        Box::pin(async move {
            self.readers.read(|| name_of(key), |reading| recall::conversation(reading, key))
        })
    }

    fn conversations<'a>(
        &'a self,
        filter: &'a ConversationFilter,
        offset: u64,
        limit: usize,
    ) -> Read<'a, (Vec<Conversation>, u64)> {
        Box::pin(async move {
            let record = || "the list of conversations".to_owned();
            self.readers.read(record, |it| recall::conversations(it, filter, offset, limit))
        })
    }

    fn messages<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<&'a str>,
        limit: usize,
    ) -> Read<'a, Vec<StoredMessage>> {
        Box::pin(async move {
            self.readers.read(|| name_of(key), |it| recall::messages(it, key, before, limit))
        })
    }

    fn search_messages<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        text: &'a str,
        limit: usize,
    ) -> Read<'a, Vec<(ConversationKey, StoredMessage)>> {
        Box::pin(async move {
            let record = || format!("the conversations of agent {agent_id}");
            self.readers.read(record, |it| recall::search(it, agent_id, user_id, text, limit))
        })
    }

    fn create_conversation(&self, conversation: Conversation) -> Written<()> {
        match PreparedConversation::new(conversation) {
            Ok(prepared) => {
                let created = self.change(Change::Create(Box::new(prepared)));
                created.map(|created| created.map(drop)).boxed()
            }
            Err(error) => refusal(&error),
        }
    }

    fn change_conversation(
        &self,
        key: ConversationKey,
        patch: ConversationPatch,
        at: Timestamp,
    ) -> Written<bool> {
        match PreparedPatch::new(patch) {
            Ok(patch) => self.change_one(Change::Patch { key, patch: Box::new(patch), at }),
            Err(error) => refusal(&error),
        }
    }

    fn delete_conversation(&self, key: ConversationKey) -> Written<bool> {
        self.change_one(Change::Delete(key))
    }

    fn clone_conversation(
        &self,
        from: ConversationKey,
        to: Arc<str>,
        at: Timestamp,
    ) -> Written<bool> {
        self.change_one(Change::Copy { from, to, at })
    }

    fn forget_user(&self, user_id: String) -> Written<u64> {
        self.change(Change::ForgetUser(user_id))
    }
}
