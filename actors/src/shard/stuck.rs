//! Stuck executions, as found by the watchdog.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::ids::ExecutionId;

/// An execution that cannot continue, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckExecution {
    /// `None` if its row cannot be read.
    pub workflow_id: Option<Arc<str>>,
    pub execution_id: ExecutionId,
    pub cause: Arc<str>,
}

/// Stuck executions that are remembered and reported; others are found when these are gone.
pub(crate) const STUCK_MAX: usize = 1000;

/// Known stuck executions.
pub(crate) type Stuck = BTreeMap<ExecutionId, StuckExecution>;
