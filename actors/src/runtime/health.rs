//! Diagnosis: what executions wait for, stuck executions and stalled threads.

use std::sync::PoisonError;

use super::Runtime;
use crate::commands::ExecutionCommand;
use crate::requests::{DescribeError, Target};
use crate::shard::pulse::StalledThread;
use crate::shard::stuck::StuckExecution;
use crate::wait_report::WaitReport;

impl Runtime {
    /// Reports what an execution waits for. The query does not keep it in memory.
    pub async fn why(&self, target: &Target) -> Result<Box<WaitReport>, DescribeError> {
        let command = |answer| ExecutionCommand::Why { subject: Some(target.into()), answer };
        self.shared.with_children(self.ask_unless_ended(target, command).await?).await
    }

    /// Returns the stuck executions found by the last checks; at most a thousand.
    pub fn stuck(&self) -> Vec<StuckExecution> {
        let stuck = self.shared.stuck.read().unwrap_or_else(PoisonError::into_inner);
        stuck.values().cloned().collect()
    }

    /// Returns the threads of executions that do not respond now.
    pub fn stalled_threads(&self) -> Vec<StalledThread> {
        self.shared.pulse.stalled()
    }
}
