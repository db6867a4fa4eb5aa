//! Commands to an execution, and their answers.
//!
//! The data and the handler of each command are in a file beside this one: `suspend`, `resume`,
//! `cancel`, `finish` (the end of a body), `note`, `timer`, `child`, `recover`, `release`, `abort`.
//! `start` creates the execution.

use std::sync::Arc;

use serde_json::Value;

use crate::assignment::AskRules;
use crate::effort::{self, Effort, within};
use crate::fact::Suspension;
use crate::failure::ErrorKind;
use crate::ids::{ExecutionId, StepPath};
use crate::machine::child::ChildReport;
use crate::machine::finish::{Spent, StepResult};
use crate::machine::resume::Resume;
use crate::machine::{Batch, Machine, Moment};
use crate::principal::Principal;
use crate::status::Status;

/// A request to an execution, or news for it.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Pauses the execution.
    Suspend {
        reason: Arc<str>,
        by: Option<Arc<Principal>>,
    },
    Resume(Resume),
    /// A child accepted the resume that was forwarded to it.
    ChildTookResume {
        path: StepPath,
        child_seq: u64,
        by: Option<Arc<Principal>>,
    },
    Cancel {
        reason: Arc<str>,
        by: Option<Arc<Principal>>,
        /// Compensates what completed even if the definition does so only after a failure.
        compensate: bool,
    },
    /// A body ended.
    StepFinished {
        path: StepPath,
        attempt: u32,
        result: StepResult,
        spent: Spent,
    },
    /// The tool of a running attempt notes where it can continue if the attempt is interrupted.
    NoteStep {
        path: StepPath,
        attempt: u32,
        memo: Arc<Value>,
    },
    /// The timer of a node is due.
    TimerFired {
        path: StepPath,
    },
    /// A child reported its status.
    ChildReported {
        path: StepPath,
        report: ChildReport,
    },
    /// Continues to run ahead. After a start of the process, starts interrupted bodies again.
    Recover,
    /// The process shuts down: running bodies start again after the restart.
    Release,
    /// The execution cannot make progress: fails it with this error.
    Abort {
        error: Arc<str>,
        kind: ErrorKind,
    },
}

/// Answer to a command that was not refused.
#[derive(Debug, PartialEq)]
pub enum Handled {
    Decided(Decision),
    /// The decision costs more than a turn. Nothing has changed; the caller repeats the command on
    /// a worker, with a larger budget.
    PutOff(Command),
}

/// Result of a command.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// The facts, already applied; empty if the command came too late.
    Recorded(Batch),
    /// The resume is for a child, which decides it.
    Forward { path: StepPath, child: ExecutionId, resume: Resume },
    /// The resume is to be repeated with the rules of this suspension's ask, as they are now. If the
    /// ask is not stored yet, they are those that it opened with.
    Admit { suspension_id: Arc<str>, opened_with: Option<Arc<AskRules>>, resume: Resume },
    /// The program has to check the answer to this suspension; the resume is to be repeated if it
    /// passes. Without a path it ends a pause.
    Check { path: Option<StepPath>, suspension_id: Arc<str>, resume: Resume },
}

/// Reason why a command was refused. The state is unchanged.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The status does not allow it.
    Already(Status),
    NotSuspended,
    /// The execution has failed or was cancelled, and compensates before it ends.
    Compensating,
    UnknownStep(String),
    StepNotSuspended(String),
    Ambiguous {
        step: String,
        paths: String,
    },
    /// No step is given, and several wait.
    SeveralWait {
        paths: String,
    },
    /// The given suspension has ended. `waiting`: those that have not.
    SuspensionPassed {
        id: String,
        waiting: Vec<Suspension>,
    },
    /// The step waits until the asks of its generation are answered.
    AsksOpen(StepPath),
    /// Others are asked.
    NotAssigned,
    InvalidData(String),
}

impl Decision {
    /// Returns true if it changes the record.
    pub fn has_facts(&self) -> bool {
        match self {
            Self::Recorded(batch) => !batch.facts.is_empty(),
            Self::Forward { .. } | Self::Admit { .. } | Self::Check { .. } => false,
        }
    }
}

/// Returns true if the evaluation exceeded a turn; its result is discarded and it runs again.
pub(super) fn is_put_off(moment: &Moment<'_>) -> bool {
    moment.budget.is_turn() && effort::is_exceeded()
}

impl Machine {
    /// Decides a command and applies the resulting facts.
    pub fn handle(&mut self, command: Command, moment: &Moment<'_>) -> Result<Handled, Refusal> {
        let mut batch = Batch::default();
        let again = command.clone();
        let (decision, effort) =
            within(moment.budget, || self.carry_out(command, moment, &mut batch));
        let Effort { steps, is_exceeded } = effort;
        if is_exceeded && moment.budget.is_turn() {
            debug_assert!(batch.facts.is_empty(), "a command that is put off changes nothing");
            return Ok(Handled::PutOff(again));
        }
        if let Some(decision) = decision? {
            return Ok(Handled::Decided(decision));
        }
        self.run_ahead(steps, moment, &mut batch);
        Ok(Handled::Decided(Decision::Recorded(batch)))
    }

    /// Executes the command itself. All evaluations come before the first fact. Returns a decision that
    /// is not to record facts here.
    fn carry_out(
        &mut self,
        command: Command,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) -> Result<Option<Decision>, Refusal> {
        match command {
            Command::Suspend { reason, by } => {
                batch.by = by;
                self.suspend(reason, moment, batch)?;
            }
            Command::Resume(resume) => return self.resume(resume, moment, batch),
            Command::ChildTookResume { path, child_seq, by } => {
                batch.by = by;
                self.child_took_resume(&path, child_seq, moment, batch);
            }
            Command::Cancel { reason, by, compensate } => {
                batch.by = by;
                self.cancel(reason, compensate, moment, batch)?;
            }
            Command::StepFinished { path, attempt, result, spent } => {
                self.finish_step(&path, (attempt, &result), spent, moment, batch);
            }
            Command::NoteStep { path, attempt, memo } => {
                self.note_step(path, attempt, memo, moment, batch);
            }
            Command::TimerFired { path } => self.fire_timer(path, moment, batch),
            Command::ChildReported { path, report } => {
                self.child_reported(path, report, moment, batch);
            }
            Command::Recover => {}
            Command::Release => self.release(moment, batch),
            Command::Abort { error, kind } => self.abort(error, kind, moment, batch),
        }
        Ok(None)
    }
}
