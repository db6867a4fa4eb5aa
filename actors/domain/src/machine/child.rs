//! What an execution hears of those that its steps started.

use std::sync::Arc;

use serde_json::Value;

use crate::fact::Fact;
use crate::failure::{AttemptFailure, ErrorClass, ErrorKind};
use crate::ids::{ExecutionId, StepPath};
use crate::machine::command::{ChildReport, ChildStatus, is_put_off};
use crate::machine::place::Site;
use crate::machine::{Batch, Machine, Moment};
use crate::state::{Child, Phase};

impl Machine {
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

    pub(super) fn hear_child(
        &mut self,
        path: StepPath,
        report: ChildReport,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) {
        let ChildReport { child, seq, status } = report;
        let Some((step, node)) = self.node(&path) else { return };
        // An end is news whatever was heard before: nothing can follow it.
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
        let fact = match status {
            ChildStatus::Running => {
                if question.is_none() {
                    self.heard.insert(child, seq);
                    return;
                }
                Fact::ChildResumed { path, child_seq: seq, id: node.wait_id() }
            }
            ChildStatus::Suspended { id, reason, payload, deadline } => {
                let payload = payload.filter(|payload| !payload.is_null());
                if question.is_some_and(|wait| wait.id == id) {
                    self.heard.insert(child, seq);
                    return;
                }
                if question.is_some() {
                    // It went on and asks something else; that it went on was not heard.
                    let (path, before) = (Arc::clone(&path), node.wait_id());
                    let resumed = Fact::ChildResumed { path, child_seq: seq, id: before };
                    self.record(resumed, moment, batch);
                }
                let id = Some(id);
                Fact::ChildSuspended { path, child_seq: seq, reason, payload, id, deadline }
            }
            ChildStatus::Completed { result } => self.completed_with(&site, result),
            ChildStatus::Failed { error, class } => {
                let failure = failure_of_child(&child, &error, class);
                self.failed(&site, &failure)
            }
            ChildStatus::Cancelled { reason } => {
                let error = format!("execution {child} was cancelled: {reason}");
                let failure = AttemptFailure::new(ErrorKind::Workflow, error);
                self.failed(&site, &failure)
            }
        };
        if is_put_off(moment) {
            return;
        }
        self.record(fact, moment, batch);
        self.heard.remove(&child);
        // It has ended by itself: there is nothing left to abandon.
        batch.abandoned.retain(|abandoned| *abandoned != child);
    }

    /// Number of the newest event of a child that was heard of, recorded or not.
    fn known_of(&self, child: &Child) -> u64 {
        self.heard.get(&child.id).map_or(child.seq, |heard| child.seq.max(*heard))
    }
}

/// What failed first, and in which execution: those between it and this one add nothing, so that
/// a chain of them says no more than its last link.
fn failure_of_child(child: &ExecutionId, error: &str, class: Option<ErrorClass>) -> AttemptFailure {
    let is_passed_on = class.is_some_and(|class| class.kind == ErrorKind::Workflow);
    let message =
        if is_passed_on { error.to_owned() } else { format!("{error} (execution {child})") };
    AttemptFailure::new(ErrorKind::Workflow, message)
}
