//! Commands: the list of what can be asked of an execution, and the answers.
//!
//! Each command has a file of its own beside this one, with its data and its handler: `suspend`,
//! `resume`, `cancel`, `finish` (a body ended), `timer`, `child`, `recover`, `release`, `abort`;
//! `start` makes the execution.

use std::sync::Arc;

use crate::effort::{self, Effort, within};
use crate::fact::Suspension;
use crate::failure::ErrorKind;
use crate::ids::{ExecutionId, StepPath};
use crate::machine::child::ChildReport;
use crate::machine::finish::StepResult;
use crate::machine::resume::Resume;
use crate::machine::{Batch, Machine, Moment};
use crate::principal::Principal;
use crate::status::Status;
use crate::usage::Usage;

/// A command to an execution, or news for it.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Stand still: a hold from outside.
    Suspend {
        reason: Arc<str>,
        by: Option<Arc<Principal>>,
    },
    Resume(Resume),
    /// A child took the resume that was passed to it.
    ChildTookResume {
        path: StepPath,
        child_seq: u64,
        by: Option<Arc<Principal>>,
    },
    Cancel {
        reason: Arc<str>,
        by: Option<Arc<Principal>>,
    },
    /// A body ended.
    StepFinished {
        path: StepPath,
        attempt: u32,
        result: StepResult,
        /// Tokens that an agent used for it, as far as they are known.
        usage: Option<Usage>,
    },
    /// Time that a node waits for has come.
    TimerFired {
        path: StepPath,
    },
    /// A child said where it stands.
    ChildReported {
        path: StepPath,
        report: ChildReport,
    },
    /// Go on with what follows by itself; after a start of the process, begin interrupted bodies
    /// again.
    Recover,
    /// The process ends in order: bodies that have not ended begin anew after the restart.
    Release,
    /// Nothing can move the execution on any more: end it with this error.
    Abort {
        error: Arc<str>,
        kind: ErrorKind,
    },
}

/// The answer to a command that was not refused.
#[derive(Debug, PartialEq)]
pub enum Handled {
    Decided(Decision),
    /// The decision costs more than a turn: the caller repeats the command elsewhere, with a larger
    /// budget. Nothing has changed.
    PutOff(Command),
}

/// The decision that a command leads to.
#[derive(Debug, PartialEq)]
pub enum Decision {
    /// These facts, already taken in; none when the command came too late to matter.
    Recorded(Batch),
    /// The resume is the child's to decide.
    Forward { path: StepPath, child: ExecutionId, resume: Resume },
}

/// Why a command was not taken. The state is as it was.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The status forbids it.
    Already(Status),
    NotSuspended,
    UnknownStep(String),
    StepNotSuspended(String),
    Ambiguous {
        step: String,
        paths: String,
    },
    /// No step is named, and several wait.
    SeveralWait {
        paths: String,
    },
    /// The suspension that is named no longer waits; others may.
    SuspensionPassed {
        id: String,
        waiting: Vec<Suspension>,
    },
    InvalidData(String),
}

impl Decision {
    /// Returns whether it changes the record.
    pub fn has_facts(&self) -> bool {
        match self {
            Self::Recorded(batch) => !batch.facts.is_empty(),
            Self::Forward { .. } => false,
        }
    }
}

/// Whether what has been evaluated counts for nothing, and will be evaluated again.
pub(super) fn is_put_off(moment: &Moment<'_>) -> bool {
    moment.budget.is_turn() && effort::is_exceeded()
}

impl Machine {
    /// Decides a command and takes in what follows from it.
    pub fn handle(&mut self, command: Command, moment: &Moment<'_>) -> Result<Handled, Refusal> {
        let mut batch = Batch::default();
        let again = command.clone();
        let (forward, effort) =
            within(moment.budget, || self.carry_out(command, moment, &mut batch));
        let Effort { steps, is_exceeded } = effort;
        if is_exceeded && moment.budget.is_turn() {
            debug_assert!(batch.facts.is_empty(), "what costs more than a turn changes nothing");
            return Ok(Handled::PutOff(again));
        }
        if let Some(forward) = forward? {
            return Ok(Handled::Decided(forward));
        }
        self.run_ahead(steps, moment, &mut batch);
        Ok(Handled::Decided(Decision::Recorded(batch)))
    }

    /// Does what the command itself asks for. Whatever it evaluates, it evaluates before its
    /// first fact.
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
            Command::Cancel { reason, by } => {
                batch.by = by;
                self.cancel(reason, moment, batch)?;
            }
            Command::StepFinished { path, attempt, result, usage } => {
                self.finish_step(&path, (attempt, &result, usage), moment, batch);
            }
            Command::TimerFired { path } => self.fire_timer(path, moment, batch),
            Command::ChildReported { path, report } => {
                self.hear_child(path, report, moment, batch);
            }
            Command::Recover => {}
            Command::Release => self.release(moment, batch),
            Command::Abort { error, kind } => self.abort(error, kind, moment, batch),
        }
        Ok(None)
    }
}
