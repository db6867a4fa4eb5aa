//! Traces and the status of observability on the wire.

use std::collections::{HashMap, HashSet};

use greenroom_actors::observe::span::{Span, SpanId};
use greenroom_actors::ports::store::{Cursor, RootCursor};
use greenroom_actors::runtime::TraceSummary;
use greenroom_actors::shard::pulse::StalledThread;
use greenroom_actors::shard::stuck::StuckExecution;
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::wire::Iso;
use crate::api::wire::span::{SpanStatusView, SpanView, entity_type};
use crate::api::wire::state::{cursor_of as place_of, cursor_text as place_text, number_of};

/// Response of `GET /observability/status`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservabilityStatus)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// True if traces and logs are recorded.
    pub enabled: bool,
    /// Technology that stores traces and logs.
    pub storage: &'static str,
    /// True if they survive a restart.
    pub storage_persistent: bool,
    pub message: &'static str,
    /// True if they are sent to WebSockets.
    pub websocket: bool,
    /// Number of stored log records.
    pub log_count: u64,
    /// True if telemetry is exported to a collector.
    pub is_telemetry_enabled: bool,
    /// `development` or `production`.
    pub environment: &'static str,
    pub stuck: StuckView,
    /// Threads that do not respond. Only for callers that see everything.
    pub stalled: Vec<StalledView>,
}

/// A thread of executions that does not respond.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StalledThread)]
#[serde(rename_all = "camelCase")]
pub struct StalledView {
    pub thread: usize,
    /// Milliseconds since its last response.
    pub silent_ms: u64,
    /// Step that blocks the thread, if known.
    #[schema(required)]
    pub held_by: Option<HeldByView>,
}

/// A step that blocks a thread.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HeldBy)]
#[serde(rename_all = "camelCase")]
pub struct HeldByView {
    pub workflow_id: String,
    pub execution_id: String,
    pub path: String,
}

impl StalledView {
    pub fn of(stalled: StalledThread) -> Self {
        let held_by = stalled.held_by.map(|held| HeldByView {
            workflow_id: held.header.workflow_id.to_string(),
            execution_id: held.header.id.to_string(),
            path: held.path.to_string(),
        });
        let silent_ms = u64::try_from(stalled.silent_for.as_millis()).unwrap_or(u64::MAX);
        Self { thread: stalled.thread, silent_ms, held_by }
    }
}

/// Executions that can never continue: no timer, child, step or resume can move them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StuckExecutions)]
pub struct StuckView {
    /// Number of stuck executions, at most 1000.
    pub count: usize,
    /// The first stuck executions. Only for callers that see everything.
    pub executions: Vec<StuckItemView>,
}

/// A stuck execution.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StuckExecution)]
#[serde(rename_all = "camelCase")]
pub struct StuckItemView {
    /// Null if its row cannot be read.
    #[schema(required)]
    pub workflow_id: Option<String>,
    pub execution_id: String,
    pub cause: String,
}

impl StuckView {
    /// Shows the count and the first `shown` executions.
    pub fn of(stuck: Vec<StuckExecution>, shown: usize) -> Self {
        let count = stuck.len();
        let item = |stuck: StuckExecution| StuckItemView {
            workflow_id: stuck.workflow_id.map(|id| id.to_string()),
            execution_id: stuck.execution_id.to_string(),
            cause: stuck.cause.to_string(),
        };
        Self { count, executions: stuck.into_iter().take(shown).map(item).collect() }
    }
}

/// A page of traces, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TracePage)]
#[serde(rename_all = "camelCase")]
pub struct TracesView<'a> {
    traces: Vec<TraceItemView<'a>>,
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Item of the list of traces, from its root.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TraceItem)]
#[serde(rename_all = "camelCase")]
struct TraceItemView<'a> {
    trace_id: &'a str,
    name: &'a str,
    #[schema(schema_with = entity_type)]
    entity_type: &'static str,
    entity_id: &'a str,
    start_time: Iso,
    #[schema(required)]
    end_time: Option<Iso>,
    /// Milliseconds.
    #[schema(required)]
    duration: Option<u64>,
    status: SpanStatusView<'a>,
    span_count: usize,
    /// True if the trace has more spans than are counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    is_truncated: bool,
}

impl<'a> TracesView<'a> {
    /// Shows a page.
    pub fn of(traces: &'a [TraceSummary], next: Option<RootCursor>) -> Self {
        Self {
            traces: traces.iter().map(TraceItemView::of).collect(),
            next_cursor: next.map(cursor_text),
        }
    }
}

impl<'a> TraceItemView<'a> {
    fn of(trace: &'a TraceSummary) -> Self {
        Self {
            trace_id: &trace.trace_id,
            name: &trace.name,
            entity_type: trace.entity_type.as_str(),
            entity_id: &trace.entity_id,
            start_time: Iso(trace.start),
            end_time: trace.end.map(Iso),
            duration: trace.end.map(|end| end.ms_since(trace.start)),
            status: SpanStatusView::of(&trace.status),
            span_count: trace.span_count,
            is_truncated: trace.is_cut,
        }
    }
}

/// Formats a position in the list of traces as an opaque cursor: one of executions and one of
/// generations, `-` if there is none yet.
fn cursor_text(cursor: RootCursor) -> String {
    let execution = cursor.execution.map_or_else(|| "-".to_owned(), place_text);
    let generation = cursor.generation.map(|row| format!("{row:016x}"));
    format!("{execution}.{}", generation.as_deref().unwrap_or("-"))
}

/// Parses `nextCursor` of [`TracesView`].
pub fn cursor_of(text: &str) -> Option<RootCursor> {
    let (execution, generation) = text.split_once('.')?;
    let execution: Option<Cursor> = match execution {
        "-" => None,
        place => Some(place_of(place)?),
    };
    let generation = match generation {
        "-" => None,
        row => Some(number_of(row)?),
    };
    (execution.is_some() || generation.is_some()).then_some(RootCursor { execution, generation })
}

/// A trace: its spans by start time, and the same spans as a tree.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trace)]
#[serde(rename_all = "camelCase")]
pub struct TraceView<'a> {
    trace_id: &'a str,
    #[schema(value_type = Vec<SpanView<'a>>)]
    spans: &'a [SpanView<'a>],
    tree: Vec<SpanNode<'a>>,
    span_count: usize,
    /// True if the trace has more spans than are shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    is_truncated: bool,
}

/// A span with its children.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SpanNode)]
struct SpanNode<'a> {
    #[serde(flatten)]
    #[schema(value_type = SpanView<'a>)]
    span: &'a SpanView<'a>,
    #[schema(no_recursion)]
    children: Vec<SpanNode<'a>>,
    /// Depth in the tree; 0 for roots.
    depth: u32,
}

impl<'a> TraceView<'a> {
    /// Shows the spans of a trace; `views` has their views in the same order.
    pub fn of(
        trace_id: &'a str,
        spans: &[Span],
        views: &'a [SpanView<'a>],
        is_truncated: bool,
    ) -> Self {
        let tree = tree_of(spans, views);
        Self { trace_id, spans: views, tree, span_count: spans.len(), is_truncated }
    }
}

/// Builds the tree. Roots are spans whose parent is not included: it is of another process, or was
/// omitted.
fn tree_of<'a>(spans: &[Span], views: &'a [SpanView<'a>]) -> Vec<SpanNode<'a>> {
    let known: HashSet<SpanId> = spans.iter().map(|span| span.id).collect();
    let mut below: HashMap<Option<SpanId>, Vec<usize>> = HashMap::new();
    for (index, span) in spans.iter().enumerate() {
        let parent = span.parent.filter(|parent| known.contains(parent));
        below.entry(parent).or_default().push(index);
    }
    nodes_below(None, 0, spans, views, &mut below)
}

/// Builds the nodes below a span. Each list of children is used once, so that cyclic ids end.
fn nodes_below<'a>(
    parent: Option<SpanId>,
    depth: u32,
    spans: &[Span],
    views: &'a [SpanView<'a>],
    below: &mut HashMap<Option<SpanId>, Vec<usize>>,
) -> Vec<SpanNode<'a>> {
    let indices = below.remove(&parent).unwrap_or_default();
    let node = |index: usize| SpanNode {
        span: &views[index],
        children: nodes_below(Some(spans[index].id), depth + 1, spans, views, below),
        depth,
    };
    indices.into_iter().map(node).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::observe::span::{Owner, SpanStatus, SpanWork};
    use serde_json::{Value, to_value};

    use super::*;
    use crate::api::wire::test_header;

    #[test]
    fn cursors_survive_a_round_trip() {
        let execution = Some(Cursor { at: Timestamp(1_700_000_000_123), row: 7 });
        for (execution, generation) in [(execution, Some(3)), (execution, None), (None, Some(1))] {
            let cursor = RootCursor { execution, generation };
            assert_eq!(cursor_of(&cursor_text(cursor)), Some(cursor));
        }
        for bad in ["", "-.-", "-", ".", "-.g000000000000001", "-.1", "-.0000000000000001.-"] {
            assert_eq!(cursor_of(bad), None, "{bad:?} was accepted");
        }
    }

    fn span(id: &str, parent: Option<&str>) -> Span {
        Span {
            id: format!("{id:0>16}").parse().unwrap(),
            parent: parent.map(|parent| format!("{parent:0>16}").parse().unwrap()),
            owner: Owner::Execution(Arc::new(test_header())),
            start: Timestamp(0),
            end: None,
            status: SpanStatus::Unset,
            work: SpanWork::Workflow {
                input: None,
                output: None,
                replayed_by: None,
                cancelled_by: None,
            },
        }
    }

    /// `id(children)` of each node, without zeros at the start of ids.
    fn picture(nodes: &Value) -> String {
        let node = |node: &Value| {
            let id = node["spanId"].as_str().unwrap().trim_start_matches('0');
            match picture(&node["children"]) {
                below if below.is_empty() => id.to_owned(),
                below => format!("{id}({below})"),
            }
        };
        nodes.as_array().unwrap().iter().map(node).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_tree_has_every_span_below_its_parent() {
        type Spans = &'static [(&'static str, Option<&'static str>)];
        let rows: [(Spans, &str); 4] = [
            (&[("a", None), ("b", Some("a")), ("c", Some("b")), ("d", Some("a"))], "a(b(c) d)"),
            // the parent of b is not included
            (&[("a", None), ("b", Some("f")), ("c", Some("b"))], "a b(c)"),
            // if spans share an id, the first has the children
            (&[("a", None), ("a", None), ("b", Some("a"))], "a(b) a"),
            (&[], ""),
        ];
        for (spans, expected) in rows {
            let spans: Vec<_> = spans.iter().map(|(id, parent)| span(id, *parent)).collect();
            let views: Vec<_> = spans.iter().map(|span| SpanView::of(span, false)).collect();
            let shown = to_value(TraceView::of("t", &spans, &views, spans.is_empty())).unwrap();
            assert_eq!(picture(&shown["tree"]), expected);
            assert_eq!(shown["spanCount"], spans.len());
            assert_eq!(shown.get("isTruncated").is_some(), spans.is_empty());
        }
    }
}
