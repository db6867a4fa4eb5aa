//! The commands `ChildReported` and `ChildTookResume`: news from child executions.

use std::sync::Arc;

use serde_json::Value;

use crate::expression::CompiledMapping;
use crate::fact::{Fact, Parent};
use crate::failure::{AttemptFailure, ErrorClass, ErrorKind};
use crate::ids::{ExecutionId, StepPath};
use crate::machine::command::is_put_off;
use crate::machine::place::Site;
use crate::machine::scope::Named;
use crate::machine::{Batch, Machine, Moment};
use crate::state::{Child, Phase};
use crate::time::Timestamp;

/// Status of a child after its event `seq`.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildReport {
    pub child: ExecutionId,
    /// The step that started it.
    pub parent: Option<Parent>,
    /// Time of its start.
    pub began: Timestamp,
    pub seq: u64,
    pub status: ChildStatus,
    /// Children that it abandoned before its end. They may still run, to undo what they did.
    pub abandoned: Vec<ExecutionId>,
}

/// Status of a child.
#[derive(Debug, Clone, PartialEq)]
pub enum ChildStatus {
    Running,
    /// `id`: the suspension that it shows.
    Suspended {
        id: Arc<str>,
        reason: Arc<str>,
        payload: Option<Arc<Value>>,
        deadline: Option<Timestamp>,
    },
    /// `compensable`: it has steps that can be compensated. `skipped`: it is a reversal, and a person
    /// skipped some of its compensations.
    Completed {
        result: Arc<Value>,
        compensable: bool,
        skipped: bool,
    },
    Failed {
        error: Arc<str>,
        class: Option<ErrorClass>,
    },
    /// `compensates`: what completed in it is compensated, also in children that it has abandoned.
    Cancelled {
        reason: Arc<str>,
        compensates: bool,
    },
}

impl ChildStatus {
    /// Returns true if the child has ended.
    pub fn is_end(&self) -> bool {
        match self {
            Self::Completed { .. } | Self::Failed { .. } | Self::Cancelled { .. } => true,
            Self::Running | Self::Suspended { .. } => false,
        }
    }
}

impl Machine {
    /// Records that a child was resumed. Also resumes this execution if it is paused, since that is
    /// what the caller means.
    pub(super) fn child_took_resume(
        &mut self,
        path: &StepPath,
        child_seq: u64,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) {
        if self.state.hold.is_some() {
            self.lift_hold(Arc::new(Value::Null), moment, batch);
        }
        let Some((_, node)) = self.node(path) else { return };
        let (Phase::Waiting(_), Some(child)) = (&node.phase, &node.child) else { return };
        if child.seq < child_seq {
            let (path, id) = (Arc::clone(path), node.wait_id());
            self.record(Fact::ChildResumed { path, child_seq, id }, moment, batch);
        }
    }

    /// Records a change of a child's status.
    pub(super) fn child_reported(
        &mut self,
        path: StepPath,
        report: ChildReport,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) {
        let ChildReport { child, parent: _, began: _, seq, status, abandoned: _ } = report;
        let Some((step, node)) = self.node(&path) else { return };
        // An end is always news, because it is the last report.
        let is_news = node.child.as_ref().is_some_and(|known| {
            known.id == child && (status.is_end() || self.known_of(known) < seq)
        });
        let question = match &node.phase {
            Phase::Running => None,
            Phase::Waiting(wait) => Some(wait),
            Phase::Ready
            | Phase::Sleeping { .. }
            | Phase::Completed { .. }
            | Phase::Failed { .. }
            | Phase::Skipped
            | Phase::Cancelled => return,
        };
        if !is_news || self.state.end.is_some() {
            return;
        }
        let site = Site::at(&path, (step, node), moment);
        // One whose output is refused has completed, and undoes that once it is abandoned.
        let is_done = !matches!(status, ChildStatus::Completed { compensable: true, .. });
        let fact = match status {
            ChildStatus::Running => {
                if question.is_none() {
                    self.last_reported.insert(child, seq);
                    return;
                }
                Fact::ChildResumed { path, child_seq: seq, id: node.wait_id() }
            }
            ChildStatus::Suspended { id, reason, payload, deadline } => {
                let payload = payload.filter(|payload| !payload.is_null());
                if question.is_some_and(|wait| wait.id == id) {
                    self.last_reported.insert(child, seq);
                    return;
                }
                if question.is_some() {
                    // The report of the resume in between was lost.
                    let (path, before) = (Arc::clone(&path), node.wait_id());
                    let resumed = Fact::ChildResumed { path, child_seq: seq, id: before };
                    self.record(resumed, moment, batch);
                }
                let id = Some(id);
                Fact::ChildSuspended { path, child_seq: seq, reason, payload, id, deadline }
            }
            ChildStatus::Completed { result, compensable, skipped } => {
                let skipped = skipped && step.work.is_reversal();
                completed_by_child(self.completed_with(&site, result), compensable, skipped)
            }
            ChildStatus::Failed { error, class } => {
                let failure = failure_of_child(&child, &error, class);
                self.failed(&site, &failure)
            }
            ChildStatus::Cancelled { reason, .. } => {
                let error = format!("execution {child} was cancelled: {reason}");
                let failure = AttemptFailure::new(ErrorKind::Workflow, error);
                self.failed(&site, &failure)
            }
        };
        if is_put_off(moment) {
            return;
        }
        self.record(fact, moment, batch);
        self.last_reported.remove(&child);
        // A child that has ended needs no cancellation.
        batch.abandoned.retain(|abandoned| !is_done || *abandoned != child);
    }

    /// Chooses the id of the child of an andWorkflow step, and evaluates its input.
    pub(super) fn next_child(
        &self,
        workflow: &Arc<str>,
        input: Option<&CompiledMapping>,
        site: &Site<'_>,
    ) -> Fact {
        let made = match input {
            Some(input) => {
                let scope = self.scope_at(site, Named::by(|name| input.uses(name)));
                let made = input.evaluate(&scope);
                let made = made.map_err(|error| AttemptFailure::not_evaluated("input: ", &error));
                made.and_then(|input| self.checked_part("input", input, site.moment)).map(Arc::new)
            }
            None => Ok(Arc::clone(&site.node.input)),
        };
        match made {
            Ok(input) => {
                let (path, child) = (site.path(), self.new_child(site));
                Fact::ChildStarted { path, child, workflow: Arc::clone(workflow), input }
            }
            Err(failure) => self.failed(site, &failure),
        }
    }

    /// Returns the number of the newest reported event of a child, recorded or not.
    fn known_of(&self, child: &Child) -> u64 {
        self.last_reported.get(&child.id).map_or(child.seq, |last| child.seq.max(*last))
    }
}

/// Returns the completion of a step by its child, if it is one, with what the child said. A reversal
/// that left something as it is counts as skipped.
fn completed_by_child(mut fact: Fact, is_compensable: bool, is_skipped: bool) -> Fact {
    if let Fact::StepCompleted { compensable, skipped, .. } = &mut fact {
        (*compensable, *skipped) = (is_compensable, is_skipped);
    }
    fact
}

/// Returns the failure of a child. The message names the execution that failed first; the
/// executions between that one and this one add nothing to it.
fn failure_of_child(child: &ExecutionId, error: &str, class: Option<ErrorClass>) -> AttemptFailure {
    let is_passed_on = class.is_some_and(|class| class.kind == ErrorKind::Workflow);
    let message =
        if is_passed_on { error.to_owned() } else { format!("{error} (execution {child})") };
    let failure = AttemptFailure::new(ErrorKind::Workflow, message);
    // What no attempt of the child's step could change, another child would hardly change either.
    let is_terminal = class.is_some_and(|class| class.is_terminal || class.is_never_retried());
    let class = failure.class.map(|class| ErrorClass { is_terminal, ..class });
    AttemptFailure { class, ..failure }
}
