//! Ends of executions, from which outcomes are counted.

use std::ops::Range;
use std::sync::Arc;

use crate::domain::time::Timestamp;
use crate::ports::store::Status;

/// Range of ends: those with one status, within a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndRange {
    /// A status that ends an execution.
    pub status: Status,
    pub period: Range<Timestamp>,
}

/// End of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionEnd {
    pub workflow_id: Arc<str>,
    pub user_id: Option<Arc<str>>,
    pub created_at: Timestamp,
    pub ended_at: Timestamp,
    /// The step that failed the execution.
    pub failed_step: Option<Arc<str>>,
}
