//! Containers: the next fact inside them, lane by lane, and their ends.

use std::sync::Arc;

use serde_json::Value;

use crate::expression::Expression;
use crate::fact::Fact;
use crate::failure::{AttemptFailure, ErrorKind};
use crate::machine::Machine;
use crate::machine::cancel::next_cancelled_in;
use crate::machine::place::{Place, Site};
use crate::machine::scope::Named;
use crate::state::Settled;

/// Condition of a loop.
pub(super) struct Condition<'a> {
    pub(super) when: &'a Expression,
    /// Value of `when` that starts another iteration.
    pub(super) again_if: bool,
    pub(super) rounds_max: usize,
}

impl Machine {
    /// andAll: the first failure ends the step, completion needs all lanes.
    pub(super) fn next_of_all(&self, site: &Site<'_>) -> Option<Fact> {
        let next = self.next_of_lanes(site);
        let has_ended = site.node.live_lanes().next().is_none();
        next.or_else(|| has_ended.then(|| self.completed_together(site)))
    }

    /// andWhen and andBranch: the step ends like its only lane.
    pub(super) fn next_of_one(&self, site: &Site<'_>) -> Option<Fact> {
        let Site { step, node, .. } = *site;
        let next = self.next_of_lanes(site);
        next.or_else(|| Some(self.completed(site, passed(node.first_passage(step)?)?)))
    }

    /// andRace: the first lane to complete wins; the step fails when every lane has failed.
    pub(super) fn next_of_race(&self, site: &Site<'_>) -> Option<Fact> {
        let Site { step, node, .. } = *site;
        if let Some(output) = node.first_passage(step).and_then(passed) {
            let loser = next_cancelled_in(step, node, &site.place);
            return Some(loser.unwrap_or_else(|| self.completed(site, output)));
        }
        if node.live_lanes().next().is_none() {
            return self.next_after_failure(site);
        }
        self.next_in_lanes(site)
    }

    /// andForEach: starts items in order, at most `concurrency` in progress; the first failure ends
    /// the step.
    pub(super) fn next_of_each(&self, site: &Site<'_>, concurrency: usize) -> Option<Fact> {
        let Site { node, .. } = *site;
        if let Some(fact) = self.next_of_lanes(site) {
            return Some(fact);
        }
        let live = node.live_lanes().count();
        if node.branches.len() < node.items.len() {
            let has_room = live < concurrency;
            return if has_room { self.next_iteration(site) } else { None };
        }
        (live == 0).then(|| self.completed_together(site))
    }

    /// Completes a container with the outputs of all its lanes, in order.
    fn completed_together(&self, site: &Site<'_>) -> Fact {
        let Site { step, node, .. } = *site;
        let ends = (0..node.branches.len()).filter_map(|lane| node.end_of_lane(step, lane));
        let outputs: Value = ends.filter_map(passed).map(|output| Value::clone(&output)).collect();
        self.completed_within_bounds(site, &Arc::new(outputs))
    }

    /// andDoWhile and andDoUntil: an iteration, then the condition over its output.
    pub(super) fn next_of_loop(&self, site: &Site<'_>, condition: &Condition<'_>) -> Option<Fact> {
        let Site { step, node, moment, .. } = *site;
        if let Some(fact) = self.next_after_failure(site) {
            return Some(fact);
        }
        if node.live_lanes().next().is_some() {
            return self.next_in_lanes(site);
        }
        let Some(last) = node.branches.len().checked_sub(1) else {
            return self.next_iteration(site);
        };
        let output = passed(node.end_of_lane(step, last)?)?;
        // An empty id is the end of the iteration, so the steps in it are in scope.
        let inside = step.work.inner_path(&site.path(), last, "");
        let named = Named::by(|name| condition.when.uses(name));
        let scope = self.scope(&inside, &output, None, named, moment);
        let rounds = node.branches.len();
        match condition.when.holds(&scope) {
            Ok(holds) if holds != condition.again_if => Some(self.completed(site, output)),
            Ok(_) if rounds < condition.rounds_max => self.next_iteration(site),
            Ok(_) => {
                let error = format!("`when` asks for more than max_iterations = {rounds}");
                let failure = AttemptFailure::new(ErrorKind::Limit, error);
                Some(self.failed_finally(site, &failure))
            }
            Err(error) => {
                let failure = AttemptFailure::not_evaluated("when: ", &error);
                Some(self.failed_finally(site, &failure))
            }
        }
    }

    /// After the first failure, cancels the other lanes, then fails the container.
    fn next_after_failure(&self, site: &Site<'_>) -> Option<Fact> {
        let Site { step, node, .. } = *site;
        let Settled::Failed { error, class, step_id, .. } = node.first_failure(step)? else {
            return None;
        };
        Some(next_cancelled_in(step, node, &site.place).unwrap_or_else(|| {
            let (message, step_id) = (error.to_string(), Some(step_id));
            let failure = AttemptFailure { message, class, retry_after_ms: None, step_id };
            self.failed_finally(site, &failure)
        }))
    }

    fn next_of_lanes(&self, site: &Site<'_>) -> Option<Fact> {
        self.next_after_failure(site).or_else(|| self.next_in_lanes(site))
    }

    fn next_in_lanes(&self, site: &Site<'_>) -> Option<Fact> {
        let Site { step, node, .. } = *site;
        node.live_lanes().find_map(|(lane, sequence)| {
            let branch = step.work.branch_of(lane)?;
            self.next_in(&branch.steps, sequence, Some(site.within(lane)), site.moment)
        })
    }

    /// Returns the first fact of the next iteration.
    fn next_iteration(&self, site: &Site<'_>) -> Option<Fact> {
        let Site { step, node, .. } = *site;
        let lane = node.branches.len();
        let first = step.work.branch_of(lane)?.steps.first()?;
        let place = Place::of(first, Some(site.within(lane)));
        self.begin(first, node.next_iteration_data()?, place, site.moment)
    }
}

fn passed(settled: Settled) -> Option<Arc<Value>> {
    match settled {
        Settled::Passed { output, .. } => Some(output),
        Settled::Failed { .. } => None,
    }
}
