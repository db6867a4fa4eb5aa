//! Routes of logs, traces and WebSockets.

use super::row;
use crate::api::catalogue::Method::Get;
use crate::api::catalogue::{Answer, Route, RouteName, Tag};

pub(super) const ROWS: &[Route] = &[
    row(
        Get,
        "/observability/status",
        RouteName::ShowObservability,
        Answer::Json,
        Tag::Observability,
        "Show what can be observed, and in which environment",
    ),
    row(
        Get,
        "/observability/traces",
        RouteName::ListTraces,
        Answer::Json,
        Tag::Observability,
        "List traces, newest first",
    )
    .owned(),
    row(
        Get,
        "/observability/traces/:traceId",
        RouteName::DescribeTrace,
        Answer::Json,
        Tag::Observability,
        "Show a trace: its spans, and how they belong together",
    )
    .owned(),
    row(
        Get,
        "/observability/traces/:traceId/logs",
        RouteName::ListTraceLogs,
        Answer::Json,
        Tag::Observability,
        "Show what was logged in a trace, newest last",
    )
    .owned(),
    row(
        Get,
        "/observability/spans/:spanId",
        RouteName::DescribeSpan,
        Answer::Json,
        Tag::Observability,
        "Show a span",
    )
    .owned(),
    row(
        Get,
        "/observability/spans/:spanId/logs",
        RouteName::ListSpanLogs,
        Answer::Json,
        Tag::Observability,
        "Show what was logged in a span, newest last",
    )
    .owned(),
    row(
        Get,
        "/observability/logs",
        RouteName::ListLogRecords,
        Answer::Json,
        Tag::Observability,
        "Query the log in OpenTelemetry's words, newest last",
    )
    .owned(),
    row(
        Get,
        "/api/logs",
        RouteName::ListLogs,
        Answer::Json,
        Tag::Observability,
        "Query the log, newest last",
    )
    .owned(),
    row(Get, "/metrics", RouteName::ShowMetrics, Answer::Text, Tag::Observability, "Metrics"),
    row(
        Get,
        "/ws",
        RouteName::Echo,
        Answer::WebSocket,
        Tag::Observability,
        "Connection test and echo",
    ),
    row(
        Get,
        "/ws/logs",
        RouteName::TailLogs,
        Answer::WebSocket,
        Tag::Observability,
        "The log as it is written",
    )
    .owned(),
    row(
        Get,
        "/ws/observability",
        RouteName::Observe,
        Answer::WebSocket,
        Tag::Observability,
        "Spans of workflows and agents, and what they log, as it happens",
    )
    .owned(),
];
