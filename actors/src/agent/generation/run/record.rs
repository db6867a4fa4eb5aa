//! Records of a run in the history.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::agent::generation::continuation::Continuation;
use crate::agent::generation::idle_end::{IdleEnd, end_and_count};
use crate::agent::generation::turn::Turns;
use crate::agent::outcome::{GenerateError, Generation};
use crate::domain::message::Part;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    ContinuationChange, ConversationWrite, GenerationRecord, GenerationStatus, GenerationWrite,
};
use crate::requests::{Unavailable, forget_operation};

use super::{Outcome, Run};

/// Error recorded for a run that a shutdown interrupted.
const INTERRUPTED: &str = "interrupted by a restart";

/// Time after which a run that was not recorded is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

impl Run {
    /// Records status `working` and all turns so far, and publishes their spans.
    pub(super) async fn record_progress(&mut self) -> Result<(), GenerateError> {
        if self.is_recorded && !self.transcript.has_unrecorded() {
            return Ok(());
        }
        self.record_turns().await?;
        self.publish_spans();
        Ok(())
    }

    /// Records like [`Run::record_progress`], without publishing spans.
    pub(super) async fn record_turns(&mut self) -> Result<(), GenerateError> {
        let change = match self.have_calls_used() {
            true => {
                self.count_usage();
                self.put_continuation(Vec::new())
            }
            false => ContinuationChange::Keep,
        };
        self.record_with(change).await
    }

    /// Returns true if calls have used models since the continuation was made.
    pub(super) fn have_calls_used(&self) -> bool {
        self.continuation.as_ref().is_some_and(|it| it.usage != self.transcript.usage())
    }

    /// Notes in the continuation what the run has used.
    pub(super) fn count_usage(&mut self) {
        if let Some(continuation) = &mut self.continuation {
            (continuation.usage, continuation.results_left) =
                (self.transcript.usage(), self.results_left);
        }
    }

    /// Records like [`Run::record_turns`], with a change of the continuation.
    pub(super) async fn record_with(
        &mut self,
        continuation: ContinuationChange,
    ) -> Result<(), GenerateError> {
        self.forget_user_if_erased();
        self.has_continuation |= matches!(continuation, ContinuationChange::Put { .. });
        let write = GenerationWrite {
            row: self.row,
            record: self.record.clone(),
            steps: self.transcript.unrecorded(),
            messages: None,
            continuation,
        };
        let recorded = self.deps.generations.record_generation(write);
        self.recording.during(recorded).await.map_err(Unavailable::from)?;
        self.is_recorded = true;
        self.transcript.mark_recorded();
        Ok(())
    }

    /// Records the rejected turn, with what another process needs to ask for the repair. A run that
    /// has called no tools starts from the beginning.
    pub(super) async fn record_repair(&mut self, turns: &Turns) -> Result<(), GenerateError> {
        if !self.has_continuation {
            return Ok(());
        }
        self.continuation = Some(self.continuation_at(turns));
        let change = self.put_continuation(Vec::new());
        self.record_with(change).await?;
        // a shutdown meanwhile needs it
        self.leave_calls();
        self.publish_spans();
        Ok(())
    }

    /// Records the end, and the messages of the conversation.
    pub(super) async fn record_end(&mut self, outcome: &Outcome) -> Result<(), GenerateError> {
        self.forget_user_if_erased();
        let at = self.deps.clock.now();
        if self.is_unchanged {
            return Ok(());
        }
        if outcome.as_ref().is_ok_and(Generation::is_suspended) {
            let recorded = Box::pin(self.record_put_down(at)).await;
            return recorded.inspect_err(|_| self.leave_behind());
        }
        let is_cancelled = matches!(outcome, Err(GenerateError::Cancelled));
        if self.is_id_chosen && !self.is_id_ours && is_cancelled {
            // before it was known whether another run has the id: who cancelled it finds it by that
            self.claim_id().await?;
        }
        if !self.is_id_ours && !matches!(outcome, Err(GenerateError::Exists(_))) {
            self.leave_behind();
        }
        if self.is_interrupted_by_shutdown(outcome) {
            return Box::pin(self.record_release()).await;
        }
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
            // the last write, so input and output are moved rather than copied
            false => {
                let (input, output) = (self.record.input.take(), self.record.output.take());
                GenerationRecord { input, output, ..self.record.clone() }
            }
        };
        let steps = self.transcript.unrecorded();
        let continuation = match self.has_continuation {
            true => ContinuationChange::Remove { asks: Vec::new() },
            false => ContinuationChange::Keep,
        };
        let write = GenerationWrite { row: self.row, record, steps, messages, continuation };
        let recorded = self.deps.generations.record_generation(write);
        let recorded = self.recording.during(recorded).await.map_err(Unavailable::from);
        recorded.inspect_err(|_| self.end_later(outcome))?;
        self.transcript.mark_recorded();
        self.publish_end();
        Ok(())
    }

    /// Removes the user and the conversation from what the run records from now on, if the user was
    /// erased meanwhile.
    pub(super) fn forget_user_if_erased(&mut self) {
        if !self.control.borrow().forgets_user {
            return;
        }
        (self.record.user_id, self.record.conversation_id) = (None, None);
        (self.memory, self.shared) = (None, None);
        forget_operation(Arc::make_mut(&mut self.context));
        self.continuation = self.continuation.take().map(Continuation::without_user);
    }

    /// Records the end of a run once the store accepts it, or has the run continued. A step sees to its
    /// own.
    fn end_later(&self, outcome: &Outcome) {
        let is_cancelled = matches!(outcome, Err(GenerateError::Cancelled));
        if self.record.origin.is_some() || !self.is_recorded {
            return;
        }
        if self.has_continuation && self.is_free() && !is_cancelled {
            self.leave_behind();
            return;
        }
        let why = "the store did not accept its end";
        let (status, error) = match is_cancelled {
            true => (GenerationStatus::Cancelled, None),
            false => (GenerationStatus::Error, Some(why.to_owned())),
        };
        let from = Some(GenerationStatus::Working);
        let at = self.deps.clock.now();
        let end = IdleEnd { from, revision: None, status, error, why: why.to_owned(), at };
        let (deps, id) = (self.deps.clone(), self.id.to_string());
        actix::spawn(async move {
            loop {
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
                match end_and_count(&deps, &id, end.clone()).await {
                    Ok(_) => return,
                    Err(Unavailable::Store { .. } | Unavailable::Busy { .. }) => {}
                    Err(why) => {
                        log::warn!("the end of generation {id} is not recorded: {why}");
                        return;
                    }
                }
            }
        });
    }

    /// Has a run that another run can continue tried again.
    fn leave_behind(&self) {
        if self.has_continuation {
            let (left_behind, id) = (Arc::clone(&self.deps.left_behind), self.id.to_string());
            // not at once: the store may refuse writes for a while
            actix::spawn(async move {
                tokio::time::sleep(TRY_AGAIN_AFTER).await;
                left_behind.add(id);
            });
        }
    }

    /// Records that the run waits for people, with the asks and the conversation so far.
    async fn record_put_down(&mut self, at: Timestamp) -> Result<(), GenerateError> {
        let parts = self.transcript.parts(&self.approvals, &self.open_call_ids());
        let messages = self.memory.take().map(|memory| {
            if let Some(continuation) = &mut self.continuation {
                continuation.memory = Some(memory.clone().stored());
            }
            memory.write(parts, self.approved_tools.clone(), &self.record.id, at)
        });
        self.record.status = GenerationStatus::Suspended;
        self.record.usage = Some(self.transcript.usage());
        let opened = std::mem::take(&mut self.opened);
        let write = GenerationWrite {
            row: self.row,
            record: self.record.clone(),
            steps: self.transcript.unrecorded(),
            messages,
            continuation: self.put_continuation(opened),
        };
        let recorded = self.deps.generations.record_generation(write);
        self.recording.during(recorded).await.map_err(Unavailable::from)?;
        self.transcript.mark_recorded();
        self.publish_spans();
        // of sub-agents, whose asks may have been answered by now
        let children = self.continuation.iter().flat_map(Continuation::children);
        children.for_each(|child| self.deps.left_behind.add(child.to_string()));
        Ok(())
    }

    /// Returns true if the process ends and another one continues the run.
    pub(super) fn is_interrupted_by_shutdown(&self, outcome: &Outcome) -> bool {
        let is_draining =
            matches!(outcome, Err(GenerateError::Unavailable(Unavailable::Draining { .. })));
        is_draining && self.has_continuation && self.is_id_ours
    }

    /// Records that an orderly shutdown interrupts the run, which does not count as a crash. Calls
    /// that were under way count as interrupted nevertheless.
    async fn record_release(&mut self) -> Result<(), GenerateError> {
        let has_open_calls = self.continuation.is_some() && self.transcript.has_open_calls();
        if self.continuation.is_none() {
            // the calls have results, and the model was asked again
            let stored = self.deps.generations.continuation(&self.id);
            let stored = self.recording.during(stored).await.map_err(Unavailable::from)?;
            let read = stored.map(|it| Continuation::read(&it.body, &self.record)).transpose();
            self.continuation = read.map_err(|error| self.damaged(&error))?;
        }
        let Some(continuation) = &mut self.continuation else { return Ok(()) };
        continuation.is_released = !has_open_calls;
        continuation.shutdowns += u32::from(has_open_calls);
        continuation.worked_ms = self.worked.ms();
        self.count_usage();
        let change = self.put_continuation(Vec::new());
        self.record_with(change).await
    }

    /// Logs the end. Ids come from the log scope of the run.
    pub(super) fn log_end(&self, outcome: &Outcome) {
        let agent = self.record.agent_id.as_str();
        match outcome {
            Ok(generation) if generation.is_suspended() => {
                log::info!("agent {agent}: generation {} waits for people", self.id);
            }
            Ok(_) => log::debug!("agent {agent}: generation {} completed", self.id),
            Err(GenerateError::Cancelled) => {
                log::debug!("agent {agent}: generation {} cancelled", self.id);
            }
            Err(error @ GenerateError::Exists(_)) => log::debug!("agent {agent}: {error}"),
            Err(error) => log::warn!("agent {agent}: generation {} failed: {error}", self.id),
        }
    }

    /// Returns the status to record; `None` if the run is not recorded.
    fn end_status(&self, outcome: &Outcome) -> Option<GenerationStatus> {
        match outcome {
            Ok(_) => Some(GenerationStatus::Completed),
            Err(GenerateError::Cancelled) => Some(GenerationStatus::Cancelled),
            // stays `working`: its step runs again
            Err(GenerateError::Unavailable(Unavailable::Draining { .. }))
                if self.record.origin.is_some() =>
            {
                None
            }
            Err(GenerateError::Unavailable(Unavailable::Draining { .. })) => {
                Some(GenerationStatus::Error)
            }
            // nothing has happened; and a failing store cannot record it
            Err(
                GenerateError::InvalidSchema(_)
                | GenerateError::InvalidRequest(_)
                | GenerateError::Unavailable(_),
            ) if !self.is_recorded => None,
            Err(_) => Some(GenerationStatus::Error),
        }
    }

    /// Returns the messages to store. An answer is stored also if the caller cancelled it midway, a
    /// failed one is not.
    fn conversation_write(
        &mut self,
        outcome: &Outcome,
        at: Timestamp,
    ) -> Option<ConversationWrite> {
        let parts = match outcome {
            Ok(_) => self.transcript.parts(&self.approvals, &[]),
            Err(GenerateError::Cancelled) => {
                let parts = self.transcript.parts(&self.approvals, &[]);
                let has_text = parts.iter().any(|part| matches!(part, Part::Text { .. }));
                has_text.then_some(parts)?
            }
            Err(_) => return None,
        };
        let memory = self.memory.take()?;
        let approved_tools = self.approved_tools.clone();
        Some(memory.write(parts, approved_tools, &self.record.id, at))
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
