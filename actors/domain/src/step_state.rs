//! State of a step of an execution, as callers see it.

use std::sync::Arc;

use serde_json::Value;

use crate::failure::AttemptError;
use crate::ids::ExecutionId;
use crate::principal::Principal;
use crate::time::Timestamp;

/// State of one node of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct StepState {
    pub step_id: Arc<str>,
    pub path: Arc<str>,
    pub status: StepStatus,
    pub attempts: u32,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub output: Option<Arc<Value>>,
    pub error: Option<Arc<str>>,
    /// Errors of the newest failed attempts, oldest first.
    pub errors: Vec<AttemptError>,
    /// The newest execution that an andWorkflow step started.
    pub child: Option<ExecutionId>,
    /// Id of the newest generation of an andAgent step. It is not in the history if the step failed
    /// before it asked its agent.
    pub generation_id: Option<String>,
    /// The newest resume of the step.
    pub resume: Option<StepResume>,
}

/// A resume of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResume {
    pub at: Timestamp,
    /// `None` if the deadline resumed it, or if the principal is unknown.
    pub by: Option<Arc<Principal>>,
    /// True if the deadline passed and `on_timeout` of the definition supplied the data.
    pub by_deadline: bool,
    /// Id of the suspension that it ended; `None` if unknown.
    pub id: Option<Arc<str>>,
    /// `None` for an andWorkflow step, whose child received the data.
    pub data: Option<Arc<Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    Running,
    Suspended,
    Sleeping,
    Completed,
    Failed,
    Skipped,
    Cancelled,
}

impl StepStatus {
    /// Returns the name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Suspended => "suspended",
            Self::Sleeping => "sleeping",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Cancelled => "cancelled",
        }
    }
}
