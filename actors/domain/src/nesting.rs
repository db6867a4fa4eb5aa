//! Nesting depth of values, and its limit.
//!
//! All values have one limit, far below that of JSON parsers: a recorded value can be written
//! into larger documents (a row, an answer, a trace) and read back.

use std::fmt;

use serde_json::{Map, Value};

use crate::expression::{index_step, joined, key_step, shortened};

/// Maximum nesting of arrays and objects in a value. JSON parsers commonly reject more than 128
/// levels, and answers wrap a value in a few more.
pub const VALUE_DEPTH_MAX: usize = 100;

/// Characters of a place that an error text shows.
const PLACE_CHARS_SHOWN: usize = 80;

/// A value is nested too deep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooDeep {
    pub depth_max: usize,
    /// Path of the place, relative to the value: `a.b[2]`.
    pub place: String,
}

impl fmt::Display for TooDeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { depth_max, place } = self;
        write!(f, "nested deeper than {depth_max} levels, at {place}")
    }
}

/// Checks that a value is nested at most `depth_max` levels deep. Recurses no deeper than that.
pub fn check_depth(value: &Value, depth_max: usize) -> Result<(), TooDeep> {
    refused(place_below(value, depth_max), depth_max)
}

/// Checks the depth of an object, as [`check_depth`] does.
pub fn check_members_depth(members: &Map<String, Value>, depth_max: usize) -> Result<(), TooDeep> {
    refused(place_in_members(members, depth_max), depth_max)
}

fn refused(place: Option<String>, depth_max: usize) -> Result<(), TooDeep> {
    match place {
        None => Ok(()),
        Some(place) => Err(TooDeep { depth_max, place: shortened(&place, PLACE_CHARS_SHOWN) }),
    }
}

/// Returns the place of the first value that is nested more than `levels` deep.
fn place_below(value: &Value, levels: usize) -> Option<String> {
    match value {
        Value::Array(_) | Value::Object(_) if levels == 0 => Some(String::new()),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            place_below(item, levels - 1).map(|rest| joined(&index_step(index), &rest))
        }),
        Value::Object(members) => place_in_members(members, levels),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn place_in_members(members: &Map<String, Value>, levels: usize) -> Option<String> {
    let Some(levels) = levels.checked_sub(1) else { return Some(String::new()) };
    members.iter().find_map(|(key, member)| {
        place_below(member, levels).map(|rest| joined(&key_step(key), &rest))
    })
}

/// Returns the nesting depth: 0 for scalars.
pub fn depth_of(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth_of).max(),
        Value::Object(members) => members.values().map(depth_of).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + deepest.unwrap_or(0)
}

/// Returns the index of the first bracket that exceeds the depth, in text that may be JSON.
pub fn depth_exceeded_at(text: &[u8], depth_max: usize) -> Option<usize> {
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (index, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > depth_max {
            return Some(index);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, level| match level % 2 {
            0 => json!([inner]),
            _ => json!({ "a": inner, "b": [] }),
        })
    }

    #[test]
    fn a_value_is_refused_one_level_beyond_the_limit() {
        for levels in [0, 1, 2, 7, 100] {
            let value = nested(levels);
            assert_eq!(depth_of(&value), levels);
            assert_eq!(check_depth(&value, levels), Ok(()), "{levels}");
            let text = value.to_string();
            assert_eq!(depth_exceeded_at(text.as_bytes(), levels), None, "{text}");
            let Some(below) = levels.checked_sub(1) else { continue };
            let refused = check_depth(&value, below).unwrap_err();
            assert_eq!(refused.depth_max, below);
            let at = depth_exceeded_at(text.as_bytes(), below).unwrap();
            assert!(text.as_bytes()[at] == b'[' || text.as_bytes()[at] == b'{', "{text} at {at}");
        }
    }

    #[test]
    fn the_place_is_named() {
        for (value, depth_max, place) in [
            (json!({ "a": 1, "b": [{ "c": [] }] }), 3, "b[0].c"),
            (json!({ "my key": { "c": {} } }), 2, "['my key'].c"),
            (json!([[1], [2, [3]]]), 2, "[1][1]"),
            (json!([]), 0, ""),
        ] {
            let refused = check_depth(&value, depth_max).unwrap_err();
            assert_eq!(refused.place, place, "{value}");
        }
        let long = check_depth(&nested(100), 99).unwrap_err().to_string();
        assert!(long.chars().count() < 140, "{long}");
        assert!(long.starts_with("nested deeper than 99 levels, at a[0].a[0]"), "{long}");
        let members = json!({ "a": {} });
        let members = members.as_object().unwrap();
        assert_eq!(check_members_depth(members, 2), Ok(()));
        assert_eq!(check_members_depth(members, 1).unwrap_err().place, "a");
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        let text = json!({ "a": "[[[\"[[\\" }).to_string();
        assert_eq!(depth_exceeded_at(text.as_bytes(), 1), None);
    }
}
