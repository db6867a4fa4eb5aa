//! Routes for clients of MCP. Their messages are described by that protocol.

use serde_json::{Value, json};

use super::described::{Described, RefusalForm};
use super::parts;
use crate::api::error::{ApiError, Shortage};

pub(super) fn call() -> Described {
    described("callMcp")
}

pub(super) fn call_named() -> Described {
    described("callNamedMcp").with([name()])
}

pub(super) fn describe() -> Described {
    metadata("describeMcp")
}

pub(super) fn describe_named() -> Described {
    metadata("describeNamedMcp").with([name()])
}

fn metadata(operation_id: &'static str) -> Described {
    let texts = json!({ "type": "array", "items": { "type": "string" } });
    let metadata = json!({
        "type": "object",
        "required": ["resource", "authorization_servers"],
        "properties": {
            "resource": { "type": "string" },
            "authorization_servers": texts,
            "bearer_methods_supported": texts,
        },
    });
    let content = json!({ "application/json": { "schema": metadata } });
    Described::new(operation_id)
        .about("Metadata of a protected resource (RFC 9728), if the configuration has its address.")
        .answering(200, parts::response("The metadata", content, &[]))
        .refusing([not_found()])
}

fn not_found() -> ApiError {
    ApiError::PathNotFound { method: "GET".to_owned(), path: "/mcp".to_owned() }
}

fn name() -> Value {
    let name = json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" });
    parts::path("name", "Name of the face", name)
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
        .with([parts::reference("parameters", parts::IDEMPOTENCY_KEY)])
        .with_body(message, true, Value::Null)
        .refusing([not_found(), ApiError::AtCapacity(Shortage::ExecutionMemory)])
        .refusing([ApiError::KeyReused])
        .using_runtime()
        .answering(200, parts::response("The answer", answers, &[]))
        .answering(202, parts::response("A notification was taken", Value::Null, &[]))
}
