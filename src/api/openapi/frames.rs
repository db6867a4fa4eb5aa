//! Schemas of frames of streams and WebSockets.

use serde_json::{Value, json};

use super::components::Components;
use super::parts;
use crate::api::wire::event::{EventFrame, ProgressFrame};
use crate::api::wire::log::{LEVEL_WORDS, LogRecordView};
use crate::api::wire::log_frame::LogsFrame;
use crate::api::wire::object_stream::ObjectEvent;
use crate::api::wire::raw_stream::RawEvent;
use crate::api::wire::span::{SpanEventView, Subscribed, Welcome};
use crate::api::wire::ui_stream::UiChunk;

pub(super) const WORKFLOW_EVENT: &str = "WorkflowEvent";
pub(super) const PROGRESS_EVENT: &str = "ProgressEvent";
pub(super) const RAW_EVENT: &str = "RawStreamEvent";
pub(super) const CHAT_EVENT: &str = "ChatStreamEvent";
pub(super) const OBJECT_EVENT: &str = "ObjectStreamEvent";
pub(super) const ECHO_FRAME: &str = "EchoFrame";
pub(super) const ECHO_MESSAGE: &str = "EchoMessage";
pub(super) const LOGS_FRAME: &str = "LogsSocketFrame";
pub(super) const LOGS_MESSAGE: &str = "LogsMessage";
pub(super) const OBSERVER_FRAME: &str = "ObserverFrame";
pub(super) const OBSERVER_MESSAGE: &str = "ObserverMessage";

/// Adds the schemas of all frames.
pub(super) fn add(components: &mut Components) {
    components.answer::<EventFrame<'_>>();
    components.answer::<ProgressFrame<'_>>();
    components.answer::<RawEvent<'_>>();
    components.answer::<UiChunk<'_>>();
    components.answer::<ObjectEvent<'_>>();
    let welcome = components.answer::<Welcome<'_>>();
    let subscribed = components.answer::<Subscribed<'_>>();
    let span = components.answer::<SpanEventView<'_>>();
    components.add(ECHO_MESSAGE, || json!({ "description": "Any JSON." }));
    components.add(ECHO_FRAME, || {
        let message = parts::reference("schemas", ECHO_MESSAGE);
        let frames = [frame("CONNECTION_TEST", &welcome), frame("ECHO", &message), refusal()];
        json!({ "description": "Frames of `/ws`.", "oneOf": frames })
    });
    add_logs(components);
    let record = components.answer::<LogRecordView<'_>>();
    components.add(OBSERVER_MESSAGE, || {
        json!({
            "description": "Messages to `/ws/observability`. `SUBSCRIBE` replaces the filter by that of the \
                            message, where null restricts nothing; without one the filter stays.",
            "type": "object",
            "required": ["type"],
            "properties": {
                "type": { "type": "string", "enum": ["PING", "SUBSCRIBE"] },
                "entityType": { "type": ["string", "null"], "enum": ["agent", "workflow", null] },
                "entityId": { "type": ["string", "null"], "minLength": 1, "maxLength": 200 },
                "agentId": { "description": "Alias of `entityId`.", "type": ["string", "null"] },
            },
        })
    });
    components.add(OBSERVER_FRAME, || {
        let pong = json!({
            "type": "object", "required": ["type", "success"],
            "properties": { "type": { "const": "PONG" }, "success": { "const": true } },
        });
        let frames = [
            frame("CONNECTION_SUCCESS", &welcome),
            frame("SUBSCRIPTION_SUCCESS", &subscribed),
            frame("OBSERVABILITY_EVENT", &span),
            frame("OBSERVABILITY_LOG", &record),
            pong,
            dropped(),
            refusal(),
        ];
        json!({ "description": "Frames of `/ws/observability`.", "oneOf": frames })
    });
}

fn add_logs(components: &mut Components) {
    let logs = components.answer::<LogsFrame<'_>>();
    components.add(LOGS_MESSAGE, || {
        let name = json!({ "type": ["string", "null"], "minLength": 1 });
        let time = json!({ "type": ["string", "null"], "format": "date-time" });
        let levels: Vec<Value> =
            LEVEL_WORDS.map(Value::from).into_iter().chain([Value::Null]).collect();
        json!({
            "description": "Messages to `/ws/logs`: a filter that replaces the previous one.",
            "type": "object",
            "required": ["type", "filter"],
            "properties": {
                "type": { "const": "updateFilter" },
                "filter": {
                    "type": "object",
                    "properties": {
                        "level": { "enum": levels }, "agentId": name, "workflowId": name,
                        "executionId": name, "conversationId": name, "since": time, "until": time,
                        "limit": { "type": ["integer", "null"], "minimum": 1, "maximum": 1000 },
                    },
                },
            },
        })
    });
    components.add(LOGS_FRAME, || {
        let frames = [logs, dropped(), refusal()];
        json!({ "description": "Frames of `/ws/logs`.", "oneOf": frames })
    });
}

fn dropped() -> Value {
    json!({
        "type": "object", "required": ["type", "count"],
        "description": "Number of frames that were dropped because the client read too slowly.",
        "properties": { "type": { "const": "DROPPED" }, "count": { "type": "integer" } },
    })
}

fn frame(kind: &str, data: &Value) -> Value {
    json!({
        "type": "object",
        "required": ["type", "success", "data"],
        "properties": { "type": { "const": kind }, "success": { "const": true }, "data": data },
    })
}

fn refusal() -> Value {
    json!({
        "type": "object",
        "required": ["type", "success", "error"],
        "properties": {
            "type": { "const": "ERROR" },
            "success": { "const": false },
            "error": { "type": "string" },
        },
    })
}
