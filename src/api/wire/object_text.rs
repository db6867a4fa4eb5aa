//! An object as the text of its JSON, for readers that parse what there is of it by themselves.

use greenroom_actors::agent::generation::GenerationEvent;
use serde_json::Value;

use crate::api::partial_json::PartialJson;

/// The text cannot go on to a proper end: what was sent is not the object, or there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutShort;

/// Passes on the JSON in a model's text, without a fence around it.
#[derive(Debug, Default)]
pub struct ObjectText {
    json: PartialJson,
}

impl ObjectText {
    /// Adds to `out` what an event gives to send.
    pub fn write(&mut self, event: &GenerationEvent, out: &mut Vec<u8>) -> Result<(), CutShort> {
        match event {
            GenerationEvent::TextDelta { delta, .. } => {
                out.extend_from_slice(self.json.push(delta).as_bytes());
                Ok(())
            }
            // What has been sent cannot be taken back.
            GenerationEvent::StepStart | GenerationEvent::ObjectRejected { .. } => {
                if !self.json.text().is_empty() {
                    return Err(CutShort);
                }
                *self = Self::default();
                Ok(())
            }
            GenerationEvent::Object(object) => self.finish(object, out),
            GenerationEvent::Abort | GenerationEvent::Error { .. } => Err(CutShort),
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
            | GenerationEvent::StepFinish { .. }
            | GenerationEvent::Finish { .. } => Ok(()),
        }
    }

    /// The validated object: what was sent, or all of it where nothing in the text looked like it.
    fn finish(&self, object: &Value, out: &mut Vec<u8>) -> Result<(), CutShort> {
        let sent = self.json.text();
        if sent.is_empty() {
            return serde_json::to_writer(out, object).map_err(|_| CutShort);
        }
        let is_whole = serde_json::from_str(sent).is_ok_and(|sent: Value| sent == *object);
        if is_whole { Ok(()) } else { Err(CutShort) }
    }
}
