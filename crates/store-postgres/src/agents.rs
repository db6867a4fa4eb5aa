//! The ports of agents: their history and their conversations.

use std::future::ready;
use std::sync::Arc;

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
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::generations::{GenerationJob, continuations};
use crate::lane::reached;
use crate::store::PostgresStore;
use crate::{conversations, forget, generations, history, search};

/// Returns the refusal of a value that cannot be serialized, or of a closed store.
pub(crate) fn refusal<T: Send + 'static>(reason: &str) -> Written<T> {
    Box::pin(ready(Err(closed(reason))))
}

fn closed(reason: &str) -> AppendError {
    AppendError::Unavailable(Arc::from(reason))
}

/// Returns the name of the record of a conversation, for errors.
fn record_of(key: &ConversationKey) -> String {
    format!("conversation {}", key.conversation_id)
}

impl PostgresStore {
    /// Queues the record of a generation, whose continuation must have a revision perhaps.
    fn queue_generation(&self, write: GenerationWrite, revision: Option<u64>) -> Written<()> {
        let write = match PreparedGeneration::new(write) {
            Ok(prepared) => Box::new(prepared),
            Err(error) => return refusal(&error.to_string()),
        };
        let (done, recorded) = oneshot::channel();
        // refused: `done` is dropped with the request
        let _ = self.lanes.queue_generation(GenerationJob { write, revision, done });
        async { recorded.await.unwrap_or_else(|_| Err(closed("the store is closed"))) }.boxed()
    }
}

impl Generations for PostgresStore {
    fn next_generation_row(&self) -> Option<Row> {
        self.shared.generation_rows.next()
    }

    fn record_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        self.queue_generation(write, None)
    }

    fn settle_generation(&self, revision: u64, write: GenerationWrite) -> Written<bool> {
        let settling = self.queue_generation(write, Some(revision));
        async {
            match settling.await {
                Ok(()) => Ok(true),
                Err(AppendError::Stale) => Ok(false),
                Err(error) => Err(error),
            }
        }
        .boxed()
    }

    fn continuation<'a>(&'a self, id: &'a str) -> Read<'a, Option<StoredContinuation>> {
        let record = move || format!("the continuation of generation {id}");
        self.shared.pool.read(record, move |it| continuations::continuation(it, id))
    }

    fn suspended_in<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Vec<String>> {
        let suspended = move |it| continuations::suspended_in(it, key);
        self.shared.pool.read(move || record_of(key), suspended)
    }

    fn unfinished_of_user<'a>(
        &'a self,
        user_id: &'a str,
        after: Option<&'a UserCursor>,
        limit: usize,
    ) -> Read<'a, Vec<(UserCursor, String)>> {
        let unfinished = move |it| continuations::unfinished_of_user(it, user_id, after, limit);
        self.shared.pool.read(|| "the generations of a user".to_owned(), unfinished)
    }

    fn adopt_interrupted(&self, after: Row, limit: usize) -> Written<Vec<(Row, String)>> {
        self.change(async move |shared| {
            continuations::adopt_interrupted(&shared, after, limit).await.map(Ok)
        })
    }

    fn generation<'a>(&'a self, id: &'a str) -> Read<'a, Option<GenerationEntry>> {
        let record = move || format!("generation {id}");
        self.shared.pool.read(record, move |it| history::generation(it, id))
    }

    fn generations<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        offset: u64,
        size: PageSize,
    ) -> Read<'a, GenerationPage> {
        let record = move || format!("the history of agent {agent_id}");
        let pool = &self.shared.pool;
        match user_id {
            Some(user) => {
                pool.read(record, move |it| history::of_user(it, agent_id, user, offset, size))
            }
            None => pool.read(record, move |it| history::generations(it, agent_id, offset, size)),
        }
    }

    fn interrupt_working(&self, now: Timestamp) -> BoxFuture<'static, Result<(), AppendError>> {
        self.change(async move |shared| generations::interrupt_working(&shared, now).await.map(Ok))
    }
}

impl Conversations for PostgresStore {
    fn conversation<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Option<Conversation>> {
        self.shared.pool.read(move || record_of(key), move |it| search::conversation(it, key))
    }

    fn approved_tools<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, ApprovedTools> {
        self.shared.pool.read(move || record_of(key), move |it| search::approved_tools(it, key))
    }

    fn conversations<'a>(
        &'a self,
        filter: &'a ConversationFilter,
        offset: u64,
        size: PageSize,
    ) -> Read<'a, (Vec<Conversation>, u64)> {
        let record = || "the list of conversations".to_owned();
        let pool = &self.shared.pool;
        pool.read(record, move |it| search::conversations(it, filter, offset, size))
    }

    fn messages<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<&'a str>,
        size: PageSize,
    ) -> Read<'a, Vec<StoredMessage>> {
        let pool = &self.shared.pool;
        pool.read(move || record_of(key), move |it| search::messages(it, key, before, size))
    }

    fn has_message<'a>(&'a self, key: &'a ConversationKey, id: &'a str) -> Read<'a, bool> {
        let pool = &self.shared.pool;
        pool.read(move || record_of(key), move |it| search::has_message(it, key, id))
    }

    fn search_messages<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        text: &'a str,
        size: PageSize,
    ) -> Read<'a, Vec<(ConversationKey, StoredMessage)>> {
        let record = move || format!("the conversations of agent {agent_id}");
        let shared = &self.shared;
        async move {
            // held by the caller, so that one who leaves makes room
            let room = timeout(shared.settings.patience, shared.room_for_searches.acquire()).await;
            let Ok(Ok(_room)) = room else {
                return Err(ReadError::Unavailable("other searches have not ended".into()));
            };
            let search = |it| search::search(it, agent_id, user_id, text, size);
            shared.pool.read(record, search).await
        }
        .boxed()
    }

    fn create_conversation(&self, conversation: Conversation) -> Written<()> {
        match PreparedConversation::new(conversation) {
            Ok(prepared) => self
                .change(async move |shared| conversations::create(&shared.pool, &prepared).await),
            Err(error) => refusal(&error.to_string()),
        }
    }

    fn change_conversation(
        &self,
        key: ConversationKey,
        patch: ConversationPatch,
        at: Timestamp,
    ) -> Written<bool> {
        match PreparedPatch::new(patch) {
            Ok(patch) => self.change(async move |shared| {
                conversations::patch(&shared.pool, &key, &patch, at).await.map(Ok)
            }),
            Err(error) => refusal(&error.to_string()),
        }
    }

    fn delete_conversation(&self, key: ConversationKey) -> Written<bool> {
        self.change(async move |shared| conversations::delete(&shared.pool, &key).await.map(Ok))
    }

    fn clone_conversation(
        &self,
        from: ConversationKey,
        to: Arc<str>,
        at: Timestamp,
    ) -> Written<bool> {
        self.change(async move |shared| conversations::copy(&shared.pool, &from, &to, at).await)
    }

    fn forget_user(&self, user_id: String) -> Written<u64> {
        // facts that are queued may name the user
        let earlier = self.lanes.marks();
        self.change(async move |shared| {
            reached(earlier, shared.settings.patience).await?;
            forget::forget_user(&shared.pool, &user_id).await.map(Ok)
        })
    }
}
