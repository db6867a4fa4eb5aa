//! The stream of an object: what there is of it, then the whole.

use greenroom_actors::agent::generation::GenerationEvent;
use greenroom_actors::ports::model::{FinishReason, Usage};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::error::stream_failure;
use crate::api::partial_json::PartialJson;
use crate::api::wire::agent::StandInView;
use crate::api::wire::shape::{FinishReasonShape, UsageShape};

/// Up to here each piece of text may show a new partial object.
const SMALL_BYTES: usize = 4096;
/// Above it, the text has to grow by this part of itself: all partial objects together are then
/// no more than so many times the last.
const GROWTH: usize = 16;

/// The data of one event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObjectStreamEvent)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ObjectEvent<'a> {
    ObjectDelta {
        object: &'a Value,
    },
    Object {
        object: &'a Value,
    },
    #[schema(rename_all = "camelCase")]
    Finish {
        #[schema(value_type = FinishReasonShape)]
        finish_reason: FinishReason,
        #[schema(value_type = UsageShape)]
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schema(nullable = false)]
        answered_by: Option<StandInView<'a>>,
    },
    Abort,
    /// `code` is one of the codes of refusals: the headers have been sent.
    Error {
        error: &'a str,
        code: &'static str,
    },
}

/// Follows the text of an object that is being written.
#[derive(Debug, Default)]
pub struct ObjectFrames {
    json: PartialJson,
    /// The partial object shown last.
    shown: Option<Value>,
    /// Bytes of JSON from which on another one is looked for.
    due_at: usize,
}

impl ObjectFrames {
    /// Shows one event; none for what callers see nothing of. A reader that `is_behind` gets no
    /// partial objects until it has caught up: the next one holds all that they would have.
    pub fn frame<'a>(
        &'a mut self,
        event: &'a GenerationEvent,
        is_behind: bool,
    ) -> Option<ObjectEvent<'a>> {
        match event {
            GenerationEvent::TextDelta { delta, .. } => {
                self.json.push(delta);
                if is_behind { None } else { self.partial() }
            }
            // Only the last turn's text is the object, and of that only the last attempt.
            GenerationEvent::StepStart | GenerationEvent::ObjectRejected { .. } => {
                *self = Self::default();
                None
            }
            GenerationEvent::Object(object) => Some(ObjectEvent::Object { object }),
            GenerationEvent::Finish { finish_reason, usage, stand_in } => {
                Some(ObjectEvent::Finish {
                    finish_reason: *finish_reason,
                    usage: *usage,
                    answered_by: stand_in.as_deref().map(StandInView::of),
                })
            }
            GenerationEvent::Abort => Some(ObjectEvent::Abort),
            GenerationEvent::Error { message, kind } => {
                Some(ObjectEvent::Error { error: message, code: stream_failure(*kind).as_str() })
            }
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
            | GenerationEvent::StepFinish { .. } => None,
        }
    }

    fn partial(&mut self) -> Option<ObjectEvent<'_>> {
        let bytes = self.json.text().len();
        if bytes < self.due_at {
            return None;
        }
        self.due_at = if bytes < SMALL_BYTES { bytes + 1 } else { bytes + bytes / GROWTH };
        let partial = self.json.value()?;
        if self.shown.as_ref() == Some(&partial) {
            return None;
        }
        let object = self.shown.insert(partial);
        Some(ObjectEvent::ObjectDelta { object })
    }
}
