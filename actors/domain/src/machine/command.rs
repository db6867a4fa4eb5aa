//! Commands, and what is answered to them.

use std::sync::Arc;

use serde_json::Value;

use crate::effort::{self, Effort, within};
use crate::fact::{Fact, ResumedBy, Suspension};
use crate::failure::{AttemptFailure, ErrorClass, ErrorKind};
use crate::ids::{ExecutionId, StepPath};
use crate::machine::place::Site;
use crate::machine::{Batch, Machine, Moment};
use crate::plan::WorkClass;
use crate::principal::Principal;
use crate::state::{Node, Phase, suspension_id};
use crate::status::Status;
use crate::time::Timestamp;
use crate::usage::Usage;

/// What is asked of an execution, or told to it.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Stand still, from outside.
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
        /// What an agent used up for it, as far as that is known.
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
    /// Go on with what follows by itself; after a start of the process, begin again what was cut
    /// off.
    Recover,
    /// The process ends in order: bodies that have not ended are let go.
    Release,
    /// Nothing can move the execution on any more: end it with this error.
    Abort {
        error: Arc<str>,
        kind: ErrorKind,
    },
}

/// An answer to something that waits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Resume {
    /// A step that waits, by its id or its path.
    pub step_id: Option<String>,
    /// The suspension that it answers: it is refused once that one no longer waits.
    pub suspension_id: Option<String>,
    pub data: Arc<Value>,
    pub by: Option<Arc<Principal>>,
}

/// How a body ended.
#[derive(Debug, Clone, PartialEq)]
pub enum StepResult {
    Completed(Arc<Value>),
    Failed(AttemptFailure),
    Suspended { reason: Option<String>, payload: Option<Arc<Value>> },
}

/// Where a child stands, after its event `seq`.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildReport {
    pub child: ExecutionId,
    pub seq: u64,
    pub status: ChildStatus,
}

#[derive(Debug, Clone, PartialEq)]
pub enum ChildStatus {
    Running,
    /// `id`: of the suspension that it shows.
    Suspended {
        id: Arc<str>,
        reason: Arc<str>,
        payload: Option<Arc<Value>>,
        deadline: Option<Timestamp>,
    },
    Completed {
        result: Arc<Value>,
    },
    Failed {
        error: Arc<str>,
        class: Option<ErrorClass>,
    },
    Cancelled {
        reason: Arc<str>,
    },
}

impl ChildStatus {
    /// Whether nothing can follow.
    pub(super) fn is_end(&self) -> bool {
        match self {
            Self::Completed { .. } | Self::Failed { .. } | Self::Cancelled { .. } => true,
            Self::Running | Self::Suspended { .. } => false,
        }
    }
}

/// What came of a command.
#[derive(Debug, PartialEq)]
pub enum Handled {
    Decided(Decision),
    /// To decide this costs more than a turn: to be asked again with more, elsewhere. Nothing has
    /// changed.
    PutOff(Command),
}

/// What a command leads to.
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
    /// Whether it changes the record.
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
                let fact = self.end_of_body(&path, attempt, &result, usage, moment);
                if let Some(fact) = fact.filter(|_| !is_put_off(moment)) {
                    self.record(fact, moment, batch);
                }
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

    fn suspend(
        &mut self,
        reason: Arc<str>,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        match self.state.announced {
            Status::Running => {
                let id = Some(suspension_id(&self.state.id, "", self.state.holds + 1));
                self.record(Fact::HoldPlaced { reason, id }, moment, batch);
                Ok(())
            }
            status
            @ (Status::Suspended | Status::Completed | Status::Error | Status::Cancelled) => {
                Err(Refusal::Already(status))
            }
        }
    }

    fn cancel(
        &mut self,
        reason: Arc<str>,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        let status = self.state.announced;
        if status.is_terminal() {
            return Err(Refusal::Already(status));
        }
        self.cancel_all_nodes(moment, batch);
        let since = self.state.created_at;
        self.record(Fact::WorkflowCancelled { since, reason }, moment, batch);
        Ok(())
    }

    fn release(&mut self, moment: &Moment<'_>, batch: &mut Batch) {
        if self.unrecovered || self.state.end.is_some() {
            return;
        }
        for path in self.interrupted_bodies() {
            let Some((_, node)) = self.node(&path) else { continue };
            let (attempt, since) = (node.attempt, node.attempt_started_at);
            self.record(Fact::StepReleased { path, attempt, since }, moment, batch);
        }
    }

    fn abort(&mut self, error: Arc<str>, kind: ErrorKind, moment: &Moment<'_>, batch: &mut Batch) {
        if self.state.end.is_none() {
            self.cancel_all_nodes(moment, batch);
            let since = self.state.created_at;
            let (step_id, path) = (None, None);
            let class = Some(ErrorClass::of(kind));
            let failed = Fact::WorkflowFailed { since, error, step_id, path, class };
            self.record(failed, moment, batch);
        }
    }

    /// Cancels what is alive, innermost first.
    pub(super) fn cancel_all_nodes(&mut self, moment: &Moment<'_>, batch: &mut Batch) {
        while let Some(fact) = self.next_cancelled() {
            self.record(fact, moment, batch);
        }
    }

    /// What the end of a body means; nothing when nobody waits for it any more.
    fn end_of_body(
        &self,
        path: &StepPath,
        attempt: u32,
        result: &StepResult,
        usage: Option<Usage>,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        let (step, node) = self.node(path)?;
        let is_current = node.phase == Phase::Running && node.attempt == attempt;
        let is_outside = match step.work.class() {
            WorkClass::Outside => true,
            // A child reports its own end; only its time can run out here.
            WorkClass::Child => matches!(result, StepResult::Failed(_)),
            WorkClass::Pure | WorkClass::Container | WorkClass::Timer => false,
        };
        if !is_current || !is_outside || self.state.end.is_some() {
            return None;
        }
        let site = Site::at(path, (step, node), moment);
        let mut fact = match result {
            StepResult::Completed(output) => self.completed_within_bounds(&site, output),
            StepResult::Failed(failure) => self.failed(&site, failure),
            StepResult::Suspended { reason, payload } => {
                self.suspended_itself(&site, reason.as_deref(), payload.clone())
            }
        };
        if let Fact::StepCompleted { usage: used, .. } | Fact::StepFailed { usage: used, .. } =
            &mut fact
        {
            *used = usage.map(Box::new);
        }
        Some(fact)
    }

    fn fire_timer(&mut self, path: StepPath, moment: &Moment<'_>, batch: &mut Batch) {
        let Some((_, node)) = self.node(&path) else { return };
        let is_due = node.armed_timer().is_some_and(|due| due <= moment.now);
        if is_due && self.state.end.is_none() {
            self.record(Fact::TimerFired { path }, moment, batch);
        }
    }

    /// The answer to a wait, decided: the node gets it and its attempt may begin.
    pub(super) fn resumed(path: StepPath, node: &Node, data: Arc<Value>, by: ResumedBy) -> Fact {
        Fact::StepResumed { path, data, by, id: node.wait_id() }
    }
}
