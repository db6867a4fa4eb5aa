//! OpenAI's chat completions, a format of many servers.

mod reader;

use greenroom_actors::agent::tool::Content;
use greenroom_actors::domain::message::{FileSource, Part, Role, ToolOutcome};
use greenroom_actors::ports::model::{Message, ModelError, ToolChoice};
use serde_json::{Map, Value, json};

pub(super) use self::reader::OpenAiReader;

use super::fields::set;
use super::files::{data_url, refused_file, typed};
use super::prompt::{Object, Prompt};
use super::provider::DEEPSEEK;
use super::schema::{is_strict, parameters};

/// Field in which some servers put reasoning.
const REASONING: &str = "reasoning_content";

/// Returns the request body.
pub(super) fn body(prompt: &Prompt<'_>) -> Result<Value, ModelError> {
    let mut messages = Vec::with_capacity(prompt.messages.len());
    for message in &prompt.messages {
        push_message(prompt, message, &mut messages)?;
    }
    let mut body = Map::new();
    body.insert("model".to_owned(), prompt.model.into());
    body.insert("messages".to_owned(), messages.into());
    if prompt.streams {
        body.insert("stream".to_owned(), true.into());
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    if !prompt.tools.is_empty() {
        let tools = prompt.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": prompt.names.wire(&tool.name),
                "description": tool.description,
                "parameters": parameters(&tool.parameters),
            } })
        });
        body.insert("tools".to_owned(), tools.collect());
        let choice = match prompt.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Required => Some(json!("required")),
            ToolChoice::Tool(name) => {
                let name = prompt.names.wire(name);
                Some(json!({ "type": "function", "function": { "name": name } }))
            }
        };
        set(&mut body, "tool_choice", choice);
        // the default needs no word, which some models refuse
        set(&mut body, "parallel_tool_calls", prompt.calls_one_by_one().then_some(false));
    }
    let options = &prompt.options;
    // OpenAI's newer models refuse the old name, other servers do not know the new one
    let longest = if prompt.is_openai { "max_completion_tokens" } else { "max_tokens" };
    set(&mut body, longest, options.max_output_tokens);
    set(&mut body, "temperature", options.temperature);
    set(&mut body, "top_p", options.top_p);
    set(&mut body, "frequency_penalty", options.frequency_penalty);
    set(&mut body, "presence_penalty", options.presence_penalty);
    set(&mut body, "seed", options.seed);
    set(&mut body, "stop", options.stop_sequences.as_ref().filter(|stops| !stops.is_empty()));
    let response_format = match prompt.object {
        Object::No => None,
        Object::AnyJson => Some(json!({ "type": "json_object" })),
        Object::Schema(schema) => Some(json!({ "type": "json_schema", "json_schema": {
            "name": "answer", "schema": schema, "strict": is_strict(schema) } })),
    };
    set(&mut body, "response_format", response_format);
    Ok(Value::Object(body))
}

fn push_message(
    prompt: &Prompt<'_>,
    message: &Message,
    messages: &mut Vec<Value>,
) -> Result<(), ModelError> {
    match message.role {
        Role::System => {
            messages.push(json!({ "role": "system", "content": message.plain_text() }));
        }
        Role::User => {
            messages.push(json!({ "role": "user", "content": user_content(prompt, message)? }));
        }
        Role::Assistant => messages.extend(assistant(prompt, message)),
        Role::Tool => messages.extend(message.parts.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(json!({
                "role": "tool",
                "tool_call_id": result.tool_call_id,
                "content": shown(&result.outcome),
            })),
            _ => None,
        })),
    }
    Ok(())
}

/// Formats a result as text; the format has no flag for errors, and no place for files in results.
fn shown(outcome: &ToolOutcome) -> String {
    match outcome {
        ToolOutcome::Output(Value::String(text)) => text.clone(),
        ToolOutcome::Output(output) => {
            Content::described(output).unwrap_or_else(|| output.to_string())
        }
        ToolOutcome::Error(message) | ToolOutcome::Denied(message) => {
            json!({ "error": message }).to_string()
        }
    }
}

fn assistant(prompt: &Prompt<'_>, message: &Message) -> Option<Value> {
    let calls = message.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(json!({
            "id": call.tool_call_id,
            "type": "function",
            "function": {
                "name": prompt.names.wire(&call.tool_name),
                "arguments": match &call.input {
                    Value::String(text) => text.clone(),
                    input => input.to_string(),
                },
            },
        })),
        _ => None,
    });
    let calls: Vec<Value> = calls.collect();
    let text = message.plain_text();
    if text.is_empty() && calls.is_empty() {
        return None;
    }
    let content = if text.is_empty() { Value::Null } else { Value::from(text) };
    let mut answer = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        answer["tool_calls"] = Value::Array(calls);
    }
    if let Some(thoughts) = required_thoughts(prompt, message) {
        answer[REASONING] = thoughts;
    }
    Some(answer)
}

/// Returns the reasoning that the server requires back.
fn required_thoughts(prompt: &Prompt<'_>, message: &Message) -> Option<Value> {
    let state = message.parts.iter().find_map(|part| match part {
        Part::ProviderState { provider, state } if provider == prompt.provider => {
            state.get(REASONING).cloned()
        }
        _ => None,
    });
    state.or_else(|| {
        // It refuses a conversation in which a turn with calls lacks it: an earlier run's, for which
        // no state is kept, or one without thoughts. Source: its guide to the thinking mode.
        (prompt.provider == DEEPSEEK).then_some(())?;
        let thoughts = message.parts.iter().filter_map(|part| match part {
            Part::Reasoning { text } => Some(text.as_str()),
            _ => None,
        });
        let thoughts: String = thoughts.collect();
        let has_calls = message.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        (has_calls || !thoughts.is_empty()).then(|| thoughts.into())
    })
}

fn user_content(prompt: &Prompt<'_>, message: &Message) -> Result<Value, ModelError> {
    if message.parts.iter().all(|part| matches!(part, Part::Text { .. })) {
        return Ok(message.plain_text().into());
    }
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => content.push(json!({ "type": "text", "text": text })),
            Part::File { media_type, source, filename } => {
                let (media_type, source) = typed(media_type, source);
                content.push(file(prompt, &media_type, &source, filename.as_deref())?);
            }
            Part::Reasoning { .. }
            | Part::ToolCall(_)
            | Part::ToolResult(_)
            | Part::ToolApproval(_)
            | Part::ProviderState { .. } => {}
        }
    }
    Ok(Value::Array(content))
}

fn file(
    prompt: &Prompt<'_>,
    media_type: &str,
    source: &FileSource,
    filename: Option<&str>,
) -> Result<Value, ModelError> {
    match (media_type, source) {
        (image, FileSource::Url(url)) if image.starts_with("image/") => {
            Ok(json!({ "type": "image_url", "image_url": { "url": url } }))
        }
        (image, FileSource::Base64(data)) if image.starts_with("image/") => {
            let url = data_url(image, data);
            Ok(json!({ "type": "image_url", "image_url": { "url": url } }))
        }
        ("audio/wav" | "audio/x-wav", FileSource::Base64(data)) => Ok(sound("wav", data)),
        ("audio/mpeg" | "audio/mp3", FileSource::Base64(data)) => Ok(sound("mp3", data)),
        (other, FileSource::Base64(data)) => Ok(json!({ "type": "file", "file": {
            "filename": filename.unwrap_or("file"), "file_data": data_url(other, data) } })),
        (other, FileSource::Url(_)) => {
            Err(refused_file(prompt.provider, other, "only images by URL"))
        }
    }
}

fn sound(format: &str, data: &str) -> Value {
    json!({ "type": "input_audio", "input_audio": { "data": data, "format": format } })
}
