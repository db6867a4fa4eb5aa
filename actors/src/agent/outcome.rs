//! Outcome of a generation: an answer, or the reason for its failure.

use serde_json::Value;

use crate::agent::event::FailureKind;
use crate::domain::message::{ToolCall, ToolResult};
use crate::ports::model::{FinishReason, Served, Usage};
use crate::requests::Unavailable;

/// Answer of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generation {
    pub id: String,
    /// Id of the assistant's message in the conversation.
    pub message_id: String,
    /// Of the last turn.
    pub text: String,
    /// The validated object; set if a schema was given.
    pub object: Option<Value>,
    /// Usage of all turns and of the agents asked.
    pub usage: Usage,
    pub finish_reason: FinishReason,
    /// Of all turns.
    pub tool_calls: Vec<ToolCall>,
    /// Results of the calls, in the same order.
    pub tool_results: Vec<ToolResult>,
    /// The model of the last turn, if it was a fallback of the configured one.
    pub stand_in: Option<Box<Served>>,
}

/// Failure of a generation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GenerateError {
    #[error("agent {0} not found")]
    UnknownAgent(String),
    #[error("invalid schema: {0}")]
    InvalidSchema(String),
    /// Place in the request, and the problem.
    #[error("invalid request: {0}")]
    InvalidRequest(String),
    #[error("{0}")]
    Model(#[from] crate::ports::model::ModelError),
    /// The answer did not match the schema, or the instructions could not be rendered.
    #[error("{0}")]
    Failed(String),
    #[error("the generation was cancelled")]
    Cancelled,
    /// The id that the caller chose names another generation.
    #[error("generation {0} already exists")]
    Exists(String),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl GenerateError {
    /// Returns the text for events and the history. Details of the store go to the log only.
    pub(crate) fn for_callers(&self) -> String {
        match self {
            Self::Unavailable(
                Unavailable::Store { .. } | Unavailable::Corrupt(_) | Unavailable::ActorLost,
            ) => "the server cannot continue this generation right now".to_owned(),
            Self::UnknownAgent(_)
            | Self::InvalidSchema(_)
            | Self::InvalidRequest(_)
            | Self::Model(_)
            | Self::Failed(_)
            | Self::Cancelled
            | Self::Exists(_)
            | Self::Unavailable(
                Unavailable::Draining { .. }
                | Unavailable::Busy { .. }
                | Unavailable::Moved { .. }
                | Unavailable::TooLarge
                | Unavailable::Unreachable
                | Unavailable::NoMemory,
            ) => self.to_string(),
        }
    }

    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            Self::Model(error) => FailureKind::Model(error.kind),
            Self::Unavailable(Unavailable::Draining { .. }) => FailureKind::Draining,
            Self::Unavailable(_) => FailureKind::Server,
            Self::UnknownAgent(_)
            | Self::InvalidSchema(_)
            | Self::InvalidRequest(_)
            | Self::Failed(_)
            | Self::Cancelled
            | Self::Exists(_) => FailureKind::Agent,
        }
    }
}
