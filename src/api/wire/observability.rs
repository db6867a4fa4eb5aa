//! Traces on the wire, and the status of observability.

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
use crate::api::wire::state::{cursor_of as place_of, cursor_text as place_text};

/// The answer of `GET /observability/status`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ObservabilityStatus)]
#[serde(rename_all = "camelCase")]
pub struct StatusView {
    /// Whether anything can be observed.
    pub enabled: bool,
    /// What keeps traces and logs.
    pub storage: &'static str,
    /// Whether they are there after a restart.
    pub storage_persistent: bool,
    pub message: &'static str,
    /// Whether it is sent over a WebSocket.
    pub websocket: bool,
    /// Log records that are kept.
    pub log_count: u64,
    /// Whether it is sent to another service.
    pub is_telemetry_enabled: bool,
    /// `development` or `production`.
    pub environment: &'static str,
    pub stuck: StuckView,
    /// Threads of executions that do not answer, for those who see everything.
    pub stalled: Vec<StalledView>,
}

/// A thread of executions that does not answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StalledThread)]
#[serde(rename_all = "camelCase")]
pub struct StalledView {
    pub thread: usize,
    /// Milliseconds since it last did.
    pub silent_ms: u64,
    /// The step that blocks it, if it is one.
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

/// Executions that nothing can move on: no timer, child, step or person.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StuckExecutions)]
pub struct StuckView {
    /// As far as they were found; at most 1000.
    pub count: usize,
    /// The first of them, for those who see everything.
    pub executions: Vec<StuckItemView>,
}

/// One of them.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StuckExecution)]
#[serde(rename_all = "camelCase")]
pub struct StuckItemView {
    /// None where its row cannot be read.
    #[schema(required)]
    pub workflow_id: Option<String>,
    pub execution_id: String,
    pub cause: String,
}

impl StuckView {
    /// Shows how many there are, and the first `shown` of them.
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

/// An item of the list of traces: what is known of its root.
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
        }
    }
}

/// A place in the list of traces, as text that callers hand back unread: one of executions, one of
/// generations, `-` for one that has none yet.
fn cursor_text(cursor: RootCursor) -> String {
    let execution = cursor.execution.map_or_else(|| "-".to_owned(), place_text);
    let generation = cursor.generation.map(|row| format!("{row:016x}"));
    format!("{execution}.{}", generation.as_deref().unwrap_or("-"))
}

/// Reads what [`TracesView`] gave as `nextCursor`.
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

/// Reads 16 hexadecimal digits.
pub fn number_of(text: &str) -> Option<i64> {
    if text.len() != 16 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(text, 16).ok().map(u64::cast_signed)
}

/// A trace: its spans in the order of their beginnings, and once more as a tree.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Trace)]
#[serde(rename_all = "camelCase")]
pub struct TraceView<'a> {
    trace_id: &'a str,
    #[schema(value_type = Vec<SpanView<'a>>)]
    spans: &'a [SpanView<'a>],
    tree: Vec<SpanNode<'a>>,
    span_count: usize,
    /// Whether the trace has more spans than are shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    is_truncated: bool,
}

/// A span with those that are below it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SpanNode)]
struct SpanNode<'a> {
    #[serde(flatten)]
    #[schema(value_type = SpanView<'a>)]
    span: &'a SpanView<'a>,
    #[schema(no_recursion)]
    children: Vec<SpanNode<'a>>,
    /// 0 at the top.
    depth: u32,
}

impl<'a> TraceView<'a> {
    /// Shows the spans of a trace; `views` are theirs, in the same order.
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

/// At the top are those whose parents are not among them: another process's, or left out.
fn tree_of<'a>(spans: &[Span], views: &'a [SpanView<'a>]) -> Vec<SpanNode<'a>> {
    let known: HashSet<SpanId> = spans.iter().map(|span| span.id).collect();
    let mut below: HashMap<Option<SpanId>, Vec<usize>> = HashMap::new();
    for (index, span) in spans.iter().enumerate() {
        let parent = span.parent.filter(|parent| known.contains(parent));
        below.entry(parent).or_default().push(index);
    }
    nodes_below(None, 0, spans, views, &mut below)
}

/// Each list of children is taken once, so that whatever the ids are, this ends.
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

    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
    use greenroom_actors::observe::span::{Owner, SpanStatus, SpanWork};
    use greenroom_actors::ports::store::Header;
    use serde_json::{Value, to_value};

    use super::*;

    #[test]
    fn cursors_come_back_as_they_went_out() {
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
        let header = Header {
            id: ExecutionId::trusted("e1"),
            workflow_id: "order".into(),
            definition_hash: "h".into(),
            user_id: None,
            conversation_id: None,
            parent: None,
            trace: Trace::of("e1", EntityType::Workflow, &"order".into(), TraceOrigin::New),
            created_at: Timestamp(0),
        };
        Span {
            id: format!("{id:0>16}").parse().unwrap(),
            parent: parent.map(|parent| format!("{parent:0>16}").parse().unwrap()),
            owner: Owner::Execution(Arc::new(header)),
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
            // the parent of b is elsewhere, or was left out
            (&[("a", None), ("b", Some("f")), ("c", Some("b"))], "a b(c)"),
            // of spans that share an id, the first has the children
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
