//! Changes of conversations, serialized on the caller's thread.

use greenroom_actors::domain::message::Role;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Conversation, ConversationKey, ConversationPatch, ConversationWrite, StoredMessage,
};

/// A serialized message, with its text folded for the search.
#[derive(Debug)]
pub(super) struct PreparedMessage {
    pub id: String,
    pub role: Role,
    pub parts: Vec<u8>,
    pub created_at: Timestamp,
    pub generation_id: Option<String>,
    pub text: String,
}

impl PreparedMessage {
    pub(super) fn new(message: StoredMessage) -> serde_json::Result<Self> {
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

/// Messages to add to a conversation.
#[derive(Debug)]
pub(super) struct PreparedMessages {
    pub key: ConversationKey,
    pub cut_after: Option<String>,
    pub messages: Vec<PreparedMessage>,
    pub at: Timestamp,
}

impl PreparedMessages {
    pub(super) fn new(write: ConversationWrite) -> serde_json::Result<Self> {
        let ConversationWrite { key, cut_after, messages, at } = write;
        let messages = messages.into_iter().map(PreparedMessage::new);
        Ok(Self { key, cut_after, messages: messages.collect::<serde_json::Result<_>>()?, at })
    }
}

/// A conversation's row.
#[derive(Debug)]
pub(super) struct PreparedConversation {
    pub conversation: Conversation,
    pub metadata: Vec<u8>,
}

impl PreparedConversation {
    pub(super) fn new(conversation: Conversation) -> serde_json::Result<Self> {
        Ok(Self { metadata: serde_json::to_vec(&conversation.metadata)?, conversation })
    }
}

/// A change of a conversation's row.
#[derive(Debug)]
pub(super) struct PreparedPatch {
    pub patch: ConversationPatch,
    pub metadata: Option<Vec<u8>>,
}

impl PreparedPatch {
    pub(super) fn new(patch: ConversationPatch) -> serde_json::Result<Self> {
        Ok(Self { metadata: patch.metadata.as_ref().map(serde_json::to_vec).transpose()?, patch })
    }
}
