//! Conversations of agents, and their messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AppendError, PageSize, Read};
use crate::domain::message::{Part, Role};
use crate::domain::time::Timestamp;

/// Key of a conversation. Users and agents never share conversations.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ConversationKey {
    pub agent_id: Arc<str>,
    pub user_id: Option<Arc<str>>,
    pub conversation_id: Arc<str>,
}

/// Tools that need no further approval in a conversation, each with the hash of the schema that its
/// calls were approved under.
pub type ApprovedTools = BTreeMap<Arc<str>, Arc<str>>;

/// A conversation without its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversation {
    pub key: ConversationKey,
    pub title: Option<String>,
    pub metadata: Map<String, Value>,
    /// Text given to the agent in every run of the conversation.
    pub working_memory: Option<String>,
    pub created_at: Timestamp,
    /// Time of the newest message or change.
    pub updated_at: Timestamp,
}

/// A stored message. Never of the roles `system` or `tool`: a run of the assistant is one message
/// with its calls and their results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredMessage {
    /// Unique in its conversation.
    pub id: String,
    pub role: Role,
    pub parts: Vec<Part>,
    pub created_at: Timestamp,
    /// The run that wrote it.
    pub generation_id: Option<String>,
}

/// Maximum characters of a message that are searched, from its beginning.
pub const SEARCHED_CHARS_MAX: usize = 16_384;

/// Maximum characters of a search text; the rest is ignored.
pub const SOUGHT_CHARS_MAX: usize = 200;

/// Maximum number of messages read for a search text too short for an index.
pub const SCANNED_MESSAGES_MAX: usize = 1000;

impl StoredMessage {
    /// Returns the text for searches: parts joined by line breaks, folded like the search text.
    pub fn searched_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text { text } => Some(text.as_str()),
            _ => None,
        });
        folded(&texts.collect::<Vec<_>>().join("\n"), SEARCHED_CHARS_MAX)
    }
}

/// Returns the search text for [`StoredMessage::searched_text`], case-insensitive.
pub fn sought_text(text: &str) -> String {
    folded(text, SOUGHT_CHARS_MAX)
}

/// Returns true if a search text is too short for a trigram index.
pub fn is_too_short_for_index(sought: &str) -> bool {
    sought.chars().nth(2).is_none()
}

/// Folds case character by character, so that a part of a text folds like the whole. Drops null
/// characters, which end texts in some stores.
fn folded(text: &str, chars_max: usize) -> String {
    let chars = text.chars().take(chars_max).filter(|&char| char != '\0');
    chars.flat_map(char::to_lowercase).collect()
}

/// Messages to add to a conversation, which is created if it is missing.
#[derive(Debug, Clone)]
pub struct ConversationWrite {
    pub key: ConversationKey,
    /// Messages after this one are deleted first: the caller continued from there.
    pub cut_after: Option<String>,
    /// Messages in order; one with a known id replaces the stored one.
    pub messages: Vec<StoredMessage>,
    /// Tools to add to those of the conversation; a known one is replaced.
    pub approved_tools: ApprovedTools,
    pub at: Timestamp,
}

/// Changes to a conversation; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConversationPatch {
    pub title: Option<Option<String>>,
    pub metadata: Option<Map<String, Value>>,
    pub working_memory: Option<Option<String>>,
}

/// Filter of a list of conversations. All conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct ConversationFilter {
    pub agent_id: Option<String>,
    /// Owner: a user, or `Some(None)` for anonymous.
    pub owner: Option<Option<Arc<str>>>,
}

/// A change; durable once it resolves.
pub type Written<T> = BoxFuture<'static, Result<T, AppendError>>;

/// Store of conversations.
pub trait Conversations: Send + Sync {
    fn conversation<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, Option<Conversation>>;

    /// Returns the tools that need no further approval in a conversation.
    fn approved_tools<'a>(&'a self, key: &'a ConversationKey) -> Read<'a, ApprovedTools>;

    /// Returns conversations and their total number, last changed first (at equal times: last
    /// created first). Counting costs as much as the filtered list.
    fn conversations<'a>(
        &'a self,
        filter: &'a ConversationFilter,
        offset: u64,
        size: PageSize,
    ) -> Read<'a, (Vec<Conversation>, u64)>;

    /// Returns the newest messages (before the message `before`), oldest first.
    fn messages<'a>(
        &'a self,
        key: &'a ConversationKey,
        before: Option<&'a str>,
        size: PageSize,
    ) -> Read<'a, Vec<StoredMessage>>;

    /// Returns true if the conversation has a message with this id.
    fn has_message<'a>(&'a self, key: &'a ConversationKey, id: &'a str) -> Read<'a, bool>;

    /// Returns messages of this agent and user that contain the text (see [`sought_text`]), last
    /// recorded first. A text of one or two characters is searched only in the newest
    /// [`SCANNED_MESSAGES_MAX`] messages, because no index supports it.
    fn search_messages<'a>(
        &'a self,
        agent_id: &'a str,
        user_id: Option<&'a str>,
        text: &'a str,
        size: PageSize,
    ) -> Read<'a, Vec<(ConversationKey, StoredMessage)>>;

    /// Rejected with [`AppendError::Exists`] if the conversation exists.
    fn create_conversation(&self, conversation: Conversation) -> Written<()>;

    /// Returns false if there is no such conversation.
    fn change_conversation(
        &self,
        key: ConversationKey,
        patch: ConversationPatch,
        at: Timestamp,
    ) -> Written<bool>;

    /// Deletes a conversation and its messages. Returns false if there is none.
    fn delete_conversation(&self, key: ConversationKey) -> Written<bool>;

    /// Copies a conversation and its messages, without approved tools, under another id of the same
    /// agent and user. Rejected
    /// with [`AppendError::Exists`] if that is taken. Returns false if there is none to copy.
    fn clone_conversation(
        &self,
        from: ConversationKey,
        to: Arc<str>,
        at: Timestamp,
    ) -> Written<bool>;

    /// Deletes a user's conversations, ended generations and log records; erases the user from
    /// generations of steps that have not ended, with their conversation, and from facts of
    /// executions, with the data that it resumed them with. Other generations that have not ended
    /// stay. Returns the number of conversations.
    fn forget_user(&self, user_id: String) -> Written<u64>;
}
