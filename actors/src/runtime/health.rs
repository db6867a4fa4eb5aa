//! Diagnosis: what executions wait for, stuck executions and stalled threads.

use super::Runtime;
use crate::cluster::activity::Activity;
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

    /// Returns which workflows and agents are running, at all processes over the same store. One
    /// that does not answer within a second is left out.
    pub async fn activity(&self) -> Activity {
        self.shared.activity_everywhere().await
    }

    /// Returns the stuck executions found by the last checks; at most a thousand. A process that
    /// does not answer within a second is left out.
    pub async fn stuck(&self) -> Vec<StuckExecution> {
        self.shared.stuck_everywhere().await
    }

    /// Returns the threads of executions of this process that do not respond now.
    pub fn stalled_threads(&self) -> Vec<StalledThread> {
        self.shared.pulse.stalled()
    }
}
