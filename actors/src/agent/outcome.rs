//! Outcome of a generation: an answer, or the reason for its failure.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::message::{ToolCall, ToolResult};
use crate::domain::time::Timestamp;
use crate::ports::model::{FinishReason, ModelErrorKind, Served, Usage};
use crate::ports::store::AskKind;
use crate::requests::unavailable::Unavailable;

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
    /// Open asks; the generation is suspended if there are any, and continues once all of them are
    /// answered.
    pub asks: Vec<PendingAsk>,
}

impl Generation {
    /// Returns true if the generation waits for people.
    pub fn is_suspended(&self) -> bool {
        !self.asks.is_empty()
    }
}

/// An open ask of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingAsk {
    pub ask_id: Arc<str>,
    pub kind: AskKind,
    pub tool_call_id: Arc<str>,
    pub tool_name: Arc<str>,
    /// Arguments of the call.
    pub input: Value,
    /// Text for people.
    pub reason: String,
    /// JSON Schema of the answer; not for approvals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Call of the run whose sub-agent asks; `None`: the run itself asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_at: Option<Arc<str>>,
    /// Reason why the answer in a message of a chat, which this one asks again, was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl PendingAsk {
    /// Returns the call of the run that waits for the answer.
    pub fn waiting_call(&self) -> &Arc<str> {
        self.shown_at.as_ref().unwrap_or(&self.tool_call_id)
    }
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
            Self::Unavailable(Unavailable::Store { .. }) => FailureKind::Store,
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

/// Cause of a failure, for programs that branch on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    Model(ModelErrorKind),
    /// The agent's own configuration, or an answer that does not match the schema.
    Agent,
    /// The process is shutting down.
    Draining,
    /// The store accepts no writes or answers no reads. It is sent as a failure of the server, which
    /// servers of older versions know, too.
    #[serde(rename(serialize = "Server"))]
    Store,
    /// The server itself.
    Server,
}
