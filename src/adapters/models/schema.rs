//! JSON Schemas as providers accept them.

use serde_json::{Map, Value, json};

/// Nesting that strict mode accepts.
const STRICT_DEPTH_MAX: usize = 5;

/// Keywords that strict mode accepts.
const STRICT_KEYWORDS: [&str; 18] = [
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "description",
    "title",
    "anyOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "pattern",
    "minItems",
    "maxItems",
];

/// Returns true if the schema itself has `type: object`, without alternatives.
pub(super) fn is_of_object(schema: &Value) -> bool {
    let is_plain = |key| schema.get(key).is_none();
    schema["type"] == "object" && is_plain("anyOf") && is_plain("oneOf") && is_plain("allOf")
}

/// Returns true if OpenAI's strict mode accepts the schema unchanged. Others are sent unchanged
/// too, but without strict mode: rewriting a schema would change what the caller asked for.
pub(super) fn is_strict(schema: &Value) -> bool {
    is_of_object(schema) && is_strict_within(schema, STRICT_DEPTH_MAX)
}

fn is_strict_within(schema: &Value, depth: usize) -> bool {
    let Value::Object(keywords) = schema else { return false };
    let is_known = |key: &String| STRICT_KEYWORDS.contains(&key.as_str());
    if depth == 0 || !keywords.keys().all(is_known) {
        return false;
    }
    let inner = |value: &Value| is_strict_within(value, depth - 1);
    let items = keywords.get("items").is_none_or(inner);
    let any_of = match keywords.get("anyOf") {
        None => true,
        Some(Value::Array(cases)) => cases.iter().all(inner),
        Some(_) => false,
    };
    items && any_of && (!names_object(keywords) || has_strict_members(keywords, inner))
}

fn names_object(keywords: &Map<String, Value>) -> bool {
    let of_type = match keywords.get("type") {
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        named => named.is_some_and(|name| name == "object"),
    };
    of_type || keywords.contains_key("properties")
}

/// Returns true if all members are named, required and strict themselves, and no others are
/// allowed.
fn has_strict_members(keywords: &Map<String, Value>, inner: impl Fn(&Value) -> bool) -> bool {
    let Some(Value::Object(members)) = keywords.get("properties") else { return false };
    let Some(Value::Array(required)) = keywords.get("required") else { return members.is_empty() };
    keywords.get("additionalProperties") == Some(&Value::Bool(false))
        && members.keys().all(|name| required.iter().any(|required| required == name))
        && members.values().all(inner)
}

/// Returns a tool's parameters as every provider accepts them: an object with `properties`.
pub(super) fn parameters(schema: &Value) -> Value {
    let Value::Object(keywords) = schema else { return empty_object() };
    let mut keywords = keywords.clone();
    keywords.entry("type").or_insert_with(|| Value::from("object"));
    if !["properties", "$ref", "anyOf", "oneOf", "allOf"]
        .iter()
        .any(|it| keywords.contains_key(*it))
    {
        keywords.insert("properties".to_owned(), Value::Object(Map::new()));
    }
    Value::Object(keywords)
}

fn empty_object() -> Value {
    json!({ "type": "object", "properties": {} })
}

/// Returns a prompt that asks for JSON, for servers that accept no schema.
pub(super) fn instruction(schema: &Value) -> String {
    format!(
        "Answer with one JSON value that meets the JSON Schema below. Write nothing else: no \
         explanation, no code fence.\n\n{schema}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strict_mode_is_requested_if_the_schema_fits() {
        let closed = |members: Value, required: Value| {
            json!({ "type": "object", "properties": members, "required": required,
                    "additionalProperties": false })
        };
        let text = || json!({ "type": "string" });
        let rows = [
            (closed(json!({ "a": text() }), json!(["a"])), true),
            (closed(json!({ "a": text(), "b": text() }), json!(["a"])), false),
            (json!({ "type": "object", "properties": { "a": text() }, "required": ["a"] }), false),
            (
                closed(json!({ "a": closed(json!({ "b": text() }), json!([])) }), json!(["a"])),
                false,
            ),
            (closed(json!({ "a": { "type": "array", "items": text() } }), json!(["a"])), true),
            (closed(json!({ "a": { "anyOf": [text(), { "type": "null" }] } }), json!(["a"])), true),
            (closed(json!({ "a": { "type": "string", "minLength": 1 } }), json!(["a"])), false),
            (closed(json!({ "a": { "$ref": "#/$defs/a" } }), json!(["a"])), false),
            (closed(json!({ "a": true }), json!(["a"])), false),
            (json!({ "type": "array", "items": text() }), false),
            (json!(true), false),
        ];
        for (schema, expected) in rows {
            assert_eq!(is_strict(&schema), expected, "for {schema}");
        }
    }

    #[test]
    fn deep_schemas_are_not_strict() {
        let nest = |inner: Value| {
            json!({ "type": "object", "properties": { "a": inner }, "required": ["a"],
                    "additionalProperties": false })
        };
        let deep = (0..200).fold(json!({ "type": "string" }), |schema, _| nest(schema));
        assert!(!is_strict(&deep));
    }

    #[test]
    fn parameters_are_always_of_an_object() {
        for (given, expected) in [
            (json!(true), empty_object()),
            (json!({}), empty_object()),
            (json!({ "type": "object" }), empty_object()),
            (
                json!({ "type": "object", "properties": { "n": {} }, "required": ["n"] }),
                json!({ "type": "object", "properties": { "n": {} }, "required": ["n"] }),
            ),
            (json!({ "anyOf": [] }), json!({ "anyOf": [], "type": "object" })),
        ] {
            assert_eq!(parameters(&given), expected, "for {given}");
        }
    }
}
