//! Pieces of the document that many operations share.

use serde_json::{Map, Value, json};

use crate::api::wire::shape::{EXECUTION_ID_PATTERN, ID_PATTERN};

/// Names of shared parameters and headers.
pub(super) const REQUEST_ID: &str = "RequestId";
pub(super) const IDEMPOTENCY_KEY: &str = "IdempotencyKey";
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

/// The parameter that stands for the end of a path.
pub(super) const TAIL: &str = "tail";

/// A reference to a component.
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

/// What a path names is always there.
fn parameter(place: &str, name: &str, description: &str, schema: Value) -> Value {
    let is_required = place == "path";
    let mut parameter = json!({ "name": name, "in": place, "required": is_required,
                                "description": description });
    parameter["schema"] = schema;
    parameter
}

/// A name in a path that may be any.
pub(super) fn any_id() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 200, "pattern": ID_PATTERN })
}

pub(super) fn execution_id() -> Value {
    path(
        "executionId",
        "Id of the execution",
        json!({ "type": "string", "pattern": EXECUTION_ID_PATTERN }),
    )
}

/// A whole number within bounds, with its default.
pub(super) fn number(minimum: u32, maximum: u32, default: u32) -> Value {
    json!({ "type": "integer", "minimum": minimum, "maximum": maximum, "default": default })
}

/// `{"success":true,"data":...}` around a schema.
pub(super) fn enveloped(data: Value) -> Value {
    let mut envelope = json!({
        "type": "object",
        "required": ["success", "data"],
        "properties": { "success": { "const": true } },
    });
    envelope["properties"]["data"] = data;
    envelope
}

/// A response with headers of these names beside the request's id.
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

/// A JSON answer in the envelope.
pub(super) fn json_answer(description: &str, data: Value) -> Value {
    response(description, json_content(data), &[])
}

/// The headers of an answer about an execution.
pub(super) const ABOUT_EXECUTION: [(&str, &str); 2] =
    [("x-execution-id", EXECUTION_ID), ("x-trace-id", TRACE_ID)];
/// The headers of an answer about a generation.
pub(super) const ABOUT_GENERATION: [(&str, &str); 2] =
    [("x-generation-id", GENERATION_ID), ("x-trace-id", TRACE_ID)];

/// The same about an execution.
pub(super) fn execution_answer(description: &str, data: Value) -> Value {
    response(description, json_content(data), &ABOUT_EXECUTION)
}

/// The same about a generation.
pub(super) fn generation_answer(description: &str, data: Value) -> Value {
    response(description, json_content(data), &ABOUT_GENERATION)
}

/// The same about what a model gave.
pub(super) fn generated_answer(description: &str, data: Value) -> Value {
    let [generation, trace] = ABOUT_GENERATION;
    let headers = [generation, trace, ("x-model-fallback", MODEL_FALLBACK)];
    response(description, json_content(data), &headers)
}

fn json_content(data: Value) -> Value {
    json!({ "application/json": { "schema": enveloped(data) } })
}

/// Server-sent events whose data are of a schema. Before OpenAPI 3.2, the schema of such a stream
/// is that of each event.
pub(super) fn events(event: Value, example: &Value) -> Value {
    let mut data = json!({ "type": "string", "contentMediaType": "application/json" });
    data["contentSchema"] = event;
    let mut events = json!({
        "schema": {
            "type": "object",
            "description": "One server-sent event.",
            "required": ["data"],
            "properties": {
                "id": { "type": "string", "description": "Its number, where it has one." },
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

/// The parameters that are named elsewhere.
pub(super) fn shared_parameters() -> Value {
    json!({
        IDEMPOTENCY_KEY: header(
            "Idempotency-Key",
            "With the same key and body, the answer is the one that the first request got or \
             will get. Kept for `limits.idempotency_ttl`.",
            json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" }),
        ),
    })
}

/// The headers of answers.
pub(super) fn shared_headers(codes: &[&str]) -> Value {
    let text =
        |description: &str| json!({ "description": description, "schema": { "type": "string" } });
    json!({
        REQUEST_ID: { "description": "The request's own id, or one that the server made.",
                      "required": true, "schema": { "type": "string" } },
        EXECUTION_ID: text("The execution that the answer is about."),
        GENERATION_ID: text("The generation that the answer is about."),
        TRACE_ID: text("The trace that the answer is about."),
        MODEL_FALLBACK: text("The model that answered in place of the one that is configured."),
        ERROR_CODE: { "description": "What was wrong, for programs. Never changes.",
                      "required": true, "schema": { "type": "string", "enum": codes } },
        RETRY_AFTER: { "description": "Seconds after which a new attempt makes sense.",
                       "schema": { "type": "integer", "minimum": 0 } },
        CHALLENGE: text("How to authenticate."),
        UPGRADE: { "description": "What to upgrade to.", "schema": { "const": "websocket" } },
        WEBSOCKET_VERSION: { "description": "The version that is spoken here.",
                             "schema": { "const": "13" } },
        ENCODINGS: { "description": "How bodies may come.", "schema": { "const": "identity" } },
        ETAG: text("What this is, for `If-None-Match`."),
        LOCATION: text("Where it is: the address with a slash more, or one less."),
    })
}
