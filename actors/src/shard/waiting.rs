//! Reports on what an execution waits for, from its machine, its children's rows and this process.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::commands::ExecutionCommand;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::{Awaited, Cause, Machine};
use crate::ports::store::{Header, ReadError};
use crate::requests::{DescribeError, Unavailable};
use crate::shared::Shared;
use crate::wait_report::WaitReport;

impl Shared {
    /// Queries an execution for what it waits for, and looks up the children named.
    pub(crate) async fn wait_report(
        &self,
        id: &ExecutionId,
    ) -> Result<Box<WaitReport>, DescribeError> {
        let (answer, reply) = oneshot::channel();
        self.deliver(id.clone(), ExecutionCommand::Why { subject: None, answer });
        let answer = self.unless_outage(Some(id), reply).await?;
        self.with_children(answer.unwrap_or_else(|_| Err(Unavailable::ActorLost.into()))?).await
    }

    /// Looks up the children that a report names.
    pub(crate) async fn with_children(
        &self,
        mut wait_report: Box<WaitReport>,
    ) -> Result<Box<WaitReport>, DescribeError> {
        let is_own =
            wait_report.server.is_none() || wait_report.server == self.ownership.own_name();
        for awaited in &mut wait_report.waits_for {
            let Cause::Child { child, workflow, .. } = &awaited.cause else { continue };
            let found = self.store.describe(child).await;
            match found {
                Ok(Some(row)) => drop(wait_report.children.insert(child.clone(), row)),
                // Never started, and it cannot be without its workflow. Another server may have it.
                Ok(None) if is_own && !self.registry().workflows.contains_key(&**workflow) => {
                    let what = format!("workflow {workflow} is not registered");
                    awaited.cause = Cause::Missing { what };
                }
                Ok(None) => {}
                // The child's record is corrupt; the execution itself can be read.
                Err(error @ ReadError::Corrupt(_)) => {
                    awaited.cause = Cause::Missing { what: error.to_string() };
                }
                Err(error @ (ReadError::Unavailable(_) | ReadError::TooLarge(_))) => {
                    return Err(Unavailable::from(error).into());
                }
            }
        }
        Ok(wait_report)
    }

    /// Returns the machine's report; children are not looked up.
    pub(crate) fn report_now(&self, header: &Arc<Header>, machine: &Machine) -> WaitReport {
        let is_draining = self.is_draining();
        let waits_for = self.at_moment(&header.id, |moment| machine.waits_for(moment, is_draining));
        let status = machine.state().announced;
        let (ending, pending_ending) = (machine.ending(), machine.pending_ending());
        // what has ended needs no server
        let server = self.ownership.own_name().filter(|_| ending.is_none());
        let report = WaitReport::new(Arc::clone(header), status, waits_for);
        WaitReport { server, ending, pending_ending, ..report }
    }

    /// Returns the report while this process decides or records, so that no work is waiting for it.
    pub(crate) fn report_while_busy(&self, header: &Arc<Header>, machine: &Machine) -> WaitReport {
        let mut wait_report = self.report_now(header, machine);
        for awaited in &mut wait_report.waits_for {
            if matches!(awaited.cause, Cause::Turn | Cause::Interrupted { .. }) {
                awaited.cause = Cause::Deciding;
            }
        }
        if wait_report.waits_for.is_empty() && wait_report.ending.is_none() {
            let (since, cause) = (machine.state().updated_at, Cause::Deciding);
            wait_report.waits_for.push(Awaited {
                step_id: None,
                path: None,
                since,
                until: None,
                cause,
            });
        }
        wait_report
    }
}
