//! Which lanes of a container are alive: known as facts are taken in, so that a container with
//! thousands of them costs what its live ones cost.

use crate::domain::plan::{Plan, Step};
use crate::domain::state::node::{Node, Phase, Sequence, Settled};

/// What is known of a container's lanes without looking at each of them. Not stored: what the
/// nodes themselves say, found again by `index` when a kept state is read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lanes {
    /// Those that have not ended, in order.
    pub live: Vec<usize>,
    /// The first of those that failed.
    pub first_failed: Option<usize>,
    /// The first of those that completed.
    pub first_passed: Option<usize>,
}

impl Lanes {
    pub(super) fn all(count: usize) -> Self {
        Self { live: (0..count).collect(), ..Self::default() }
    }

    pub(super) fn one(index: usize) -> Self {
        Self { live: vec![index], ..Self::default() }
    }

    /// Notes how a lane stands after a fact about something in it.
    pub(super) fn note(&mut self, index: usize, sequence: &Sequence, steps: &[Step]) {
        if !sequence.is_over(steps) {
            return;
        }
        if let Ok(at) = self.live.binary_search(&index) {
            self.live.remove(at);
        }
        match sequence.settled(steps) {
            Some(Settled::Passed { .. }) => self.first_passed = self.first_passed.or(Some(index)),
            Some(Settled::Failed { .. }) => self.first_failed = self.first_failed.or(Some(index)),
            None => {}
        }
    }
}

/// Finds the lanes of every container in a state that was kept.
pub(super) fn index(root: &mut Sequence, plan: &Plan) {
    index_in(root, &plan.steps);
}

fn index_in(sequence: &mut Sequence, steps: &[Step]) {
    for (step, node) in steps.iter().zip(&mut sequence.nodes) {
        for (lane, inner) in node.branches.iter_mut().enumerate() {
            if let Some(branch) = step.work.branch_of(lane) {
                index_in(inner, &branch.steps);
            }
        }
        let is_open = node.phase == Phase::Running && step.work.is_container();
        let has_lanes = is_open || !node.branches.is_empty();
        node.lanes = has_lanes.then(|| Box::new(lanes_of(step, node)));
    }
}

fn lanes_of(step: &Step, node: &Node) -> Lanes {
    let mut lanes = Lanes::default();
    let (mut failed_at, mut passed_at) = (u64::MAX, u64::MAX);
    for (lane, sequence) in node.branches.iter().enumerate() {
        let Some(branch) = step.work.branch_of(lane) else { continue };
        let is_chosen = node.chosen.is_none_or(|chosen| chosen == lane);
        if is_chosen && !sequence.is_over(&branch.steps) {
            lanes.live.push(lane);
        }
        match sequence.settled(&branch.steps) {
            Some(Settled::Failed { order, .. }) if order < failed_at => {
                (failed_at, lanes.first_failed) = (order, Some(lane));
            }
            Some(Settled::Passed { order, .. }) if order < passed_at => {
                (passed_at, lanes.first_passed) = (order, Some(lane));
            }
            Some(Settled::Failed { .. } | Settled::Passed { .. }) | None => {}
        }
    }
    lanes
}
