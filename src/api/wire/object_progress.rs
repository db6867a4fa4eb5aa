//! Progress of a generation towards its object, which the streams of objects follow.

use greenroom_actors::agent::PendingAsk;
use greenroom_actors::agent::generation::{FailureKind, GenerationEvent};
use greenroom_actors::ports::model::{FinishReason, Served, Usage};
use serde_json::Value;

/// Meaning of an event for the object.
pub(super) enum ObjectProgress<'a> {
    /// More text of the model.
    Text(&'a str),
    /// The text so far is not of the object, which is the text of the last attempt of the last
    /// turn.
    Restarted,
    /// The validated object.
    Object(&'a Value),
    /// A call waits for a person, and there will be no object before the answer.
    Asked(&'a PendingAsk),
    Finished {
        finish_reason: FinishReason,
        usage: Usage,
        stand_in: Option<&'a Served>,
    },
    Aborted,
    Failed {
        message: &'a str,
        kind: FailureKind,
    },
}

impl<'a> ObjectProgress<'a> {
    /// Reads an event; `None` if it is not about the object.
    pub(super) fn of(event: &'a GenerationEvent) -> Option<Self> {
        Some(match event {
            GenerationEvent::TextDelta { delta, .. } => Self::Text(delta),
            GenerationEvent::StepStart | GenerationEvent::ObjectRejected { .. } => Self::Restarted,
            GenerationEvent::Object(object) => Self::Object(object),
            GenerationEvent::Finish { finish_reason, usage, stand_in } => Self::Finished {
                finish_reason: *finish_reason,
                usage: *usage,
                stand_in: stand_in.as_deref(),
            },
            GenerationEvent::Ask(ask) => Self::Asked(ask),
            GenerationEvent::Abort => Self::Aborted,
            GenerationEvent::Error { message, kind } => Self::Failed { message, kind: *kind },
            GenerationEvent::Start { .. }
            | GenerationEvent::TextStart { .. }
            | GenerationEvent::TextEnd { .. }
            | GenerationEvent::ReasoningStart { .. }
            | GenerationEvent::ReasoningDelta { .. }
            | GenerationEvent::ReasoningEnd { .. }
            | GenerationEvent::ToolInputStart { .. }
            | GenerationEvent::ToolInputDelta { .. }
            | GenerationEvent::ToolInputEnd { .. }
            | GenerationEvent::ToolCall(_)
            | GenerationEvent::ToolResult(_)
            | GenerationEvent::StepFinish { .. } => return None,
        })
    }
}
