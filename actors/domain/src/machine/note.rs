//! The command `NoteStep`: where the tool of a step can continue after an interruption.

use std::sync::Arc;

use serde_json::Value;

use crate::fact::Fact;
use crate::ids::StepPath;
use crate::machine::{Batch, Machine, Moment};
use crate::plan::WorkClass;
use crate::state::Phase;

impl Machine {
    /// Records the note of a running attempt; nothing if it came too late.
    pub(super) fn note_step(
        &mut self,
        path: StepPath,
        attempt: u32,
        memo: Arc<Value>,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) {
        let is_current = self.node(&path).is_some_and(|(step, node)| {
            let is_body = step.work.class() == WorkClass::Outside;
            is_body && node.phase == Phase::Running && node.attempt == attempt
        });
        if is_current && self.state.end.is_none() {
            self.record(Fact::StepNoted { path, attempt, memo }, moment, batch);
        }
    }
}
