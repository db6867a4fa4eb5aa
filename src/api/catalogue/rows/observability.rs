//! Routes of logs, traces and WebSockets.

use super::row;
use crate::api::catalogue::Method::Get;
use crate::api::catalogue::{Route, RouteName};

pub(super) const ROWS: &[Route] = &[
    row(
        Get,
        "/observability/status",
        RouteName::ShowObservability,
        "Show the status of observability",
    ),
    row(Get, "/observability/traces", RouteName::ListTraces, "List traces, newest first").owned(),
    row(
        Get,
        "/observability/traces/:traceId",
        RouteName::DescribeTrace,
        "Show a trace: its spans, as a list and as a tree",
    )
    .owned(),
    row(
        Get,
        "/observability/traces/:traceId/logs",
        RouteName::ListTraceLogs,
        "Show the log of a trace, newest last",
    )
    .owned(),
    row(Get, "/observability/spans/:spanId", RouteName::DescribeSpan, "Show a span").owned(),
    row(
        Get,
        "/observability/spans/:spanId/logs",
        RouteName::ListSpanLogs,
        "Show the log of a span, newest last",
    )
    .owned(),
    row(
        Get,
        "/observability/logs",
        RouteName::ListLogRecords,
        "Query the log as OpenTelemetry records, newest last",
    )
    .owned(),
    row(Get, "/api/logs", RouteName::ListLogs, "Query the log, newest last").owned(),
    row(Get, "/metrics", RouteName::ShowMetrics, "Metrics").text(),
    row(Get, "/ws", RouteName::Echo, "Connection test and echo").websocket(),
    row(Get, "/ws/logs", RouteName::TailLogs, "Stream of the log").websocket().owned(),
    row(
        Get,
        "/ws/observability",
        RouteName::Observe,
        "Stream of spans and log records of workflows and agents",
    )
    .websocket()
    .owned(),
];
