//! What an execution records: facts, numbered, in the order in which they became true.
//!
//! A fact carries every value that was computed, so that folding facts never evaluates an
//! expression, reads a clock or asks the outside.

mod start;
mod suspension;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::ErrorClass;
use crate::ids::{ExecutionId, StepPath};
use crate::principal::Principal;
use crate::status::Status;
use crate::time::Timestamp;
pub use crate::trace::Trace;
use crate::usage::Usage;

pub use self::start::{Parent, Replayed, Start};
pub use self::suspension::{Others, Suspension};

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
    /// The principal whose request the fact follows from directly.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
}

/// Says what follows a failed attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AfterFailure {
    /// The step has failed for good; its container decides what that means.
    Fail,
    /// Another attempt starts then.
    Retry { until: Timestamp },
    /// The step has failed, and the flow goes on with this value.
    Continue { output: Arc<Value> },
}

/// Records what a container decided when it began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Opening {
    /// andForEach: the items that it goes over.
    Items(Vec<Arc<Value>>),
    /// andBranch: the block that runs, counted from 0.
    Block(usize),
}

/// Says whether a caller answered a waiting step, or its deadline did.
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
        /// Given for a container with a choice.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opening: Option<Box<Opening>>,
    },
    /// `since` is when the attempt began.
    StepCompleted {
        path: StepPath,
        attempt: u32,
        since: Timestamp,
        output: Arc<Value>,
        /// Tokens that the attempt of an agent used.
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
    /// A caller asked the execution to stand still.
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
        /// The other waits, as far as they are shown.
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

/// The end of an execution, as its last fact tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended<'a> {
    /// When the execution started.
    pub since: Timestamp,
    pub how: HowEnded<'a>,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum HowEnded<'a> {
    Completed {
        result: &'a Arc<Value>,
    },
    Failed {
        error: &'a Arc<str>,
        step_id: Option<&'a Arc<str>>,
        path: Option<&'a StepPath>,
        class: Option<ErrorClass>,
    },
    Cancelled {
        reason: &'a Arc<str>,
    },
}

impl HowEnded<'_> {
    /// Returns the terminal status.
    pub fn status(&self) -> Status {
        match self {
            Self::Completed { .. } => Status::Completed,
            Self::Failed { .. } => Status::Error,
            Self::Cancelled { .. } => Status::Cancelled,
        }
    }
}

impl Fact {
    /// Returns the path of the step that the fact is about; none when it is about the execution.
    pub fn step_path(&self) -> Option<&StepPath> {
        match self {
            Self::StepStarted { path, .. }
            | Self::StepCompleted { path, .. }
            | Self::StepFailed { path, .. }
            | Self::StepReleased { path, .. }
            | Self::StepSkipped { path }
            | Self::StepCancelled { path, .. }
            | Self::StepSuspended { path, .. }
            | Self::StepResumed { path, .. }
            | Self::StepSlept { path, .. }
            | Self::TimerFired { path }
            | Self::ChildStarted { path, .. }
            | Self::ChildSuspended { path, .. }
            | Self::ChildResumed { path, .. } => Some(path),
            Self::WorkflowStarted(_)
            | Self::HoldPlaced { .. }
            | Self::HoldLifted { .. }
            | Self::WorkflowSuspended { .. }
            | Self::WorkflowResumed
            | Self::WorkflowCompleted { .. }
            | Self::WorkflowFailed { .. }
            | Self::WorkflowCancelled { .. } => None,
        }
    }

    /// Returns the end that the fact brings. Nothing follows such a fact.
    pub fn end(&self) -> Option<Ended<'_>> {
        let (since, how) = if let Self::WorkflowCompleted { since, result } = self {
            (since, HowEnded::Completed { result })
        } else if let Self::WorkflowFailed { since, error, step_id, path, class } = self {
            let (step_id, path) = (step_id.as_ref(), path.as_ref());
            (since, HowEnded::Failed { error, step_id, path, class: *class })
        } else if let Self::WorkflowCancelled { since, reason } = self {
            (since, HowEnded::Cancelled { reason })
        } else {
            return None;
        };
        Some(Ended { since: *since, how })
    }

    /// Returns when the step is to be woken, if the fact begins a wait for time.
    pub fn arms_timer(&self) -> Option<Timestamp> {
        if let Self::StepSlept { until, .. }
        | Self::StepFailed { next: AfterFailure::Retry { until }, .. } = self
        {
            Some(*until)
        } else if let Self::StepSuspended { deadline, .. } = self {
            *deadline
        } else {
            None
        }
    }

    /// Returns the values that a step is given, gives, or shows while it waits. All of them stay
    /// in the state.
    pub fn step_values(&self) -> &[Arc<Value>] {
        match self {
            Self::StepCompleted { output: value, .. }
            | Self::StepFailed { next: AfterFailure::Continue { output: value }, .. }
            | Self::StepResumed { data: value, .. }
            | Self::ChildStarted { input: value, .. } => std::slice::from_ref(value),
            Self::StepStarted { opening: Some(opening), .. } => match &**opening {
                Opening::Items(items) => items,
                Opening::Block(_) => &[],
            },
            Self::StepSuspended { payload, .. } | Self::ChildSuspended { payload, .. } => {
                payload.as_slice()
            }
            Self::StepStarted { opening: None, .. }
            | Self::StepFailed { next: AfterFailure::Fail | AfterFailure::Retry { .. }, .. }
            | Self::StepReleased { .. }
            | Self::StepSkipped { .. }
            | Self::StepCancelled { .. }
            | Self::StepSlept { .. }
            | Self::TimerFired { .. }
            | Self::ChildResumed { .. }
            | Self::WorkflowStarted(_)
            | Self::HoldPlaced { .. }
            | Self::HoldLifted { .. }
            | Self::WorkflowSuspended { .. }
            | Self::WorkflowResumed
            | Self::WorkflowCompleted { .. }
            | Self::WorkflowFailed { .. }
            | Self::WorkflowCancelled { .. } => &[],
        }
    }
}
