//! Diagnosis: what executions wait for, stuck executions and stalled threads.

use super::Runtime;
use crate::cluster::activity::Activity;
use crate::commands::ExecutionCommand;
use crate::domain::time::Timestamp;
use crate::requests::{DescribeError, Target, Unavailable};
use crate::shard::pulse::StalledThread;
use crate::shard::stuck::StuckExecution;
use crate::wait_report::{Awaited, Cause, WaitReport};

impl Runtime {
    /// Reports what an execution waits for. The query does not keep it in memory.
    pub async fn why(&self, target: &Target) -> Result<Box<WaitReport>, DescribeError> {
        let asked = self.shared.clock.now();
        let command = |answer| ExecutionCommand::Why { subject: Some(target.into()), answer };
        let report = match self.ask_unless_ended(target, command).await {
            Err(DescribeError::Unavailable(Unavailable::Moved { .. })) => {
                let recorded = self.read_rows(&target.execution_id, command).await?;
                self.report_elsewhere(recorded, asked)
            }
            answer => answer?,
        };
        self.shared.with_children(report).await
    }

    /// Returns the report on an execution whose process did not answer: what is recorded, and that it
    /// waits for that process.
    fn report_elsewhere(&self, recorded: Box<WaitReport>, since: Timestamp) -> Box<WaitReport> {
        let server = self.shared.ownership.owner_name(&recorded.header.id);
        let mut waits_for = recorded.waits_for;
        waits_for.retain(|awaited| awaited.cause.is_recorded());
        if recorded.ending.is_none() {
            let cause = Cause::Elsewhere { server: server.clone() };
            let (step_id, path, until) = (None, None, None);
            waits_for.push(Awaited { step_id, path, since, until, cause });
        }
        Box::new(WaitReport { server, waits_for, ..*recorded })
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
