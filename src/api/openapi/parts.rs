//! Parts of the document that operations share.

use serde_json::{Map, Value, json};

use crate::api::prefer::RESPOND_ASYNC;
use crate::api::wire::shape::{EXECUTION_ID_PATTERN, ID_PATTERN};

/// Names of shared parameters and headers.
pub(super) const REQUEST_ID: &str = "RequestId";
pub(super) const IDEMPOTENCY_KEY: &str = "IdempotencyKey";
pub(super) const PREFER: &str = "Prefer";
pub(super) const EXECUTION_ID: &str = "ExecutionId";
pub(super) const GENERATION_ID: &str = "GenerationId";
pub(super) const TRACE_ID: &str = "TraceId";
pub(super) const MODEL_FALLBACK: &str = "ModelFallback";
pub(super) const ERROR_CODE: &str = "ErrorCode";
pub(super) const RETRY_AFTER: &str = "RetryAfter";
pub(super) const CHALLENGE: &str = "Challenge";
pub(super) const UPGRADE: &str = "Upgrade";
pub(super) const WEBSOCKET_VERSION: &str = "WebSocketVersion";
pub(super) const ENCODINGS: &str = "Encodings";
pub(super) const ETAG: &str = "ETag";
pub(super) const LOCATION: &str = "Location";
pub(super) const OUTCOME_LOCATION: &str = "OutcomeLocation";
pub(super) const PREFERENCE_APPLIED: &str = "PreferenceApplied";

/// Name of the parameter for the rest of a path.
pub(super) const TAIL: &str = "tail";

/// Returns a reference to a component.
pub(super) fn reference(kind: &str, name: &str) -> Value {
    json!({ "$ref": format!("#/components/{kind}/{name}") })
}

pub(super) fn path(name: &str, description: &str, schema: Value) -> Value {
    parameter("path", name, description, schema)
}

pub(super) fn query(name: &str, description: &str, schema: Value) -> Value {
    parameter("query", name, description, schema)
}

pub(super) fn required_query(name: &str, description: &str, schema: Value) -> Value {
    let mut parameter = query(name, description, schema);
    parameter["required"] = Value::Bool(true);
    parameter
}

pub(super) fn header(name: &str, description: &str, schema: Value) -> Value {
    parameter("header", name, description, schema)
}

/// Creates a parameter; those of paths are required.
fn parameter(place: &str, name: &str, description: &str, schema: Value) -> Value {
    let is_required = place == "path";
    let mut parameter = json!({ "name": name, "in": place, "required": is_required,
                                "description": description });
    parameter["schema"] = schema;
    parameter
}

/// Returns the schema of ids in paths.
pub(super) fn any_id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": ID_PATTERN })
}

/// Returns the schema of non-empty names.
pub(super) fn name() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

/// Returns the schema of times.
pub(super) fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

pub(super) fn execution_id() -> Value {
    path(
        "executionId",
        "Id of the execution",
        json!({ "type": "string", "pattern": EXECUTION_ID_PATTERN }),
    )
}

/// Returns the schema of a whole number.
pub(super) fn number(minimum: u32, maximum: u32, default: u32) -> Value {
    json!({ "type": "integer", "minimum": minimum, "maximum": maximum, "default": default })
}

/// Wraps a schema in `{"success":true,"data":...}`.
pub(super) fn enveloped(data: Value) -> Value {
    let mut envelope = json!({
        "type": "object",
        "required": ["success", "data"],
        "properties": { "success": { "const": true } },
    });
    envelope["properties"]["data"] = data;
    envelope
}

/// Creates a response with these headers and `x-request-id`.
pub(super) fn response(description: &str, content: Value, headers: &[(&str, &str)]) -> Value {
    let mut shown = Map::new();
    for (name, component) in [("x-request-id", REQUEST_ID)].iter().chain(headers) {
        shown.insert((*name).to_owned(), reference("headers", component));
    }
    let mut response = json!({ "description": description, "headers": shown });
    if !content.is_null() {
        response["content"] = content;
    }
    response
}

/// Creates a JSON response in the envelope.
pub(super) fn json_answer(description: &str, data: Value) -> Value {
    response(description, json_content(data), &[])
}

/// Headers of responses about an execution.
pub(super) const ABOUT_EXECUTION: [(&str, &str); 2] =
    [("x-execution-id", EXECUTION_ID), ("x-trace-id", TRACE_ID)];
/// Headers of responses about a generation.
pub(super) const ABOUT_GENERATION: [(&str, &str); 2] =
    [("x-generation-id", GENERATION_ID), ("x-trace-id", TRACE_ID)];

/// As [`json_answer`], about an execution.
pub(super) fn execution_answer(description: &str, data: Value) -> Value {
    response(description, json_content(data), &ABOUT_EXECUTION)
}

/// As [`json_answer`], about a generation.
pub(super) fn generation_answer(description: &str, data: Value) -> Value {
    response(description, json_content(data), &ABOUT_GENERATION)
}

/// As [`generation_answer`], with the header of a fallback model.
pub(super) fn generated_answer(description: &str, data: Value) -> Value {
    let [generation, trace] = ABOUT_GENERATION;
    let headers = [generation, trace, ("x-model-fallback", MODEL_FALLBACK)];
    response(description, json_content(data), &headers)
}

/// Creates the response to a request whose outcome its client does not wait for.
pub(super) fn accepted_answer(description: &str, data: Value) -> Value {
    let [execution, trace] = ABOUT_EXECUTION;
    let applied = ("preference-applied", PREFERENCE_APPLIED);
    let headers = [execution, trace, ("location", OUTCOME_LOCATION), applied];
    response(description, json_content(data), &headers)
}

fn json_content(data: Value) -> Value {
    json!({ "application/json": { "schema": enveloped(data) } })
}

/// Creates the content of server-sent events. Before OpenAPI 3.2, the schema of a stream is that of
/// each event.
pub(super) fn events(event: Value, example: &Value) -> Value {
    let mut data = json!({ "type": "string", "contentMediaType": "application/json" });
    data["contentSchema"] = event;
    let mut events = json!({
        "schema": {
            "type": "object",
            "description": "A server-sent event.",
            "required": ["data"],
            "properties": {
                "id": { "type": "string", "description": "Number of the event, if it has one." },
            },
        },
        "example": { "id": "2", "data": example.to_string() },
    });
    events["schema"]["properties"]["data"] = data;
    events
}

pub(super) fn text_answer(description: &str, media_type: &str) -> Value {
    response(description, json!({ media_type: { "schema": { "type": "string" } } }), &[])
}

pub(super) fn request_body(schema: Value, is_required: bool, example: Value) -> Value {
    let mut body = json!({ "required": is_required, "content": { "application/json": {} } });
    let content = &mut body["content"]["application/json"];
    content["schema"] = schema;
    if !example.is_null() {
        content["example"] = example;
    }
    body
}

/// Returns the shared parameters.
pub(super) fn shared_parameters() -> Value {
    json!({
        IDEMPOTENCY_KEY: header(
            "Idempotency-Key",
            "A repeated request with the same key and body gets the response of the first one. \
             Stored for `limits.idempotency_ttl`.",
            json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" }),
        ),
        PREFER: header(
            "Prefer",
            "With `respond-async` the response comes once the work is recorded, before its outcome \
             is there: a 202 with the address of the outcome. With `respond-async, wait=10` the \
             outcome is waited for so many seconds, at most an hour (RFC 7240).",
            json!({ "type": "string", "examples": ["respond-async", "respond-async, wait=10"] }),
        ),
    })
}

/// Returns the shared headers.
pub(super) fn shared_headers(codes: &[&str]) -> Value {
    let text =
        |description: &str| json!({ "description": description, "schema": { "type": "string" } });
    json!({
        REQUEST_ID: { "description": "Id of the request, or a generated one.",
                      "required": true, "schema": { "type": "string" } },
        EXECUTION_ID: text("Id of the execution."),
        GENERATION_ID: text("Id of the generation."),
        TRACE_ID: text("Id of the trace."),
        MODEL_FALLBACK: text("Model that answered in place of the configured one."),
        ERROR_CODE: { "description": "Error code, for programs. Never changes.",
                      "required": true, "schema": { "type": "string", "enum": codes } },
        RETRY_AFTER: { "description": "Seconds to wait before a retry.",
                       "schema": { "type": "integer", "minimum": 0 } },
        CHALLENGE: text("Required authentication."),
        UPGRADE: { "description": "Required protocol.", "schema": { "const": "websocket" } },
        WEBSOCKET_VERSION: { "description": "Supported version.",
                             "schema": { "const": "13" } },
        ENCODINGS: { "description": "Supported encoding.", "schema": { "const": "identity" } },
        ETAG: text("Version of the content, for `If-None-Match` or `If-Match`."),
        LOCATION: text("The address with or without the trailing slash."),
        OUTCOME_LOCATION: text("The address of the state and the outcome."),
        PREFERENCE_APPLIED: { "description": "The preference that was followed.",
                              "schema": { "const": RESPOND_ASYNC } },
    })
}
