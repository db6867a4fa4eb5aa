//! The routes of the server itself, of its documentation, its WebSockets, and those that were
//! added to it.

use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::{frames, parts};
use crate::api::catalogue::{Answer, Method, Route};
use crate::api::error::ApiError;

pub(super) fn landing() -> Described {
    Described::new("landing").answering(200, parts::text_answer("A page", "text/html"))
}

/// The answer to who has the newest already.
fn unchanged() -> Value {
    parts::response("What `If-None-Match` names is still the newest", Value::Null, &[])
}

fn if_none_match() -> Value {
    let about = "The `ETag` of what the client has";
    parts::header("If-None-Match", about, json!({ "type": "string" }))
}

pub(super) fn document() -> Described {
    let content = json!({ "application/json": { "schema": {
        "type": "object", "required": ["openapi", "info", "paths"],
        "properties": { "openapi": { "const": "3.1.0" }, "info": { "type": "object" },
                        "paths": { "type": "object" } },
    } } });
    Described::new("apiDocument")
        .about("Not in the envelope.")
        .with([if_none_match()])
        .answering(200, parts::response("This document", content, &[]))
        .answering(304, unchanged())
}

pub(super) fn browse() -> Described {
    Described::new("browseApi").answering(200, parts::text_answer("A page", "text/html"))
}

pub(super) fn browse_file() -> Described {
    let text = || json!({ "schema": { "type": "string" } });
    let content = json!({
        "text/html": text(), "text/css": text(), "text/javascript": text(),
        "image/png": { "schema": { "type": "string", "contentMediaType": "image/png" } },
    });
    let path = "/ui/missing.css".to_owned();
    Described::new("browseApiFile")
        .with([parts::path("file", "Name of the file", parts::any_id()), if_none_match()])
        .answering(200, parts::response("The file", content, &[]))
        .answering(304, unchanged())
        .refusing([ApiError::PathNotFound { method: "GET".to_owned(), path }])
}

/// A probe: also for whoever asks under a strange name.
fn probe(operation_id: &'static str, words: &[&str]) -> (Described, Value) {
    let schema = json!({ "type": "string", "enum": words });
    let content = json!({ "text/plain": { "schema": schema } });
    let mut described = Described::new(operation_id);
    described.refusals.retain(|refusal| *refusal != ApiError::HostNotAllowed);
    (described, content)
}

pub(super) fn live() -> Described {
    let (described, content) = probe("live", &["ok\n"]);
    described.answering(200, parts::response("It answers", content, &[]))
}

pub(super) fn ready() -> Described {
    let (described, content) = probe("ready", &["ready\n", "not ready\n"]);
    described
        .answering(200, parts::response("It takes new work", content.clone(), &[]))
        .answering(503, parts::response("It does not", content, &[]))
}

pub(super) fn check_updates(components: &mut Components) -> Described {
    let data = components.add("UpdateCheck", || {
        let kind = json!({ "type": "string", "enum": ["major", "minor", "patch", "latest"] });
        let text = json!({ "type": "string" });
        json!({
            "type": "object",
            "required": ["hasUpdates", "updates", "count", "message"],
            "properties": {
                "hasUpdates": { "type": "boolean" },
                "updates": { "type": "array", "items": {
                    "type": "object",
                    "required": ["name", "installed", "latest", "type"],
                    "properties": { "name": text, "installed": text, "latest": text,
                                    "type": kind },
                } },
                "count": { "type": "integer", "minimum": 0 },
                "message": text,
            },
        })
    });
    Described::new("checkUpdates").answering(200, parts::json_answer("What there is", data))
}

pub(super) fn install_updates(_: &mut Components) -> Described {
    let body = json!({ "type": "object", "properties": {
        "packageName": { "type": ["string", "null"], "description": "One; all without it." } } });
    let outcome = json!({ "type": "object" });
    let path = "/updates".to_owned();
    Described::new("installUpdates")
        .about("Runs the configured command. Only for callers on this machine or with a token.")
        .taking(body, false, json!({}))
        .answering(201, parts::json_answer("The outcome", outcome))
        .refusing([ApiError::LocalOnly, ApiError::PathNotFound { method: "POST".to_owned(), path }])
}

pub(super) fn set_up_observability(_: &mut Components) -> Described {
    let key = json!({ "type": "string", "minLength": 1 });
    let body = json!({
        "type": "object",
        "required": ["publicKey", "secretKey"],
        "properties": { "publicKey": key, "secretKey": key },
    });
    let data = json!({ "type": "object", "required": ["message"],
                       "properties": { "message": { "type": "string" } } });
    Described::new("setUpObservability")
        .about("Only for callers on this machine or with a token.")
        .taking(body, true, json!({ "publicKey": "pk-1", "secretKey": "sk-1" }))
        .answering(200, parts::json_answer("The keys are written", data))
        .refusing([ApiError::LocalOnly])
}

/// A route that becomes a WebSocket.
fn socket(operation_id: &'static str, told: &str, says: &str) -> Described {
    let mut answer = parts::response("From here on a WebSocket", Value::Null, &[]);
    answer["x-websocket-receives"] = parts::reference("schemas", told);
    answer["x-websocket-sends"] = parts::reference("schemas", says);
    Described::new(operation_id)
        .answering(101, answer)
        .refusing([ApiError::InvalidRequest("WebSocket upgrade is expected".to_owned())])
        .refusing([ApiError::OriginNotAllowed])
}

pub(super) fn echo() -> Described {
    socket("echo", frames::ECHO_MESSAGE, frames::ECHO_FRAME).about("Each JSON message comes back.")
}

pub(super) fn observe() -> Described {
    let kind = json!({ "type": "string", "enum": ["agent", "workflow"] });
    socket("observe", frames::OBSERVER_MESSAGE, frames::OBSERVER_FRAME).asking([
        parts::query("entityType", "Only what belongs to one of these", kind),
        parts::query("entityId", "Only what belongs to the one of this id", parts::any_id()),
    ])
}

/// A route of somebody else: nothing is known of what it takes and gives.
pub(super) fn custom(row: &Route, index: usize) -> Described {
    let segments = row.path.split('/').filter_map(|segment| match segment {
        "*" => Some(parts::TAIL),
        other => other.strip_prefix(':'),
    });
    let text = || json!({ "type": "string" });
    let described = Described::new(format!("custom{}", index + 1))
        .with(segments.map(|name| parts::path(name, "Part of the path", text())));
    let any = match row.answer {
        Answer::Json => json!({ "application/json": { "schema": {} } }),
        Answer::Text => json!({ "*/*": {} }),
        Answer::Events => json!({ "text/event-stream": { "schema": text() } }),
        Answer::WebSocket => Value::Null,
    };
    let status = if row.answer == Answer::WebSocket { 101 } else { 200 };
    let described = described.answering(status, parts::response("What it gives", any, &[]));
    match row.method {
        Method::Get | Method::Delete => described,
        Method::Post | Method::Put | Method::Patch => {
            described.taking(json!({}), false, Value::Null)
        }
    }
}
