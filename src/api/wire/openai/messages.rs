//! Messages of a request for a completion.

use std::collections::BTreeMap;

use greenroom_actors::domain::foreign;
use greenroom_actors::domain::message::{
    FileSource, Message, Part, Role, ToolCall, ToolOutcome, ToolResult,
};
use serde_json::{Map, Value};

use super::parts::{object, required};
use crate::api::error::ApiError;

/// Reads the messages; refusals name the place.
pub fn messages_of(messages: &Value) -> Result<Vec<Message>, ApiError> {
    let Value::Array(messages) = messages else {
        return Err(ApiError::body("messages", "must be an array"));
    };
    if messages.is_empty() {
        return Err(ApiError::body("messages", "must not be empty"));
    }
    let (mut read, mut open) = (Vec::with_capacity(messages.len()), OpenCalls::default());
    for (index, message) in messages.iter().enumerate() {
        let place = format!("messages[{index}]");
        let message = object(&place, message)?;
        let role = required(&place, message, "role")?;
        if role != "tool" {
            open.check()?;
        }
        read.push(match role {
            "system" | "developer" => of_person(&place, Role::System, message)?,
            "user" => of_person(&place, Role::User, message)?,
            "assistant" => of_assistant(&place, message, &mut open)?,
            "tool" => of_tool(&place, message, &mut open)?,
            "function" => {
                let what = "send results as messages of the role \"tool\"";
                return Err(ApiError::unsupported(format!("{place}.role"), what));
            }
            _ => return Err(ApiError::body(format!("{place}.role"), "unknown role")),
        });
    }
    open.check()?;
    Ok(read)
}

/// Calls without results.
#[derive(Default)]
struct OpenCalls(BTreeMap<String, (ToolCall, String)>);

impl OpenCalls {
    /// Refuses a call without a result, as providers do.
    fn check(&self) -> Result<(), ApiError> {
        match self.0.values().next() {
            Some((_, place)) => Err(ApiError::body(place, "the call has no result after it")),
            None => Ok(()),
        }
    }
}

/// Reads a message of the user or the developer.
fn of_person(place: &str, role: Role, message: &Map<String, Value>) -> Result<Message, ApiError> {
    let place = format!("{place}.content");
    let parts = match message.get("content") {
        Some(Value::String(text)) => vec![Part::Text { text: text.clone() }],
        Some(Value::Array(parts)) => {
            let parts = parts.iter().enumerate();
            let read = parts.map(|(at, part)| read_part(&format!("{place}[{at}]"), role, part));
            read.collect::<Result<_, _>>()?
        }
        _ => return Err(ApiError::body(place, "must be a string or an array of parts")),
    };
    // providers take one text as instructions
    let parts = match role {
        Role::System => vec![Part::Text { text: Message { id: None, role, parts }.plain_text() }],
        _ => parts,
    };
    Ok(Message { id: None, role, parts })
}

fn read_part(place: &str, role: Role, part: &Value) -> Result<Part, ApiError> {
    let part = object(place, part)?;
    let kind = required(place, part, "type")?;
    if kind == "text" {
        return text_of(place, part);
    }
    if role != Role::User {
        return Err(ApiError::body(format!("{place}.type"), "must be \"text\" in this role"));
    }
    let inner =
        |key: &str| object(&format!("{place}.{key}"), part.get(key).unwrap_or(&Value::Null));
    match kind {
        "image_url" => {
            let url = required(&format!("{place}.image_url"), inner("image_url")?, "url")?;
            Ok(file("image/*", FileSource::Url(url.to_owned()), None))
        }
        "input_audio" => {
            let (place, audio) = (format!("{place}.input_audio"), inner("input_audio")?);
            let media_type = match required(&place, audio, "format")? {
                "wav" => "audio/wav",
                "mp3" => "audio/mpeg",
                _ => return Err(ApiError::body(format!("{place}.format"), "must be wav or mp3")),
            };
            let data = required(&place, audio, "data")?;
            Ok(file(media_type, FileSource::Base64(data.to_owned()), None))
        }
        "file" => {
            let (place, part) = (format!("{place}.file"), inner("file")?);
            if part.contains_key("file_id") {
                let what = "send the file in `file_data`";
                return Err(ApiError::unsupported(format!("{place}.file_id"), what));
            }
            let data = required(&place, part, "file_data")?;
            let name = part.get("filename").and_then(Value::as_str).map(str::to_owned);
            // Base64 has no colon; a data URL has one after its scheme.
            let source = if data.contains(':') { FileSource::Url } else { FileSource::Base64 };
            Ok(file("application/octet-stream", source(data.to_owned()), name))
        }
        _ => Err(ApiError::body(format!("{place}.type"), "unknown type of part")),
    }
}

fn file(media_type: &str, source: FileSource, filename: Option<String>) -> Part {
    Part::File { media_type: media_type.to_owned(), source, filename }
}

fn text_of(place: &str, part: &Map<String, Value>) -> Result<Part, ApiError> {
    let text = part.get("text").and_then(Value::as_str);
    let text = text.ok_or_else(|| ApiError::body(format!("{place}.text"), "must be a string"))?;
    Ok(Part::Text { text: text.to_owned() })
}

/// Reads a message of the assistant: reasoning, text, refusals and calls.
fn of_assistant(
    place: &str,
    message: &Map<String, Value>,
    open: &mut OpenCalls,
) -> Result<Message, ApiError> {
    let mut parts = Vec::new();
    // as completions have it
    if let Some(Value::String(text)) = message.get("reasoning_content")
        && !text.is_empty()
    {
        parts.push(Part::Reasoning { text: text.clone() });
    }
    match message.get("content") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => parts.push(Part::Text { text: text.clone() }),
        Some(Value::Array(written)) => {
            for (at, part) in written.iter().enumerate() {
                let place = format!("{place}.content[{at}]");
                let part = object(&place, part)?;
                match required(&place, part, "type")? {
                    "text" => parts.push(text_of(&place, part)?),
                    "refusal" => {
                        let text = required(&place, part, "refusal")?.to_owned();
                        parts.push(Part::Text { text });
                    }
                    _ => {
                        return Err(ApiError::body(
                            format!("{place}.type"),
                            "unknown type of part",
                        ));
                    }
                }
            }
        }
        Some(_) => {
            let what = "must be a string, null or an array of parts";
            return Err(ApiError::body(format!("{place}.content"), what));
        }
    }
    parts.retain(|part| !matches!(part, Part::Text { text } if text.is_empty()));
    match message.get("tool_calls") {
        None | Some(Value::Null) => {}
        Some(Value::Array(calls)) => {
            for (at, call) in calls.iter().enumerate() {
                let place = format!("{place}.tool_calls[{at}]");
                let (call, place) = (read_call(&place, call)?, format!("{place}.id"));
                parts.push(Part::ToolCall(call.clone()));
                if let Some((call, _)) =
                    open.0.insert(call.tool_call_id.clone(), (call, place.clone()))
                {
                    let id = call.tool_call_id;
                    return Err(ApiError::body(
                        place,
                        format!("`{id}` is the id of another open call"),
                    ));
                }
            }
        }
        Some(_) => return Err(ApiError::body(format!("{place}.tool_calls"), "must be an array")),
    }
    Ok(Message { id: None, role: Role::Assistant, parts })
}

fn read_call(place: &str, call: &Value) -> Result<ToolCall, ApiError> {
    let call = object(place, call)?;
    let id = required(place, call, "id")?;
    let place = format!("{place}.function");
    let function = object(&place, call.get("function").unwrap_or(&Value::Null))?;
    let name = required(&place, function, "name")?;
    let Some(Value::String(arguments)) = function.get("arguments") else {
        return Err(ApiError::body(format!("{place}.arguments"), "must be a string"));
    };
    // what the model wrote may be no JSON
    let input = foreign::from_str(arguments).unwrap_or_else(|_| arguments.clone().into());
    Ok(ToolCall { tool_call_id: id.to_owned(), tool_name: name.to_owned(), input })
}

/// Reads the result of a call of a tool of the client.
fn of_tool(
    place: &str,
    message: &Map<String, Value>,
    open: &mut OpenCalls,
) -> Result<Message, ApiError> {
    let id = required(place, message, "tool_call_id")?;
    let Some((call, _)) = open.0.remove(id) else {
        return Err(ApiError::body(format!("{place}.tool_call_id"), "no earlier call has this id"));
    };
    let text = of_person(place, Role::System, message)?.plain_text();
    let ToolCall { tool_call_id, tool_name, input } = call;
    let outcome = ToolOutcome::Output(text.into());
    let result = ToolResult { tool_call_id, tool_name, input, outcome };
    Ok(Message { id: None, role: Role::Tool, parts: vec![Part::ToolResult(result)] })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: &str, arguments: &str) -> Value {
        json!({ "id": id, "type": "function", "function": { "name": "map", "arguments": arguments } })
    }

    #[test]
    fn every_kind_of_message_is_read() {
        let messages = json!([
            { "role": "developer", "content": [{ "type": "text", "text": "Be" }, { "type": "text", "text": "kind" }] },
            { "role": "user", "name": "ann", "content": [
                { "type": "text", "text": "see" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==", "detail": "low" } },
                { "type": "input_audio", "input_audio": { "data": "AA==", "format": "mp3" } },
                { "type": "file", "file": { "file_data": "AA==", "filename": "a.pdf" } },
            ] },
            { "role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [call("c1", "{\"n\":1}"), call("c2", "{")] },
            { "role": "tool", "tool_call_id": "c2", "content": "b" },
            { "role": "tool", "tool_call_id": "c1", "content": [{ "type": "text", "text": "a" }] },
            { "role": "assistant", "content": [{ "type": "refusal", "refusal": "no" }], "refusal": null },
        ]);
        let read = messages_of(&messages).unwrap();
        let result = |id: &str, input: Value, text: &str| {
            Part::ToolResult(ToolResult {
                tool_call_id: id.to_owned(),
                tool_name: "map".to_owned(),
                input,
                outcome: ToolOutcome::Output(json!(text)),
            })
        };
        let asked = |id: &str, input: Value| {
            let (tool_call_id, tool_name) = (id.to_owned(), "map".to_owned());
            Part::ToolCall(ToolCall { tool_call_id, tool_name, input })
        };
        let text = |text: &str| Part::Text { text: text.to_owned() };
        let expected = [
            (Role::System, vec![text("Be\nkind")]),
            (
                Role::User,
                vec![
                    text("see"),
                    file("image/*", FileSource::Url("data:image/png;base64,AA==".to_owned()), None),
                    file("audio/mpeg", FileSource::Base64("AA==".to_owned()), None),
                    file(
                        "application/octet-stream",
                        FileSource::Base64("AA==".to_owned()),
                        Some("a.pdf".to_owned()),
                    ),
                ],
            ),
            (
                Role::Assistant,
                vec![
                    Part::Reasoning { text: "hm".to_owned() },
                    asked("c1", json!({ "n": 1 })),
                    asked("c2", json!("{")),
                ],
            ),
            (Role::Tool, vec![result("c2", json!("{"), "b")]),
            (Role::Tool, vec![result("c1", json!({ "n": 1 }), "a")]),
            (Role::Assistant, vec![text("no")]),
        ];
        let read: Vec<_> = read.into_iter().map(|message| (message.role, message.parts)).collect();
        assert_eq!(read, expected);
    }

    #[test]
    fn wrong_messages_are_refused_with_their_place() {
        let user = |part: Value| json!([{ "role": "user", "content": [part] }]);
        let asked = json!({ "role": "assistant", "tool_calls": [call("c1", "{}")] });
        let rows = [
            (json!("hello"), "messages: must be an array"),
            (json!([]), "messages: must not be empty"),
            (json!([1]), "messages[0]: must be an object"),
            (json!([{ "content": "a" }]), "messages[0].role: must be a non-empty string"),
            (json!([{ "role": "boss", "content": "a" }]), "messages[0].role: unknown role"),
            (
                json!([{ "role": "user" }]),
                "messages[0].content: must be a string or an array of parts",
            ),
            (
                json!([{ "role": "system", "content": [{ "type": "image_url" }] }]),
                "messages[0].content[0].type: must be \"text\" in this role",
            ),
            (user(json!({ "type": "video" })), "messages[0].content[0].type: unknown type of part"),
            (
                user(json!({ "type": "text", "text": 1 })),
                "messages[0].content[0].text: must be a string",
            ),
            (
                user(json!({ "type": "image_url", "image_url": "x" })),
                "messages[0].content[0].image_url: must be an object",
            ),
            (
                user(
                    json!({ "type": "input_audio", "input_audio": { "format": "ogg", "data": "" } }),
                ),
                "messages[0].content[0].input_audio.format: must be wav or mp3",
            ),
            (json!([asked]), "messages[0].tool_calls[0].id: the call has no result after it"),
            (
                json!([asked, { "role": "user", "content": "a" }]),
                "messages[0].tool_calls[0].id: the call has no result after it",
            ),
            (
                json!([{ "role": "tool", "tool_call_id": "c1", "content": "a" }]),
                "messages[0].tool_call_id: no earlier call has this id",
            ),
            (
                json!([{ "role": "assistant", "tool_calls": [call("c1", "{}"), call("c1", "{}")] }]),
                "messages[0].tool_calls[1].id: `c1` is the id of another open call",
            ),
            (
                json!([{ "role": "assistant", "tool_calls": [{ "id": "c1" }] }]),
                "messages[0].tool_calls[0].function: must be an object",
            ),
        ];
        for (messages, what) in rows {
            let refused = messages_of(&messages).unwrap_err().to_string();
            assert_eq!(refused, format!("Invalid request body: {what}"), "{messages}");
        }
        let rows = [
            (
                user(json!({ "type": "file", "file": { "file_id": "f" } })),
                "messages[0].content[0].file.file_id is not supported: send the file in `file_data`",
            ),
            (
                json!([{ "role": "function", "name": "f", "content": "a" }]),
                "messages[0].role is not supported: send results as messages of the role \"tool\"",
            ),
        ];
        for (messages, text) in rows {
            assert_eq!(messages_of(&messages).unwrap_err().to_string(), text);
        }
    }
}
