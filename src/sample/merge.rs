//! Two schemas as one that both would accept, as far as keywords can express it.

use serde_json::{Value, json};

use super::Keywords;

/// Joins a schema with another that holds as well. Keywords that cannot be joined take the added
/// value; the validator decides.
pub(super) fn merged(keywords: &Keywords, other: &Value) -> Result<Value, String> {
    let other = match other {
        Value::Object(other) => other,
        Value::Bool(true) => return Ok(Value::Object(keywords.clone())),
        _ => return Err("no value is allowed".to_owned()),
    };
    let mut whole = keywords.clone();
    for (keyword, value) in other {
        match whole.get(keyword).cloned() {
            Some(present) if present != *value => join(&mut whole, keyword, present, value),
            _ => drop(whole.insert(keyword.clone(), value.clone())),
        }
    }
    Ok(Value::Object(whole))
}

fn join(whole: &mut Keywords, keyword: &str, present: Value, added: &Value) {
    let joined = match (keyword, present, added) {
        ("properties", Value::Object(mut joined), Value::Object(added)) => {
            for (name, schema) in added {
                let both = match joined.get(name) {
                    Some(present) if present != schema => json!({ "allOf": [present, schema] }),
                    _ => schema.clone(),
                };
                joined.insert(name.clone(), both);
            }
            Value::Object(joined)
        }
        ("required", Value::Array(mut joined), Value::Array(added)) => {
            joined.extend(added.iter().cloned());
            Value::Array(joined)
        }
        ("allOf", Value::Array(joined), Value::Array(added)) => {
            Value::Array([joined.as_slice(), added].concat())
        }
        ("enum", Value::Array(mut joined), Value::Array(added)) => {
            joined.retain(|value| added.contains(value));
            Value::Array(joined)
        }
        ("type", present, added) => common_types(&present, added),
        (
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties",
            present,
            added,
        ) if present.as_f64() > added.as_f64() => present,
        (
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties",
            present,
            added,
        ) if present.as_f64() < added.as_f64() => present,
        ("items" | "additionalProperties", present, added) => json!({ "allOf": [present, added] }),
        ("$ref" | "anyOf" | "oneOf", _, added) => {
            // one of each per level: the other waits in `allOf`, which is resolved later
            if let Value::Array(parts) = whole.entry("allOf").or_insert_with(|| json!([])) {
                parts.push(json!({ keyword: added }));
            }
            return;
        }
        (_, _, added) => added.clone(),
    };
    whole.insert(keyword.to_owned(), joined);
}

fn common_types(present: &Value, added: &Value) -> Value {
    let names = |types: &Value| match types {
        Value::Array(names) => names.clone(),
        other => vec![other.clone()],
    };
    let (present, added) = (names(present), names(added));
    let is_in = |names: &[Value], name: &str| names.iter().any(|one| one == name);
    let both = present.iter().chain(&added).filter_map(Value::as_str).filter(|name| {
        let allows =
            |names: &[Value]| is_in(names, name) || (*name == "integer" && is_in(names, "number"));
        allows(&present) && allows(&added)
    });
    json!(both.collect::<Vec<_>>())
}
