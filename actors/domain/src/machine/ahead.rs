//! Running ahead: records what follows from a decision without outside work.

use std::cell::Cell;
use std::sync::Arc;

use crate::effort::{Budget, TURN_STEPS, within};
use crate::fact::{Fact, ResumedBy};
use crate::machine::{Batch, Machine, Moment};
use crate::plan::Step;
use crate::principal::Principal;
use crate::status::Status;

/// Maximum number of facts per run; then other executions get their turn.
const AHEAD_FACTS_MAX: usize = 500;
/// Maximum size of values per run, in bytes; checked between steps.
const AHEAD_BYTES_MAX: u64 = 1 << 20;

impl Machine {
    /// Records what follows from a decision that cost `spent` steps, then announces the status if
    /// it has changed.
    pub(super) fn run_ahead(&mut self, spent: u64, moment: &Moment<'_>, batch: &mut Batch) {
        let is_blocked = Cell::new(false);
        let missing = |step: &Step| {
            let missing = (moment.missing)(step);
            is_blocked.set(is_blocked.get() || missing.is_some());
            missing
        };
        // Only one evaluation per run may cost more than a turn; the next one is put off again.
        let turn = Budget::turn();
        let (steps, budget) = if spent > TURN_STEPS { (0, &turn) } else { (spent, moment.budget) };
        let moment = &Moment { missing: &missing, budget, ..*moment };
        batch.by = None;
        (self.has_more, self.is_costly) = (false, false);
        if let Some(recovered) = self.recover(moment, batch) {
            self.follow(steps.saturating_add(recovered), moment, batch);
        }
        batch.by = None;
        self.announce_status(is_blocked.get(), moment, batch);
    }

    fn follow(&mut self, mut steps: u64, moment: &Moment<'_>, batch: &mut Batch) {
        let (facts_before, bytes_before) = (batch.facts.len(), self.state.bytes);
        loop {
            if steps > TURN_STEPS {
                self.has_more = true;
                break;
            }
            let (fact, effort) = within(moment.budget, || self.next_fact(moment));
            if effort.is_exceeded && moment.budget.is_turn() {
                (self.has_more, self.is_costly) = (true, true);
                break;
            }
            let Some(fact) = fact else { break };
            steps += effort.steps;
            let is_long = batch.facts.len() - facts_before >= AHEAD_FACTS_MAX
                || self.state.bytes - bytes_before >= AHEAD_BYTES_MAX;
            // Stop only before a step begins, so that a decision is recorded whole.
            if is_long && begins(&fact) {
                self.has_more = true;
                break;
            }
            batch.by = self.replayed_by(&fact).or_else(|| self.cancelled_by(&fact));
            self.record(fact, moment, batch);
        }
    }

    fn announce_status(&mut self, is_blocked: bool, moment: &Moment<'_>, batch: &mut Batch) {
        let derived = match self.state.derived_status() {
            // A later process may have what is missing now. It loads running executions at its
            // start, suspended ones only on request.
            Status::Suspended if (is_blocked || self.has_more) && self.state.hold.is_none() => {
                Status::Running
            }
            derived => derived,
        };
        if derived == self.state.announced {
            if derived == Status::Suspended && !self.announced_still_waits() {
                self.record_one(Fact::WorkflowResumed, moment, batch);
                self.announce_suspension(moment, batch);
            }
            return;
        }
        match derived {
            Status::Running => self.record_one(Fact::WorkflowResumed, moment, batch),
            Status::Suspended => self.announce_suspension(moment, batch),
            Status::Completed | Status::Error | Status::Cancelled => {}
        }
    }

    /// Returns false if what was announced no longer waits although something else does, as after a
    /// deadline that passed.
    fn announced_still_waits(&self) -> bool {
        let Some(shown) = &self.state.announced_suspension else { return true };
        // Those of older versions have no id.
        let Some(id) = &shown.id else { return true };
        let node = self.node(&shown.path);
        let wait = node.and_then(|(_, node)| node.wait());
        wait.is_some_and(|wait| wait.id == *id)
            || self.state.hold.as_ref().is_some_and(|hold| hold.id == *id)
    }

    /// Returns the principal of a replay whose data resumes the step. Other facts of a run have no
    /// principal.
    fn replayed_by(&self, fact: &Fact) -> Option<Arc<Principal>> {
        let is_answer = matches!(fact, Fact::StepResumed { by: ResumedBy::Caller, .. });
        self.state.start.replayed.as_ref().filter(|_| is_answer)?.by.clone()
    }

    fn announce_suspension(&mut self, moment: &Moment<'_>, batch: &mut Batch) {
        if let Some((shown, others)) = self.state.announced_suspensions(&self.plan) {
            let since = self.state.created_at;
            let suspension = Box::new(shown);
            self.record_one(Fact::WorkflowSuspended { since, suspension, others }, moment, batch);
        }
    }
}

/// Returns true if the work of a step begins with the fact, or it is over without any.
fn begins(fact: &Fact) -> bool {
    matches!(fact, Fact::StepStarted { .. } | Fact::StepSlept { .. } | Fact::StepSkipped { .. })
}
