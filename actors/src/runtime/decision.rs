//! Decisions of people about approvals of calls.

use serde::Deserialize;
use serde_json::{Value, json};

/// Place of the schema of the arguments in that of a decision.
const ARGUMENTS: &str = "/properties/input";

/// Decision about an approval.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decision {
    pub(super) approved: bool,
    #[serde(default)]
    pub(super) reason: Option<String>,
    /// New arguments of the call.
    #[serde(default)]
    pub(super) input: Option<Value>,
}

impl Decision {
    /// Reads an answer. The error shows the JSON that is expected.
    pub(super) fn read(data: &Value, is_editable: bool) -> Result<Self, String> {
        let expected = match is_editable {
            true => {
                r#"{"approved": true or false}, with "reason" (a text) and "input" (arguments) if needed"#
            }
            false => r#"{"approved": true or false}, with "reason" (a text) if needed"#,
        };
        let given = match data {
            Value::Object(_) => {
                return Self::deserialize(data)
                    .map_err(|error| format!("{error}; this approval takes {expected}"));
            }
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "an array",
        };
        Err(format!("this approval takes {expected}, not {given}"))
    }
}

/// Returns the schema of a decision; with that of the arguments, if people may change them.
pub(super) fn schema(is_editable: bool, arguments: Option<&Value>) -> Value {
    let mut properties = json!({
        "approved": { "type": "boolean" },
        "reason": { "type": "string" }
    });
    if is_editable {
        properties["input"] = match arguments {
            Some(arguments) => embedded(arguments),
            None => json!({ "type": "object" }),
        };
    }
    json!({
        "type": "object",
        "required": ["approved"],
        "properties": properties,
        "additionalProperties": false
    })
}

/// Returns a schema as the part of another one at [`ARGUMENTS`]. References to its own parts lead
/// there, unless it has an id, which they are relative to.
fn embedded(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if schema.get("$id").is_none() {
        move_references(&mut schema);
    }
    schema
}

fn move_references(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(move_references),
        Value::Object(members) => {
            for (key, member) in members {
                match (key.as_str(), member) {
                    ("$ref" | "$dynamicRef", Value::String(reference)) => {
                        let inside = reference.strip_prefix('#');
                        let pointer = inside.filter(|it| it.is_empty() || it.starts_with('/'));
                        if let Some(pointer) = pointer {
                            *reference = format!("#{ARGUMENTS}{pointer}");
                        }
                    }
                    // values, not schemas
                    ("const" | "enum" | "default" | "examples", _) => {}
                    (_, member) => move_references(member),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::schema::Schema;

    #[test]
    fn an_answer_that_is_no_decision_is_told_what_is_expected() {
        let named = "expected one of `approved`, `reason`, `input`";
        let takes = r#"this approval takes {"approved": true or false}, with "reason" (a text)"#;
        let rows = [
            (json!(null), false, format!("{takes} if needed, not null")),
            (json!(true), false, format!("{takes} if needed, not a boolean")),
            (
                json!("yes"),
                true,
                format!(r#"{takes} and "input" (arguments) if needed, not a text"#),
            ),
            (json!([1]), false, format!("{takes} if needed, not an array")),
            (json!({}), false, format!("missing field `approved`; {takes} if needed")),
            (
                json!({ "approved": "yes" }),
                false,
                format!("invalid type: string \"yes\", expected a boolean; {takes} if needed"),
            ),
            (
                json!({ "aproved": true }),
                false,
                format!("unknown field `aproved`, {named}; {takes} if needed"),
            ),
        ];
        for (data, is_editable, expected) in rows {
            assert_eq!(Decision::read(&data, is_editable).unwrap_err(), expected, "{data}");
        }
    }

    #[test]
    fn the_schema_of_a_decision_has_that_of_the_arguments() {
        let arguments = json!({
            "type": "object",
            "properties": { "amount": { "$ref": "#/$defs/amount", "default": { "$ref": "#/a" } } },
            "required": ["amount"],
            "$defs": { "amount": { "type": "integer" } }
        });
        let rows = [
            (json!({ "approved": true }), true),
            (json!({ "approved": true, "input": { "amount": 3 } }), true),
            (json!({ "approved": true, "input": { "amount": "3" } }), false),
            (json!({ "approved": true, "input": {} }), false),
            (json!({ "approved": true, "input": 3 }), false),
        ];
        let decision = schema(true, Some(&arguments));
        let amount =
            json!({ "$ref": "#/properties/input/$defs/amount", "default": { "$ref": "#/a" } });
        assert_eq!(decision["properties"]["input"]["properties"]["amount"], amount);
        let checker = Schema::compile(&decision).unwrap();
        for (answer, is_valid) in rows {
            assert_eq!(checker.check(&answer).is_ok(), is_valid, "{answer}");
        }
        let unknown = schema(true, None);
        assert_eq!(unknown["properties"]["input"], json!({ "type": "object" }));
        let plain = Schema::compile(&schema(false, None)).unwrap();
        assert!(plain.check(&json!({ "approved": true, "input": {} })).is_err());
    }
}
