//! The ports of agents: their history and their conversations.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    AppendError, ApprovedTools, Conversation, ConversationFilter, ConversationKey,
    ConversationPatch, Conversations, GenerationEntry, GenerationPage, GenerationWrite,
    Generations, PageSize, Read, ReadError, Row, StoredContinuation, StoredMessage, UserCursor,
    Written,
};
use greenroom_store_codec::prepared::{PreparedConversation, PreparedGeneration, PreparedPatch};

use super::changes::Change;
use super::defects::Reading;
use super::job::Job;
use super::reader::Lane;
use super::{SqliteStore, continuations, history, search};

/// Number of messages that a generation usually reads, which is not worth another thread.
const MESSAGES_AT_HAND: usize = 20;

/// Returns the refusal of a value that cannot be serialized.
pub(super) fn refusal<T: Send + 'static>(error: &serde_json::Error) -> Written<T> {
    Box::pin(ready(Err(AppendError::Unavailable(Arc::from(error.to_string())))))
}

/// Returns the name of the record of a conversation, for errors.
fn record_of(key: &ConversationKey) -> String {
    format!("conversation {}", key.conversation_id)
}

impl SqliteStore {
    /// Makes a change; resolves with the number of changed or deleted rows.
    pub(super) fn change(&self, change: Change) -> Written<u64> {
        self.queue.change(change)
    }

    /// Makes a change of one conversation or execution; resolves with true if it was made.
    pub(super) fn change_one(&self, change: Change) -> Written<bool> {
        self.change(change).map(|changed| changed.map(|changed| changed > 0)).boxed()
    }
}

impl Generations for SqliteStore {
    fn next_generation_row(&self) -> Option<Row> {
        Some(self.last_generation.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        match PreparedGeneration::new(write) {
            Ok(prepared) => {
                self.queue.ask(|done| Job::Generation { write: Box::new(prepared), done })
            }
            Err(error) => refusal(&error),
        }
    }

    fn settle_generation(&self, revision: u64, write: GenerationWrite) -> Written<bool> {
        match PreparedGeneration::new(write) {
            Ok(prepared) => self.change_one(Change::Settle { revision, write: Box::new(prepared) }),
            Err(error) => refusal(&error),
        }
    }

    fn continuation<'a>(&'a self, id: &'a str) -> Read<'a, Option<StoredContinuation>> {
        let record = move || format!("the continuation of generation {id}");
        self.read(record, move |it| continuations::continuation(it, id))
    }

    fn suspended_in<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Vec<String>> {
        self.read(move || record_of(key), move |it| continuations::suspended_in(it, key))
    }

    fn unfinished_of_user<'a>(
        &'a self,
        user_id: &'a str,
        after: Option<&'a UserCursor>,
        limit: usize,
    ) -> Read<'a, Vec<(UserCursor, String)>> {
        let (user, after) = (user_id.to_owned(), after.cloned());
        let query = move |it: &Reading<'_>| {
            continuations::unfinished_of_user(it, &user, after.as_ref(), limit)
        };
        self.read_aside(Lane::Lists, || "the generations of a user".to_owned(), query)
    }

    /// Reads them only: this process alone has the file.
    fn adopt_interrupted(&self, after: Row, limit: usize) -> Written<Vec<(Row, String)>> {
        let record = || "interrupted generations".to_owned();
        let found = self.readers.read(record, |it| continuations::interrupted(it, after, limit));
        let refused = |error: ReadError| AppendError::Unavailable(Arc::from(error.to_string()));
        Box::pin(ready(found.map_err(refused)))
    }

    fn generation<'a>(&'a self, id: &'a str) -> Read<'a, Option<GenerationEntry>> {
        self.read(move || format!("generation {id}"), move |it| history::generation(it, id))
    }

    fn generations<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        offset: u64,
        size: PageSize,
    ) -> Read<'a, GenerationPage> {
        let record = format!("the history of agent {agent_id}");
        let (agent, user) = (agent_id.to_owned(), user_id.map(str::to_owned));
        let query = move |it: &Reading<'_>| match &user {
            Some(user) => history::of_user(it, &agent, user, offset, size),
            None => history::generations(it, &agent, offset, size),
        };
        self.read_aside(Lane::Lists, || record, query)
    }

    fn interrupt_working(&self, now: Timestamp) -> BoxFuture<'static, Result<(), AppendError>> {
        self.queue.ask(|done| Job::Interrupt { now, done })
    }
}

impl Conversations for SqliteStore {
    fn conversation<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Option<Conversation>> {
        self.read(move || record_of(key), move |it| search::conversation(it, key))
    }

    fn approved_tools<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, ApprovedTools> {
        self.read(move || record_of(key), move |it| search::approved_tools(it, key))
    }

    fn conversations<'a>(
        &'a self,
        filter: &'a ConversationFilter,
        offset: u64,
        size: PageSize,
    ) -> Read<'a, (Vec<Conversation>, u64)> {
        let record = || "the list of conversations".to_owned();
        let filter = filter.clone();
        let query = move |it: &Reading<'_>| search::conversations(it, &filter, offset, size);
        self.read_aside(Lane::Lists, record, query)
    }

    fn messages<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<&'a str>,
        size: PageSize,
    ) -> Read<'a, Vec<StoredMessage>> {
        if size.records <= MESSAGES_AT_HAND {
            return self
                .read(move || record_of(key), move |it| search::messages(it, key, before, size));
        }
        let (record, key, before) = (record_of(key), key.clone(), before.map(str::to_owned));
        let query = move |it: &Reading<'_>| search::messages(it, &key, before.as_deref(), size);
        self.read_aside(Lane::Lists, || record, query)
    }

    fn has_message<'a>(&'a self, key: &'a ConversationKey, id: &'a str) -> Read<'a, bool> {
        self.read(move || record_of(key), move |it| search::has_message(it, key, id))
    }

    fn search_messages<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        text: &'a str,
        size: PageSize,
    ) -> Read<'a, Vec<(ConversationKey, StoredMessage)>> {
        let record = format!("the conversations of agent {agent_id}");
        let (agent, user) = (agent_id.to_owned(), user_id.map(str::to_owned));
        let text = text.to_owned();
        let query =
            move |it: &Reading<'_>| search::search(it, &agent, user.as_deref(), &text, size);
        self.read_aside(Lane::Searches, || record, query)
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
