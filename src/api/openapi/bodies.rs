//! Schemas of bodies of requests to agents.

use serde_json::{Value, json};

use super::components::Components;
use super::parts;
use crate::api::wire::agent::GenerationOptions;
use crate::api::wire::shape::ID_PATTERN;

pub(super) const GENERATION: &str = "GenerationRequest";
pub(super) const OBJECT: &str = "ObjectRequest";
pub(super) const CHAT: &str = "ChatRequest";
const INPUT: &str = "AgentInput";
const UI_INPUT: &str = "UiInputMessage";
const UI_PART: &str = "UiInputPart";
const MODEL_INPUT: &str = "ModelInputMessage";
const MODEL_PART: &str = "ModelInputPart";
/// An id, or an empty string, which counts as none.
const ID_OR_NOTHING: &str = r"^(?!\.{1,2}$)[^\u0000-\u001f\u007f-\u009f/]*$";
const JSON_SCHEMA: &str = "JsonSchema";

/// Returns an example of a request for an object.
pub(super) fn object_example() -> Value {
    json!({
        "input": "Describe Ada",
        "schema": { "type": "object", "required": ["name"],
                    "properties": { "name": { "type": "string" } } },
    })
}

/// Adds the schemas of bodies. They are simple enough for generators of clients; the server also
/// refuses parts that do not fit the role of their message.
pub(super) fn add(components: &mut Components) {
    components.body::<GenerationOptions>();
    components.add(UI_PART, ui_part);
    components.add(UI_INPUT, ui_message);
    components.add(MODEL_PART, model_part);
    components.add(MODEL_INPUT, model_message);
    components.add(INPUT, agent_input);
    components.add(JSON_SCHEMA, json_schema);
    let input = || parts::reference("schemas", INPUT);
    components.add(GENERATION, || {
        titled(GENERATION, &["input"], json!({ "input": input(), "options": options() }))
    });
    components.add(OBJECT, || {
        let schema = parts::reference("schemas", JSON_SCHEMA);
        let properties = json!({ "input": input(), "schema": schema, "options": options() });
        titled(OBJECT, &["input", "schema"], properties)
    });
    components.add(CHAT, chat);
}

fn options() -> Value {
    json!({ "oneOf": [{ "type": "null" }, parts::reference("schemas", "GenerationOptions")] })
}

fn titled(title: &str, required: &[&str], properties: Value) -> Value {
    let mut object = json!({ "title": title, "type": "object" });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object["properties"] = properties;
    object
}

fn messages(title: &str, of: &str) -> Value {
    json!({ "title": title, "type": "array", "minItems": 1,
            "items": parts::reference("schemas", of) })
}

fn agent_input() -> Value {
    json!({
        "title": INPUT,
        "description": "A text, UI messages or model messages, not mixed.",
        "anyOf": [
            { "title": "InputText", "type": "string" },
            messages("UiInputMessages", UI_INPUT),
            messages("ModelInputMessages", MODEL_INPUT),
        ],
    })
}

/// Returns the body of a chat: that of this server, or the default one of the AI SDK.
fn chat() -> Value {
    let mut chat = titled(
        CHAT,
        &[],
        json!({
            "input": parts::reference("schemas", INPUT),
            "messages": messages("ChatMessages", UI_INPUT),
            "id": { "type": "string", "minLength": 1, "maxLength": 200, "pattern": ID_PATTERN,
                    "description": "Id of the conversation, unless the options name one." },
            "options": options(),
        }),
    );
    chat["description"] = json!("Either `input`, or `messages` with the whole conversation.");
    chat
}

fn non_empty(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn of_any_type(description: &str) -> Value {
    json!({ "description": description })
}

fn ui_part() -> Value {
    let types = "`text`, `reasoning`, `file`, `tool-<name>`, `dynamic-tool`, `step-start`, \
                 `source-url`, `source-document` or `data-<name>`";
    let mut part = titled(
        UI_PART,
        &["type"],
        json!({
            "type": non_empty(types),
            "text": text("For `text` and `reasoning`."),
            "url": non_empty("For `file`."),
            "mediaType": text("For `file`."),
            "filename": text("For `file`."),
            "toolCallId": non_empty("For tool calls."),
            "toolName": non_empty("For `dynamic-tool`."),
            "state": text("State of the call."),
            "input": of_any_type("Input of the tool."),
            "output": of_any_type("Output of the tool."),
            "errorText": text("Error of the tool."),
        }),
    );
    part["description"] = json!("Other keys are ignored.");
    part
}

fn ui_message() -> Value {
    let mut message = titled(
        UI_INPUT,
        &["role", "parts"],
        json!({
            "id": { "type": "string", "maxLength": 200, "pattern": ID_OR_NOTHING },
            "role": { "type": "string", "enum": ["system", "user", "assistant"] },
            "parts": { "type": "array", "items": parts::reference("schemas", UI_PART) },
        }),
    );
    message["description"] = json!("A UI message of the AI SDK.");
    message["examples"] =
        json!([{ "role": "user", "parts": [{ "type": "text", "text": "hello" }] }]);
    message
}

fn model_part() -> Value {
    titled(
        MODEL_PART,
        &["type"],
        json!({
            "type": { "type": "string", "enum": ["text", "reasoning", "image", "file",
                                                 "tool-call", "tool-result"] },
            "text": text("For `text` and `reasoning`."),
            "image": non_empty("URL, or data in Base64."),
            "data": non_empty("For `file`: URL, or data in Base64."),
            "mediaType": text("For `image` and `file`."),
            "toolCallId": non_empty("For tool calls and results."),
            "toolName": non_empty("For tool calls and results."),
            "input": of_any_type("Input of the tool."),
            "output": of_any_type("Output of the tool."),
        }),
    )
}

fn model_message() -> Value {
    let list = json!({ "title": "ModelInputParts", "type": "array",
                       "items": parts::reference("schemas", MODEL_PART) });
    let text = json!({ "title": "ModelInputText", "type": "string" });
    let mut message = titled(
        MODEL_INPUT,
        &["role", "content"],
        json!({
            "role": { "type": "string", "enum": ["system", "user", "assistant", "tool"] },
            "content": { "title": "ModelInputContent", "anyOf": [text, list] },
        }),
    );
    message["description"] =
        json!("A model message. Each tool call must be followed by its result.");
    message["examples"] = json!([{ "role": "user", "content": "hello" }]);
    message
}

/// Returns the schema of JSON Schemas, with the most common keywords.
fn json_schema() -> Value {
    let own = || json!({ "type": ["object", "boolean"], "description": "A JSON Schema" });
    json!({
        "type": "object",
        "description": "A JSON Schema with all keywords of draft 2020-12, or of the draft that it \
                        names. References to other documents are refused.",
        "properties": {
            "type": {
                "type": "string",
                "enum": ["object", "array", "string", "number", "integer", "boolean", "null"],
            },
            "description": { "type": "string" },
            "properties": { "type": "object", "additionalProperties": own() },
            "required": { "type": "array", "uniqueItems": true, "items": { "type": "string" } },
            "items": own(),
        },
    })
}
