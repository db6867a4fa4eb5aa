//! The command `Suspend`: a pause by a caller, which takes effect at once.

use std::sync::Arc;

use crate::fact::Fact;
use crate::machine::command::Refusal;
use crate::machine::{Batch, Machine, Moment};
use crate::state::suspension_id;
use crate::status::Status;

impl Machine {
    /// Pauses the execution. Refused unless it is running.
    pub(super) fn suspend(
        &mut self,
        reason: Arc<str>,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        match self.state.announced {
            Status::Running => {
                let id = Some(suspension_id(&self.state.id, "", self.state.holds + 1));
                self.record(Fact::HoldPlaced { reason, id }, moment, batch);
                Ok(())
            }
            status
            @ (Status::Suspended | Status::Completed | Status::Error | Status::Cancelled) => {
                Err(Refusal::Already(status))
            }
        }
    }
}
