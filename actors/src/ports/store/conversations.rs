//! What agents remember: conversations and their messages.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use super::{AppendError, Read};
use crate::domain::message::{Part, Role};
use crate::domain::time::Timestamp;

/// Names a conversation. Two users never share one, nor do two agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConversationKey {
    pub agent_id: Arc<str>,
    pub user_id: Option<Arc<str>>,
    pub conversation_id: Arc<str>,
}

/// A conversation without its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    pub key: ConversationKey,
    pub title: Option<String>,
    pub metadata: Map<String, Value>,
    /// What the agent is told of the conversation in every run.
    pub working_memory: Option<String>,
    pub created_at: Timestamp,
    /// Of the newest message or change.
    pub updated_at: Timestamp,
}

/// A message as a conversation keeps it. Never of the roles `system` or `tool`: a run of the
/// assistant is one message with its calls and their results.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredMessage {
    /// Unique in its conversation.
    pub id: String,
    pub role: Role,
    pub parts: Vec<Part>,
    pub created_at: Timestamp,
    /// The run that said it.
    pub generation_id: Option<String>,
}

/// How much of a message is searched, in characters from its beginning.
pub const SEARCHED_CHARS_MAX: usize = 16_384;

/// How much of a text is looked for, in characters; what is behind is left out.
pub const SOUGHT_CHARS_MAX: usize = 200;

/// Messages that are read for a text too short for an index.
pub const SCANNED_MESSAGES_MAX: usize = 1000;

impl StoredMessage {
    /// Its text as a search reads it: pieces on lines of their own, folded like what is sought.
    pub fn searched_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        folded(&texts.collect::<Vec<_>>().join("\n"), SEARCHED_CHARS_MAX)
    }
}

/// A text as it is looked for in [`StoredMessage::searched_text`]: case makes no difference.
pub fn sought_text(text: &str) -> String {
    folded(text, SOUGHT_CHARS_MAX)
}

/// Whether a sought text has fewer characters than an index of messages knows at a time.
pub fn is_too_short_for_index(sought: &str) -> bool {
    sought.chars().nth(2).is_none()
}

/// Character by character, so that a part of a text folds like the whole. Null characters end
/// texts for some stores, so they count for none.
fn folded(text: &str, chars_max: usize) -> String {
    let chars = text.chars().take(chars_max).filter(|&char| char != '\0');
    chars.flat_map(char::to_lowercase).collect()
}

/// Adds to a conversation, which it creates where there is none.
#[derive(Debug, Clone)]
pub struct ConversationWrite {
    pub key: ConversationKey,
    /// What follows this message is forgotten first: the caller went on from there.
    pub cut_after: Option<String>,
    /// A message whose id is known takes that one's place; the others are added, in order.
    pub messages: Vec<StoredMessage>,
    pub at: Timestamp,
}

/// What is to change of a conversation; `None` leaves it as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConversationPatch {
    pub title: Option<Option<String>>,
    pub metadata: Option<Map<String, Value>>,
    pub working_memory: Option<Option<String>>,
}

/// Which conversations a list shows. All filters are combined.
#[derive(Debug, Clone, Default)]
pub struct ConversationFilter {
    pub agent_id: Option<String>,
    /// Of one owner: a user, or nobody.
    pub owner: Option<Option<Arc<str>>>,
}

/// A change, durable when it resolves.
pub type Written<T> = BoxFuture<'static, Result<T, AppendError>>;

/// What agents remember.
pub trait Conversations: Send + Sync {
    fn conversation<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Option<Conversation>>;

    /// Newest change first (of changes at one time: the conversation that was made last), and how
    /// many there are in all. Counting costs what the filter leaves.
    fn conversations<'a>(
        &'a self,
        filter: &'a ConversationFilter,
        offset: u64,
        limit: usize,
    ) -> Read<'a, (Vec<Conversation>, u64)>;

    /// The newest `limit` messages (of those before the message `before`), oldest first.
    fn messages<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<&'a str>,
        limit: usize,
    ) -> Read<'a, Vec<StoredMessage>>;

    /// The messages of this agent and user that hold the text (see [`sought_text`]), the last
    /// recorded first. A text of one or two characters is looked for in the newest
    /// [`SCANNED_MESSAGES_MAX`] alone, which no index helps with.
    fn search_messages<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        text: &'a str,
        limit: usize,
    ) -> Read<'a, Vec<(ConversationKey, StoredMessage)>>;

    /// Refused with [`AppendError::Exists`] when there is one.
    fn create_conversation(&self, conversation: Conversation) -> Written<()>;

    /// Whether there was one.
    fn change_conversation(
        &self,
        key: ConversationKey,
        patch: ConversationPatch,
        at: Timestamp,
    ) -> Written<bool>;

    /// With its messages. Whether there was one.
    fn delete_conversation(&self, key: ConversationKey) -> Written<bool>;

    /// Copies a conversation and its messages under another id of the same agent and user.
    /// Refused with [`AppendError::Exists`] when that is taken. Whether there was one to copy.
    fn clone_conversation(
        &self,
        from: ConversationKey,
        to: Arc<str>,
        at: Timestamp,
    ) -> Written<bool>;

    /// Deletes all conversations and the history of generations of a user, of all agents, and the
    /// log records about that user; and strikes the user from the facts of executions, with the
    /// data that it resumed them with. How many conversations there were.
    fn forget_user(&self, user_id: String) -> Written<u64>;
}
