//! Executions that nothing can move on, as the watchdog found them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::ids::ExecutionId;

/// An execution that nothing can move on, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckExecution {
    /// None where its row cannot be read.
    pub workflow_id: Option<Arc<str>>,
    pub execution_id: ExecutionId,
    pub cause: Arc<str>,
}

/// What is known to be stuck.
pub(crate) type Stuck = BTreeMap<ExecutionId, StuckExecution>;
