//! Gemini's `generateContent`.

mod reader;

use greenroom_actors::agent::tool::Content;
use greenroom_actors::domain::message::{FileSource, Part, Role, ToolOutcome};
use greenroom_actors::ports::model::Message;
use greenroom_actors::ports::model::{ModelError, ToolChoice};
use serde_json::{Map, Value, json};

pub(super) use self::reader::GeminiReader;

use super::fields::{add_turn, set};
use super::files::typed;
use super::prompt::{Object, Prompt};
use super::result_files::ResultFile;
use super::schema::parameters;

/// Provider name in the state that is sent back with later turns.
pub(super) const STATE: &str = "gemini";

/// Signature of a call that has none, because another model made it or a client sent it back.
/// Source: Google's guide to thought signatures, which has it for calls without a known signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Returns the path of a model below the base URL.
pub(super) fn path(model: &str, streams: bool) -> Vec<String> {
    let method = if streams { "streamGenerateContent" } else { "generateContent" };
    let model = format!("{model}:{method}");
    match model.split_once('/') {
        // `tunedModels/mine`
        Some((kind, name)) => vec![kind.to_owned(), name.to_owned()],
        None => vec!["models".to_owned(), model],
    }
}

/// Returns the request body.
#[expect(clippy::unnecessary_wraps, reason = "other formats refuse some messages")]
pub(super) fn body(prompt: &Prompt<'_>) -> Result<Value, ModelError> {
    let mut system = Vec::new();
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    let asked_at = prompt.messages.iter().rposition(|message| message.role == Role::User);
    for (at, message) in prompt.messages.iter().enumerate() {
        let (role, parts) = match message.role {
            Role::System => {
                system.push(json!({ "text": message.plain_text() }));
                continue;
            }
            Role::User => ("user", user_parts(message)),
            Role::Assistant => {
                let mut parts = model_parts(prompt, message);
                if asked_at < Some(at) && requires_signatures(prompt.model) {
                    sign_first_call(&mut parts);
                }
                ("model", parts)
            }
            Role::Tool => ("user", results(prompt, message)),
        };
        add_turn(&mut contents, role, parts);
    }
    let contents = contents.into_iter();
    let contents = contents.map(|(role, parts)| json!({ "role": role, "parts": parts }));
    let mut body = Map::new();
    body.insert("contents".to_owned(), contents.collect());
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({ "parts": system }));
    }
    if !prompt.tools.is_empty() {
        let tools = prompt.tools.iter().map(|tool| {
            json!({
                "name": prompt.names.wire(&tool.name),
                "description": tool.description,
                "parametersJsonSchema": parameters(&tool.parameters),
            })
        });
        let tools = json!([{ "functionDeclarations": tools.collect::<Value>() }]);
        body.insert("tools".to_owned(), tools);
        let mut forced = json!({ "mode": "ANY" });
        if let ToolChoice::Tool(name) = prompt.tool_choice {
            forced["allowedFunctionNames"] = json!([prompt.names.wire(name)]);
        }
        if *prompt.tool_choice != ToolChoice::Auto {
            body.insert("toolConfig".to_owned(), json!({ "functionCallingConfig": forced }));
        }
    }
    body.insert("generationConfig".to_owned(), generation_config(prompt));
    Ok(Value::Object(body))
}

fn generation_config(prompt: &Prompt<'_>) -> Value {
    let options = &prompt.options;
    let mut config = Map::new();
    set(&mut config, "temperature", options.temperature);
    set(&mut config, "topP", options.top_p);
    set(&mut config, "maxOutputTokens", options.max_output_tokens);
    set(&mut config, "frequencyPenalty", options.frequency_penalty);
    set(&mut config, "presencePenalty", options.presence_penalty);
    set(&mut config, "seed", options.seed);
    set(&mut config, "stopSequences", options.stop_sequences.as_ref().filter(|it| !it.is_empty()));
    let is_json = prompt.object != Object::No;
    set(&mut config, "responseMimeType", is_json.then_some("application/json"));
    if let Object::Schema(schema) = prompt.object {
        config.insert("responseJsonSchema".to_owned(), schema.clone());
    }
    Value::Object(config)
}

fn user_parts(message: &Message) -> Vec<Value> {
    let parts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(json!({ "text": text })),
        Part::File { media_type, source, .. } => {
            let (media_type, source) = typed(media_type, source);
            Some(match &*source {
                FileSource::Url(url) => {
                    json!({ "fileData": { "mimeType": media_type, "fileUri": url } })
                }
                FileSource::Base64(data) => {
                    json!({ "inlineData": { "mimeType": media_type, "data": data } })
                }
            })
        }
        Part::Reasoning { .. }
        | Part::ToolCall(_)
        | Part::ToolResult(_)
        | Part::ToolApproval(_)
        | Part::ProviderState { .. } => None,
    });
    parts.collect()
}

/// Puts signatures back on the parts that they came with.
fn model_parts(prompt: &Prompt<'_>, message: &Message) -> Vec<Value> {
    let state = message.parts.iter().find_map(|part| match part {
        Part::ProviderState { provider, state } if provider == STATE => Some(state),
        _ => None,
    });
    let signed = |mut part: Value, signature: Option<&Value>| {
        if let Some(signature) = signature {
            part["thoughtSignature"] = signature.clone();
        }
        part
    };
    let text = message.plain_text();
    let text_signature = state.and_then(|state| state.get("text"));
    let mut parts = Vec::new();
    if !text.is_empty() || text_signature.is_some() {
        parts.push(signed(json!({ "text": text }), text_signature));
    }
    parts.extend(message.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => {
            let name = prompt.names.wire(&call.tool_name);
            let args = match &call.input {
                Value::Object(_) => call.input.clone(),
                other => json!({ "value": other }),
            };
            let signature = state.and_then(|state| state.get("calls")?.get(&call.tool_call_id));
            Some(signed(json!({ "functionCall": { "name": name, "args": args } }), signature))
        }
        _ => None,
    }));
    parts
}

/// Returns true if the model refuses unsigned calls after the newest message of the user.
fn requires_signatures(model: &str) -> bool {
    let model = model.rsplit('/').next().unwrap_or_default();
    model.starts_with("gemini-") && !["gemini-1", "gemini-2"].iter().any(|it| model.starts_with(it))
}

/// Signs the first call if it has no signature; the calls beside it need none.
fn sign_first_call(parts: &mut [Value]) {
    let call = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(call) = call.filter(|call| call.get("thoughtSignature").is_none()) {
        call["thoughtSignature"] = NO_SIGNATURE.into();
    }
}

/// Returns results, and after them the files in them, for which the format of a result has no place that
/// all models know.
fn results(prompt: &Prompt<'_>, message: &Message) -> Vec<Value> {
    let mut files = Vec::new();
    let results = message.parts.iter().filter_map(|part| match part {
        Part::ToolResult(result) => {
            let name = prompt.names.wire(&result.tool_name);
            let response = match &result.outcome {
                ToolOutcome::Output(output) => match Content::blocks(output) {
                    Some(blocks) => {
                        let taken: Vec<_> = blocks.iter().filter_map(result_file).collect();
                        if !taken.is_empty() {
                            files
                                .push(json!({ "text": format!("Files in the result of {name}:") }));
                            files.extend(taken);
                        }
                        json!({ "output": Content::described(output) })
                    }
                    None => json!({ "output": output }),
                },
                ToolOutcome::Error(error) | ToolOutcome::Denied(error) => json!({ "error": error }),
            };
            Some(json!({ "functionResponse": { "name": name, "response": response } }))
        }
        _ => None,
    });
    let mut parts: Vec<_> = results.collect();
    parts.append(&mut files);
    parts
}

/// Returns a file of a result, if models take it.
fn result_file(block: &Value) -> Option<Value> {
    let ResultFile { media_type, data } = ResultFile::of(block)?;
    // the one type of pictures that they do not take
    (media_type != "image/gif")
        .then(|| json!({ "inlineData": { "mimeType": media_type, "data": data } }))
}
