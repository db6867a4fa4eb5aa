//! Keys that belong to a kind: of tools, of models, of steps.
//!
//! A part with kinds has the properties of all of them, which editors offer. Which of them belong
//! together is a chain of conditions, which names the key that does not.

use greenroom_actors::domain::definition::StepType;
use serde_json::{Map, Value, json};

/// Kinds with the same keys.
#[derive(Debug, serde::Deserialize)]
struct Row {
    /// Values of the key that says the kind; of the last row: all that are left.
    #[serde(default)]
    names: Vec<String>,
    /// Keys that only some kinds have.
    #[serde(default)]
    keys: Vec<String>,
    #[serde(default)]
    required: Vec<String>,
    /// Keys of which there is exactly one.
    #[serde(default)]
    one_of: Vec<String>,
}

#[derive(Debug, serde::Deserialize)]
struct Kinds {
    /// The key that says the kind.
    by: String,
    /// Default: those of the table of kinds of steps.
    #[serde(default = "rows_of_steps")]
    rows: Vec<Row>,
}

/// Replaces `kinds` of a part by conditions.
pub(super) fn expand(part: &mut Value) {
    let Some(members) = part.as_object_mut() else { return };
    let kinds = members.remove("kinds").and_then(|kinds| serde_json::from_value(kinds).ok());
    let Some(Kinds { by, rows }) = kinds else { return };
    let empty = Map::new();
    let properties = members.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let is_common = |key: &&String| rows.iter().all(|row| !row.keys.contains(key));
    let common: Vec<&String> = properties.keys().filter(is_common).collect();
    let default = properties.get(&by).and_then(|key| key.get("default"));
    let mut chain = json!({});
    for row in rows.iter().rev() {
        let then = rule(&common, row);
        if row.names.is_empty() {
            chain = then;
            continue;
        }
        let mut condition = json!({ "properties": { &by: { "enum": row.names } } });
        let is_default = row.names.iter().any(|name| default == Some(&Value::from(name.as_str())));
        if !is_default {
            condition["required"] = json!([by]);
        }
        chain = json!({ "if": condition, "then": then, "else": chain });
    }
    if let Value::Object(chain) = chain {
        members.extend(chain);
    }
}

fn rows_of_steps() -> Vec<Row> {
    let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
    let of_kind = |kind: StepType| Row {
        names: vec![kind.name().to_owned()],
        keys: owned(&kind.keys()),
        required: owned(kind.required_keys()),
        one_of: owned(kind.alternative_keys()),
    };
    StepType::ALL.into_iter().map(of_kind).collect()
}

/// Returns what holds for the kinds of a row.
fn rule(common: &[&String], row: &Row) -> Value {
    let keys = common.iter().copied().chain(&row.keys);
    let properties: Map<_, _> = keys.map(|key| (key.clone(), Value::Bool(true))).collect();
    let mut rule = json!({ "properties": properties, "additionalProperties": false });
    if !row.required.is_empty() {
        rule["required"] = json!(row.required);
    }
    if !row.one_of.is_empty() {
        let alone = |key: &String| json!({ "required": [key] });
        rule["oneOf"] = row.one_of.iter().map(alone).collect();
    }
    rule
}
