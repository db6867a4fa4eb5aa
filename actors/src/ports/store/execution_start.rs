//! Starts of executions, from which versions are counted.

use std::sync::Arc;

use crate::domain::time::Timestamp;
use crate::ports::store::Status;

/// Range of starts: executions of a workflow with one status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartRange {
    pub workflow_id: String,
    pub status: Status,
}

/// Start of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionStart {
    pub user_id: Option<Arc<str>>,
    /// Hash of the definition that the execution began with.
    pub definition_hash: Arc<str>,
    pub created_at: Timestamp,
}
