//! Events of a running generation: progress for live subscribers, never recorded.

use std::sync::Arc;

use actix::{Message, Recipient};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::outcome::{FailureKind, PendingAsk};
use crate::domain::message::{ToolCall, ToolResult};
use crate::observe::disconnect::Disconnect;
use crate::ports::model::{FinishReason, Served, Usage};

/// One event of a generation. The order is that of the AI SDK's streams: `Start`, then for each
/// turn `StepStart` .. `StepFinish`, then `Object` where one was requested, then exactly one of
/// `Finish`, `Abort` and `Error`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum GenerationEvent {
    Start {
        generation_id: Arc<str>,
        /// Id of the assistant's message that the run produces.
        message_id: Arc<str>,
    },
    StepStart,
    /// Texts and reasonings have ids that are unique in the run. Each start is followed by its end,
    /// also when the run is stopped.
    TextStart {
        id: Arc<str>,
    },
    TextDelta {
        id: Arc<str>,
        delta: String,
    },
    TextEnd {
        id: Arc<str>,
    },
    ReasoningStart {
        id: Arc<str>,
    },
    ReasoningDelta {
        id: Arc<str>,
        delta: String,
    },
    ReasoningEnd {
        id: Arc<str>,
    },
    ToolInputStart {
        tool_call_id: Arc<str>,
        tool_name: Arc<str>,
    },
    ToolInputDelta {
        tool_call_id: Arc<str>,
        delta: String,
    },
    ToolInputEnd {
        tool_call_id: Arc<str>,
    },
    /// Sent after `ToolInputStart` and `ToolInputEnd` of the same call. Sent once more, without
    /// them, when the run continues with arguments that a person has edited.
    ToolCall(ToolCall),
    /// A result or an error, sent after its call.
    ToolResult(ToolResult),
    /// A call waits for a person. The run is put down: `Finish` follows once all other calls of
    /// the turn have results.
    Ask(Box<PendingAsk>),
    /// `usage` covers this turn.
    StepFinish {
        finish_reason: FinishReason,
        usage: Usage,
    },
    /// The answer did not match the schema and the model is asked again; discard the text of this
    /// turn.
    ObjectRejected {
        detail: String,
    },
    /// The validated object.
    Object(Value),
    /// `usage` covers the whole run. `stand_in` names the model of the last turn if it was a
    /// fallback of the configured one.
    Finish {
        finish_reason: FinishReason,
        usage: Usage,
        stand_in: Option<Box<Served>>,
    },
    /// The run was cancelled.
    Abort,
    /// The run failed. `message` contains no internals.
    Error {
        message: String,
        kind: FailureKind,
    },
}

impl GenerationEvent {
    /// Returns true if no event follows this one.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Finish { .. } | Self::Abort | Self::Error { .. })
    }
}

/// Events since the previous message. An empty message asks for room: the subscriber answers it
/// when it can take more.
#[derive(Debug, Clone, Message, Serialize, Deserialize)]
#[rtype(result = "()")]
pub struct GenerationProgress(pub Arc<[GenerationEvent]>);

/// A subscriber of a generation. One whose mailbox is full is disconnected through
/// `disconnect` rather than given a gap. The run waits while the subscriber that started it has not
/// answered a message.
#[derive(Clone)]
pub struct GenerationSubscriber {
    pub events: Recipient<GenerationProgress>,
    pub disconnect: Disconnect,
}

impl std::fmt::Debug for GenerationSubscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GenerationSubscriber")
    }
}
