//! The command `Release`: the process ends in order, and bodies at work begin anew after the restart.

use crate::fact::Fact;
use crate::machine::{Batch, Machine, Moment};

impl Machine {
    /// Records of every body at work that it is let go, which counts nothing against its step.
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
