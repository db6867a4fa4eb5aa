//! The command `Recover`: starts bodies again that a crash interrupted.

use std::sync::Arc;

use crate::effort::within;
use crate::fact::Fact;
use crate::failure::{AttemptFailure, ErrorKind};
use crate::ids::StepPath;
use crate::machine::place::Site;
use crate::machine::{Batch, Machine, Moment};
use crate::plan::WorkClass;
use crate::state::Phase;

impl Machine {
    pub(super) fn has_interrupted_bodies(&self) -> bool {
        !self.interrupted_bodies().is_empty()
    }

    /// Returns the bodies that are running according to the record. Children are not bodies.
    pub(super) fn interrupted_bodies(&self) -> Vec<StepPath> {
        let mut paths = Vec::new();
        self.state.each_live_node(&self.plan, &mut |_, path, step, node| {
            let is_body = step.work.class() == WorkClass::Outside;
            if is_body && node.phase == Phase::Running {
                paths.push(Arc::from(path));
            }
        });
        paths
    }

    /// Starts interrupted bodies again, unless the execution is paused. Returns the cost in steps;
    /// `None` if it exceeds a turn and is put off.
    pub(super) fn recover(&mut self, moment: &Moment<'_>, batch: &mut Batch) -> Option<u64> {
        if !self.unrecovered || self.state.hold.is_some() || self.state.end.is_some() {
            return Some(0);
        }
        let (facts, effort) = within(moment.budget, || {
            let paths = self.interrupted_bodies().into_iter();
            paths.filter_map(|path| self.recovered(path, moment)).collect::<Vec<Fact>>()
        });
        if effort.is_exceeded && moment.budget.is_turn() {
            (self.has_more, self.is_costly) = (true, true);
            return None;
        }
        self.unrecovered = false;
        for fact in facts {
            self.record(fact, moment, batch);
        }
        Some(effort.steps)
    }

    /// Returns the next fact of an interrupted body.
    fn recovered(&self, path: StepPath, moment: &Moment<'_>) -> Option<Fact> {
        let (step, node) = self.node(&path)?;
        let attempt = node.attempt;
        Some(if node.interruptions_with(moment.now) >= moment.limits.crash_attempts {
            let error = format!("interrupted {} times", moment.limits.crash_attempts);
            let failure = AttemptFailure::new(ErrorKind::Interrupted, error);
            self.failed_finally(&Site::at(&path, (step, node), moment), &failure)
        } else {
            Fact::StepStarted { path, attempt: attempt + 1, interrupted: true, opening: None }
        })
    }
}
