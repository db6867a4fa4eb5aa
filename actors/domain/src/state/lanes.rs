//! Index of a container's lanes: the live ones, the first ends, and the newest outputs. It is
//! updated with each fact, so that a decision costs time for live lanes only, not for thousands of
//! ended ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::plan::Step;
use crate::state::node::{Node, Phase, Sequence, Settled};

/// Index of a container's lanes. Not stored; `index` derives it from the nodes when a snapshot is
/// loaded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lanes {
    /// Lanes that have not ended, in order.
    pub live: Vec<usize>,
    /// The lane that failed first.
    pub first_failed: Option<usize>,
    /// The lane that completed first.
    pub first_passed: Option<usize>,
    /// The newest iterations with an output of each inner step. Empty if the container does not
    /// iterate.
    newest: BTreeMap<Arc<str>, Newest>,
}

/// The newest iteration with an output of a step, and the one before it, which a loop needs while
/// an iteration runs.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Newest {
    lane: usize,
    before: Option<usize>,
}

impl Newest {
    fn add(&mut self, lane: usize) {
        if lane > self.lane {
            *self = Self { lane, before: Some(self.lane) };
        } else if lane < self.lane {
            self.before = self.before.max(Some(lane));
        }
    }

    fn below(self, count: usize) -> Option<usize> {
        if self.lane < count { Some(self.lane) } else { self.before.filter(|it| *it < count) }
    }
}

impl Lanes {
    pub(super) fn all(count: usize) -> Self {
        Self { live: (0..count).collect(), ..Self::default() }
    }

    pub(super) fn one(index: usize) -> Self {
        Self { live: vec![index], ..Self::default() }
    }

    /// Updates the index after a fact about a node in a lane.
    pub(super) fn note(&mut self, index: usize, sequence: &Sequence, steps: &[Step]) {
        if !sequence.has_ended(steps) {
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

    /// Adds an output of a step in an iteration.
    pub(super) fn note_output(&mut self, index: usize, step_id: &Arc<str>) {
        match self.newest.get_mut(step_id) {
            Some(newest) => newest.add(index),
            None => {
                let newest = Newest { lane: index, before: None };
                self.newest.insert(Arc::clone(step_id), newest);
            }
        }
    }

    /// Returns the iterations among the first `count` with the newest output of any step, in order.
    pub(crate) fn with_newest(&self, count: usize) -> Vec<usize> {
        let mut lanes: Vec<usize> =
            self.newest.values().filter_map(|newest| newest.below(count)).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }
}

/// Restores the fields of a sequence that a snapshot omits: the inputs of steps, and the lanes of
/// containers.
pub(super) fn index(sequence: &mut Sequence, data: Arc<Value>, steps: &[Step]) {
    sequence.data = data;
    for (index, step) in steps.iter().enumerate().take(sequence.nodes.len()) {
        let input = sequence.data_before(index);
        if let Some(node) = sequence.nodes.get_mut(index) {
            node.input = input;
            index_in(step, node);
        }
    }
}

fn index_in(step: &Step, node: &mut Node) {
    for lane in 0..node.branches.len() {
        let data = match step.work.is_iterated() {
            true => node.iteration_data(lane),
            false => Some(Arc::clone(&node.input)),
        };
        let branch = step.work.branch_of(lane);
        if let (Some(data), Some(branch), Some(inner)) = (data, branch, node.branches.get_mut(lane))
        {
            index(inner, data, &branch.steps);
        }
    }
    let is_open = node.phase == Phase::Running && step.work.container().is_some();
    let has_lanes = is_open || !node.branches.is_empty();
    node.lanes = has_lanes.then(|| Box::new(lanes_of(step, node)));
}

fn lanes_of(step: &Step, node: &Node) -> Lanes {
    let mut lanes = Lanes::default();
    let (mut failed_at, mut passed_at) = (u64::MAX, u64::MAX);
    for (lane, sequence) in node.branches.iter().enumerate() {
        let Some(branch) = step.work.branch_of(lane) else { continue };
        let is_chosen = node.chosen.is_none_or(|chosen| chosen == lane);
        if is_chosen && !sequence.has_ended(&branch.steps) {
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
        if step.work.is_iterated() {
            each_output(&branch.steps, sequence, &mut |id| lanes.note_output(lane, id));
        }
    }
    lanes
}

/// Visits the ids of steps with an output, including inner ones.
fn each_output(steps: &[Step], sequence: &Sequence, visit: &mut dyn FnMut(&Arc<str>)) {
    for (step, node) in steps.iter().zip(&sequence.nodes) {
        if node.has_own_output() {
            visit(&step.id);
        }
        if step.work.is_iterated() {
            let inside = node.lanes.iter().flat_map(|lanes| lanes.newest.keys());
            inside.for_each(&mut *visit);
            continue;
        }
        for (branch, inner) in step.work.branches().iter().zip(&node.branches) {
            each_output(&branch.steps, inner, visit);
        }
    }
}
