//! Timers of executions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;

/// A stored timer of an execution. One per (execution, key); arming it again moves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    pub execution: ExecutionId,
    pub key: TimerKey,
    pub due: Timestamp,
}

/// Purpose of a timer. The order is that of the stored form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TimerKey {
    /// Cancels this execution, whose parent no longer needs it.
    Abandoned,
    /// Asks a child for a result that its parent has not recorded.
    AskChild(ExecutionId),
    /// Wakes the node at this path.
    Node(Arc<str>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TimerChange {
    Arm(Timer),
    Disarm { execution: ExecutionId, key: TimerKey },
}
