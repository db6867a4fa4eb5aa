//! Access to JSON fields of requests and answers.

use greenroom_actors::ports::model::Usage;
use serde::Serialize;
use serde_json::{Map, Value};

/// Sets a field if it has a value.
pub(super) fn set(fields: &mut Map<String, Value>, name: &str, value: Option<impl Serialize>) {
    if let Some(Ok(value)) = value.map(serde_json::to_value) {
        fields.insert(name.to_owned(), value);
    }
}

/// Returns a text member; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a count; 0 if there is none. Bounded, so that sums cannot overflow.
pub(super) fn count(object: &Value, pointer: &str) -> u64 {
    let found = object.pointer(pointer).and_then(Value::as_u64);
    found.unwrap_or(0).min(u64::from(u32::MAX))
}

/// Makes the usage of an answer; the total is the sum of prompt and completion.
pub(super) fn usage(prompt: u64, cached: u64, completion: u64, reasoning: u64) -> Usage {
    Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        cached_input_tokens: cached,
        reasoning_tokens: reasoning,
    }
}

/// Adds a message to those before it. Roles must alternate, so that messages of one role become
/// one; an empty message is left out.
pub(super) fn add_turn(
    turns: &mut Vec<(&'static str, Vec<Value>)>,
    role: &'static str,
    parts: Vec<Value>,
) {
    match turns.last_mut() {
        Some((newest, earlier)) if *newest == role => earlier.extend(parts),
        _ if parts.is_empty() => {}
        _ => turns.push((role, parts)),
    }
}
