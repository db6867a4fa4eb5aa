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
        "Show the status of observability",
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
        "Show a trace: its spans, as a list and as a tree",
    )
    .owned(),
    row(
        Get,
        "/observability/traces/:traceId/logs",
        RouteName::ListTraceLogs,
        Answer::Json,
        Tag::Observability,
        "Show the log of a trace, newest last",
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
        "Show the log of a span, newest last",
    )
    .owned(),
    row(
        Get,
        "/observability/logs",
        RouteName::ListLogRecords,
        Answer::Json,
        Tag::Observability,
        "Query the log as OpenTelemetry records, newest last",
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
        "Stream of the log",
    )
    .owned(),
    row(
        Get,
        "/ws/observability",
        RouteName::Observe,
        Answer::WebSocket,
        Tag::Observability,
        "Stream of spans and log records of workflows and agents",
    )
    .owned(),
];
