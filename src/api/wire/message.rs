//! Parses the input of a generation: a text, UI messages or model messages.

mod approval;
mod calls;
mod replies;

use greenroom_actors::domain::message::{
    FileSource, Message, Part, Role, ToolCall, ToolOutcome, ToolResult,
};
use serde_json::{Map, Value};

use crate::api::error::ApiError;
use crate::api::ids::check_id;

pub use replies::{Replies, replies_of};

/// Shape of messages; all messages of an array have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `role` and `parts`.
    Ui,
    /// `role` and `content`.
    Model,
}

/// Parses the messages at `key` of the body; refusals name the index. With `has_memory`, they may
/// continue a stored conversation.
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

/// Checks the role of a part: providers accept tool calls and reasoning only from the assistant,
/// and results not from the user.
fn check_speaker(place: &str, role: Role, part: &Part) -> Result<(), ApiError> {
    let is_fit = match part {
        Part::Text { .. } | Part::File { .. } => role != Role::Tool,
        Part::Reasoning { .. }
        | Part::ToolCall(_)
        | Part::ToolApproval(_)
        | Part::ProviderState { .. } => role == Role::Assistant,
        Part::ToolResult(_) => matches!(role, Role::Assistant | Role::Tool),
    };
    if is_fit {
        return Ok(());
    }
    Err(ApiError::body(format!("{place}.type"), "not a part for a message of this role"))
}

/// Parses a UI message. Results and approvals of tools stay in it; calls without either are dropped.
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
            // Parts for the user interface, of no use to a model.
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

/// Reads the id that the client chose; the message is stored under it.
fn read_message_id(place: &str, message: &Map<String, Value>) -> Result<Option<String>, ApiError> {
    let id = message.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
    if let Some(id) = id {
        check_id(&format!("{place}.id"), id)?;
    }
    Ok(id.map(str::to_owned))
}

/// Reads a tool with its approval and its result. A request of an approval that the messages pass
/// over counts as refused: the conversation went on.
fn read_tool_part(
    place: &str,
    name: &str,
    part: &Map<String, Value>,
    read: &mut Vec<Part>,
) -> Result<(), ApiError> {
    let call = read_call(place, name, part)?;
    let approval = approval::read(part, &call.tool_call_id);
    let denied = || approval.as_ref().and_then(approval::denial);
    let outcome = read_outcome(part).or_else(denied);
    if outcome.is_none() && approval.is_none() {
        return Ok(());
    }
    read.push(Part::ToolCall(call.clone()));
    read.extend(approval.map(Part::ToolApproval));
    read.extend(outcome.map(|outcome| Part::ToolResult(result_of(call, outcome))));
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

/// Reads the output of a model message: a value, or one with its type.
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

/// Reads a file; `key` holds its bytes in Base64 or its URL.
fn read_file(place: &str, part: &Map<String, Value>, key: &str) -> Result<Part, ApiError> {
    let data = required(place, part, key)?;
    // Base64 has no colon; a URL has one after its scheme.
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
        .ok_or_else(|| ApiError::body(format!("{place}.{key}"), "must be a non-empty string"))
}

fn unknown_part(place: &str) -> ApiError {
    ApiError::body(format!("{place}.type"), "unknown type of part")
}

#[cfg(test)]
mod tests;
