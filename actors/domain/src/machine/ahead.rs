//! What follows from a decision by itself, as far as it goes without the outside.

use std::cell::Cell;
use std::sync::Arc;

use crate::effort::{Budget, TURN_STEPS, within};
use crate::fact::{Fact, ResumedBy};
use crate::machine::{Batch, Machine, Moment};
use crate::plan::Step;
use crate::principal::Principal;
use crate::status::Status;

/// Facts that follow by themselves in one go. More are another commit, and others come between.
const AHEAD_FACTS_MAX: usize = 500;
/// Bytes of values that follow by themselves in one go, as far as steps are whole.
const AHEAD_BYTES_MAX: u64 = 1 << 20;

impl Machine {
    /// Records what follows by itself from a decision that took so many steps, then tells the
    /// status if it has changed.
    pub(super) fn run_ahead(&mut self, spent: u64, moment: &Moment<'_>, batch: &mut Batch) {
        let is_kept_from_beginning = Cell::new(false);
        let missing = |step: &Step| {
            let missing = (moment.missing)(step);
            is_kept_from_beginning.set(is_kept_from_beginning.get() || missing.is_some());
            missing
        };
        // One evaluation that cost more than a turn is enough: the next such goes elsewhere again.
        let turn = Budget::turn();
        let (steps, budget) = if spent > TURN_STEPS { (0, &turn) } else { (spent, moment.budget) };
        let moment = &Moment { missing: &missing, budget, ..*moment };
        batch.by = None;
        (self.goes_on, self.is_costly) = (false, false);
        if let Some(recovered) = self.recover(moment, batch) {
            self.follow(steps.saturating_add(recovered), moment, batch);
        }
        batch.by = None;
        self.tell_status(is_kept_from_beginning.get(), moment, batch);
    }

    fn follow(&mut self, mut steps: u64, moment: &Moment<'_>, batch: &mut Batch) {
        let (facts_before, bytes_before) = (batch.facts.len(), self.state.bytes);
        loop {
            if steps > TURN_STEPS {
                self.goes_on = true;
                break;
            }
            let (fact, effort) = within(moment.budget, || self.next_fact(moment));
            if effort.is_exceeded && moment.budget.is_turn() {
                (self.goes_on, self.is_costly) = (true, true);
                break;
            }
            let Some(fact) = fact else { break };
            steps += effort.steps;
            let is_long = batch.facts.len() - facts_before >= AHEAD_FACTS_MAX
                || self.state.bytes - bytes_before >= AHEAD_BYTES_MAX;
            // Only before something begins: what has been decided is recorded whole.
            if is_long && begins(&fact) {
                self.goes_on = true;
                break;
            }
            batch.by = self.replayed_by(&fact);
            self.record(fact, moment, batch);
        }
    }

    fn tell_status(&mut self, is_kept: bool, moment: &Moment<'_>, batch: &mut Batch) {
        let derived = match self.state.derived_status() {
            // A later process may have what is missing now: it takes up what runs by itself, and
            // what is suspended only when somebody asks for it.
            Status::Suspended if (is_kept || self.goes_on) && self.state.hold.is_none() => {
                Status::Running
            }
            derived => derived,
        };
        if derived == self.state.announced {
            return;
        }
        match derived {
            Status::Running => self.record_one(Fact::WorkflowResumed, moment, batch),
            Status::Suspended => self.announce_suspension(moment, batch),
            Status::Completed | Status::Error | Status::Cancelled => {}
        }
    }

    /// Who brought an answer before it was asked for. What else follows by itself nobody did.
    fn replayed_by(&self, fact: &Fact) -> Option<Arc<Principal>> {
        let is_answer = matches!(fact, Fact::StepResumed { by: ResumedBy::Caller, .. });
        self.state.start.replayed.as_ref().filter(|_| is_answer)?.by.clone()
    }

    fn announce_suspension(&mut self, moment: &Moment<'_>, batch: &mut Batch) {
        if let Some((shown, others)) = self.state.told_suspensions(&self.plan) {
            let since = self.state.created_at;
            let suspension = Box::new(shown);
            self.record_one(Fact::WorkflowSuspended { since, suspension, others }, moment, batch);
        }
    }
}

/// Whether a fact is the first one about a step.
fn begins(fact: &Fact) -> bool {
    matches!(fact, Fact::StepStarted { .. } | Fact::StepSlept { .. } | Fact::StepSkipped { .. })
}
