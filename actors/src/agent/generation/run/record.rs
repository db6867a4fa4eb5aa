//! What a run records, and when its history has it.

use serde_json::Value;

use crate::agent::outcome::{GenerateError, Generation};
use crate::domain::message::Part;
use crate::domain::time::Timestamp;
use crate::ports::store::{ConversationWrite, GenerationRecord, GenerationStatus, GenerationWrite};
use crate::requests::Unavailable;

use super::{Outcome, Run};

/// What the history says of a run that the end of the process has cut off.
const INTERRUPTED: &str = "interrupted by a restart";

impl Run {
    /// Waits until the history says `working` and has all turns so far, with their calls and what
    /// is known of the results.
    pub(super) async fn record_progress(&mut self) -> Result<(), GenerateError> {
        if self.is_recorded && !self.transcript.has_unrecorded() {
            return Ok(());
        }
        self.record_turns().await?;
        self.tell_watchers();
        Ok(())
    }

    /// The same, and those who watch hear of it later.
    pub(super) async fn record_turns(&mut self) -> Result<(), GenerateError> {
        let write = GenerationWrite {
            row: self.row,
            record: self.record.clone(),
            steps: self.transcript.unrecorded(),
            messages: None,
        };
        self.deps.generations.record_generation(write).await.map_err(Unavailable::from)?;
        self.is_recorded = true;
        self.transcript.mark_recorded();
        Ok(())
    }

    /// Waits until the history has the end, and the conversation what belongs into it.
    pub(super) async fn record_end(&mut self, outcome: &Outcome) -> Result<(), GenerateError> {
        let at = self.deps.clock.now();
        let status = self.end_status(outcome).filter(|_| self.is_id_ours);
        let Some(status) = status else { return Ok(()) };
        let messages = self.conversation_write(outcome, at);
        self.record.status = status;
        self.record.end_time = Some(at);
        self.record.usage = Some(self.transcript.usage());
        self.record.error = error_of(outcome);
        self.record.output = outcome.as_ref().ok().map(output_of);
        let record = match self.is_watched() {
            true => self.record.clone(),
            // the last write: nobody needs what was said behind it
            false => {
                let (input, output) = (self.record.input.take(), self.record.output.take());
                GenerationRecord { input, output, ..self.record.clone() }
            }
        };
        let steps = self.transcript.unrecorded();
        let write = GenerationWrite { row: self.row, record, steps, messages };
        let recorded = self.deps.generations.record_generation(write).await;
        recorded.map_err(Unavailable::from)?;
        self.transcript.mark_recorded();
        self.tell_of_end();
        Ok(())
    }

    /// Tells how it ended. The ids are those of the scope that it runs in.
    pub(super) fn log_end(&self, outcome: &Outcome) {
        let agent = self.record.agent_id.as_str();
        match outcome {
            Ok(_) => log::debug!("agent {agent}: generation {} completed", self.id),
            Err(GenerateError::Cancelled) => {
                log::debug!("agent {agent}: generation {} cancelled", self.id);
            }
            Err(error @ GenerateError::Exists(_)) => log::debug!("agent {agent}: {error}"),
            Err(error) => log::warn!("agent {agent}: generation {} failed: {error}", self.id),
        }
    }

    /// None for what is no part of the history.
    fn end_status(&self, outcome: &Outcome) -> Option<GenerationStatus> {
        match outcome {
            Ok(_) => Some(GenerationStatus::Completed),
            Err(GenerateError::Cancelled) => Some(GenerationStatus::Cancelled),
            // it stays `working`: its step runs again
            Err(GenerateError::Unavailable(Unavailable::Draining { .. }))
                if self.record.origin.is_some() =>
            {
                None
            }
            Err(GenerateError::Unavailable(Unavailable::Draining { .. })) => {
                Some(GenerationStatus::Error)
            }
            // nothing has happened; with the store at fault there is nobody to tell it
            Err(
                GenerateError::InvalidSchema(_)
                | GenerateError::InvalidRequest(_)
                | GenerateError::Unavailable(_),
            ) if !self.is_recorded => None,
            Err(_) => Some(GenerationStatus::Error),
        }
    }

    /// What was said becomes part of the conversation, also when the caller has stopped it in the
    /// middle. What failed does not.
    fn conversation_write(
        &mut self,
        outcome: &Outcome,
        at: Timestamp,
    ) -> Option<ConversationWrite> {
        let said = match outcome {
            Ok(_) => self.transcript.said(),
            Err(GenerateError::Cancelled) => {
                let said = self.transcript.said();
                let has_text = said.iter().any(|part| matches!(part, Part::Text { .. }));
                has_text.then_some(said)?
            }
            Err(_) => return None,
        };
        let memory = self.memory.take()?;
        Some(memory.write(said, &self.record.id, at))
    }
}

fn output_of(generation: &Generation) -> Value {
    generation.object.clone().unwrap_or_else(|| Value::String(generation.text.clone()))
}

fn error_of(outcome: &Outcome) -> Option<String> {
    match outcome {
        Ok(_) | Err(GenerateError::Cancelled) => None,
        Err(GenerateError::Unavailable(Unavailable::Draining { .. })) => {
            Some(INTERRUPTED.to_owned())
        }
        Err(error) => Some(error.for_callers()),
    }
}
