//! Extracts and validates JSON objects in models' answers.

use serde_json::Value;

use crate::domain::foreign;
use crate::domain::nesting::check_depth;
use crate::domain::schema::Schema;

const FENCE: &str = "```";

/// Most violations of a schema that a text names.
const VIOLATIONS_MAX: usize = 5;

/// Reason for rejecting an answer as the requested object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unfit {
    /// Text for the model, which is asked again with it, and for callers.
    pub(super) detail: String,
    /// True if the check itself is too costly, so that another answer would not help.
    pub(super) is_final: bool,
}

/// Reads the answer as JSON that meets the schema.
pub(super) fn read_object(text: &str, schema: &Schema, depth_max: usize) -> Result<Value, Unfit> {
    let unfit = |detail| Unfit { detail, is_final: false };
    let object = parse(text).map_err(unfit)?;
    check_depth(&object, depth_max)
        .map_err(|too_deep| unfit(format!("the answer is {too_deep}")))?;
    // all of them: the model may have only one more attempt
    let found = schema.violations(&object, VIOLATIONS_MAX);
    if found.is_empty() {
        return Ok(object);
    }
    let detail = found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Err(Unfit { detail, is_final: found.iter().any(|violation| violation.is_too_costly) })
}

/// Parses JSON, bare or inside a fence: many models add one despite instructions.
fn parse(text: &str) -> Result<Value, String> {
    let refused = match foreign::from_str(text.trim()) {
        Ok(object) => return Ok(object),
        Err(error) => format!("the answer is not JSON: {error}"),
    };
    fenced(text).and_then(|inner| foreign::from_str(inner).ok()).ok_or(refused)
}

/// Returns the text between the first fence, with or without a language, and the next.
fn fenced(text: &str) -> Option<&str> {
    let (_, opened) = text.split_once(FENCE)?;
    let (inner, _) = opened.split_once(FENCE)?;
    Some(inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_read_with_and_without_a_fence() {
        let schema = Schema::compile(&json!({ "type": ["object", "array"] })).unwrap();
        let cases = [
            ("plain", r#" {"a":1} "#, json!({ "a": 1 })),
            ("an array", "[1]", json!([1])),
            ("fenced", "```json\n{\"a\":1}\n```", json!({ "a": 1 })),
            ("fenced without a language", "```\n{\"a\":1}\n```\n", json!({ "a": 1 })),
            ("fenced in prose", "Here it is:\n```json\n{\"a\":1}\n```\nDone.", json!({ "a": 1 })),
            ("a fence inside a text", r#"{"a":"```"}"#, json!({ "a": "```" })),
        ];
        for (name, text, expected) in cases {
            assert_eq!(read_object(text, &schema, 2), Ok(expected), "{name}");
        }
    }

    #[test]
    fn nonconforming_json_is_refused_with_the_reason() {
        let schema = Schema::compile(&json!({
            "type": "object",
            "required": ["a"],
            "properties": { "b": { "type": "string" } },
        }));
        let schema = schema.unwrap();
        let cases = [
            ("prose", "no idea", "the answer is not JSON"),
            ("an open fence", "```json\n{\"a\":1}", "the answer is not JSON"),
            ("another type", "[]", "object"),
            ("a missing key", "{}", "a"),
            ("two problems", r#"{"b":1}"#, "a: missing; b: 1 is not of type"),
            ("too deep", r#"{"a":[[1]]}"#, "nested deeper than 2 levels, at a[0]"),
        ];
        for (name, text, part) in cases {
            let refused = read_object(text, &schema, 2).unwrap_err().detail;
            assert!(refused.contains(part), "{name}: {refused}");
        }
    }
}
