//! The command `Cancel`: ends the execution and its live nodes.

use std::sync::Arc;

use crate::fact::Fact;
use crate::machine::command::Refusal;
use crate::machine::place::{Place, Within};
use crate::machine::{Batch, Machine, Moment};
use crate::plan::Step;
use crate::state::{BegunCompensation, Node, Sequence};

impl Machine {
    /// Cancels the execution. Refused if it has ended, or compensates before its end.
    pub(super) fn cancel(
        &mut self,
        reason: Arc<str>,
        compensate: bool,
        moment: &Moment<'_>,
        batch: &mut Batch,
    ) -> Result<(), Refusal> {
        let status = self.state.announced;
        if status.is_terminal() {
            return Err(Refusal::Already(status));
        }
        if self.state.compensating.is_some() {
            return Err(Refusal::Compensating);
        }
        self.cancel_all_nodes(moment, batch);
        let since = self.state.created_at;
        let compensates = compensate || self.plan.definition.compensate_on_cancel;
        let cancelled = Fact::WorkflowCancelled { since, reason, compensates };
        let cancelled = if compensates { self.concluded(cancelled) } else { cancelled };
        self.record(cancelled, moment, batch);
        Ok(())
    }

    /// Cancels all live nodes, innermost first.
    pub(super) fn cancel_all_nodes(&mut self, moment: &Moment<'_>, batch: &mut Batch) {
        while let Some(fact) = self.next_cancelled() {
            self.record(fact, moment, batch);
        }
    }

    /// Returns the fact that cancels the innermost live node.
    pub(super) fn next_cancelled(&self) -> Option<Fact> {
        let compensation = self.state.compensating.as_ref().and_then(|it| it.current());
        match compensation {
            Some(BegunCompensation { path, node, skipped: _ }) => Some(Fact::StepCancelled {
                path: Arc::clone(path),
                attempt: node.attempt,
                since: node.attempt_started_at,
            }),
            None => cancelled_in(&self.plan.steps, &self.state.root, None),
        }
    }
}

/// Returns the fact that cancels the innermost live node inside a container.
pub(super) fn next_cancelled_in(step: &Step, node: &Node, place: &Place<'_>) -> Option<Fact> {
    node.live_lanes().find_map(|(lane, sequence)| {
        let branch = step.work.branch_of(lane)?;
        cancelled_in(&branch.steps, sequence, Some(place.within(step, lane)))
    })
}

fn cancelled_in(steps: &[Step], sequence: &Sequence, outer: Option<Within<'_>>) -> Option<Fact> {
    let node = sequence.nodes.last().filter(|node| node.is_live())?;
    let step = steps.get(sequence.nodes.len() - 1)?;
    let place = Place::of(step, outer);
    if let Some(inner) = next_cancelled_in(step, node, &place) {
        return Some(inner);
    }
    let (attempt, since) = (node.attempt, node.attempt_started_at);
    Some(Fact::StepCancelled { path: place.path(), attempt, since })
}
