//! Asks, as callers see and answer them.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::principal::Principal;
use crate::domain::schema::Schema;
use crate::domain::time::Timestamp;
use crate::ports::store::{Ask, AskState};
use crate::requests::{IdempotencyKey, Unavailable};

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
