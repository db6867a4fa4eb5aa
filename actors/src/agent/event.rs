//! What a generation says while it runs: progress for those who read it live, never recorded.

use std::sync::Arc;

use actix::{Message, Recipient};
use serde_json::Value;

use crate::domain::message::{ToolCall, ToolResult};
use crate::observe::cut::Cut;
use crate::ports::model::{FinishReason, ModelErrorKind, Served, Usage};

/// One thing that a generation says. The order is that of the AI SDK's streams: `Start`, then
/// for each turn `StepStart` .. `StepFinish`, then `Object` where one was asked for, then exactly
/// one of `Finish`, `Abort` and `Error`.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerationEvent {
    Start {
        generation_id: Arc<str>,
        /// Id of the assistant's message that comes of it.
        message_id: Arc<str>,
    },
    StepStart,
    /// Texts and reasonings have ids of their own, unique in the run; what has started ends, also
    /// when the run is cut off.
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
    /// Always after `ToolInputStart` and `ToolInputEnd` of the same call.
    ToolCall(ToolCall),
    /// A result or an error, always after the call.
    ToolResult(ToolResult),
    /// `usage` is that of the turn.
    StepFinish {
        finish_reason: FinishReason,
        usage: Usage,
    },
    /// The answer did not meet the schema and is asked for again: what was said does not count.
    ObjectRejected {
        detail: String,
    },
    /// The validated object.
    Object(Value),
    /// `usage` is that of the whole run, `stand_in` who gave the last turn, where a model stood in
    /// for the one that is configured.
    Finish {
        finish_reason: FinishReason,
        usage: Usage,
        stand_in: Option<Box<Served>>,
    },
    /// It was cancelled.
    Abort,
    /// It failed. The text is fit for callers.
    Error {
        message: String,
        kind: FailureKind,
    },
}

/// What failed, for programs that decide what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    Model(ModelErrorKind),
    /// The agent's own configuration, or an answer that does not meet the schema.
    Agent,
    /// The process is about to end.
    Draining,
    /// The server itself.
    Server,
}

impl GenerationEvent {
    /// Whether nothing follows.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Finish { .. } | Self::Abort | Self::Error { .. })
    }
}

/// Tells a reader what a generation said since the last time. An empty one only asks for room: it
/// is to be answered when more can be taken.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct GenerationProgress(pub Arc<[GenerationEvent]>);

/// A reader of a generation. One that cannot take a message misses none: it is cut, and counts
/// as gone. The run waits as long as the one who asked for it answers no message.
#[derive(Clone)]
pub struct GenerationSubscriber {
    pub events: Recipient<GenerationProgress>,
    pub cut: Cut,
}

impl std::fmt::Debug for GenerationSubscriber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GenerationSubscriber")
    }
}
