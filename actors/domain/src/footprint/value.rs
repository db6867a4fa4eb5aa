//! Estimates of the memory that values take, modelled on how the collections grow.
//!
//! A value with many small parts takes many times its JSON: 1,000,000 bytes of `{"k":1},` are
//! 125,000 objects and take 61 MB. `tests::the_estimate_matches_measured_allocations` compares the
//! estimates with the figures of a counting allocator.

use serde_json::{Map, Value};

/// Overhead of an allocation: the allocator's header and rounding.
const ALLOCATION_BYTES: u64 = 16;
/// Size of a value inside its container: 72 bytes with ordered maps.
pub(super) const VALUE_BYTES: u64 = size_of::<Value>() as u64;
/// Size of an object's member: its hash, its key and its value.
const MEMBER_BYTES: u64 = 8 + size_of::<String>() as u64 + VALUE_BYTES;
/// Size of a slot in the index of members: a number and its control byte.
const BUCKET_BYTES: u64 = 9;
/// Smallest capacity of a list that is not empty.
const ITEMS_MIN: u64 = 4;

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

pub(super) fn members_bytes(members: &Map<String, Value>) -> u64 {
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

#[cfg(test)]
mod tests;
