//! One step of an execution, as callers see it.

use std::sync::Arc;

use serde_json::Value;

use crate::failure::AttemptError;
use crate::ids::ExecutionId;
use crate::principal::Principal;
use crate::time::Timestamp;

/// One node of an execution.
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
    /// Attempts that failed, oldest first; the newest ones when there were many.
    pub errors: Vec<AttemptError>,
    /// The execution that an andWorkflow step started last.
    pub child: Option<ExecutionId>,
    /// The resume that it took last.
    pub resume: Option<StepResume>,
}

/// What a step was resumed with.
#[derive(Debug, Clone, PartialEq)]
pub struct StepResume {
    pub at: Timestamp,
    /// None when a deadline answered, and where it is not known.
    pub by: Option<Arc<Principal>>,
    /// Whether its deadline passed and the definition answered.
    pub by_deadline: bool,
    /// Of the suspension that it answered; None where it is not known.
    pub id: Option<Arc<str>>,
    /// None of an andWorkflow step: it was its child that was asked.
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
    /// The name on the wire.
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
