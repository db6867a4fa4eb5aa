//! One generation of an agent: an actor of its own, from the prompt to the recorded answer.
//!
//! The rules (what to ask, what to make of an answer) are in `turn`, free of actors; the actor
//! runs the model, records and answers, in the order that output commit demands.

mod actor;
mod handle;
mod object;
mod options;
mod turn;
mod working;

use serde_json::Value;

use crate::ports::model::{FinishReason, ModelMessage, ModelOptions, ToolCall, Usage};
use crate::requests::Unavailable;

pub use handle::{GenerationDeps, GenerationHandle, spawn_generation};
pub use options::effective_options;
pub use working::{Working, WorkingGuard};

/// Asks an agent for a text.
#[derive(Debug, Clone)]
pub struct GenerationRequest {
    pub agent_id: String,
    /// The caller's messages, in order; a text input is one user message.
    pub messages: Vec<ModelMessage>,
    /// The caller's input as it came, for the history.
    pub input: Value,
    pub options: ModelOptions,
    /// JSON Schema that the answer must meet.
    pub schema: Option<Value>,
    pub max_steps: Option<u32>,
    pub user_id: Option<String>,
    pub conversation_id: Option<String>,
    pub context: serde_json::Map<String, Value>,
}

/// What an agent gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    pub id: String,
    pub text: String,
    /// Set when a schema was given: the validated object.
    pub object: Option<Value>,
    pub usage: Usage,
    pub finish_reason: FinishReason,
    pub tool_calls: Vec<ToolCall>,
    /// The calls again, each with what it gave.
    pub tool_results: Vec<Value>,
}

/// Why an agent gave nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GenerateError {
    #[error("agent {0} not found")]
    UnknownAgent(String),
    #[error("invalid schema: {0}")]
    InvalidSchema(String),
    #[error("{0}")]
    Model(#[from] crate::ports::model::ModelError),
    /// The answer did not meet the schema, or the instructions could not be rendered.
    #[error("{0}")]
    Failed(String),
    #[error("the generation was cancelled")]
    Cancelled,
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

#[cfg(test)]
mod tests;
