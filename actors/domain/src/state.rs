//! The state of an execution: a tree of nodes that mirrors the definition.
//!
//! Only [`State::apply`] changes it. It takes every value from the fact and evaluates nothing, so
//! applying the recorded facts always gives the live state.

mod apply;
mod at_node;
mod bytes;
mod compensating;
mod kept;
mod lanes;
pub(crate) mod node;
mod suspension_id;
mod view;
mod waiting;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fact::{Start, Suspension};
use crate::ids::{ExecutionId, compensated_path};
use crate::plan::{Plan, Step};
use crate::principal::Principal;
use crate::status::Status;
use crate::stored::is_zero;
use crate::stored::present;
use crate::time::Timestamp;
use crate::usage::Usage;

pub use crate::outcome::Outcome;
pub use apply::MisplacedFact;
pub(crate) use compensating::is_skip;
pub use compensating::{BegunCompensation, Compensating};
pub use lanes::Lanes;
pub use node::{Child, Node, Phase, Resumed, Sequence, Settled, Wait};
pub(crate) use suspension_id::{hashed_suspension_id, suspension_id};
pub(crate) use view::errors_of;

/// State of one execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub id: ExecutionId,
    pub start: Box<Start>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// Number of the next event.
    pub next_seq: u64,
    #[serde(with = "kept")]
    pub root: Sequence,
    /// Input of the first node that a replay copied; it may differ from the input of the replay.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub replayed_data: Option<Arc<Value>>,
    pub hold: Option<Hold>,
    /// Data of the resume that ended a pause, until a step takes it.
    pub hold_data: Option<Arc<Value>>,
    /// The resume that supplied `hold_data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_lifted: Option<Box<Resumed>>,
    /// Number of pauses so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub holds: u32,
    /// The status that was last published.
    pub announced: Status,
    /// The suspension that was last published, while suspended.
    pub announced_suspension: Option<Arc<Suspension>>,
    /// Present once the execution compensates; it stays after the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensating: Option<Box<Compensating>>,
    pub end: Option<End>,
    /// Total size of inputs, outputs and payloads, in bytes of JSON.
    #[serde(default)]
    pub bytes: u64,
    /// Estimated memory of the execution in bytes; it only grows.
    #[serde(default)]
    pub memory: u64,
    /// Number of applied facts, counted from the newest end of a copied node; gives the order in which
    /// nodes ended.
    pub facts_applied: u64,
    /// Tokens used by the agent steps of this execution, without those of its children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
}

/// A pause by a caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// Id of the suspension.
    pub id: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
    pub reason: Arc<str>,
    pub since: Timestamp,
    /// Number of the next event.
    #[serde(default)]
    pub seq: u64,
    /// Index of the top-level step that was running or next; callers can resume by its id.
    pub step_index: usize,
}

/// End of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub at: Timestamp,
    pub outcome: Outcome,
    /// Principal of a cancellation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
    /// It is a cancellation that compensates: children that it abandons do so, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compensates: bool,
}

impl State {
    /// Returns the number of the last published event; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.next_seq - 1
    }

    /// Restores the fields that a snapshot does not store. Required after loading one;
    /// [`crate::machine::Machine::restore`] calls it.
    pub fn index(&mut self, plan: &Plan) {
        let data = self.replayed_data.as_ref().unwrap_or(&self.start.input);
        lanes::index(&mut self.root, Arc::clone(data), &plan.steps);
    }

    /// Returns the status that follows from the nodes; announcements are made from it.
    pub fn derived_status(&self) -> Status {
        if let Some(end) = &self.end {
            return match end.outcome {
                Outcome::Completed { .. } => Status::Completed,
                Outcome::Failed { .. } => Status::Error,
                Outcome::Cancelled { .. } => Status::Cancelled,
            };
        }
        if self.hold.is_some() {
            return Status::Suspended;
        }
        let mut waits = false;
        let mut works = false;
        let mut visit = |node: &Node| {
            waits |= node.wait().is_some();
            works |= node.phase == Phase::Running && node.lanes.is_none();
        };
        self.root.each_live(&mut visit);
        let compensation = self.compensating.as_ref().and_then(|it| it.current());
        compensation.into_iter().for_each(|current| visit(&current.node));
        if waits && !works { Status::Suspended } else { Status::Running }
    }

    /// Returns the node at a path, with its step.
    pub fn node_at<'a>(&'a self, plan: &'a Plan, path: &str) -> Option<(&'a Step, &'a Node)> {
        match compensated_path(path) {
            Some(_) => plan.step_at(path).zip(self.compensating.as_ref()?.node(path)),
            None => self.root.node_at(&plan.steps, path),
        }
    }

    /// Returns the top-level step that is running or next, with its index.
    pub fn current_step<'a>(&self, plan: &'a Plan) -> Option<(usize, &'a Step)> {
        let count = self.root.nodes.len();
        let in_flight = self.root.nodes.last().is_some_and(Node::is_live);
        let index = if in_flight { count - 1 } else { count.min(plan.steps.len() - 1) };
        plan.steps.get(index).map(|step| (index, step))
    }
}
