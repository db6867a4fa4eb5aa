//! What an execution is after its facts so far: a tree of nodes that mirrors the definition.
//!
//! Changed by [`State::apply`] alone, which takes every value from the fact and evaluates
//! nothing: folding the recorded facts always gives the state that was live.

mod apply;
mod at_node;
mod bytes;
mod kept;
mod lanes;
pub(crate) mod node;
mod view;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fact::{HowEnded, Start, Suspension};
use crate::failure::ErrorClass;
use crate::ids::{ExecutionId, StepPath};
use crate::plan::{Plan, Step};
use crate::principal::Principal;
use crate::status::Status;
use crate::stored::is_zero;
use crate::stored::present;
use crate::time::Timestamp;
use crate::usage::Usage;

pub use apply::Misplaced;
pub use lanes::Lanes;
pub use node::{Child, Node, Phase, Resumed, Sequence, Settled, Wait};
pub(crate) use view::{errors_of, suspension_id};

/// The live picture of one execution.
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
    /// What the first of the nodes was given that a replay took: it may have another input.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub replayed_data: Option<Arc<Value>>,
    pub hold: Option<Hold>,
    /// What the lifting of a hold brought, until a step takes it.
    pub hold_data: Option<Arc<Value>>,
    /// The resume that brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_lifted: Option<Box<Resumed>>,
    /// How many holds there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub holds: u32,
    /// The status that readers were last told.
    pub announced: Status,
    /// The suspension that readers were last told, while suspended.
    pub announced_suspension: Option<Arc<Suspension>>,
    pub end: Option<End>,
    /// Bytes of JSON of the values that steps gave, took and showed.
    #[serde(default)]
    pub bytes: u64,
    /// Bytes that all of it takes in memory, by an estimate that only grows.
    #[serde(default)]
    pub memory: u64,
    /// Counts facts: the order in which nodes ended.
    pub facts_applied: u64,
    /// What the agent steps have used up, once one has; other executions' steps not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
}

/// An external suspend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// Of the suspension.
    pub id: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
    pub reason: Arc<str>,
    pub since: Timestamp,
    /// Number of the event that came next.
    #[serde(default)]
    pub seq: u64,
    /// The top-level step that was in flight or next: the hold is known by it until it is lifted.
    pub step_index: usize,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub at: Timestamp,
    pub outcome: Outcome,
    /// Who asked for it, of one that was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    Completed {
        result: Arc<Value>,
    },
    Failed {
        error: Arc<str>,
        step_id: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<StepPath>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ErrorClass>,
    },
    Cancelled {
        reason: Arc<str>,
    },
}

impl From<HowEnded<'_>> for Outcome {
    fn from(how: HowEnded<'_>) -> Self {
        match how {
            HowEnded::Completed { result } => Self::Completed { result: Arc::clone(result) },
            HowEnded::Failed { error, step_id, path, class } => Self::Failed {
                error: Arc::clone(error),
                step_id: step_id.cloned(),
                path: path.cloned(),
                class,
            },
            HowEnded::Cancelled { reason } => Self::Cancelled { reason: Arc::clone(reason) },
        }
    }
}

impl Outcome {
    /// Returns the result of an execution that completed.
    pub fn result(&self) -> Option<&Arc<Value>> {
        match self {
            Self::Completed { result } => Some(result),
            Self::Failed { .. } | Self::Cancelled { .. } => None,
        }
    }
}

impl State {
    /// Number of the last event that went out; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.next_seq - 1
    }

    /// Finds what a kept state does not store. To be called before it is used.
    /// [`crate::machine::Machine::restore`] does it.
    pub fn index(&mut self, plan: &Plan) {
        let data = self.replayed_data.as_ref().unwrap_or(&self.start.input);
        lanes::index(&mut self.root, Arc::clone(data), &plan.steps);
    }

    /// The status that the nodes themselves say: the rule of which every announcement follows.
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
        self.root.each_live(&mut |node| match node.phase {
            Phase::Waiting(_) => waits = true,
            Phase::Running => works |= node.lanes.is_none(),
            Phase::Ready
            | Phase::Sleeping { .. }
            | Phase::Completed { .. }
            | Phase::Failed { .. }
            | Phase::Skipped
            | Phase::Cancelled => {}
        });
        if waits && !works { Status::Suspended } else { Status::Running }
    }

    /// The top-level step in flight or next.
    pub fn current_step<'a>(&self, plan: &'a Plan) -> Option<(usize, &'a Step)> {
        let count = self.root.nodes.len();
        let in_flight = self.root.nodes.last().is_some_and(Node::is_live);
        let index = if in_flight { count - 1 } else { count.min(plan.steps.len() - 1) };
        plan.steps.get(index).map(|step| (index, step))
    }
}
