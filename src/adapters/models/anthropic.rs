//! Anthropic's messages.
//!
//! The format has no place for penalties and a seed: they are left out.

mod reader;

use greenroom_actors::agent::tool::Content;
use greenroom_actors::domain::message::{FileSource, Part, Role, ToolOutcome};
use greenroom_actors::ports::model::{Message, ModelError, ToolChoice};
use serde_json::{Map, Value, json};

pub(super) use self::reader::AnthropicReader;

use super::fields::{add_turn, set};
use super::files::{refused_file, typed};
use super::prompt::{Object, Prompt};
use super::result_files::ResultFile;
use super::schema::parameters;

/// Version of the format, sent with each request.
pub(super) const VERSION: &str = "2023-06-01";

/// Tool that the model is forced to call for an object: its arguments are the answer.
pub(super) const ANSWER_TOOL: &str = "answer_with_object";

/// Provider name in the state that is sent back with later turns.
pub(super) const STATE: &str = "anthropic";

/// Default of the limit, which the format requires; the specification's default.
const MAX_TOKENS: u64 = 4000;

/// Returns the request body.
pub(super) fn body(prompt: &Prompt<'_>) -> Result<Value, ModelError> {
    let mut system = Vec::new();
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &prompt.messages {
        let (role, content) = match message.role {
            Role::System => {
                system.extend(text_block(&message.plain_text()));
                continue;
            }
            Role::User => ("user", user_content(prompt, message)?),
            Role::Assistant => ("assistant", assistant_content(prompt, message)),
            Role::Tool => ("user", results(message)),
        };
        add_turn(&mut messages, role, content);
    }
    let messages = messages.into_iter();
    let messages = messages.map(|(role, content)| json!({ "role": role, "content": content }));
    let mut body = Map::new();
    body.insert("model".to_owned(), prompt.model.into());
    let options = &prompt.options;
    set(&mut body, "max_tokens", Some(options.max_output_tokens.unwrap_or(MAX_TOKENS)));
    set(&mut body, "system", Some(system).filter(|system| !system.is_empty()));
    body.insert("messages".to_owned(), messages.collect());
    set(&mut body, "stream", prompt.streams.then_some(true));
    set(&mut body, "temperature", options.temperature);
    set(&mut body, "top_p", options.top_p);
    set(&mut body, "stop_sequences", options.stop_sequences.as_ref().filter(|it| !it.is_empty()));
    set_tools(&mut body, prompt);
    Ok(Value::Object(body))
}

fn set_tools(body: &mut Map<String, Value>, prompt: &Prompt<'_>) {
    let tools = prompt.tools.iter().map(|tool| {
        json!({
            "name": prompt.names.wire(&tool.name),
            "description": tool.description,
            "input_schema": parameters(&tool.parameters),
        })
    });
    let mut tools: Vec<Value> = tools.collect();
    if let Object::Schema(schema) = prompt.object {
        tools.push(json!({ "name": ANSWER_TOOL, "description": "Gives the answer",
                           "input_schema": schema }));
        let choice = json!({ "type": "tool", "name": ANSWER_TOOL });
        body.insert("tool_choice".to_owned(), choice);
    }
    let is_one_by_one = prompt.calls_one_by_one();
    let mut choice = match prompt.tool_choice {
        ToolChoice::Auto => is_one_by_one.then(|| json!({ "type": "auto" })),
        ToolChoice::Required => Some(json!({ "type": "any" })),
        ToolChoice::Tool(name) => Some(json!({ "type": "tool", "name": prompt.names.wire(name) })),
    };
    if let Some(choice) = choice.as_mut().filter(|_| is_one_by_one) {
        choice["disable_parallel_tool_use"] = true.into();
    }
    set(body, "tool_choice", choice);
    set(body, "tools", Some(tools).filter(|tools| !tools.is_empty()));
}

/// Makes a block of text; `None` for an empty one, which the format refuses.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn user_content(prompt: &Prompt<'_>, message: &Message) -> Result<Vec<Value>, ModelError> {
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text } => content.extend(text_block(text)),
            Part::File { media_type, source, .. } => {
                let (media_type, source) = typed(media_type, source);
                content.push(file(prompt, &media_type, &source)?);
            }
            Part::Reasoning { .. }
            | Part::ToolCall(_)
            | Part::ToolResult(_)
            | Part::ToolApproval(_)
            | Part::ProviderState { .. } => {}
        }
    }
    Ok(content)
}

fn file(prompt: &Prompt<'_>, media_type: &str, source: &FileSource) -> Result<Value, ModelError> {
    let kind = match media_type {
        image if image.starts_with("image/") => "image",
        "application/pdf" => "document",
        other => return Err(refused_file(prompt.provider, other, "images and PDF documents")),
    };
    let source = match source {
        FileSource::Url(url) => json!({ "type": "url", "url": url }),
        FileSource::Base64(data) => {
            json!({ "type": "base64", "media_type": media_type, "data": data })
        }
    };
    Ok(json!({ "type": kind, "source": source }))
}

/// Returns reasoning first: the format requires it before the content that followed from it.
fn assistant_content(prompt: &Prompt<'_>, message: &Message) -> Vec<Value> {
    let thoughts = message.parts.iter().filter_map(|part| match part {
        Part::ProviderState { provider, state } if provider == STATE => state["blocks"].as_array(),
        _ => None,
    });
    let mut content: Vec<Value> = thoughts.flatten().cloned().collect();
    content.extend(message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => text_block(text),
        Part::ToolCall(call) => Some(json!({
            "type": "tool_use",
            "id": fitting_id(&call.tool_call_id),
            "name": prompt.names.wire(&call.tool_name),
            // the format accepts only objects
            "input": match &call.input {
                Value::Object(_) => call.input.clone(),
                other => json!({ "value": other }),
            },
        })),
        Part::Reasoning { .. }
        | Part::File { .. }
        | Part::ToolResult(_)
        | Part::ToolApproval(_)
        | Part::ProviderState { .. } => None,
    }));
    content
}

fn results(message: &Message) -> Vec<Value> {
    let results = message.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => {
            let id = fitting_id(&result.tool_call_id);
            Some(match &result.outcome {
                ToolOutcome::Output(output) => {
                    let content = shown(output);
                    json!({ "type": "tool_result", "tool_use_id": id, "content": content })
                }
                ToolOutcome::Error(error) | ToolOutcome::Denied(error) => {
                    json!({ "type": "tool_result", "tool_use_id": id,
                                                     "content": error, "is_error": true })
                }
            })
        }
        _ => None,
    });
    results.collect()
}

/// Returns a result as text, or as blocks if there are pictures or documents in it.
fn shown(output: &Value) -> Value {
    let Some(blocks) = Content::blocks(output) else {
        return match output {
            Value::String(text) => Value::from(text.as_str()),
            output => Value::from(output.to_string()),
        };
    };
    let content = blocks
        .iter()
        .filter_map(|block| result_file(block).or_else(|| text_block(&Content::describe(block))));
    let content: Vec<Value> = content.collect();
    match content.iter().all(|block| block["type"] == "text") {
        true => Value::from(Content::described(output).unwrap_or_default()),
        false => Value::Array(content),
    }
}

/// Returns a file of a result, if the format takes it.
fn result_file(block: &Value) -> Option<Value> {
    let ResultFile { media_type, data } = ResultFile::of(block)?;
    let kind = match media_type {
        "application/pdf" => "document",
        picture if picture.starts_with("image/") => "image",
        _ => return None,
    };
    let source = json!({ "type": "base64", "media_type": media_type, "data": data });
    Some(json!({ "type": kind, "source": source }))
}

/// Replaces characters that the format refuses; ids of other providers may have them.
fn fitting_id(id: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    id.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}
