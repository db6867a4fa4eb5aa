//! Example values of schemas: those of their authors, else generated ones.

use greenroom_actors::domain::schema::Schema;
use serde_json::{Map, Value};

use crate::sample::sample;

/// Returns a value that matches the schema: the first of its examples and its default that does,
/// else a generated one with the required properties. An empty object if there is none.
pub fn example_of(schema: &Value) -> Value {
    let nothing = || Value::Object(Map::new());
    let Ok(checker) = Schema::compile(schema) else { return nothing() };
    let fits = |value: &Value| checker.check(value).is_ok();
    let given = schema.get("examples").and_then(Value::as_array).into_iter().flatten();
    let given = given.chain(schema.get("default"));
    if let Some(value) = given.into_iter().find(|value| fits(value)) {
        return value.clone();
    }
    let hinted = with_hints(schema);
    let made = [without_optional(&hinted), hinted, schema.clone()];
    made.iter().filter_map(|schema| sample(schema).ok()).find(fits).unwrap_or_else(nothing)
}

/// Restricts each property with an example or a default to that value.
fn with_hints(schema: &Value) -> Value {
    let mut hinted = schema.clone();
    let properties = hinted.get_mut("properties").and_then(Value::as_object_mut);
    for property in properties.into_iter().flat_map(Map::values_mut) {
        let example = property.get("examples").and_then(|examples| examples.get(0));
        let hint = example.or_else(|| property.get("default")).cloned();
        if let (Some(hint), Some(keywords)) = (hint, property.as_object_mut()) {
            keywords.insert("const".to_owned(), hint);
        }
    }
    hinted
}

/// Removes the properties that are not required.
fn without_optional(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| required.iter().any(|required| required == name));
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_example_matches_its_schema_and_prefers_the_authors() {
        let topics = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
        let rows = [
            (json!({}), json!("sample")),
            (json!({ "type": "object" }), json!({})),
            (
                json!({ "type": "object", "required": ["topics"],
                        "properties": { "topics": topics, "note": { "type": "string" } } }),
                json!({ "topics": ["sample"] }),
            ),
            (
                json!({ "type": "object", "examples": [{ "n": "no" }, { "n": 900 }],
                        "properties": { "n": { "type": "number" } } }),
                json!({ "n": 900 }),
            ),
            (
                json!({ "type": "object", "required": ["who", "n", "at"], "properties": {
                    "who": { "type": "string", "examples": ["Ada"] },
                    "n": { "type": "integer", "default": 3, "minimum": 2 },
                    "at": { "type": "string", "format": "date-time" } } }),
                json!({ "who": "Ada", "n": 3, "at": "2025-01-01T12:00:00Z" }),
            ),
            (
                // an example that does not match is ignored
                json!({ "type": "object", "required": ["code"], "properties": {
                    "code": { "type": "string", "minLength": 8, "examples": ["short"] } } }),
                json!({ "code": "samplesa" }),
            ),
            (json!({ "type": "integer", "minimum": 4 }), json!(4)),
            (json!({ "type": "string", "pattern": "^[A-Z]{3}$" }), json!("AAA")),
            (json!({ "not": {} }), json!({})),
        ];
        for (schema, expected) in rows {
            assert_eq!(example_of(&schema), expected, "{schema}");
        }
    }
}
