//! Compensation: before an execution ends, undoes what completed, the newest step first.
//!
//! A compensation is a step with a separate node, whose path ends in `:compensate`, so its attempts,
//! timers and children are those of any step. It cannot suspend by itself. Only its failure differs: it
//! asks a person, who repeats or skips it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::fact::{Ended, Fact, HowEnded};
use crate::ids::{StepPath, compensated_path, compensation_path};
use crate::machine::failure::recorded_reason;
use crate::machine::place::Site;
use crate::machine::{Machine, Moment};
use crate::principal::Principal;
use crate::state::{BegunCompensation, Compensating, Outcome, Phase, is_skip, suspension_id};

impl Machine {
    /// Returns the fact that begins the compensation if it comes before this end and anything
    /// completed that can be compensated; otherwise the end.
    pub(super) fn concluded(&self, end: Fact) -> Fact {
        let is_due = || !self.state.compensable(&self.plan).is_empty();
        match end.end() {
            Some(Ended {
                how: how @ (HowEnded::Failed { .. } | HowEnded::Cancelled { .. }),
                ..
            }) if self.state.compensating.is_none() && is_due() => {
                Fact::CompensationStarted { outcome: Box::new(how.into()) }
            }
            Some(_) | None => end,
        }
    }

    /// Returns the next fact of a compensation; `None` while it waits or works.
    pub(super) fn next_of_compensation(
        &self,
        compensating: &Compensating,
        moment: &Moment<'_>,
    ) -> Option<Fact> {
        let Some(current) = compensating.current() else {
            return match compensating.due.last() {
                Some(path) => self.next_compensation(path, moment),
                None => self.end_after(&compensating.outcome),
            };
        };
        let step = self.plan.step_at(&current.path)?;
        let BegunCompensation { path, node, skipped: _ } = current;
        let site = Site::at(path, (step, node), moment);
        if current.has_failed() {
            return Some(self.asks_about(&site));
        }
        if node.phase == Phase::Ready
            && let Some(output) = skipped_with(node.resume.as_deref())
        {
            return Some(marked_as_skipped(self.completed_with(&site, output)));
        }
        self.next_of(&site)
    }

    fn next_compensation(&self, step: &StepPath, moment: &Moment<'_>) -> Option<Fact> {
        let path = compensation_path(step);
        let is_blocked = (moment.missing)(self.plan.step_at(&path)?).is_some();
        let started = Fact::StepStarted { path, attempt: 1, interrupted: false, opening: None };
        (!is_blocked).then_some(started)
    }

    fn end_after(&self, outcome: &Outcome) -> Option<Fact> {
        let since = self.state.created_at;
        match outcome.clone() {
            Outcome::Completed { result } => Some(Fact::WorkflowCompleted { since, result }),
            Outcome::Failed { error, step_id, path, class } => {
                Some(Fact::WorkflowFailed { since, error, step_id, path, class })
            }
            Outcome::Cancelled { reason } => {
                Some(Fact::WorkflowCancelled { since, reason, compensates: true })
            }
        }
    }

    /// Suspends a compensation whose last attempt failed.
    fn asks_about(&self, site: &Site<'_>) -> Fact {
        let (path, node) = (site.path(), site.node);
        let step = compensated_path(&path).unwrap_or(&path);
        let error = node.failure().map_or("", |(error, _)| &**error);
        let reason = recorded_reason(&format!("the compensation of {step} failed: {error}"));
        let cause = self.cause_in_scope();
        let cause = cause.as_ref().and_then(|cause| cause.get("message"));
        let payload = json!({
            "step": step,
            "attempts": node.attempt,
            "output": node.input,
            "cause": cause,
        });
        Fact::StepSuspended {
            id: Some(suspension_id(&self.state.id, &path, node.asked + 1)),
            path,
            reason,
            payload: Some(Arc::new(payload)),
            deadline: None,
            ask: None,
            question: None,
            mcp: None,
        }
    }

    /// Returns the caller who cancelled the execution, for the end after its compensation.
    pub(super) fn cancelled_by(&self, fact: &Fact) -> Option<Arc<Principal>> {
        let compensating = self.state.compensating.as_ref()?;
        let is_cancellation = matches!(fact, Fact::WorkflowCancelled { .. });
        compensating.by.clone().filter(|_| is_cancellation)
    }

    /// Returns `error` of expressions in a compensation: why the execution ends.
    pub(super) fn cause_in_scope(&self) -> Option<Arc<Value>> {
        let compensating = self.state.compensating.as_ref()?;
        if let Some(reversal) = &self.state.start.reversal {
            return Some(Arc::clone(&reversal.cause));
        }
        Some(Arc::new(match &compensating.outcome {
            Outcome::Failed { error, step_id, path, class } => {
                let node = path.as_ref().and_then(|path| self.node(path));
                json!({
                    "kind": class.map(|class| class.kind.as_str()),
                    "status": class.and_then(|class| class.status),
                    "message": error,
                    "stepId": step_id,
                    "attempt": node.map(|(_, node)| node.attempt),
                })
            }
            Outcome::Cancelled { reason } => cancelled_in_scope(reason),
            Outcome::Completed { .. } => Value::Null,
        }))
    }
}

/// Returns `error` of compensations after a cancellation.
pub(super) fn cancelled_in_scope(reason: &str) -> Value {
    json!({ "kind": null, "status": null, "message": reason, "stepId": null, "attempt": null })
}

/// Returns the output of a compensation that a person skipped; `None` if it is to run.
fn skipped_with(answer: Option<&Value>) -> Option<Arc<Value>> {
    let answer = answer.filter(|answer| is_skip(answer))?;
    Some(Arc::new(answer.get("output").cloned().unwrap_or_default()))
}

/// Marks the completion of a compensation that a person skipped. (One whose output is refused fails.)
fn marked_as_skipped(mut fact: Fact) -> Fact {
    if let Fact::StepCompleted { skipped, .. } = &mut fact {
        *skipped = true;
    }
    fact
}
