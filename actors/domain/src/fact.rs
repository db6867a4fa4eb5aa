//! Facts: the numbered, ordered record of an execution.
//!
//! A fact carries every computed value, so that applying facts never evaluates an expression,
//! reads a clock or makes a call.

mod mcp_call;
mod start;
mod suspension;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::assignment::AskRules;
use crate::failure::ErrorClass;
use crate::ids::{ExecutionId, StepPath};
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::question::Question;
use crate::status::Status;
use crate::time::Timestamp;
pub use crate::trace::Trace;
use crate::usage::Usage;

pub use self::mcp_call::McpCall;
pub use self::start::{Parent, Replayed, Reversal, Start};
pub use self::suspension::{Others, Suspension};

/// A fact with its number and time.
///
/// `seq` is the number of the fact's first event (see [`crate::event`]). A fact without events has
/// the number of the next event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    #[serde(rename = "n")]
    pub seq: u64,
    #[serde(rename = "t")]
    pub at: Timestamp,
    #[serde(rename = "f")]
    pub fact: Fact,
    /// The principal whose request caused the fact directly.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Arc<Principal>>,
}

/// Consequence of a failed attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum AfterFailure {
    /// The step has failed; its container decides the consequence.
    Fail,
    /// Another attempt starts at this time.
    Retry { until: Timestamp },
    /// The step has failed; the flow continues with this value.
    Continue { output: Arc<Value> },
    /// A compensation has failed; a person is asked next.
    Ask,
}

/// Decision of a container when it began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Opening {
    /// andForEach: its items.
    Items(Vec<Arc<Value>>),
    /// andBranch: the index of the block that runs.
    Block(usize),
}

/// Cause of a resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResumedBy {
    Caller,
    Deadline,
}

/// A recorded change of an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Fact {
    WorkflowStarted(Box<Start>),
    /// An attempt of a step began. `interrupted`: a crash ended the previous one.
    StepStarted {
        path: StepPath,
        attempt: u32,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        interrupted: bool,
        /// Present for andForEach and andBranch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opening: Option<Box<Opening>>,
    },
    /// `since`: start of the attempt.
    StepCompleted {
        path: StepPath,
        attempt: u32,
        since: Timestamp,
        output: Arc<Value>,
        /// Tokens used by the attempt of an agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Box<Usage>>,
        /// True for a child with completed steps that can be compensated.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        compensable: bool,
        /// True for a compensation that a person skipped, and for a reversal with such a one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        skipped: bool,
        /// Newest request of the attempt to an MCP server, if it has made one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mcp: Option<Box<McpCall>>,
    },
    StepFailed {
        path: StepPath,
        attempt: u32,
        since: Timestamp,
        error: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ErrorClass>,
        next: AfterFailure,
        /// `None` if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Box<Usage>>,
        /// Newest request of the attempt to an MCP server, if it has made one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mcp: Option<Box<McpCall>>,
    },
    /// The process shut down during the attempt. The attempt starts again after the restart, and
    /// does not count as a failure.
    StepReleased {
        path: StepPath,
        attempt: u32,
        since: Timestamp,
    },
    /// The tool of a running attempt noted where it can continue if the attempt is interrupted.
    StepNoted {
        path: StepPath,
        attempt: u32,
        /// Value for the tool when it is called again, null if there is none any longer. It is never
        /// shown.
        memo: Arc<Value>,
    },
    /// A condition was false; `data` passes through.
    StepSkipped {
        path: StepPath,
    },
    StepCancelled {
        path: StepPath,
        attempt: u32,
        since: Timestamp,
    },
    /// A step suspended.
    StepSuspended {
        path: StepPath,
        reason: Arc<str>,
        payload: Option<Arc<Value>>,
        deadline: Option<Timestamp>,
        /// Id of the suspension. Absent from older facts: it follows from the facts before them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
        /// Rules of the ask, if the step has any. Later changes of them are in the ask only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ask: Option<Arc<AskRules>>,
        /// The question, if the tool of the step asks it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        question: Option<Arc<Question>>,
        /// Newest request of the attempt to an MCP server, if it has made one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mcp: Option<Box<McpCall>>,
    },
    StepResumed {
        path: StepPath,
        data: Arc<Value>,
        by: ResumedBy,
        /// Id of the suspension that it ends. `None` for data that a replay supplied before the
        /// step suspended, and in older facts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
    },
    /// A sleep began.
    StepSlept {
        path: StepPath,
        attempt: u32,
        until: Timestamp,
    },
    /// The timer of a step fired; it takes effect once the execution is not paused.
    TimerFired {
        path: StepPath,
    },
    /// The id of a child was chosen. Recorded before the child starts.
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
        /// Id of the child's suspension.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
        /// Deadline of the child's suspension. It fires in the child, not here.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deadline: Option<Timestamp>,
    },
    ChildResumed {
        path: StepPath,
        child_seq: u64,
        /// Id of the child's suspension. Absent from older facts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
    },
    /// A caller paused the execution.
    HoldPlaced {
        reason: Arc<str>,
        /// Id of the suspension. Absent from older facts: it follows from the facts before them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<Arc<str>>,
    },
    HoldLifted {
        data: Arc<Value>,
    },
    /// The status became `suspended`. `since`: start of the execution.
    WorkflowSuspended {
        since: Timestamp,
        suspension: Box<Suspension>,
        /// The other suspensions, up to a limit.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        others: Option<Box<Others>>,
    },
    /// The status became `running` again.
    WorkflowResumed,
    /// The execution is about to end; what has completed is compensated before. The facts of a
    /// compensation are those of a step, with another path.
    CompensationStarted {
        /// The end that is recorded afterwards.
        outcome: Box<Outcome>,
    },
    WorkflowCompleted {
        since: Timestamp,
        result: Arc<Value>,
    },
    WorkflowFailed {
        since: Timestamp,
        error: Arc<str>,
        step_id: Option<Arc<str>>,
        /// Path of the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<StepPath>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<ErrorClass>,
    },
    /// `compensates`: what completed is compensated, if there is anything. Older versions record this
    /// by [`Fact::CompensationStarted`] alone.
    WorkflowCancelled {
        since: Timestamp,
        reason: Arc<str>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        compensates: bool,
    },
}

/// End of an execution, as recorded in its last fact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended<'a> {
    /// Start of the execution.
    pub since: Timestamp,
    pub how: HowEnded<'a>,
}

/// Outcome of an execution.
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

impl Fact {
    /// Returns the path of the fact's step; `None` for facts about the execution.
    pub fn step_path(&self) -> Option<&StepPath> {
        match self {
            Self::StepStarted { path, .. }
            | Self::StepCompleted { path, .. }
            | Self::StepFailed { path, .. }
            | Self::StepReleased { path, .. }
            | Self::StepNoted { path, .. }
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
            | Self::CompensationStarted { .. }
            | Self::WorkflowCompleted { .. }
            | Self::WorkflowFailed { .. }
            | Self::WorkflowCancelled { .. } => None,
        }
    }

    /// Returns the end of the execution, if the fact is its last.
    pub fn end(&self) -> Option<Ended<'_>> {
        let (since, how) = match self {
            Self::WorkflowCompleted { since, result } => (since, HowEnded::Completed { result }),
            Self::WorkflowFailed { since, error, step_id, path, class } => {
                let (step_id, path) = (step_id.as_ref(), path.as_ref());
                (since, HowEnded::Failed { error, step_id, path, class: *class })
            }
            Self::WorkflowCancelled { since, reason, .. } => {
                (since, HowEnded::Cancelled { reason })
            }
            Self::WorkflowStarted(_)
            | Self::StepStarted { .. }
            | Self::StepCompleted { .. }
            | Self::StepFailed { .. }
            | Self::StepReleased { .. }
            | Self::StepNoted { .. }
            | Self::StepSkipped { .. }
            | Self::StepCancelled { .. }
            | Self::StepSuspended { .. }
            | Self::StepResumed { .. }
            | Self::StepSlept { .. }
            | Self::TimerFired { .. }
            | Self::ChildStarted { .. }
            | Self::ChildSuspended { .. }
            | Self::ChildResumed { .. }
            | Self::HoldPlaced { .. }
            | Self::HoldLifted { .. }
            | Self::WorkflowSuspended { .. }
            | Self::WorkflowResumed
            | Self::CompensationStarted { .. } => return None,
        };
        Some(Ended { since: *since, how })
    }

    /// Returns the time at which the step's timer fires, if the fact sets one.
    pub fn arms_timer(&self) -> Option<Timestamp> {
        match self {
            Self::StepSlept { until, .. }
            | Self::StepFailed { next: AfterFailure::Retry { until }, .. } => Some(*until),
            Self::StepSuspended { deadline, .. } => *deadline,
            // The timer of a child's deadline is armed in the child.
            Self::ChildSuspended { .. }
            | Self::StepFailed {
                next: AfterFailure::Fail | AfterFailure::Continue { .. } | AfterFailure::Ask,
                ..
            }
            | Self::StepStarted { .. }
            | Self::StepCompleted { .. }
            | Self::StepReleased { .. }
            | Self::StepNoted { .. }
            | Self::StepSkipped { .. }
            | Self::StepCancelled { .. }
            | Self::StepResumed { .. }
            | Self::TimerFired { .. }
            | Self::ChildStarted { .. }
            | Self::ChildResumed { .. }
            | Self::HoldPlaced { .. }
            | Self::HoldLifted { .. }
            | Self::WorkflowStarted(_)
            | Self::WorkflowSuspended { .. }
            | Self::WorkflowResumed
            | Self::CompensationStarted { .. }
            | Self::WorkflowCompleted { .. }
            | Self::WorkflowFailed { .. }
            | Self::WorkflowCancelled { .. } => None,
        }
    }

    /// Returns the inputs, outputs and payloads in the fact. All of them stay in the state.
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
            | Self::StepFailed {
                next: AfterFailure::Fail | AfterFailure::Retry { .. } | AfterFailure::Ask,
                ..
            }
            | Self::StepReleased { .. }
            | Self::StepNoted { .. }
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
            | Self::CompensationStarted { .. }
            | Self::WorkflowCompleted { .. }
            | Self::WorkflowFailed { .. }
            | Self::WorkflowCancelled { .. } => &[],
        }
    }
}
