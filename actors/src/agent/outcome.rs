//! What a generation leads to: an answer, or the reason why there is none.

use serde_json::Value;

use crate::agent::event::FailureKind;
use crate::domain::message::{ToolCall, ToolResult};
use crate::ports::model::{FinishReason, Served, Usage};
use crate::requests::Unavailable;

/// What an agent gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generation {
    pub id: String,
    /// Id of the assistant's message in the conversation.
    pub message_id: String,
    /// Of the last turn.
    pub text: String,
    /// Set when a schema was given: the validated object.
    pub object: Option<Value>,
    /// Of all turns and of the agents asked.
    pub usage: Usage,
    pub finish_reason: FinishReason,
    /// Of all turns.
    pub tool_calls: Vec<ToolCall>,
    /// The calls again, each with what it gave.
    pub tool_results: Vec<ToolResult>,
    /// Who gave the last turn, where a model stood in for the one that is configured.
    pub stand_in: Option<Box<Served>>,
}

/// Why an agent gave nothing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GenerateError {
    #[error("agent {0} not found")]
    UnknownAgent(String),
    #[error("invalid schema: {0}")]
    InvalidSchema(String),
    /// The place in the request and what is wrong there.
    #[error("invalid request: {0}")]
    InvalidRequest(String),
    #[error("{0}")]
    Model(#[from] crate::ports::model::ModelError),
    /// The answer did not meet the schema, or the instructions could not be rendered.
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
    /// What callers may read of it in events and in the history: what a store says of itself is
    /// for the log.
    pub(crate) fn for_callers(&self) -> String {
        match self {
            Self::Unavailable(
                Unavailable::Store { .. } | Unavailable::Corrupt(_) | Unavailable::ActorLost,
            ) => "the server cannot go on with this just now".to_owned(),
            Self::UnknownAgent(_)
            | Self::InvalidSchema(_)
            | Self::InvalidRequest(_)
            | Self::Model(_)
            | Self::Failed(_)
            | Self::Cancelled
            | Self::Exists(_)
            | Self::Unavailable(
                Unavailable::Draining { .. } | Unavailable::Busy { .. } | Unavailable::NoMemory,
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
