//! Stream of an object: partial objects, then the complete one.

use greenroom_actors::agent::generation::GenerationEvent;
use greenroom_actors::ports::model::{FinishReason, Usage};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::error::stream_failure;
use crate::api::partial_json::PartialJson;
use crate::api::wire::object_progress::ObjectProgress;
use crate::api::wire::pending_ask::PendingAskView;
use crate::api::wire::shape::{FinishReasonShape, UsageShape};
use crate::api::wire::stand_in::StandInView;

/// Size of the JSON up to which each piece of text may send a partial object, in bytes.
const SMALL_BYTES: usize = 4096;
/// Above [`SMALL_BYTES`], the JSON has to grow by 1/`GROWTH` before the next partial object, so
/// that the sum of all partial objects is proportional to the last.
const GROWTH: usize = 16;

/// Data of an event.
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
    /// A call waits for a person, and the stream ends without an object.
    Ask(PendingAskView<'a>),
    #[schema(rename_all = "camelCase")]
    Finish {
        #[schema(value_type = FinishReasonShape)]
        finish_reason: FinishReason,
        #[schema(value_type = UsageShape)]
        usage: Usage,
        #[serde(skip_serializing_if = "Option::is_none")]
        answered_by: Option<StandInView<'a>>,
    },
    Abort,
    /// `code` is an error code, here because the headers have already been sent.
    Error {
        error: &'a str,
        code: &'static str,
    },
}

/// Turns streamed text into partial objects.
#[derive(Debug, Default)]
pub struct ObjectFrames {
    json: PartialJson,
    /// Last partial object that was sent.
    shown: Option<Value>,
    /// Size of the JSON that allows the next partial object.
    due_at: usize,
}

impl ObjectFrames {
    /// Converts an event; `None` if it is not part of the stream. A subscriber that `is_behind`
    /// gets no partial objects until it has caught up; the next one contains all previous ones.
    pub fn frame<'a>(
        &'a mut self,
        event: &'a GenerationEvent,
        is_behind: bool,
    ) -> Option<ObjectEvent<'a>> {
        match ObjectProgress::of(event)? {
            ObjectProgress::Text(delta) => {
                self.json.push(delta);
                if is_behind { None } else { self.partial() }
            }
            ObjectProgress::Restarted => {
                *self = Self::default();
                None
            }
            ObjectProgress::Object(object) => Some(ObjectEvent::Object { object }),
            ObjectProgress::Asked(ask) => Some(ObjectEvent::Ask(PendingAskView::of(ask))),
            ObjectProgress::Finished { finish_reason, usage, stand_in } => {
                let answered_by = stand_in.map(StandInView::of);
                Some(ObjectEvent::Finish { finish_reason, usage, answered_by })
            }
            ObjectProgress::Aborted => Some(ObjectEvent::Abort),
            ObjectProgress::Failed { message, kind } => {
                Some(ObjectEvent::Error { error: message, code: stream_failure(kind).as_str() })
            }
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
