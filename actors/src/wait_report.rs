//! What an execution waits for, as far as this process and its store know.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::ids::ExecutionId;
pub use crate::domain::machine::{AtDeadline, Awaited, Cause, ChildQuestion, Ending, FailedStep};
use crate::ports::store::{Header, Projection, Status};

/// The answer to: why does it not go on?
#[derive(Debug, Clone)]
pub struct WaitReport {
    pub header: Arc<Header>,
    pub status: Status,
    /// Nothing of one that has ended.
    pub waits_for: Vec<Awaited>,
    /// Of one that has ended.
    pub ending: Option<Ending>,
    /// The rows of the children it waits for; none of one that was never started.
    pub children: BTreeMap<ExecutionId, Projection>,
}

impl WaitReport {
    /// An wait_report without children, of one that has not ended.
    pub fn new(header: Arc<Header>, status: Status, waits_for: Vec<Awaited>) -> Self {
        Self { header, status, waits_for, ending: None, children: BTreeMap::new() }
    }
}
