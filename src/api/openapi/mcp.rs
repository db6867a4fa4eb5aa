//! Routes for clients of MCP. Their messages are described by that protocol.

use serde_json::{Value, json};

use super::described::{Described, RefusalForm};
use super::parts;
use crate::api::error::{ApiError, Shortage};

pub(super) fn call() -> Described {
    described("callMcp")
}

pub(super) fn call_named() -> Described {
    let name = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" });
    described("callNamedMcp").with([parts::path("name", "Name of the face", name)])
}

/// Returns the content of refusals.
pub(super) fn failures() -> Value {
    json!({ "application/json": { "schema": { "type": "object" } } })
}

fn described(operation_id: &'static str) -> Described {
    let id = json!({ "type": ["string", "integer"] });
    let message = json!({
        "type": "object",
        "required": ["jsonrpc"],
        "properties": {
            "jsonrpc": { "type": "string", "enum": ["2.0"] },
            "id": id,
            "method": { "type": "string" },
            "params": { "type": "object" },
        },
    });
    let answer = json!({
        "type": "object",
        "required": ["jsonrpc", "id"],
        "properties": {
            "jsonrpc": { "type": "string", "enum": ["2.0"] },
            "id": { "type": ["string", "integer", "null"] },
            "result": { "type": "object" },
            "error": { "type": "object" },
        },
    });
    let events = json!({ "schema": { "type": "string" } });
    let answers = json!({ "application/json": { "schema": answer }, "text/event-stream": events });
    Described { refusal_form: RefusalForm::JsonRpc, ..Described::new(operation_id) }
        .about(
            "A message of the Model Context Protocol, version 2026-07-28 or one with a handshake. \
             Errors are those of JSON-RPC. A call that asks for progress is answered with events.",
        )
        .with_body(message, true, Value::Null)
        .refusing([
            ApiError::PathNotFound { method: "POST".to_owned(), path: "/mcp".to_owned() },
            ApiError::AtCapacity(Shortage::ExecutionMemory),
        ])
        .using_runtime()
        .answering(200, parts::response("The answer", answers, &[]))
        .answering(202, parts::response("A notification was taken", Value::Null, &[]))
}
