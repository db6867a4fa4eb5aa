//! Estimates of the memory that values take, modelled on how the collections grow.
//!
//! A value with many small parts takes many times its JSON: 1,000,000 bytes of `{"k":1},` are
//! 125,000 objects and take 61 MB. `tests::the_estimate_matches_measured_allocations` compares the
//! estimates with the figures of a counting allocator.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::fact::Start;
use crate::state::{Node, Phase, Sequence};

/// Overhead of an allocation: the allocator's header and rounding.
const ALLOCATION_BYTES: u64 = 16;
/// Size of a value inside its container: 72 bytes with ordered maps.
const VALUE_BYTES: u64 = size_of::<Value>() as u64;
/// Size of an object's member: its hash, its key and its value.
const MEMBER_BYTES: u64 = 8 + size_of::<String>() as u64 + VALUE_BYTES;
/// Size of a slot in the index of members: a number and its control byte.
const BUCKET_BYTES: u64 = 9;
/// Smallest capacity of a list that is not empty.
const ITEMS_MIN: u64 = 4;

/// Memory of a fact about a node: half of a node with its names and times, since every node has at
/// least two facts.
pub(crate) const FACT_BYTES: u64 = 320;
/// Memory of an execution without its values: actor, mailbox, state, names.
pub(crate) const EXECUTION_BYTES: u64 = 8 * 1024;

/// Estimates the memory of a value.
pub fn memory_bytes(value: &Value) -> u64 {
    VALUE_BYTES + held_by(value)
}

/// Estimates the memory of a value's contents, without the value itself.
fn held_by(value: &Value) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text_bytes(text.len()),
        Value::Array(items) if items.is_empty() => 0,
        Value::Array(items) => {
            let room = (items.len() as u64).max(ITEMS_MIN).next_power_of_two();
            room * VALUE_BYTES + ALLOCATION_BYTES + items.iter().map(held_by).sum::<u64>()
        }
        Value::Object(members) => members_bytes(members),
    }
}

fn members_bytes(members: &Map<String, Value>) -> u64 {
    if members.is_empty() {
        return 0;
    }
    let count = members.len() as u64;
    // The index keeps an eighth of its slots free, a small one keeps one.
    let buckets = if count < 4 { 4 } else { (count * 8 / 7 + 1).next_power_of_two() };
    let room = if buckets <= 8 { buckets - 1 } else { buckets / 8 * 7 };
    let own = buckets * BUCKET_BYTES + room * MEMBER_BYTES + 2 * ALLOCATION_BYTES;
    own + members.iter().map(|(key, member)| text_bytes(key.len()) + held_by(member)).sum::<u64>()
}

fn text_bytes(len: usize) -> u64 {
    if len == 0 { 0 } else { len as u64 + ALLOCATION_BYTES }
}

/// Estimates the memory of an execution from its request.
pub fn of_request(input: &Value, context: &Map<String, Value>) -> u64 {
    EXECUTION_BYTES + memory_bytes(input) + VALUE_BYTES + members_bytes(context)
}

/// Estimates the memory of an execution from its start, before its first step.
pub fn of_start(start: &Start) -> u64 {
    let nodes = start.copied().iter().map(of_node).sum::<u64>();
    let answer = start.replayed.as_ref().and_then(|replayed| replayed.answer.as_ref());
    let cause = start.reversal.as_ref().map(|reversal| &reversal.cause);
    EXECUTION_BYTES
        + memory_bytes(&start.input)
        + memory_bytes(&start.context)
        + answer.map_or(0, |answer| memory_bytes(answer))
        + cause.map_or(0, |cause| memory_bytes(cause))
        + nodes
}

/// Estimates the memory of a node and the nodes inside it. Its input is not counted, because it is
/// the output of the node before it.
fn of_node(node: &Node) -> u64 {
    let of = |value: &Arc<Value>| memory_bytes(value);
    let given = match &node.phase {
        Phase::Completed { output } => of(output),
        Phase::Failed { output, .. } => output.as_ref().map_or(0, of),
        Phase::Waiting(wait) => wait.payload.as_ref().map_or(0, of),
        Phase::Ready
        | Phase::Running
        | Phase::Sleeping { .. }
        | Phase::Skipped
        | Phase::Cancelled => 0,
    };
    let inside = |sequence: &Sequence| sequence.nodes.iter().map(of_node).sum::<u64>();
    2 * FACT_BYTES
        + given
        + node.resume.as_ref().map_or(0, of)
        + node.noted.as_ref().map_or(0, of)
        + node.questions.as_ref().map_or(0, |questions| {
            let given = questions.before.iter().chain(&questions.answers);
            questions.newest.bytes() + given.map(|given| of(&given.data)).sum::<u64>()
        })
        + node.child.as_ref().map_or(0, |child| of(&child.input))
        + node.items.iter().map(of).sum::<u64>()
        + node.branches.iter().map(inside).sum::<u64>()
}

#[cfg(test)]
mod tests;
