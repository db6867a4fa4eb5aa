//! Routes of traces and the log.

use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::parts;
use crate::api::error::ApiError;
use crate::api::wire::log::{
    EntriesView, LEVEL_WORDS, RecordsView, SEVERITY_NUMBERS, SEVERITY_WORDS,
};
use crate::api::wire::observability::{StatusView, TraceView, TracesView};
use crate::api::wire::span::SpanView;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

pub(super) fn status(components: &mut Components) -> Described {
    let data = components.answer::<StatusView>();
    Described::new("showObservability")
        .answering(200, parts::json_answer("The status", data))
        .using_runtime()
}

fn hexadecimal(digits: u8) -> Value {
    let pattern = format!("^(?!0+$)[0-9a-f]{{{digits}}}$");
    json!({ "type": "string", "pattern": pattern })
}

fn trace_id() -> Value {
    parts::path("traceId", "Id of the trace", hexadecimal(32))
}

fn trace_not_found() -> ApiError {
    ApiError::TraceNotFound(TRACE.to_owned())
}

fn span_id() -> Value {
    parts::path("spanId", "Id of the span", hexadecimal(16))
}

fn span_not_found() -> ApiError {
    ApiError::SpanNotFound(SPAN.to_owned())
}

fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

fn cursor(pattern: &str) -> Value {
    let schema = json!({ "type": "string", "pattern": pattern });
    parts::query("cursor", "`nextCursor` of the previous page", schema)
}

pub(super) fn traces(components: &mut Components) -> Described {
    let data = components.answer::<TracesView<'_>>();
    let place = "[0-9a-fA-F]{32}";
    let row = "[0-9a-fA-F]{16}";
    let entity_id = json!({ "type": "string", "minLength": 1, "maxLength": 200 });
    Described::new("listTraces")
        .about(
            "A trace is listed by its root: an execution or a generation that no other one \
             started. A page may have fewer traces than its limit, even none, and still have a \
             `nextCursor`: the work for a page is bounded. With several servers, traces of agents \
             at one server may come before newer ones at another; the history of an agent is in \
             order.",
        )
        .with_query([
            parts::query("entityType", "Traces of this type", words(&["agent", "workflow"])),
            parts::query("entityId", "Traces of the agent or workflow with this id", entity_id),
            parts::query("from", "Traces that started at this time or later", parts::time()),
            parts::query("limit", "Maximum number of traces", parts::number(1, 100, 50)),
            cursor(&format!("^({place}\\.({row}|-)|-\\.{row})$")),
        ])
        .answering(200, parts::json_answer("A page, newest first", data))
        .using_runtime()
}

pub(super) fn trace(components: &mut Components) -> Described {
    let data = components.answer::<TraceView<'_>>();
    Described::new("describeTrace")
        .about("Only the first spans of a very large trace, with `isTruncated`.")
        .with([trace_id()])
        .answering(200, parts::json_answer("The trace", data))
        .refusing([trace_not_found()])
        .using_runtime()
}

pub(super) fn span(components: &mut Components) -> Described {
    let data = components.answer::<SpanView<'_>>();
    Described::new("describeSpan")
        .with([span_id()])
        .answering(200, parts::json_answer("The span", data))
        .refusing([span_not_found()])
        .using_runtime()
}

/// Describes a route that returns log records.
fn records(operation_id: &'static str, components: &mut Components) -> Described {
    let data = components.answer::<RecordsView<'_>>();
    let severity = words(&SEVERITY_WORDS);
    let (least, most) = (SEVERITY_NUMBERS.start(), SEVERITY_NUMBERS.end());
    let number = json!({ "type": "integer", "minimum": least, "maximum": most });
    Described::new(operation_id)
        .with_query([
            parts::query("severityText", "Records of exactly this level", severity),
            parts::query("severityNumber", "Records of at least this severity", number),
            parts::query("traceId", "Records of this trace", hexadecimal(32)),
            parts::query("spanId", "Records of this span", hexadecimal(16)),
            parts::query("startTime", "Records of this time or later", parts::time()),
            parts::query("endTime", "Records of this time or earlier", parts::time()),
            parts::query("limit", "Maximum number of records", parts::number(1, 1000, 100)),
            cursor("^[0-9a-fA-F]{16}$"),
        ])
        .answering(200, parts::json_answer("The newest matching ones, newest last", data))
        .using_runtime()
}

pub(super) fn all_records(components: &mut Components) -> Described {
    records("listLogRecords", components)
}

pub(super) fn trace_logs(components: &mut Components) -> Described {
    records("listTraceLogs", components).with([trace_id()]).refusing([trace_not_found()])
}

pub(super) fn span_logs(components: &mut Components) -> Described {
    records("listSpanLogs", components).with([span_id()]).refusing([span_not_found()])
}

/// Returns the parameters of `/api/logs` and `/ws/logs`; `limit` describes the parameter `limit`.
pub(super) fn entry_filters(limit: &str) -> [Value; 8] {
    let name = parts::name;
    [
        parts::query("level", "Entries of at least this level", words(&LEVEL_WORDS)),
        parts::query("agentId", "Entries about this agent", name()),
        parts::query("workflowId", "Entries about this workflow", name()),
        parts::query("executionId", "Entries about this execution or its children", name()),
        parts::query("conversationId", "Entries about this conversation", name()),
        parts::query("since", "Entries of this time or later", parts::time()),
        parts::query("until", "Entries of this time or earlier", parts::time()),
        parts::query("limit", limit, parts::number(1, 1000, 100)),
    ]
}

pub(super) fn entries(components: &mut Components) -> Described {
    let page = components.answer::<EntriesView<'_>>();
    let content = json!({ "application/json": { "schema": page } });
    Described::new("listLogs")
        .about("The server logs nothing as `fatal`; this level returns no entries.")
        .with_query(entry_filters("Maximum number of entries"))
        .with([cursor("^[0-9a-fA-F]{16}$")])
        .answering(200, parts::response("The newest matching ones, newest last", content, &[]))
        .using_runtime()
}
