//! What agents are asked: texts, messages, objects, chats.

use serde_json::{Value, json};

use super::components::Components;
use super::parts;
use crate::api::wire::agent::GenerationOptions;
use crate::api::wire::shape::ID_PATTERN;

pub(super) const GENERATION: &str = "GenerationRequest";
pub(super) const OBJECT: &str = "ObjectRequest";
pub(super) const CHAT: &str = "ChatRequest";
const UI_INPUT: &str = "UiInputMessage";
const MODEL_INPUT: &str = "ModelInputMessage";
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

/// Adds the schemas of bodies.
pub(super) fn add(components: &mut Components) {
    components.of::<GenerationOptions>();
    components.add(UI_INPUT, ui_message);
    components.add(MODEL_INPUT, model_message);
    components.add(JSON_SCHEMA, json_schema);
    components.add(GENERATION, || request(json!({ "input": input() }), &["input"]));
    components.add(OBJECT, || {
        let schema = parts::reference("schemas", JSON_SCHEMA);
        request(json!({ "input": input(), "schema": schema }), &["input", "schema"])
    });
    components.add(CHAT, chat);
}

fn request(mut properties: Value, required: &[&str]) -> Value {
    let options = parts::reference("schemas", "GenerationOptions");
    properties["options"] = json!({ "oneOf": [{ "type": "null" }, options] });
    json!({ "type": "object", "required": required, "properties": properties })
}

/// Messages of one form; `said` is what at least one of them is.
fn messages(name: &str, said: Value) -> Value {
    let mut messages = json!({ "type": "array", "minItems": 1,
                               "items": parts::reference("schemas", name) });
    messages["contains"] = said;
    messages
}

/// Marks of a user interface, and calls without an outcome, are nothing that a model could use.
fn ui_messages() -> Value {
    let tool = json!({ "type": "string", "pattern": "^(tool-|dynamic-tool$)" });
    let outcome = json!([{ "required": ["output"] }, { "required": ["errorText"] },
                         { "required": ["error"] }]);
    let said = json!({ "required": ["type"], "anyOf": [
        { "properties": { "type": kinds(&["text", "reasoning", "file"]) } },
        { "properties": { "type": tool }, "anyOf": outcome },
    ] });
    let parts = json!({ "type": "array", "contains": said });
    messages(UI_INPUT, json!({ "required": ["parts"], "properties": { "parts": parts } }))
}

fn model_messages() -> Value {
    let content = json!({ "type": ["string", "array"], "minItems": 1 });
    messages(MODEL_INPUT, json!({ "required": ["content"], "properties": { "content": content } }))
}

fn input() -> Value {
    json!({
        "description": "A text, UI messages or model messages; not mixed.",
        "anyOf": [{ "type": "string" }, ui_messages(), model_messages()],
    })
}

/// The body of this server or the one that the AI SDK sends unless it is told otherwise.
fn chat() -> Value {
    let mut chat = request(
        json!({
            "input": input(),
            "messages": { "description": "The whole conversation, in place of `input`." },
            "id": { "type": "string", "minLength": 1, "maxLength": 200, "pattern": ID_PATTERN,
                    "description": "The conversation, unless the options name one." },
        }),
        &[],
    );
    let messages = json!({ "anyOf": [{ "type": "string" }, ui_messages(), model_messages()] });
    chat["anyOf"] = json!([
        { "required": ["input"] },
        { "required": ["messages"], "properties": { "messages": messages } },
    ]);
    chat
}

fn filled() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn kinds(kinds: &[&str]) -> Value {
    json!({ "type": "string", "enum": kinds })
}

fn part(kind: Value, required: &[&str], mut properties: Value) -> Value {
    properties["type"] = kind;
    let required: Vec<_> = ["type"].iter().chain(required).collect();
    json!({ "type": "object", "required": required, "properties": properties })
}

fn text_part(names: &[&str]) -> Value {
    part(kinds(names), &["text"], json!({ "text": { "type": "string" } }))
}

fn ui_message() -> Value {
    let tool = |kind: Value, required: &[&str]| {
        let mut properties = json!({
            "toolCallId": filled(), "input": {}, "output": {}, "errorText": {},
        });
        if required.contains(&"toolName") {
            properties["toolName"] = filled();
        }
        part(kind, required, properties)
    };
    let file = || part(kinds(&["file"]), &["url"], json!({ "url": filled() }));
    let own_tool = json!({ "type": "string", "pattern": "^tool-" });
    let marks = json!({ "type": "string",
                        "pattern": "^(step-start|source-url|source-document|data-.*)$" });
    let said = json!({ "anyOf": [
        text_part(&["text"]), file(), part(marks.clone(), &[], json!({})),
    ] });
    let done = json!({ "anyOf": [
        text_part(&["text", "reasoning"]), file(), part(marks, &[], json!({})),
        tool(own_tool, &["toolCallId"]),
        tool(kinds(&["dynamic-tool"]), &["toolCallId", "toolName"]),
    ] });
    let message = |roles: &[&str], parts: Value| {
        json!({
            "type": "object",
            "required": ["role", "parts"],
            "properties": {
                "id": { "type": "string", "maxLength": 200, "pattern": ID_OR_NOTHING },
                "role": kinds(roles),
                "parts": { "type": "array", "items": parts },
            },
        })
    };
    json!({
        "description": "A message as the AI SDK's user interfaces keep it.",
        "anyOf": [message(&["system", "user"], said), message(&["assistant"], done)],
        "examples": [{ "role": "user", "parts": [{ "type": "text", "text": "hello" }] }],
    })
}

fn model_message() -> Value {
    let message = |roles: &[&str], content: Value| {
        json!({
            "type": "object",
            "required": ["role", "content"],
            "properties": { "role": kinds(roles), "content": content },
        })
    };
    let list = |parts: Value| json!({ "type": "array", "items": { "anyOf": parts } });
    let image = || part(kinds(&["image"]), &["image"], json!({ "image": filled() }));
    let file = || part(kinds(&["file"]), &["data"], json!({ "data": filled() }));
    let call = || json!({ "toolCallId": filled(), "toolName": filled(), "input": {} });
    let of_tool = ["toolCallId", "toolName"];
    let calling = part(kinds(&["tool-call"]), &of_tool, call());
    let result = || part(kinds(&["tool-result"]), &of_tool, call());
    let text = json!({ "type": "string" });
    let said = list(json!([text_part(&["text"]), image(), file()]));
    let done =
        list(json!([text_part(&["text", "reasoning"]), image(), file(), calling, result(),]));
    json!({
        "description": "A message as models take it. Each call of a tool is followed by its \
                        result.",
        "anyOf": [
            message(&["system"], text.clone()),
            message(&["user"], json!({ "anyOf": [text, said] })),
            message(&["assistant"], json!({ "anyOf": [text, done] })),
            message(&["tool"], list(json!([result()]))),
        ],
        "examples": [{ "role": "user", "content": "hello" }],
    })
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
