//! How many bytes of memory values take: an estimate that follows how the collections grow.
//!
//! A value in memory is many times its JSON where it has many small parts: 1,000,000 bytes of
//! `{"k":1},` are 125,000 objects and take 61 MB. `tests::the_estimate_is_near_what_is_allocated`
//! compares the figures with what an allocator that counts was asked for.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::fact::Start;
use crate::state::{Node, Phase, Sequence};

/// What an allocation takes beside what was asked for: the allocator's own words and rounding.
const ALLOCATION_BYTES: u64 = 16;
/// A value where its container holds it: 72 bytes with ordered maps.
const VALUE_BYTES: u64 = size_of::<Value>() as u64;
/// A member of an object: its hash, its key and its value.
const MEMBER_BYTES: u64 = 8 + size_of::<String>() as u64 + VALUE_BYTES;
/// A place in the table that finds members: a number, and the byte that says what is there.
const BUCKET_BYTES: u64 = 9;
/// Fewest items that a list has room for, once it has any.
const ITEMS_MIN: u64 = 4;

/// A fact that changes a node: half of a node with its names and times, which two facts or more are
/// about.
pub(crate) const FACT_BYTES: u64 = 320;
/// An execution before its values: its actor with a mailbox, its state, its names.
pub(crate) const EXECUTION_BYTES: u64 = 8 * 1024;

/// Estimates the memory that a value takes.
pub fn memory_bytes(value: &Value) -> u64 {
    VALUE_BYTES + held_by(value)
}

/// What a value holds beside itself.
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
    // The table keeps an eighth of its places free; a small one keeps one.
    let buckets = if count < 4 { 4 } else { (count * 8 / 7 + 1).next_power_of_two() };
    let room = if buckets <= 8 { buckets - 1 } else { buckets / 8 * 7 };
    let own = buckets * BUCKET_BYTES + room * MEMBER_BYTES + 2 * ALLOCATION_BYTES;
    own + members.iter().map(|(key, member)| text_bytes(key.len()) + held_by(member)).sum::<u64>()
}

fn text_bytes(len: usize) -> u64 {
    if len == 0 { 0 } else { len as u64 + ALLOCATION_BYTES }
}

/// What an execution takes that is asked for with this.
pub fn of_request(input: &Value, context: &Map<String, Value>) -> u64 {
    EXECUTION_BYTES + memory_bytes(input) + VALUE_BYTES + members_bytes(context)
}

/// What an execution takes that begins so, before its first step.
pub fn of_start(start: &Start) -> u64 {
    let replayed = start.replayed.as_ref();
    let nodes = replayed.iter().flat_map(|replayed| &replayed.nodes).map(of_node).sum::<u64>();
    let answer = replayed.and_then(|replayed| replayed.answer.as_ref());
    EXECUTION_BYTES
        + memory_bytes(&start.input)
        + memory_bytes(&start.context)
        + answer.map_or(0, |answer| memory_bytes(answer))
        + nodes
}

/// What a node takes, with those inside it. What goes into it is what came before it.
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
        + node.child.as_ref().map_or(0, |child| of(&child.input))
        + node.items.iter().map(of).sum::<u64>()
        + node.branches.iter().map(inside).sum::<u64>()
}

#[cfg(test)]
mod tests;
