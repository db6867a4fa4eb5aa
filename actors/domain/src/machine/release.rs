//! The command `Release`: a shutdown; running bodies start again after the restart.

use crate::fact::Fact;
use crate::machine::{Batch, Machine, Moment};

impl Machine {
    /// Records the release of every running body. A release does not count as a failure.
    pub(super) fn release(&mut self, moment: &Moment<'_>, batch: &mut Batch) {
        if self.unrecovered || self.state.end.is_some() {
            return;
        }
        for path in self.interrupted_bodies() {
            let Some((_, node)) = self.node(&path) else { continue };
            let (attempt, since) = (node.attempt, node.attempt_started_at);
            self.record(Fact::StepReleased { path, attempt, since }, moment, batch);
        }
    }
}
