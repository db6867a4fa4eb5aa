//! Numbers of executions.

use std::sync::Arc;

use super::Status;

/// Number of executions of a workflow with a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionCount {
    pub workflow_id: Arc<str>,
    pub status: Status,
    pub count: u64,
}

/// Counts of one user's executions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CountsOfUser {
    /// Counts by workflow and status, without zeros.
    pub counts: Vec<ExecutionCount>,
    /// True if all executions of the user were counted.
    pub is_complete: bool,
}
