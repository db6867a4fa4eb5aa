//! The three wire formats, and what reads the answers of each.

mod parts;

use greenroom_actors::ports::model::{ModelError, ProviderState};
use serde_json::Value;

use super::answer::Answer;

/// Wire format of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Chat completions.
    OpenAi,
    /// Messages.
    Anthropic,
    /// `generateContent`.
    Gemini,
}

/// Reads the frames of one answer, in a stream or whole.
pub(super) trait Reader: Send {
    /// Reads the next frame.
    fn read(&mut self, frame: &Value, answer: &mut Answer) -> Result<(), ModelError>;

    /// Returns true if the provider has marked the answer as complete. In most formats only the end
    /// of the connection does.
    fn is_done(&self) -> bool {
        false
    }

    /// Takes the state that the provider needs back with later turns.
    fn state(&mut self, answer: &Answer) -> Option<ProviderState>;

    /// Ends the answer, after the end of the connection or the provider's mark. Returns false if it
    /// is not complete.
    fn end(&mut self, answer: &mut Answer) -> Result<bool, ModelError> {
        if answer.finish_reason.is_none() {
            return Ok(false);
        }
        let state = self.state(answer);
        answer.finish(state)?;
        Ok(true)
    }
}
