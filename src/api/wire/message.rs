//! The input of a generation: a text, UI messages or model messages, made into one form.

use greenroom_actors::ports::model::{ModelMessage, Role};
use serde_json::{Map, Value, json};

use crate::api::error::ApiError;

/// The two shapes of messages; an array holds one of them only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `role` and `parts`.
    Ui,
    /// `role` and `content`.
    Model,
}

/// Reads `input`. Every refusal names the index that is wrong.
pub fn messages_of(input: &Value) -> Result<Vec<ModelMessage>, ApiError> {
    let messages = match input {
        Value::String(text) => {
            let content = Value::String(text.clone());
            return Ok(vec![ModelMessage { role: Role::User, content }]);
        }
        Value::Array(messages) => messages,
        _ => return Err(ApiError::body("input", "must be a string or an array of messages")),
    };
    if messages.is_empty() {
        return Err(ApiError::body("input", "must not be empty"));
    }
    let mut prompt = Vec::with_capacity(messages.len());
    let mut shape = None;
    for (index, message) in messages.iter().enumerate() {
        let place = format!("input[{index}]");
        let Value::Object(message) = message else {
            return Err(ApiError::body(place, "must be an object"));
        };
        let own = shape_of(&place, message)?;
        if *shape.get_or_insert(own) != own {
            return Err(ApiError::body(place, "UI messages and model messages are mixed"));
        }
        match own {
            Shape::Ui => read_ui_message(&place, message, &mut prompt)?,
            Shape::Model => prompt.push(read_model_message(&place, message)?),
        }
    }
    Ok(prompt)
}

fn shape_of(place: &str, message: &Map<String, Value>) -> Result<Shape, ApiError> {
    match (message.contains_key("parts"), message.contains_key("content")) {
        (true, _) => Ok(Shape::Ui),
        (false, true) => Ok(Shape::Model),
        (false, false) => Err(ApiError::body(place, "must have parts or content")),
    }
}

fn role_of(place: &str, message: &Map<String, Value>, allowed: &[Role]) -> Result<Role, ApiError> {
    let role = match message.get("role").and_then(Value::as_str) {
        Some("system") => Some(Role::System),
        Some("user") => Some(Role::User),
        Some("assistant") => Some(Role::Assistant),
        Some("tool") => Some(Role::Tool),
        Some(_) | None => None,
    };
    match role.filter(|role| allowed.contains(role)) {
        Some(role) => Ok(role),
        None if message.contains_key("role") => {
            Err(ApiError::body(format!("{place}.role"), "unknown role"))
        }
        None => Err(ApiError::body(format!("{place}.role"), "missing")),
    }
}

fn read_model_message(place: &str, message: &Map<String, Value>) -> Result<ModelMessage, ApiError> {
    let role = role_of(place, message, &[Role::System, Role::User, Role::Assistant, Role::Tool])?;
    let place = format!("{place}.content");
    let content = &message["content"];
    match (role, content) {
        (Role::System | Role::User | Role::Assistant, Value::String(_)) => {}
        (Role::User | Role::Assistant | Role::Tool, Value::Array(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                check_content_part(&format!("{place}[{index}]"), part)?;
            }
        }
        (Role::System, _) => return Err(ApiError::body(place, "must be a string")),
        (Role::Tool, _) => return Err(ApiError::body(place, "must be an array of parts")),
        (Role::User | Role::Assistant, _) => {
            return Err(ApiError::body(place, "must be a string or an array of parts"));
        }
    }
    Ok(ModelMessage { role, content: content.clone() })
}

fn check_content_part(place: &str, part: &Value) -> Result<(), ApiError> {
    let (kind, part) = part_of(place, part)?;
    match kind {
        "text" | "reasoning" => text_of(place, part).map(|_| ()),
        "image" | "file" => Ok(()),
        "tool-call" | "tool-result" => {
            required(place, part, "toolCallId")?;
            required(place, part, "toolName").map(|_| ())
        }
        _ => Err(unknown_part(place)),
    }
}

/// Adds one UI message: itself, and its tools' results as a message of their own.
fn read_ui_message(
    place: &str,
    message: &Map<String, Value>,
    prompt: &mut Vec<ModelMessage>,
) -> Result<(), ApiError> {
    let role = role_of(place, message, &[Role::System, Role::User, Role::Assistant])?;
    let place = format!("{place}.parts");
    let Some(Value::Array(parts)) = message.get("parts") else {
        return Err(ApiError::body(place, "must be an array"));
    };
    let mut content = Vec::with_capacity(parts.len());
    let mut results = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let (kind, part) = part_of(&place, part)?;
        match kind {
            "text" => content.push(json!({ "type": "text", "text": text_of(&place, part)? })),
            "reasoning" => {
                content.push(json!({ "type": "reasoning", "text": text_of(&place, part)? }));
            }
            "file" => content.push(Value::Object(part.clone())),
            // Marks of the user interface: nothing that a model could use.
            "step-start" | "source-url" | "source-document" => {}
            "dynamic-tool" => {
                let name = required(&place, part, "toolName")?.to_owned();
                read_tool_part(&place, &name, part, &mut content, &mut results)?;
            }
            _ => match kind.split_once('-') {
                Some(("data", _)) => {}
                Some(("tool", name)) => {
                    read_tool_part(&place, name, part, &mut content, &mut results)?;
                }
                Some(_) | None => return Err(unknown_part(&place)),
            },
        }
    }
    prompt.push(ModelMessage { role, content: plain_if_text(content) });
    if !results.is_empty() {
        prompt.push(ModelMessage { role: Role::Tool, content: Value::Array(results) });
    }
    Ok(())
}

fn read_tool_part(
    place: &str,
    name: &str,
    part: &Map<String, Value>,
    content: &mut Vec<Value>,
    results: &mut Vec<Value>,
) -> Result<(), ApiError> {
    let id = required(place, part, "toolCallId")?;
    let input = part.get("input").cloned().unwrap_or_default();
    content
        .push(json!({ "type": "tool-call", "toolCallId": id, "toolName": name, "input": input }));
    let mut result = json!({ "type": "tool-result", "toolCallId": id, "toolName": name });
    if let Some(output) = part.get("output") {
        result["output"] = output.clone();
    } else if let Some(error) = part.get("errorText") {
        result["error"] = error.clone();
    } else {
        return Ok(());
    }
    results.push(result);
    Ok(())
}

/// A message of text alone is a string: what every model understands.
fn plain_if_text(content: Vec<Value>) -> Value {
    let is_text = |part: &Value| part["type"] == "text";
    if !content.iter().all(is_text) {
        return Value::Array(content);
    }
    content.iter().filter_map(|part| part["text"].as_str()).collect::<String>().into()
}

fn part_of<'a>(
    place: &str,
    part: &'a Value,
) -> Result<(&'a str, &'a Map<String, Value>), ApiError> {
    let Value::Object(part) = part else {
        return Err(ApiError::body(place, "must be an object"));
    };
    Ok((required(place, part, "type")?, part))
}

fn text_of<'a>(place: &str, part: &'a Map<String, Value>) -> Result<&'a str, ApiError> {
    match part.get("text") {
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(ApiError::body(format!("{place}.text"), "must be a string")),
        None => Err(ApiError::body(format!("{place}.text"), "missing")),
    }
}

fn required<'a>(place: &str, part: &'a Map<String, Value>, key: &str) -> Result<&'a str, ApiError> {
    part.get(key)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| ApiError::body(format!("{place}.{key}"), "must be a text that is not empty"))
}

fn unknown_part(place: &str) -> ApiError {
    ApiError::body(format!("{place}.type"), "unknown type of part")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(input: &Value) -> String {
        messages_of(input).unwrap_err().to_string()
    }

    #[test]
    fn a_text_is_one_user_message() {
        let messages = messages_of(&json!("hi")).unwrap();
        assert_eq!(messages, [ModelMessage { role: Role::User, content: json!("hi") }]);
    }

    #[test]
    fn ui_messages_become_model_messages() {
        let input = json!([
            { "id": "1", "role": "user", "parts": [
                { "type": "text", "text": "a" }, { "type": "text", "text": "b" }] },
            { "role": "assistant", "parts": [
                { "type": "step-start" },
                { "type": "tool-add", "toolCallId": "t", "state": "output-available",
                  "input": { "n": 1 }, "output": 2 },
                { "type": "text", "text": "done" }] }
        ]);
        let expected = [
            ModelMessage { role: Role::User, content: json!("ab") },
            ModelMessage {
                role: Role::Assistant,
                content: json!([
                    { "type": "tool-call", "toolCallId": "t", "toolName": "add",
                      "input": { "n": 1 } },
                    { "type": "text", "text": "done" }]),
            },
            ModelMessage {
                role: Role::Tool,
                content: json!([
                    { "type": "tool-result", "toolCallId": "t", "toolName": "add", "output": 2 }]),
            },
        ];
        assert_eq!(messages_of(&input).unwrap(), expected);
    }

    #[test]
    fn model_messages_pass_as_they_are() {
        let input = json!([
            { "role": "system", "content": "be kind" },
            { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
            { "role": "tool", "content": [
                { "type": "tool-result", "toolCallId": "t", "toolName": "add", "output": 2 }] }
        ]);
        let messages = messages_of(&input).unwrap();
        assert_eq!(messages[1].content, input[1]["content"]);
        assert_eq!(messages[2].role, Role::Tool);
    }

    #[test]
    fn refusals_name_the_index() {
        let ui = json!({ "role": "user", "parts": [{ "type": "text", "text": "a" }] });
        let model = json!({ "role": "user", "content": "a" });
        let rows = [
            (json!(5), "input: must be a string or an array of messages"),
            (json!([]), "input: must not be empty"),
            (json!([model, 7]), "input[1]: must be an object"),
            (json!([ui, model]), "input[1]: UI messages and model messages are mixed"),
            (json!([{ "role": "user" }]), "input[0]: must have parts or content"),
            (json!([{ "role": "boss", "content": "a" }]), "input[0].role: unknown role"),
            (json!([{ "content": "a" }]), "input[0].role: missing"),
            (json!([{ "role": "tool", "parts": [] }]), "input[0].role: unknown role"),
            (
                json!([model, { "role": "user", "content": [{ "type": "smell" }] }]),
                "input[1].content[0].type: unknown type of part",
            ),
            (
                json!([{ "role": "user", "parts": [{ "type": "text" }] }]),
                "input[0].parts[0].text: missing",
            ),
            (json!([{ "role": "system", "content": [] }]), "input[0].content: must be a string"),
        ];
        for (input, what) in rows {
            assert_eq!(refusal(&input), format!("Invalid request body: {what}"));
        }
    }
}
