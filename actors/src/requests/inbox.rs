//! Asks, as callers see and answer them.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::principal::Principal;
use crate::domain::schema::Schema;
use crate::domain::time::Timestamp;
use crate::ports::store::{Ask, AskState, ConversationKey};
use crate::requests::{IdempotencyKey, Unavailable};
use crate::visibility::Visibility;

/// An ask with what a person needs to answer it.
#[derive(Debug, Clone)]
pub struct AskDetail {
    pub ask: Ask,
    /// Data that the step shows.
    pub payload: Option<Arc<Value>>,
    /// Schema of the answer.
    pub schema: Option<Schema>,
    /// The answer, once there is one.
    pub answer: Option<Answered>,
}

/// The end of an ask by an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// `None` if unknown.
    pub by: Option<Arc<Principal>>,
    pub data: Arc<Value>,
}

/// An answer to an ask.
#[derive(Debug)]
pub struct AnswerAsk {
    pub data: Value,
    pub by: Option<Principal>,
    pub idempotency: Option<IdempotencyKey>,
}

/// An answer about a call of a generation.
#[derive(Debug)]
pub struct ApproveCall {
    pub agent_id: String,
    pub generation_id: String,
    pub tool_call_id: String,
    pub visibility: Visibility,
    pub answer: AnswerAsk,
}

/// Answers in a message of a chat.
#[derive(Debug)]
pub struct ContinueChat {
    pub agent_id: String,
    /// `None` if the chat has no stored conversation.
    pub conversation: Option<ConversationKey>,
    pub replies: Vec<ChatReply>,
    pub visibility: Visibility,
    pub by: Option<Principal>,
}

/// An answer in a message of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatReply {
    pub tool_call_id: String,
    /// Id of the ask.
    pub approval_id: Option<String>,
    pub reply: Reply,
}

/// What a chat client says about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Decided {
        approved: bool,
        reason: Option<String>,
    },
    /// The result of a call that asks a person.
    Given(Value),
}

/// Reason why an ask was not answered, or not found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AskError {
    #[error("ask not found")]
    NotFound,
    #[error("the ask is {}", .state.as_str())]
    Closed {
        state: AskState,
        at: Timestamp,
        /// Principal that answered it, if known.
        by: Option<Arc<Principal>>,
    },
    /// The data does not match the schema, or is too deep.
    #[error("{0}")]
    InvalidData(String),
    #[error("the idempotency key was used with another body")]
    KeyReused,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}
