//! Changes of conversations.

use greenroom_actors::domain::message::Role;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Conversation, ConversationKey, ConversationPatch, ConversationWrite, StoredMessage,
};

use crate::json::parse;

/// A serialized message, with its text folded for the search.
#[derive(Debug)]
pub struct PreparedMessage {
    pub id: String,
    pub role: Role,
    /// JSON.
    pub parts: Vec<u8>,
    pub created_at: Timestamp,
    pub generation_id: Option<String>,
    /// Folded text; empty if there is nothing to find.
    pub text: String,
}

impl PreparedMessage {
    /// Serializes a message.
    pub fn new(message: StoredMessage) -> serde_json::Result<Self> {
        Ok(Self {
            parts: serde_json::to_vec(&message.parts)?,
            text: message.searched_text(),
            id: message.id,
            role: message.role,
            created_at: message.created_at,
            generation_id: message.generation_id,
        })
    }
}

/// Returns the folded text of a message from its stored parts; empty for damaged ones.
pub fn folded_text_of(parts: &[u8]) -> String {
    let Ok(parts) = parse(parts) else { return String::new() };
    let (id, role, created_at) = (String::new(), Role::User, Timestamp::default());
    StoredMessage { id, role, parts, created_at, generation_id: None }.searched_text()
}

/// Messages to add to a conversation.
#[derive(Debug)]
pub struct PreparedMessages {
    pub key: ConversationKey,
    /// Id of the message after which all are deleted first.
    pub cut_after: Option<String>,
    pub messages: Vec<PreparedMessage>,
    /// JSON; `None` if nothing is added.
    pub approved_tools: Option<String>,
    pub at: Timestamp,
}

impl PreparedMessages {
    /// Serializes the messages.
    pub fn new(write: ConversationWrite) -> serde_json::Result<Self> {
        let ConversationWrite { key, cut_after, messages, approved_tools, at } = write;
        let messages = messages.into_iter().map(PreparedMessage::new);
        let messages = messages.collect::<serde_json::Result<_>>()?;
        let approved_tools = (!approved_tools.is_empty())
            .then(|| serde_json::to_string(&approved_tools))
            .transpose()?;
        Ok(Self { key, cut_after, messages, approved_tools, at })
    }
}

/// A conversation's row.
#[derive(Debug)]
pub struct PreparedConversation {
    pub conversation: Conversation,
    /// JSON.
    pub metadata: Vec<u8>,
}

impl PreparedConversation {
    /// Serializes the metadata.
    pub fn new(conversation: Conversation) -> serde_json::Result<Self> {
        Ok(Self { metadata: serde_json::to_vec(&conversation.metadata)?, conversation })
    }
}

/// A change of a conversation's row.
#[derive(Debug)]
pub struct PreparedPatch {
    pub patch: ConversationPatch,
    /// JSON; `None` if it does not change.
    pub metadata: Option<Vec<u8>>,
}

impl PreparedPatch {
    /// Serializes the metadata.
    pub fn new(patch: ConversationPatch) -> serde_json::Result<Self> {
        Ok(Self { metadata: patch.metadata.as_ref().map(serde_json::to_vec).transpose()?, patch })
    }
}
