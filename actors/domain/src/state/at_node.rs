//! Access to the node of a fact.

use std::sync::Arc;

use crate::ids::PathHead;
use crate::plan::Step;
use crate::state::node::{Node, Sequence};
use crate::time::Timestamp;

/// Calls `act` with the node at a path, which is created if the fact is the first about it, and
/// updates the lanes of the containers around it. Returns the id of the step if it has an output.
pub(super) fn at_node<'p>(
    steps: &'p [Step],
    sequence: &mut Sequence,
    path: &str,
    at: Timestamp,
    act: &mut dyn FnMut(&Step, &mut Node),
) -> Option<Option<&'p Arc<str>>> {
    let PathHead { step_id, inner } = PathHead::of(path)?;
    let index = steps.iter().position(|step| &*step.id == step_id)?;
    let step = steps.get(index)?;
    if index == sequence.nodes.len() && inner.is_none() {
        let data = sequence.data_before(index);
        if index == 0 {
            // Saves memory with thousands of lanes of one step each.
            sequence.nodes.reserve_exact(steps.len());
        }
        sequence.nodes.push(Node::new(data, at));
    }
    let node = sequence.nodes.get_mut(index)?;
    let Some((lane, rest)) = inner else {
        act(step, node);
        return Some(node.has_own_output().then_some(&step.id));
    };
    let lane = step.work.lane_index(lane)?;
    let branch = step.work.branch_of(lane)?;
    if lane == node.branches.len() && step.work.is_iterated() {
        node.begin_iteration()?;
    }
    let sequence = node.branches.get_mut(lane)?;
    let output_of = at_node(&branch.steps, sequence, rest, at, act)?;
    if let Some(lanes) = &mut node.lanes {
        lanes.note(lane, sequence, &branch.steps);
        if step.work.is_iterated() {
            output_of.into_iter().for_each(|step_id| lanes.note_output(lane, step_id));
        }
    }
    Some(output_of)
}
