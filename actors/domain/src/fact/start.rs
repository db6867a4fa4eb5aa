//! The first fact: a start by a caller, by a parent, or as the replay of another execution.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ExecutionId, StepPath, compensated_path};
use crate::principal::Principal;
use crate::state::node::Node;
use crate::stored::present;
use crate::trace::Trace;

/// Start of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    pub workflow_id: Arc<str>,
    pub definition_hash: Arc<str>,
    pub input: Arc<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Arc<str>>,
    /// The operation context: the caller's object plus `user`, `userId`, `conversationId`.
    pub context: Arc<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// Number of executions above this one.
    #[serde(default)]
    pub depth: u32,
    pub trace: Trace,
    /// Present if it replays another execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Box<Replayed>>,
    /// Present if it compensates the steps of an execution that has completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reversal: Option<Box<Reversal>>,
}

impl Start {
    /// Returns the ended nodes that it copies from another execution.
    pub(crate) fn copied(&self) -> &[Node] {
        let replayed = self.replayed.as_ref().map(|replayed| &replayed.nodes);
        let reversed = self.reversal.as_ref().map(|reversal| &reversal.nodes);
        replayed.or(reversed).map_or(&[], Vec::as_slice)
    }

    /// Returns true if an execution with the same id and this parent is the one to start.
    pub fn may_use(&self, parent: Option<&Parent>) -> bool {
        self.parent.as_ref().is_some_and(|own| own.may_use_child_of(parent))
    }

    /// Returns true if this execution was started by the call of a tool that now makes `again`. Their
    /// equal ids alone do not say it: callers choose ids too, and what was deleted frees its id. Callers
    /// start nothing below other executions, and the trace leads to the root that it was started for.
    pub fn is_of_call(&self, again: &Self) -> bool {
        let root = |start: &Self| {
            let above = (!start.trace.is_root()).then_some(start.trace.anchor);
            (Arc::clone(&start.trace.id), above)
        };
        self.is_of_tool() && self.depth == again.depth && root(self) == root(again)
    }

    /// The same for the call of a compensation, which another execution that undoes the same may have
    /// made.
    pub fn is_of_shared_call(&self, again: &Self) -> bool {
        let what = |start: &Self| (Arc::clone(&start.workflow_id), start.user_id.clone());
        self.is_of_tool() && self.depth > 0 && what(self) == what(again)
    }

    fn is_of_tool(&self) -> bool {
        self.parent.is_none() && self.replayed.is_none() && self.reversal.is_none()
    }

    /// Moves these nodes out; a state has them in its tree.
    pub(crate) fn take_copied(&mut self) -> Vec<Node> {
        let replayed = self.replayed.as_mut().map(|replayed| &mut replayed.nodes);
        let reversed = self.reversal.as_mut().map(|reversal| &mut reversal.nodes);
        replayed.or(reversed).map(std::mem::take).unwrap_or_default()
    }
}

/// State that a replay copies from the replayed execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    pub execution: ExecutionId,
    /// The top-level step at which the replay begins.
    pub step_id: Arc<str>,
    /// The ended nodes of the steps before it. Empty in a state, which has them in its tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// Resume data for the step, supplied before it suspends; `null` is data too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer: Option<Arc<Value>>,
    /// The principal that asked for the replay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
    /// Roles of a principal who has to be among those who are asked for the answer. `None`: the
    /// answer counts in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<Vec<Arc<str>>>,
    /// True if `by` is only a claim of the caller, who then is an unknown person to those who are asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_claim: bool,
}

/// State that a reversal copies from the completed execution whose steps it compensates. It runs no
/// step; its compensations begin at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reversal {
    pub execution: ExecutionId,
    /// `error` of its compensations: why the execution above ends.
    pub cause: Arc<Value>,
    /// All nodes. Empty in a state, which has them in its tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
}

/// The andWorkflow step that an execution belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub execution: ExecutionId,
    pub path: StepPath,
}

impl Parent {
    /// Returns true if the step may use an execution that `other` started: itself, or another one that
    /// undoes the same, as their equal ids say.
    pub fn may_use_child_of(&self, other: Option<&Self>) -> bool {
        let undoes = |parent: &Self| compensated_path(&parent.path).is_some();
        other.is_some_and(|other| self == other || undoes(self) && undoes(other))
    }
}
