//! Compensation of an execution that is about to end: what is due, and what has begun.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fact::Fact;
use crate::ids::{StepPath, compensated_path, compensation_path};
use crate::plan::{Plan, Step};
use crate::principal::Principal;
use crate::state::node::{Node, Phase, Sequence};
use crate::state::{Outcome, State};
use crate::time::Timestamp;

/// Compensation of an execution. One step after the other is compensated, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compensating {
    pub since: Timestamp,
    /// The end that is recorded once everything is compensated.
    pub outcome: Outcome,
    /// Principal of a cancellation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
    /// Paths of the steps whose compensations have not begun; the last one is the next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub due: Vec<StepPath>,
    /// Compensations that have begun, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub begun: Vec<BegunCompensation>,
}

/// A compensation that has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BegunCompensation {
    /// Path of the compensation itself.
    pub path: StepPath,
    pub node: Node,
    /// Its completion is marked as a skip. Those of older versions are not: see [`Self::is_skipped`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skipped: bool,
}

impl Compensating {
    /// Returns the newest compensation, unless it has ended. One that failed has not: it asks.
    pub fn current(&self) -> Option<&BegunCompensation> {
        self.begun.last().filter(|newest| newest.is_open())
    }

    pub(super) fn node(&self, path: &str) -> Option<&Node> {
        self.begun.iter().rev().find(|begun| &*begun.path == path).map(|begun| &begun.node)
    }

    /// Returns the compensations that a person skipped, whole or in part, in the order in which they
    /// began.
    pub fn skipped(&self) -> impl Iterator<Item = &BegunCompensation> {
        self.begun.iter().filter(|begun| begun.is_skipped())
    }

    /// Returns a compensation. One that is due begins with its first fact. (That is the last one; in
    /// records of earlier versions, replays compensated in another order.)
    pub(super) fn begun_mut(
        &mut self,
        (plan, root): (&Plan, &Sequence),
        path: &str,
        at: Timestamp,
    ) -> Option<&mut BegunCompensation> {
        let due = self.due.iter().rposition(|due| Some(&**due) == compensated_path(path));
        if let Some(due) = due {
            let step = self.due.remove(due);
            let output = root.node_at(&plan.steps, &step)?.1.output()?;
            let node = Node::new(output, at);
            self.begun.push(BegunCompensation {
                path: compensation_path(&step),
                node,
                skipped: false,
            });
        }
        self.begun.iter_mut().rev().find(|begun| &*begun.path == path)
    }
}

impl BegunCompensation {
    fn is_open(&self) -> bool {
        self.node.is_live() || self.has_failed()
    }

    /// Returns true if a person skipped it, or anything in the reversal that it is. A completion without
    /// the mark is a skip if the answer before it was.
    pub fn is_skipped(&self) -> bool {
        let is_completed = matches!(self.node.phase, Phase::Completed { .. });
        is_completed && (self.skipped || self.is_answered_with_skip())
    }

    /// Returns true if the newest answer to its own question is to skip it.
    pub(crate) fn is_answered_with_skip(&self) -> bool {
        self.node.resume.as_deref().is_some_and(is_skip)
    }

    /// Takes over what a new fact, which its node has applied, says about it.
    pub(super) fn follow(&mut self, fact: &Fact) {
        if let Fact::StepResumed { .. } = fact {
            // A person who asks for another attempt gets all attempts of the policy.
            (self.node.failures, self.node.interruptions) = (0, 0);
        } else if let Fact::StepCompleted { skipped, .. } = fact {
            self.skipped = *skipped;
        }
    }

    /// Returns true if its last attempt failed and no person was asked yet.
    pub fn has_failed(&self) -> bool {
        matches!(self.node.phase, Phase::Failed { .. })
    }
}

impl State {
    /// Returns true if it has completed and a reversal has anything to undo in it. What undoes a step
    /// is not undone.
    pub fn is_reversible(&self, plan: &Plan) -> bool {
        let has_completed =
            self.end.as_ref().is_some_and(|end| matches!(end.outcome, Outcome::Completed { .. }));
        let parent = self.start.parent.as_ref();
        let undoes = parent.is_some_and(|parent| compensated_path(&parent.path).is_some());
        let has_undone = undoes || self.compensating.is_some();
        has_completed && !has_undone && !self.compensable(plan).is_empty()
    }

    /// Returns the paths of all completed steps with a compensation, the newest last.
    pub(crate) fn compensable(&self, plan: &Plan) -> Vec<StepPath> {
        let mut found = Vec::new();
        if plan.compensates {
            self.each_step_node(plan, &mut |_, path, step, node| {
                if is_compensable(step, node) {
                    found.push((node.ended_order, StepPath::from(path)));
                }
            });
        }
        found.sort_unstable_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, path)| path).collect()
    }
}

/// Returns true if a person who was asked about a compensation skips it with this answer.
pub(crate) fn is_skip(answer: &Value) -> bool {
    answer.get("action").is_some_and(|action| action == "skip")
}

/// Returns true if the step has completed and can be compensated. A step that is compensated by a
/// reversal of its child needs a child with something to compensate.
fn is_compensable(step: &Step, node: &Node) -> bool {
    let Some(compensation) = &step.compensate else { return false };
    let has_something = !compensation.work.is_reversal()
        || node.child.as_ref().is_some_and(|child| child.compensable);
    has_something && matches!(node.phase, Phase::Completed { .. })
}
