//! Two schemas as one that both would accept, as far as keywords can say it.

use serde_json::{Value, json};

use super::Keywords;

/// Joins a schema with another that holds as well. What cannot be joined is left to the
/// validator, which has the last word.
pub(super) fn merged(keywords: &Keywords, other: &Value) -> Result<Value, String> {
    let other = match other {
        Value::Object(other) => other,
        Value::Bool(true) => return Ok(Value::Object(keywords.clone())),
        _ => return Err("no value is allowed".to_owned()),
    };
    let mut whole = keywords.clone();
    for (keyword, value) in other {
        match whole.get(keyword).cloned() {
            None => {
                whole.insert(keyword.clone(), value.clone());
            }
            Some(present) if present == *value => {}
            Some(present) => join(&mut whole, keyword, present, value)?,
        }
    }
    Ok(Value::Object(whole))
}

fn join(whole: &mut Keywords, keyword: &str, present: Value, added: &Value) -> Result<(), String> {
    let joined = match keyword {
        "properties" | "patternProperties" => by_name(present, added),
        "required" => union(present, added),
        "allOf" => concatenated(present, added),
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties"
        | "minContains" => extreme(present, added, |present, added| added > present),
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            extreme(present, added, |present, added| added < present)
        }
        "multipleOf" => common_multiple(&present, added),
        "type" => types(&present, added)?,
        "enum" => intersection(present, added),
        "const" => return Err("two constants differ".to_owned()),
        "items" | "additionalProperties" | "propertyNames" | "contains" => {
            json!({ "allOf": [present, added] })
        }
        "$ref" | "$dynamicRef" | "anyOf" | "oneOf" | "if" | "then" | "else" => {
            // one of them per level: the other waits in `allOf`, which is taken apart later
            let waiting = Value::Array(vec![json!({ keyword: added })]);
            let all = whole.get("allOf").cloned().unwrap_or_else(|| json!([]));
            whole.insert("allOf".to_owned(), concatenated(all, &waiting));
            return Ok(());
        }
        "not" => json!({ "anyOf": [present, added] }),
        "pattern" | "format" => present,
        _ => added.clone(),
    };
    whole.insert(keyword.to_owned(), joined);
    Ok(())
}

fn by_name(present: Value, added: &Value) -> Value {
    let (Value::Object(mut joined), Value::Object(added)) = (present, added) else {
        return added.clone();
    };
    for (name, schema) in added {
        let both = match joined.get(name) {
            Some(present) if present != schema => json!({ "allOf": [present, schema] }),
            _ => schema.clone(),
        };
        joined.insert(name.clone(), both);
    }
    Value::Object(joined)
}

fn union(present: Value, added: &Value) -> Value {
    let (Value::Array(mut joined), Value::Array(added)) = (present, added) else {
        return added.clone();
    };
    let new: Vec<Value> = added.iter().filter(|name| !joined.contains(name)).cloned().collect();
    joined.extend(new);
    Value::Array(joined)
}

fn concatenated(present: Value, added: &Value) -> Value {
    let (Value::Array(mut joined), Value::Array(added)) = (present, added) else {
        return added.clone();
    };
    joined.extend(added.iter().cloned());
    Value::Array(joined)
}

fn intersection(present: Value, added: &Value) -> Value {
    let (Value::Array(present), Value::Array(added)) = (present, added) else {
        return added.clone();
    };
    Value::Array(present.into_iter().filter(|value| added.contains(value)).collect())
}

fn extreme(present: Value, added: &Value, is_stricter: fn(f64, f64) -> bool) -> Value {
    match (present.as_f64(), added.as_f64()) {
        (Some(of_present), Some(of_added)) if !is_stricter(of_present, of_added) => present,
        _ => added.clone(),
    }
}

fn common_multiple(present: &Value, added: &Value) -> Value {
    match (present.as_u64(), added.as_u64()) {
        (Some(one), Some(other)) if one > 0 && other > 0 => {
            // the product when it is no multiple of either: common, if not the least
            let least = if one % other == 0 {
                one
            } else if other % one == 0 {
                other
            } else {
                one.saturating_mul(other)
            };
            Value::from(least)
        }
        _ => added.clone(),
    }
}

fn types(present: &Value, added: &Value) -> Result<Value, String> {
    let (present, added) = (names(present), names(added));
    let mut both: Vec<&str> = Vec::new();
    for one in &present {
        for other in &added {
            match (*one, *other) {
                (one, other) if one == other => both.push(one),
                ("integer", "number") | ("number", "integer") => both.push("integer"),
                _ => {}
            }
        }
    }
    if both.is_empty() { Err("no type is allowed".to_owned()) } else { Ok(json!(both)) }
}

fn names(types: &Value) -> Vec<&str> {
    match types {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    }
}
