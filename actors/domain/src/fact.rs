//! What an execution records: facts, numbered, in the order in which they became true.
//!
//! A fact carries every value that was computed, so that folding facts never evaluates an
//! expression, reads a clock or asks anybody.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::expression::json_bytes;
use crate::failure::ErrorClass;
use crate::ids::{ExecutionId, StepPath};
use crate::principal::Principal;
use crate::state::node::Node;
use crate::stored::{is_zero, present};
use crate::time::Timestamp;
pub use crate::trace::Trace;
use crate::usage::Usage;

/// A fact with its place in the execution's sequence.
///
/// `seq` is the number of the first event that the fact gives on the wire (see
/// [`crate::event`]); a fact that gives none has the number of the next event to come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    #[serde(rename = "n")]
    pub seq: u64,
    #[serde(rename = "t")]
    pub at: Timestamp,
    #[serde(rename = "f")]
    pub fact: Fact,
    /// Who asked for it, of what follows from a request directly.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
}

/// How an execution came to be.
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
    /// Executions above this one.
    #[serde(default)]
    pub depth: u32,
    pub trace: Trace,
    /// What it took from another execution, if it began in the middle of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Box<Replayed>>,
}

/// What an execution takes from the one in whose middle it begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    pub execution: ExecutionId,
    /// The top-level step that it begins with.
    pub step_id: Arc<str>,
    /// The nodes of the steps before it, settled. Empty in a state, which has them in its tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    /// What answers the step's question before it is asked. `null` is an answer too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer: Option<Arc<Value>>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
}

/// The andWorkflow step that an execution belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub execution: ExecutionId,
    pub path: StepPath,
}

/// Why an execution stands still, as callers see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suspension {
    /// Names this wait and no other, before or after it. Facts of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    pub reason: Arc<str>,
    pub suspended_at: Timestamp,
    pub step_id: Arc<str>,
    pub path: StepPath,
    /// Index of the top-level step.
    pub step_index: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Arc<Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Who asked to stand still, if anybody outside did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
}

impl Suspension {
    /// Bytes of what its step chose to say: the reason, and the payload as JSON.
    pub(crate) fn value_bytes(&self) -> usize {
        self.reason.len() + self.payload.as_deref().map_or(0, json_bytes)
    }
}

/// Waits beside the one that is shown first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// Those that have waited longest, bounded in number and size.
    pub suspensions: Vec<Suspension>,
    /// How many more there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub omitted: usize,
}

/// What follows a failed attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AfterFailure {
    /// The step has failed for good and its container hears of it.
    Fail,
    /// Another attempt starts then.
    Retry { until: Timestamp },
    /// The step has failed, and the flow goes on with this value.
    Continue { output: Arc<Value> },
}

/// What a container decided when it began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Opening {
    /// andForEach: what it goes over.
    Items(Vec<Arc<Value>>),
    /// andBranch: the block that runs, counted from 0.
    Block(usize),
}

/// Who answered a waiting step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResumedBy {
    Caller,
    Deadline,
}

/// One thing that became true of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    WorkflowStarted(Box<Start>),
    /// An attempt of a step began. `interrupted`: the one before was cut off by a crash.
    StepStarted {
        path: StepPath,
        attempt: u32,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
        /// What a container with a choice decided when it began.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opening: Option<Box<Opening>>,
    },
    /// `since` is when the attempt began.
    StepCompleted {
        path: StepPath,
        attempt: u32,
        since: Timestamp,
        output: Arc<Value>,
        /// What the attempt of an agent used up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Box<Usage>>,
    },
    StepFailed {
        path: StepPath,
        attempt: u32,
        since: Timestamp,
        error: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ErrorClass>,
        next: AfterFailure,
        /// As far as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Box<Usage>>,
    },
    /// The process ended in order while the attempt was at work: it begins anew after the restart,
    /// and nothing of it counts against the step.
    StepReleased {
        path: StepPath,
        attempt: u32,
        since: Timestamp,
    },
    /// A condition did not hold; `data` passes through.
    StepSkipped {
        path: StepPath,
    },
    StepCancelled {
        path: StepPath,
        attempt: u32,
        since: Timestamp,
    },
    /// A step waits for a resume.
    StepSuspended {
        path: StepPath,
        reason: Arc<str>,
        payload: Option<Arc<Value>>,
        deadline: Option<Timestamp>,
        /// Of the suspension. Older facts have none: it follows from those before them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
    },
    StepResumed {
        path: StepPath,
        data: Arc<Value>,
        by: ResumedBy,
        /// Of the suspension that it ends. None of an answer that a replay brought before it was
        /// asked for, and of older facts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
    },
    /// A sleep began.
    StepSlept {
        path: StepPath,
        attempt: u32,
        until: Timestamp,
    },
    /// Time that a step waited for has come; acted upon as soon as no hold forbids it.
    TimerFired {
        path: StepPath,
    },
    /// The child's id, made once, recorded before the child starts.
    ChildStarted {
        path: StepPath,
        child: ExecutionId,
        workflow: Arc<str>,
        input: Arc<Value>,
    },
    ChildSuspended {
        path: StepPath,
        child_seq: u64,
        reason: Arc<str>,
        payload: Option<Arc<Value>>,
        /// Of the child's own suspension.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
        /// Of the child's own suspension, which ends it there: nothing ends it here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    ChildResumed {
        path: StepPath,
        child_seq: u64,
        /// Of the child's own suspension. Older facts have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
    },
    /// Somebody outside asked to stand still.
    HoldPlaced {
        reason: Arc<str>,
        /// Of the suspension. Older facts have none: it follows from those before them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
    },
    HoldLifted {
        data: Arc<Value>,
    },
    /// The status became `suspended`. `since` is when the execution started.
    WorkflowSuspended {
        since: Timestamp,
        suspension: Box<Suspension>,
        /// What else is waited for, as far as it is told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        others: Option<Box<Others>>,
    },
    /// The status became `running` again.
    WorkflowResumed,
    WorkflowCompleted {
        since: Timestamp,
        result: Arc<Value>,
    },
    WorkflowFailed {
        since: Timestamp,
        error: Arc<str>,
        step_id: Option<Arc<str>>,
        /// Where the step is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<StepPath>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ErrorClass>,
    },
    WorkflowCancelled {
        since: Timestamp,
        reason: Arc<str>,
    },
}
