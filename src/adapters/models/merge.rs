//! Options for the provider, merged into a request.

use serde_json::{Map, Value};

/// Fields that callers must not change: the model, the messages, and the form of the answer.
const RESERVED: [&str; 8] = [
    "model",
    "messages",
    "system",
    "contents",
    "systemInstruction",
    "system_instruction",
    "stream",
    "stream_options",
];

/// Merges a caller's options for `provider` into a request. Objects are merged member by member;
/// tools are appended. A member with the name of one of `providers` applies to that one only.
pub(super) fn merge_options(body: &mut Value, options: &Value, provider: &str, providers: &[&str]) {
    let (Value::Object(body), Value::Object(options)) = (body, options) else { return };
    for (key, value) in options {
        if key == provider {
            merge_members(body, value.as_object());
        } else if !providers.contains(&key.as_str()) {
            merge_member(body, key, value);
        }
    }
}

fn merge_members(body: &mut Map<String, Value>, options: Option<&Map<String, Value>>) {
    for (key, value) in options.into_iter().flatten() {
        merge_member(body, key, value);
    }
}

fn merge_member(body: &mut Map<String, Value>, key: &str, value: &Value) {
    if RESERVED.contains(&key) {
        return;
    }
    match (body.get_mut(key), value) {
        (Some(Value::Array(tools)), Value::Array(more)) if key == "tools" => {
            tools.extend(more.iter().cloned());
        }
        (Some(slot), value) => merge(slot, value),
        (None, value) => {
            body.insert(key.to_owned(), value.clone());
        }
    }
}

fn merge(slot: &mut Value, value: &Value) {
    match (slot, value) {
        (Value::Object(members), Value::Object(more)) => {
            for (key, value) in more {
                match members.get_mut(key) {
                    Some(slot) => merge(slot, value),
                    None => {
                        members.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (slot, value) => *slot = value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_merged_and_other_members_stay() {
        let rows = [
            (
                json!({ "generationConfig": { "topK": 4 } }),
                json!({ "model": "m", "generationConfig": { "topP": 1.0, "topK": 4 }, "tools": [1] }),
            ),
            (
                json!({ "generationConfig": { "topP": 0.5 } }),
                json!({ "model": "m", "generationConfig": { "topP": 0.5 }, "tools": [1] }),
            ),
            (
                json!({ "tools": [2] }),
                json!({ "model": "m", "generationConfig": { "topP": 1.0 }, "tools": [1, 2] }),
            ),
            (
                json!({ "gemini": { "x": 1, "model": "n" }, "openai": { "y": 1 } }),
                json!({ "model": "m", "generationConfig": { "topP": 1.0 }, "tools": [1], "x": 1 }),
            ),
            (
                json!({ "model": "n", "stream": false, "contents": [] }),
                json!({ "model": "m", "generationConfig": { "topP": 1.0 }, "tools": [1] }),
            ),
            (
                json!("none"),
                json!({ "model": "m", "generationConfig": { "topP": 1.0 }, "tools": [1] }),
            ),
        ];
        for (options, expected) in rows {
            let mut body =
                json!({ "model": "m", "generationConfig": { "topP": 1.0 }, "tools": [1] });
            merge_options(&mut body, &options, "gemini", &["gemini", "openai"]);
            assert_eq!(body, expected, "for {options}");
        }
    }
}
