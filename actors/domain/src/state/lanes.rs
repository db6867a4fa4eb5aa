//! Which lanes of a container are alive, and where its steps gave something last: known as facts
//! are taken in, so that a container with thousands of lanes costs what its live ones cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::plan::{Step, WorkClass};
use crate::state::node::{Node, Phase, Sequence, Settled};

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
    /// The last iterations in which each of the steps inside gave an output. Of what runs no block
    /// many times, nothing.
    newest: BTreeMap<Arc<str>, Newest>,
}

/// The last iteration with an output of a step, and the one before it: a loop asks for the rounds
/// before the one that is at work.
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

    /// Notes that a step gave an output in an iteration.
    pub(super) fn note_output(&mut self, index: usize, step_id: &Arc<str>) {
        match self.newest.get_mut(step_id) {
            Some(newest) => newest.add(index),
            None => {
                let newest = Newest { lane: index, before: None };
                self.newest.insert(Arc::clone(step_id), newest);
            }
        }
    }

    /// The iterations among the first `count` that have the newest output of some step, in order.
    pub(crate) fn with_newest(&self, count: usize) -> Vec<usize> {
        let mut lanes: Vec<usize> =
            self.newest.values().filter_map(|newest| newest.below(count)).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }
}

/// Finds what a kept state leaves out of a sequence: what goes into each step, and the lanes of
/// every container.
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
    let is_open = node.phase == Phase::Running && step.work.class() == WorkClass::Container;
    let has_lanes = is_open || !node.branches.is_empty();
    node.lanes = has_lanes.then(|| Box::new(lanes_of(step, node)));
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
        if step.work.is_iterated() {
            each_output(&branch.steps, sequence, &mut |id| lanes.note_output(lane, id));
        }
    }
    lanes
}

/// Visits the ids of steps that gave an output, those inside others included.
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
