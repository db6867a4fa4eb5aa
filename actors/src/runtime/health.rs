//! What an execution waits for, and what does not get on.

use std::sync::PoisonError;

use super::Runtime;
use crate::requests::{DescribeError, Target};
use crate::shard::pulse::StalledThread;
use crate::shard::stuck::StuckExecution;
use crate::wait_report::WaitReport;

impl Runtime {
    /// Says what an execution waits for. Nothing is brought into memory for it.
    pub async fn why(&self, target: &Target) -> Result<Box<WaitReport>, DescribeError> {
        self.shared().wait_report(&target.execution_id, Some(target.into())).await
    }

    /// Executions that nothing can move on, as of the last looks; at most a thousand.
    pub fn stuck(&self) -> Vec<StuckExecution> {
        let stuck = self.shared().stuck.read().unwrap_or_else(PoisonError::into_inner);
        stuck.values().cloned().collect()
    }

    /// Threads of executions that do not answer just now.
    pub fn stalled_threads(&self) -> Vec<StalledThread> {
        self.shared().pulse.stalled()
    }
}
