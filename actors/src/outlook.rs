//! What an execution waits for, as far as this process and its store know.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::core::Core;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::Machine;
pub use crate::domain::machine::{AtDeadline, Awaited, Cause, ChildQuestion, Ending, FailedStep};
use crate::orders::{Order, Subject};
use crate::ports::store::{Header, Projection, ReadError, Status};
use crate::requests::{DescribeError, Target, Unavailable};
use crate::runtime::Runtime;

/// The answer to: why does it not go on?
#[derive(Debug, Clone)]
pub struct Outlook {
    pub header: Arc<Header>,
    pub status: Status,
    /// Nothing of one that has ended.
    pub waits_for: Vec<Awaited>,
    /// Of one that has ended.
    pub ending: Option<Ending>,
    /// The rows of the children it waits for; none of one that was never started.
    pub children: BTreeMap<ExecutionId, Projection>,
}

impl Outlook {
    /// An outlook without children, of one that has not ended.
    pub fn new(header: Arc<Header>, status: Status, waits_for: Vec<Awaited>) -> Self {
        Self { header, status, waits_for, ending: None, children: BTreeMap::new() }
    }

    /// What the machine says; the children are not looked up.
    pub(crate) fn of(core: &Core, header: &Arc<Header>, machine: &Machine) -> Self {
        let is_draining = core.is_draining();
        let waits_for = core.at_moment(|moment| machine.waits_for(moment, is_draining));
        let status = machine.state().announced;
        Self { ending: machine.ending(), ..Self::new(Arc::clone(header), status, waits_for) }
    }

    /// The same while this process decides or records: nothing has to take up what it is at.
    pub(crate) fn at_work(core: &Core, header: &Arc<Header>, machine: &Machine) -> Self {
        let mut outlook = Self::of(core, header, machine);
        for awaited in &mut outlook.waits_for {
            if matches!(awaited.cause, Cause::Turn | Cause::CutOff { .. }) {
                awaited.cause = Cause::AtWork;
            }
        }
        if outlook.waits_for.is_empty() && outlook.ending.is_none() {
            let (since, cause) = (machine.state().updated_at, Cause::AtWork);
            outlook.waits_for.push(Awaited {
                step_id: None,
                path: None,
                since,
                until: None,
                cause,
            });
        }
        outlook
    }
}

impl Core {
    /// Asks an execution what it waits for, and looks up the children that it names.
    pub(crate) async fn outlook(
        &self,
        id: &ExecutionId,
        subject: Option<Subject>,
    ) -> Result<Box<Outlook>, DescribeError> {
        let (answer, heard) = oneshot::channel();
        self.deliver(id.clone(), Order::Why { subject, answer });
        let mut outlook = heard.await.unwrap_or_else(|_| Err(Unavailable::ActorLost.into()))?;
        for awaited in &mut outlook.waits_for {
            let Cause::Child { child, workflow, .. } = &awaited.cause else { continue };
            let found = self.store.describe(child).await;
            match found {
                Ok(Some(row)) => drop(outlook.children.insert(child.clone(), row)),
                // It was never started, and never will be here.
                Ok(None) if !self.registry().workflows.contains_key(&**workflow) => {
                    let what = format!("workflow {workflow} is not registered");
                    awaited.cause = Cause::Missing { what };
                }
                Ok(None) => {}
                // Of the child; where this execution stands is known.
                Err(error @ ReadError::Corrupt(_)) => {
                    awaited.cause = Cause::Missing { what: error.to_string() };
                }
                Err(error @ ReadError::Unavailable(_)) => {
                    return Err(Unavailable::from(error).into());
                }
            }
        }
        Ok(outlook)
    }
}

impl Runtime {
    /// Says what an execution waits for. Nothing is brought into memory for it.
    pub async fn why(&self, target: &Target) -> Result<Box<Outlook>, DescribeError> {
        self.core().outlook(&target.execution_id, Some(target.into())).await
    }
}
