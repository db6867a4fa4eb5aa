//! Reversal: a new execution that compensates the steps of a child that has completed.
//!
//! An execution that has ended never changes, so its steps are compensated in another one, which
//! copies its nodes, runs no step and completes once all is undone.

use std::sync::Arc;

use serde_json::Value;

use crate::fact::{Fact, Reversal};
use crate::ids::{ExecutionId, compensated_path};
use crate::machine::Machine;
use crate::machine::compensation::cancelled_in_scope;
use crate::machine::place::Site;
use crate::plan::{Step, WorkClass};
use crate::slot::{derived_execution_id, slot_of};
use crate::state::{Child, Node, Outcome, Phase};

/// The completed execution whose steps a child compensates.
#[derive(Debug, Clone)]
pub struct Reversed {
    pub execution: ExecutionId,
    /// `error` of the compensations.
    pub cause: Arc<Value>,
}

impl Machine {
    /// Returns what a new execution needs to compensate the steps of this one; `None` unless it has
    /// completed.
    pub fn reversal(&self, cause: Arc<Value>) -> Option<Reversal> {
        let end = self.state.end.as_ref()?;
        let has_completed = matches!(end.outcome, Outcome::Completed { .. });
        has_completed.then(|| Reversal {
            execution: self.state.id.clone(),
            cause,
            nodes: self.state.root.nodes.iter().map(Node::to_be_stored).collect(),
        })
    }

    /// Returns the reversal of this execution, and its id, if it has completed and its parent does not
    /// take what it did; `why` in the words of a cancellation.
    pub fn reversal_without_parent(&self, why: &str) -> Option<(ExecutionId, Reversal)> {
        let reversal = self.reversal(Arc::new(cancelled_in_scope(why)))?;
        let id = &self.state.id;
        Some((derived_execution_id(&[id.as_str(), "reversal"], slot_of(id)), reversal))
    }

    /// Returns the execution that steps act for. Of a reversal it is the reversed one, whose id may
    /// be known outside.
    pub fn acts_for(&self) -> &ExecutionId {
        let reversal = self.state.start.reversal.as_ref();
        reversal.map_or(&self.state.id, |reversal| &reversal.execution)
    }

    /// Returns the key that all attempts of a step share. Another attempt of a reversal has the same
    /// keys.
    pub fn idempotency_key(&self, path: &str) -> String {
        format!("{}/{path}", self.acts_for())
    }

    /// Returns what distinguishes the call of a step from those that have failed before, for what runs
    /// once for each; `None` for the first one. A repetition after an interruption has the same.
    pub fn failures_before(&self, path: &str) -> Option<String> {
        let (_, node) = self.node(path)?;
        // a person who has a compensation tried again resets its failures
        let asked = compensated_path(path).map_or(0, |_| node.asked);
        ((asked, node.failures) != (0, 0)).then(|| format!("{asked}.{}", node.failures))
    }

    /// Returns the fact with which a reversal begins to compensate; `None` if this is none.
    pub(super) fn start_of_reversal(&self) -> Option<Fact> {
        self.state.start.reversal.as_ref()?;
        let outcome = Outcome::Completed { result: Arc::new(Value::Null) };
        Some(Fact::CompensationStarted { outcome: Box::new(outcome) })
    }

    /// Chooses the id of the execution that compensates the steps of a completed child.
    pub(super) fn next_reversal(&self, site: &Site<'_>) -> Option<Fact> {
        let path = site.path();
        let Child { workflow, input, .. } = self.reversed_child(&path)?;
        let (workflow, input) = (Arc::clone(workflow), Arc::clone(input));
        let child = self.new_child(site);
        Some(Fact::ChildStarted { path, child, workflow, input })
    }

    /// Returns the id of a new child.
    pub(super) fn new_child(&self, site: &Site<'_>) -> ExecutionId {
        if site.step.is_compensation() {
            return self.child_of_compensation((site.step, &site.path()), site.node.attempt);
        }
        (site.moment.new_id)()
    }

    /// Returns the id of the execution that an attempt of a compensation starts. It follows from what
    /// is undone, so that another execution that undoes the same finds it instead of starting it
    /// again, and so that it is known whether those of earlier attempts have ended.
    fn child_of_compensation(&self, (step, path): (&Step, &str), attempt: u32) -> ExecutionId {
        let (slot, attempt) = (slot_of(&self.state.id), attempt.to_string());
        let reversed = self.reversed_child(path).filter(|_| step.work.is_reversal());
        match reversed {
            Some(child) => derived_execution_id(&[child.id.as_str(), "reversal", &attempt], slot),
            None => derived_execution_id(&[self.acts_for().as_str(), path, &attempt], slot),
        }
    }

    /// Returns the children of the earlier attempts of a compensation, the newest first; none for
    /// other steps.
    pub(super) fn earlier_children(
        &self,
        (step, node): (&Step, &Node),
        path: &str,
    ) -> Vec<ExecutionId> {
        if !step.is_compensation() {
            return Vec::new();
        }
        let earlier = (1..node.attempt).rev();
        earlier.map(|attempt| self.child_of_compensation((step, path), attempt)).collect()
    }

    /// Returns the children that the execution abandoned before it failed or was cancelled, those of
    /// failed steps among them. Of several attempts of a step it is the last one; a compensation starts
    /// a child only after those of its earlier attempts have ended, so that these are notified as well.
    pub fn abandoned_children(&self) -> Vec<ExecutionId> {
        let mut found = Vec::new();
        if self.state.end.as_ref().is_none_or(|end| end.outcome.result().is_some()) {
            return found;
        }
        self.state.each_node(&self.plan, &mut |_, path, step, node| {
            let has_left = matches!(node.phase, Phase::Cancelled | Phase::Failed { .. });
            if has_left && step.work.class() == WorkClass::Child {
                let last = node.child.as_ref().map(|child| &child.id);
                let earlier = self.earlier_children((step, node), path);
                found.extend(last.cloned());
                found.extend(earlier.into_iter().filter(|earlier| Some(earlier) != last));
            }
        });
        found
    }

    /// Returns what the compensation at a path reverses; `None` if it is another kind of step.
    pub(super) fn reversed(&self, path: &str) -> Option<Reversed> {
        let (compensation, _) = self.node(path)?;
        if !compensation.work.is_reversal() {
            return None;
        }
        let execution = self.reversed_child(path)?.id.clone();
        Some(Reversed { execution, cause: self.cause_in_scope()? })
    }

    /// Returns the child of the step that the node at a path compensates.
    fn reversed_child(&self, path: &str) -> Option<&Child> {
        let (_, node) = self.node(compensated_path(path)?)?;
        node.child.as_ref()
    }
}
