//! What agents are asked: texts, messages, objects, chats.

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
/// An id, or the empty text that counts as none.
const ID_OR_NOTHING: &str = r"^(?!\.{1,2}$)[^\u0000-\u001f\u007f-\u009f/]*$";
const JSON_SCHEMA: &str = "JsonSchema";

/// What an object is asked with.
pub(super) fn object_example() -> Value {
    json!({
        "input": "Describe Ada",
        "schema": { "type": "object", "required": ["name"],
                    "properties": { "name": { "type": "string" } } },
    })
}

/// Adds the schemas of bodies. They are plain, so that the makers of clients know what to do with
/// them: which parts a message of a role may have is left to the refusals.
pub(super) fn add(components: &mut Components) {
    components.of::<GenerationOptions>();
    components.add(UI_PART, ui_part);
    components.add(UI_INPUT, ui_message);
    components.add(MODEL_PART, model_part);
    components.add(MODEL_INPUT, model_message);
    components.add(INPUT, input);
    components.add(JSON_SCHEMA, json_schema);
    let asked = || parts::reference("schemas", INPUT);
    components.add(GENERATION, || {
        titled(GENERATION, &["input"], json!({ "input": asked(), "options": options() }))
    });
    components.add(OBJECT, || {
        let schema = parts::reference("schemas", JSON_SCHEMA);
        let properties = json!({ "input": asked(), "schema": schema, "options": options() });
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

fn input() -> Value {
    json!({
        "title": INPUT,
        "description": "A text, UI messages or model messages; not mixed.",
        "anyOf": [
            { "title": "InputText", "type": "string" },
            messages("UiInputMessages", UI_INPUT),
            messages("ModelInputMessages", MODEL_INPUT),
        ],
    })
}

/// The body of this server or the one that the AI SDK sends unless it is told otherwise.
fn chat() -> Value {
    let mut chat = titled(
        CHAT,
        &[],
        json!({
            "input": parts::reference("schemas", INPUT),
            "messages": messages("ChatMessages", UI_INPUT),
            "id": { "type": "string", "minLength": 1, "maxLength": 200, "pattern": ID_PATTERN,
                    "description": "The conversation, unless the options name one." },
            "options": options(),
        }),
    );
    chat["description"] = json!("`input`, or in its place `messages`: the whole conversation.");
    chat
}

fn filled(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn said(description: &str) -> Value {
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
            "type": filled(types),
            "text": said("Of `text` and `reasoning`."),
            "url": filled("Of `file`."),
            "mediaType": said("Of `file`."),
            "filename": said("Of `file`."),
            "toolCallId": filled("Of a call of a tool."),
            "toolName": filled("Of `dynamic-tool`."),
            "state": said("How far a call is."),
            "input": of_any_type("What the tool was called with."),
            "output": of_any_type("What it gave."),
            "errorText": said("Why it gave nothing."),
        }),
    );
    part["description"] = json!("What else a part has is ignored.");
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
    message["description"] = json!("A message as the AI SDK's user interfaces keep it.");
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
            "text": said("Of `text` and `reasoning`."),
            "image": filled("An address, or data in base64."),
            "data": filled("Of `file`: an address, or data in base64."),
            "mediaType": said("Of `image` and `file`."),
            "toolCallId": filled("Of a call and of its result."),
            "toolName": filled("Of a call and of its result."),
            "input": of_any_type("What the tool was called with."),
            "output": of_any_type("What it gave."),
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
        json!("A message as models take it. Each call of a tool is followed by its result.");
    message["examples"] = json!([{ "role": "user", "content": "hello" }]);
    message
}

/// What a schema of an object may be: the words that most are made of.
fn json_schema() -> Value {
    let own = || json!({ "type": ["object", "boolean"], "description": "A JSON Schema" });
    json!({
        "type": "object",
        "description": "A JSON Schema with all words of draft 2020-12, or of the draft that it \
                        names. Nothing outside of it may be referred to.",
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
