//! Continues a run that was interrupted or put down.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::generation::GenerateError;
use crate::agent::generation::continuable::{Continuable, Stored};
use crate::agent::generation::continuation::{Continuation, OpenCall};
use crate::agent::generation::sequencer::EventSequencer;
use crate::agent::generation::turn::{Ended, Transcript, Turns, compile_schema};
use crate::observe::trace::generation::new_spans;
use crate::ports::model::FinishReason;
use crate::ports::store::{
    GenerationEntry, GenerationRecord, GenerationStatus, GenerationStep, GenerationWrite,
};
use crate::requests::Unavailable;

use super::{Halt, Run};

/// An earlier attempt at a run.
pub(super) enum Recorded {
    /// It can be continued.
    Continuable(Box<Continuable>),
    /// It has completed, which what waits for it has not recorded.
    Completed(Box<GenerationEntry>),
}

impl Run {
    /// Reads an earlier attempt at this run; `None` if it has to start from the beginning.
    pub(super) async fn recorded(&mut self) -> Result<Option<Recorded>, GenerateError> {
        let error = match Stored::read(&*self.deps.generations, &self.id).await? {
            Some(Stored::Continuable(found)) => return Ok(Some(Recorded::Continuable(found))),
            Some(Stored::Damaged(_, error)) => return Err(self.damaged(&error)),
            // nothing of this run may be recorded over its end
            Some(Stored::Alone(entry)) if self.is_free() && entry.record.status.is_final() => {
                GenerateError::Exists(self.record.id.clone())
            }
            // by its id, while it waited: the process ended before what waits for it had noted that
            Some(Stored::Alone(entry)) if entry.record.status == GenerationStatus::Cancelled => {
                GenerateError::Cancelled
            }
            // the process ended before what waits for it had recorded that
            Some(Stored::Alone(entry)) if entry.record.status == GenerationStatus::Completed => {
                return Ok(Some(Recorded::Completed(entry)));
            }
            // deleted meanwhile: there is nothing that it could begin with
            Some(Stored::Alone(_)) | None if self.is_free() => GenerateError::Cancelled,
            Some(Stored::Alone(_)) | None => return Ok(None),
        };
        self.is_id_ours = false;
        Err(error)
    }

    /// Returns the failure of a run whose continuation cannot be read.
    pub(super) fn damaged(&self, error: &serde_json::Error) -> GenerateError {
        log::error!("the continuation of generation {} is damaged: {error}", self.id);
        GenerateError::Failed("the generation cannot be continued".to_owned())
    }

    /// Returns true if neither a step nor another generation waits for the run.
    pub(super) fn is_free(&self) -> bool {
        self.record.origin.is_none() && self.parent.is_none()
    }

    /// Continues a run in front of the calls of its last turn, or of the repair. One that still waits
    /// for people or has completed is left as it is.
    pub(super) async fn take_up(
        &mut self,
        recorded: Recorded,
        has_schema: bool,
    ) -> Result<Halt, GenerateError> {
        let found = match recorded {
            Recorded::Continuable(found) => *found,
            Recorded::Completed(entry) => return Ok(self.completed(*entry, has_schema)),
        };
        let Continuable { entry: GenerationEntry { record, steps }, continuation, revision } =
            found;
        let is_waiting = record.status == GenerationStatus::Suspended;
        self.restore(record, steps, &continuation);
        if is_waiting {
            self.continuation = Some(continuation);
            return Ok(Halt::StillWaiting);
        }
        let (worked, is_cancelled) =
            (Duration::from_millis(continuation.worked_ms), continuation.is_cancelled);
        match self.claim(continuation, revision).await {
            // changed by a cancellation: what waits for the run has no other one
            Err(GenerateError::Exists(_)) if !self.is_free() => {
                return match self.recorded().await? {
                    Some(recorded) => Box::pin(self.take_up(recorded, has_schema)).await,
                    None => Err(GenerateError::Cancelled),
                };
            }
            claimed => claimed?,
        }
        self.worked.add(worked);
        if let Some(sequencer) = &mut self.sequencer {
            sequencer.take_up();
        }
        if is_cancelled {
            return Err(GenerateError::Cancelled);
        }
        self.publish().await?;
        let schema =
            self.continuation.as_ref().and_then(|continuation| continuation.schema.clone());
        let schema = schema.map(|schema| compile_schema((*schema).clone())).transpose()?;
        let (_, toolset) = self.chosen().await?;
        let (Some(continuation), Some(last)) = (&self.continuation, self.transcript.last()) else {
            return Err(GenerateError::Failed("the generation has no turn".to_owned()));
        };
        let schema = schema.map(|(_, compiled)| compiled);
        let (mut turns, next) = Turns::restored(continuation, schema, toolset.specs(), last);
        if next.is_none() {
            self.leave_calls();
        }
        self.run_turns(&mut turns, &toolset, next).await
    }

    /// Returns the recorded outcome: asked again, people would have nothing left to answer.
    fn completed(&mut self, entry: GenerationEntry, has_schema: bool) -> Halt {
        let GenerationEntry { record, steps } = entry;
        let object = record.output.clone().filter(|_| has_schema);
        self.transcript = Transcript::restored(steps, record.usage.unwrap_or_default());
        self.record = record;
        self.is_start_hook_called = true;
        let last = self.transcript.last();
        let finish_reason = last.map_or(FinishReason::Stop, |step| step.finish_reason);
        Halt::HasEnded(Ended { finish_reason, object })
    }

    fn restore(
        &mut self,
        record: GenerationRecord,
        steps: Vec<GenerationStep>,
        continuation: &Continuation,
    ) {
        self.record = record;
        self.transcript = Transcript::restored(steps, continuation.usage);
        self.answer.set_bytes_left(continuation.answer_left);
        self.results_left = continuation.results_left;
        self.message_id.clone_from(&continuation.message_id);
        self.memory.clone_from(&continuation.memory);
        self.approvals.clone_from(&continuation.approvals);
        self.approved_tools.clone_from(&continuation.approved_tools);
        self.context = Arc::clone(&continuation.context);
        self.depth = continuation.depth;
        self.parent.clone_from(&continuation.parent);
        self.is_chat = continuation.is_chat;
        self.is_recorded = true;
        self.has_continuation = true;
        // called by the process that began the run
        self.is_start_hook_called = true;
        if self.sequencer.is_some() {
            let message_id = Arc::from(self.message_id.as_str());
            self.sequencer = Some(EventSequencer::new(Arc::clone(&self.id), message_id));
        }
        // spans of earlier turns were published when they were recorded
        drop(new_spans(
            &Arc::new(self.record.clone()),
            self.transcript.steps(),
            &mut self.published,
        ));
    }

    /// Returns true if all calls without results were waiting for their place.
    fn only_waited(&self, continuation: &Continuation) -> bool {
        let calls = self.transcript.last().map_or(0, |step| step.tool_calls.len());
        let mut open = (0..calls).filter(|number| !self.transcript.has_result(*number)).peekable();
        open.peek().is_some()
            && open.all(|number| continuation.call(number).is_some_and(OpenCall::waits_for_place))
    }

    /// Makes this run the one that continues, and counts interruptions.
    async fn claim(
        &mut self,
        mut continuation: Continuation,
        revision: u64,
    ) -> Result<(), GenerateError> {
        self.is_interrupted = !continuation.is_released;
        continuation.interruptions += u32::from(self.is_interrupted);
        // calls that waited for their place have caused no crash
        continuation.shutdowns += u32::from(self.is_interrupted && self.only_waited(&continuation));
        continuation.is_released = false;
        let crashes = continuation.interruptions.saturating_sub(continuation.shutdowns);
        self.continuation = Some(continuation);
        self.forget_user_if_erased();
        self.record.status = GenerationStatus::Working;
        let write = GenerationWrite {
            row: self.row,
            record: self.record.clone(),
            steps: Vec::new(),
            messages: None,
            continuation: self.put_continuation(Vec::new()),
        };
        // until then nothing is recorded over what another process may have claimed
        self.is_id_ours = false;
        let claimed = self.deps.generations.settle_generation(revision, write);
        if !self.recording.during(claimed).await.map_err(Unavailable::from)? {
            return Err(GenerateError::Exists(self.record.id.clone()));
        }
        self.is_id_ours = true;
        let crash_attempts = self.deps.crash_attempts;
        if crashes >= crash_attempts {
            return Err(GenerateError::Failed(format!("interrupted {crash_attempts} times")));
        }
        Ok(())
    }
}
