//! Stream of an object as JSON text, for clients that parse incomplete JSON.

use greenroom_actors::agent::generation::GenerationEvent;
use serde_json::Value;

use crate::api::partial_json::PartialJson;
use crate::api::wire::object_progress::ObjectProgress;

/// The stream must be aborted: the text sent so far is not the object, or there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CutShort;

/// Forwards the JSON in the text of a model, without a code fence.
#[derive(Debug, Default)]
pub struct ObjectText {
    json: PartialJson,
}

impl ObjectText {
    /// Appends the bytes of an event to `out`.
    pub fn write(&mut self, event: &GenerationEvent, out: &mut Vec<u8>) -> Result<(), CutShort> {
        match ObjectProgress::of(event) {
            Some(ObjectProgress::Text(delta)) => {
                out.extend_from_slice(self.json.push(delta).as_bytes());
                Ok(())
            }
            // Sent text cannot be withdrawn.
            Some(ObjectProgress::Restarted) => {
                if !self.json.text().is_empty() {
                    return Err(CutShort);
                }
                *self = Self::default();
                Ok(())
            }
            Some(ObjectProgress::Object(object)) => self.finish(object, out),
            // Bare text has no place for a question.
            Some(
                ObjectProgress::Asked(_) | ObjectProgress::Aborted | ObjectProgress::Failed { .. },
            ) => Err(CutShort),
            Some(ObjectProgress::Finished { .. }) | None => Ok(()),
        }
    }

    /// Checks that the sent text is the validated object; sends the object if nothing was sent.
    fn finish(&self, object: &Value, out: &mut Vec<u8>) -> Result<(), CutShort> {
        let sent = self.json.text();
        if sent.is_empty() {
            return serde_json::to_writer(out, object).map_err(|_| CutShort);
        }
        let is_whole = serde_json::from_str(sent).is_ok_and(|sent: Value| sent == *object);
        if is_whole { Ok(()) } else { Err(CutShort) }
    }
}
