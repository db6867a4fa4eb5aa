//! The input of a generation: a text, UI messages or model messages, made into one form.

mod calls;

use greenroom_actors::domain::message::{
    FileSource, Message, Part, Role, ToolCall, ToolOutcome, ToolResult,
};
use serde_json::{Map, Value};

use crate::api::error::ApiError;
use crate::api::ids::check_id;

/// The two shapes of messages; an array holds one of them only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `role` and `parts`.
    Ui,
    /// `role` and `content`.
    Model,
}

/// Reads what stands under `key` of the body. Every refusal names the index that is wrong. With
/// `has_memory`, messages may go on from others that are not here.
pub fn messages_of(key: &str, input: &Value, has_memory: bool) -> Result<Vec<Message>, ApiError> {
    let messages = match input {
        Value::String(text) => {
            return Ok(vec![Message::text(Role::User, text)]);
        }
        Value::Array(messages) => messages,
        _ => return Err(ApiError::body(key, "must be a string or an array of messages")),
    };
    if messages.is_empty() {
        return Err(ApiError::body(key, "must not be empty"));
    }
    let mut prompt = Vec::with_capacity(messages.len());
    let mut shape = None;
    for (index, message) in messages.iter().enumerate() {
        let place = format!("{key}[{index}]");
        let Value::Object(message) = message else {
            return Err(ApiError::body(place, "must be an object"));
        };
        let own = shape_of(&place, message)?;
        if *shape.get_or_insert(own) != own {
            return Err(ApiError::body(place, "UI messages and model messages are mixed"));
        }
        match own {
            Shape::Ui => prompt.push(read_ui_message(&place, message)?),
            Shape::Model => prompt.push(read_model_message(&place, message)?),
        }
    }
    if prompt.iter().all(|message| message.parts.is_empty()) {
        return Err(ApiError::body(key, "must not be empty"));
    }
    if shape == Some(Shape::Model) {
        calls::check(key, &prompt, has_memory)?;
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

fn read_model_message(place: &str, message: &Map<String, Value>) -> Result<Message, ApiError> {
    let role = role_of(place, message, &[Role::System, Role::User, Role::Assistant, Role::Tool])?;
    let place = format!("{place}.content");
    let parts = match (role, &message["content"]) {
        (Role::System | Role::User | Role::Assistant, Value::String(text)) => {
            vec![Part::Text { text: text.clone() }]
        }
        (Role::User | Role::Assistant | Role::Tool, Value::Array(parts)) => {
            let parts = parts.iter().enumerate();
            let read =
                parts.map(|(at, part)| read_content_part(&format!("{place}[{at}]"), role, part));
            read.collect::<Result<_, _>>()?
        }
        (Role::System, _) => return Err(ApiError::body(place, "must be a string")),
        (Role::Tool, _) => return Err(ApiError::body(place, "must be an array of parts")),
        (Role::User | Role::Assistant, _) => {
            return Err(ApiError::body(place, "must be a string or an array of parts"));
        }
    };
    Ok(Message { id: None, role, parts })
}

fn read_content_part(place: &str, role: Role, part: &Value) -> Result<Part, ApiError> {
    let (kind, part) = part_of(place, part)?;
    let read = match kind {
        "text" => Part::Text { text: text_of(place, part)?.to_owned() },
        "reasoning" => Part::Reasoning { text: text_of(place, part)?.to_owned() },
        "image" => read_file(place, part, "image")?,
        "file" => read_file(place, part, "data")?,
        "tool-call" => Part::ToolCall(read_call(place, required(place, part, "toolName")?, part)?),
        "tool-result" => {
            let call = read_call(place, required(place, part, "toolName")?, part)?;
            let outcome = read_output(part).unwrap_or(ToolOutcome::Output(Value::Null));
            Part::ToolResult(result_of(call, outcome))
        }
        _ => return Err(unknown_part(place)),
    };
    check_speaker(place, role, &read)?;
    Ok(read)
}

/// Providers take tools' calls and reasoning from the assistant only, results not from the user.
fn check_speaker(place: &str, role: Role, part: &Part) -> Result<(), ApiError> {
    let is_fit = match part {
        Part::Text { .. } | Part::File { .. } => role != Role::Tool,
        Part::Reasoning { .. } | Part::ToolCall(_) | Part::ProviderState { .. } => {
            role == Role::Assistant
        }
        Part::ToolResult(_) => matches!(role, Role::Assistant | Role::Tool),
    };
    if is_fit {
        return Ok(());
    }
    Err(ApiError::body(format!("{place}.type"), "not a part for a message of this role"))
}

/// Reads one UI message. Its tools' results stay in it; a call that was given up before it had
/// one is left out.
fn read_ui_message(place: &str, message: &Map<String, Value>) -> Result<Message, ApiError> {
    let role = role_of(place, message, &[Role::System, Role::User, Role::Assistant])?;
    let id = read_message_id(place, message)?;
    let place = format!("{place}.parts");
    let Some(Value::Array(parts)) = message.get("parts") else {
        return Err(ApiError::body(place, "must be an array"));
    };
    let mut read = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        let place = format!("{place}[{index}]");
        let (kind, part) = part_of(&place, part)?;
        let before = read.len();
        match kind {
            "text" => read.push(Part::Text { text: text_of(&place, part)?.to_owned() }),
            "reasoning" => read.push(Part::Reasoning { text: text_of(&place, part)?.to_owned() }),
            "file" => read.push(read_file(&place, part, "url")?),
            // Marks of the user interface: nothing that a model could use.
            "step-start" | "source-url" | "source-document" => {}
            "dynamic-tool" => {
                let name = required(&place, part, "toolName")?;
                read_tool_part(&place, name, part, &mut read)?;
            }
            _ => match kind.split_once('-') {
                Some(("data", _)) => {}
                Some(("tool", name)) => read_tool_part(&place, name, part, &mut read)?,
                Some(_) | None => return Err(unknown_part(&place)),
            },
        }
        read[before..].iter().try_for_each(|part| check_speaker(&place, role, part))?;
    }
    Ok(Message { id, role, parts: read })
}

/// The id that a client has given it, under which it is stored.
fn read_message_id(place: &str, message: &Map<String, Value>) -> Result<Option<String>, ApiError> {
    let id = message.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    if let Some(id) = id {
        check_id(&format!("{place}.id"), id)?;
    }
    Ok(id.map(str::to_owned))
}

fn read_tool_part(
    place: &str,
    name: &str,
    part: &Map<String, Value>,
    read: &mut Vec<Part>,
) -> Result<(), ApiError> {
    let call = read_call(place, name, part)?;
    if let Some(outcome) = read_outcome(part) {
        read.push(Part::ToolCall(call.clone()));
        read.push(Part::ToolResult(result_of(call, outcome)));
    }
    Ok(())
}

fn read_call(place: &str, name: &str, part: &Map<String, Value>) -> Result<ToolCall, ApiError> {
    Ok(ToolCall {
        tool_call_id: required(place, part, "toolCallId")?.to_owned(),
        tool_name: name.to_owned(),
        input: part.get("input").cloned().unwrap_or_default(),
    })
}

fn read_outcome(part: &Map<String, Value>) -> Option<ToolOutcome> {
    let error = part.get("errorText").or_else(|| part.get("error"));
    let error = error.map(|error| error.as_str().map_or_else(|| error.to_string(), str::to_owned));
    let output = part.get("output").cloned().map(ToolOutcome::Output);
    output.or_else(|| error.map(ToolOutcome::Error))
}

/// The output of a model message: a value, or one with its kind beside it.
fn read_output(part: &Map<String, Value>) -> Option<ToolOutcome> {
    let typed = part.get("output").and_then(|output| {
        let kind = output.get("type")?.as_str()?;
        let value = output.get("value")?;
        match kind {
            "text" | "json" | "content" => Some(ToolOutcome::Output(value.clone())),
            "error-text" | "error-json" => Some(ToolOutcome::Error(
                value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            )),
            _ => None,
        }
    });
    typed.or_else(|| read_outcome(part))
}

fn result_of(call: ToolCall, outcome: ToolOutcome) -> ToolResult {
    let ToolCall { tool_call_id, tool_name, input } = call;
    ToolResult { tool_call_id, tool_name, input, outcome }
}

/// A file whose bytes or address stand under `key`.
fn read_file(place: &str, part: &Map<String, Value>, key: &str) -> Result<Part, ApiError> {
    let data = required(place, part, key)?;
    // Base64 has no colon; an address has one after its scheme, whichever it is.
    let is_url = data.contains(':');
    let text = |key: &str| part.get(key).and_then(Value::as_str).map(str::to_owned);
    let source = if is_url { FileSource::Url } else { FileSource::Base64 };
    let media_type = text("mediaType").unwrap_or_else(|| match key {
        "image" => "image/*".to_owned(),
        _ => "application/octet-stream".to_owned(),
    });
    Ok(Part::File { media_type, source: source(data.to_owned()), filename: text("filename") })
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
    use serde_json::json;

    use super::*;

    fn read(input: &Value) -> Result<Vec<Message>, ApiError> {
        messages_of("input", input, false)
    }

    fn refusal(input: &Value) -> String {
        read(input).unwrap_err().to_string()
    }

    #[test]
    fn files_are_addresses_of_any_scheme_or_base64() {
        let url = |url: &str| FileSource::Url(url.to_owned());
        let rows = [
            ("https://a.example/a.png", url("https://a.example/a.png")),
            ("HTTPS://a.example/a.png", url("HTTPS://a.example/a.png")),
            ("gs://bucket/a.png", url("gs://bucket/a.png")),
            ("data:image/png;base64,aGk=", url("data:image/png;base64,aGk=")),
            ("aGk_-+/=", FileSource::Base64("aGk_-+/=".to_owned())),
        ];
        for (data, expected) in rows {
            let part = json!({ "type": "file", "url": data, "mediaType": "image/png" });
            let messages = read(&json!([{ "role": "user", "parts": [part] }])).unwrap();
            let [Part::File { source, .. }] = &*messages[0].parts else { panic!("{data}") };
            assert_eq!(source, &expected);
        }
    }

    #[test]
    fn a_text_is_one_user_message() {
        let messages = read(&json!("hi")).unwrap();
        assert_eq!(messages, [Message::text(Role::User, "hi")]);
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
        let call = ToolCall {
            tool_call_id: "t".into(),
            tool_name: "add".into(),
            input: json!({ "n": 1 }),
        };
        let text = |text: &str| Part::Text { text: text.to_owned() };
        let expected = [
            Message { id: Some("1".into()), role: Role::User, parts: vec![text("a"), text("b")] },
            Message {
                id: None,
                role: Role::Assistant,
                parts: vec![
                    Part::ToolCall(call.clone()),
                    Part::ToolResult(result_of(call, ToolOutcome::Output(json!(2)))),
                    text("done"),
                ],
            },
        ];
        assert_eq!(read(&input).unwrap(), expected);
    }

    #[test]
    fn model_messages_are_read() {
        let input = json!([
            { "role": "system", "content": "be kind" },
            { "role": "user", "content": [
                { "type": "text", "text": "hi" },
                { "type": "image", "image": "aGk=", "mediaType": "image/png" }] },
            { "role": "assistant", "content": [
                { "type": "tool-call", "toolCallId": "t", "toolName": "add", "input": {} }] },
            { "role": "tool", "content": [
                { "type": "tool-result", "toolCallId": "t", "toolName": "add", "output": 2 }] }
        ]);
        let messages = read(&input).unwrap();
        assert_eq!(messages[0], Message::text(Role::System, "be kind"));
        let image = Part::File {
            media_type: "image/png".into(),
            source: FileSource::Base64("aGk=".into()),
            filename: None,
        };
        assert_eq!(messages[1].parts[1], image);
        assert_eq!(messages[3].role, Role::Tool);
    }

    #[test]
    fn a_call_that_was_given_up_is_left_out() {
        let input = json!([
            { "role": "user", "parts": [{ "type": "text", "text": "a" }] },
            { "role": "assistant", "parts": [
                { "type": "tool-add", "toolCallId": "t", "state": "input-available",
                  "input": {} }] }
        ]);
        assert!(read(&input).unwrap()[1].parts.is_empty());
    }

    #[test]
    fn an_empty_id_is_none() {
        let message = |id: &str| json!([{ "id": id, "role": "user", "parts": [{ "type": "text", "text": "a" }] }]);
        let rows = [("", None), ("m1", Some("m1"))];
        for (id, expected) in rows {
            assert_eq!(read(&message(id)).unwrap()[0].id.as_deref(), expected);
        }
    }

    #[test]
    fn outputs_may_name_their_kind() {
        let output = |value: Value| {
            let part = json!({ "output": value });
            read_output(part.as_object().unwrap()).unwrap()
        };
        let rows = [
            (json!(2), ToolOutcome::Output(json!(2))),
            (
                json!({ "type": "json", "value": { "n": 2 } }),
                ToolOutcome::Output(json!({ "n": 2 })),
            ),
            (json!({ "type": "text", "value": "two" }), ToolOutcome::Output(json!("two"))),
            (json!({ "type": "error-text", "value": "no" }), ToolOutcome::Error("no".into())),
            (json!({ "type": "error-json", "value": [1] }), ToolOutcome::Error("[1]".into())),
            (
                json!({ "type": "car", "value": 1 }),
                ToolOutcome::Output(json!({ "type": "car", "value": 1 })),
            ),
        ];
        for (value, expected) in rows {
            assert_eq!(output(value), expected);
        }
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
                json!([{ "id": "a\nb", "role": "user", "parts": [] }]),
                "input[0].id: must be 1 to 200 characters, no control characters",
            ),
            (
                json!([model, { "role": "user", "content": [{ "type": "smell" }] }]),
                "input[1].content[0].type: unknown type of part",
            ),
            (
                json!([{ "role": "user", "parts": [{ "type": "text" }] }]),
                "input[0].parts[0].text: missing",
            ),
            (json!([{ "role": "system", "content": [] }]), "input[0].content: must be a string"),
            (json!([{ "role": "user", "parts": [] }]), "input: must not be empty"),
            (json!([{ "role": "user", "content": [] }]), "input: must not be empty"),
            (
                json!([{ "role": "user", "parts": [{ "type": "reasoning", "text": "a" }] }]),
                "input[0].parts[0].type: not a part for a message of this role",
            ),
            (
                json!([model, { "role": "tool", "content": [{ "type": "text", "text": "a" }] }]),
                "input[1].content[0].type: not a part for a message of this role",
            ),
        ];
        for (input, what) in rows {
            assert_eq!(refusal(&input), format!("Invalid request body: {what}"));
        }
    }
}
