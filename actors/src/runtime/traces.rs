//! Traces, built from the records of executions and generations.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::time::Timestamp;
use crate::domain::trace::Anchor;
use crate::observe::span::{CANCELLED, EntityType, Span, SpanId, SpanStatus};
use crate::observe::trace::execution::spans_of_record;
use crate::observe::trace::generation::spans_of_entry;
use crate::observe::trace::latest_of;
use crate::ports::store::{
    GenerationStatus, Root, RootCursor, RootFilter, RootPage, Status, TraceQuery, TraceRecord,
    TraceSize,
};
use crate::requests::Unavailable;
use crate::runtime::Runtime;
use crate::visibility::Visibility;

/// Facts, generations and turns of one trace that a list counts.
const COUNTED_MAX: usize = 1_000;
/// Memory of the content of one trace that a list counts, estimated, in bytes.
const COUNTED_BYTES_MAX: u64 = 8 << 20;
/// Roots read for one page of a list: where many share a trace, most are skipped.
const ROOTS_MAX: usize = 1_000;

/// A trace in a list: its root and its size.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSummary {
    pub trace_id: Arc<str>,
    /// Name of the root span.
    pub name: String,
    pub entity_type: EntityType,
    pub entity_id: Arc<str>,
    pub start: Timestamp,
    /// Set once the root has ended.
    pub end: Option<Timestamp>,
    pub status: SpanStatus,
    /// Spans that the caller sees, as far as they are counted.
    pub span_count: usize,
    /// True if there are more spans.
    pub is_cut: bool,
}

/// A page of traces, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TracePage {
    pub traces: Vec<TraceSummary>,
    /// Position of the next page. Since the reads for one page are bounded, a page may have fewer
    /// traces than requested, even none, and still have a next one.
    pub next: Option<RootCursor>,
}

/// One trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceView {
    /// Ordered by start time, outer spans first.
    pub spans: Vec<Span>,
    /// True if more is recorded than a trace may show.
    pub is_cut: bool,
}

impl Runtime {
    /// Returns traces by their roots, newest first, at most `limit`. A trace whose id came from a
    /// caller may have several roots: a page shows it once, by the newest.
    pub async fn traces(
        &self,
        filter: &RootFilter,
        after: Option<RootCursor>,
        limit: usize,
    ) -> Result<TracePage, Unavailable> {
        let mut page = TracePage { traces: Vec::new(), next: after };
        let mut left = self.largest_trace();
        // One by one, so that the page can end after any of them.
        for _ in 0..ROOTS_MAX {
            if page.traces.len() == limit || left.is_spent() {
                break;
            }
            let roots = self.roots(filter, page.next, 1).await?;
            page.next = roots.next;
            for root in &roots.roots {
                let is_known = page.traces.iter().any(|it| it.trace_id == *root.trace_id());
                if !is_known {
                    let query = TraceQuery {
                        trace_id: root.trace_id().to_string(),
                        visibility: filter.visibility.clone(),
                        anchor: None,
                        most: TraceSize {
                            facts: left.facts.min(COUNTED_MAX),
                            bytes: left.bytes.min(COUNTED_BYTES_MAX),
                        },
                    };
                    let (record, spans) = self.spans_of_trace(&query).await?;
                    // at least one, so that the page ends
                    let taken = TraceSize { facts: record.size.facts.max(1), ..record.size };
                    left = left.without(taken);
                    let summary = TraceSummary::of(root, spans.len());
                    page.traces.push(TraceSummary { is_cut: record.is_cut, ..summary });
                }
            }
            if page.next.is_none() || roots.roots.is_empty() {
                break;
            }
        }
        Ok(page)
    }

    /// Returns stored roots of traces, newest first, at most `limit`, without reading what is below
    /// them.
    pub async fn roots(
        &self,
        filter: &RootFilter,
        after: Option<RootCursor>,
        limit: usize,
    ) -> Result<RootPage, Unavailable> {
        Ok(self.shared.store.roots(filter, after, limit).await?)
    }

    /// Returns the visible part of a trace; `None` if there is none.
    pub async fn trace(
        &self,
        id: &str,
        visibility: &Visibility,
    ) -> Result<Option<TraceView>, Unavailable> {
        let (record, mut spans) = self.spans_of_trace(&self.query(id, visibility)).await?;
        if spans.is_empty() {
            return Ok(None);
        }
        sort(&mut spans);
        Ok(Some(TraceView { spans, is_cut: record.is_cut }))
    }

    /// Returns a span by its id alone, which encodes the root of its trace.
    pub async fn span(
        &self,
        id: SpanId,
        visibility: &Visibility,
    ) -> Result<Option<Span>, Unavailable> {
        let anchor = Anchor::in_span(id);
        let Some(root) = anchor.root() else { return Ok(None) };
        let Some(trace) = self.shared.store.trace_of(root).await? else {
            return Ok(None);
        };
        let query = TraceQuery { anchor: Some(anchor), ..self.query(&trace, visibility) };
        let (_, spans) = self.spans_of_trace(&query).await?;
        Ok(spans.into_iter().find(|span| span.id == id))
    }

    fn query(&self, trace_id: &str, visibility: &Visibility) -> TraceQuery {
        let (trace_id, visibility) = (trace_id.to_owned(), visibility.clone());
        TraceQuery { trace_id, visibility, anchor: None, most: self.largest_trace() }
    }

    fn largest_trace(&self) -> TraceSize {
        let limits = &self.shared.limits;
        TraceSize { facts: limits.trace_spans_max, bytes: limits.trace_bytes_max }
    }

    async fn spans_of_trace(
        &self,
        query: &TraceQuery,
    ) -> Result<(TraceRecord, Vec<Span>), Unavailable> {
        let record = self.shared.store.trace(query).await?;
        let executions = record.executions.iter();
        let of_executions = executions.flat_map(|(header, facts)| spans_of_record(header, facts));
        let of_generations = record.generations.iter().flat_map(spans_of_entry);
        let spans = latest_of(of_executions.chain(of_generations));
        Ok((record, spans))
    }
}

impl TraceSummary {
    fn of(root: &Root, span_count: usize) -> Self {
        let (name, entity_type, entity_id, status) = match root {
            Root::Execution(projection) => {
                let workflow = &projection.header.workflow_id;
                let status = match projection.status {
                    Status::Running | Status::Suspended => SpanStatus::Unset,
                    Status::Completed => SpanStatus::Ok,
                    Status::Error => SpanStatus::Error("the execution failed".into()),
                    Status::Cancelled => SpanStatus::Error(CANCELLED.into()),
                };
                let name = format!("invoke_workflow {workflow}");
                (name, EntityType::Workflow, Arc::clone(workflow), status)
            }
            Root::Generation(record) => {
                let status = match record.status {
                    GenerationStatus::Working | GenerationStatus::Suspended => SpanStatus::Unset,
                    GenerationStatus::Completed => SpanStatus::Ok,
                    GenerationStatus::Error => {
                        let error = record.error.as_deref().unwrap_or("the generation failed");
                        SpanStatus::Error(error.into())
                    }
                    GenerationStatus::Cancelled => SpanStatus::Error(CANCELLED.into()),
                };
                let name = format!("invoke_agent {}", record.agent_id);
                let agent = Arc::from(record.agent_id.as_str());
                (name, EntityType::Agent, agent, status)
            }
        };
        let trace_id = Arc::clone(root.trace_id());
        let (start, end) = (root.started_at(), root.ended_at());
        Self {
            trace_id,
            name,
            entity_type,
            entity_id,
            start,
            end,
            status,
            span_count,
            is_cut: false,
        }
    }
}

fn sort(spans: &mut [Span]) {
    let parents: HashMap<SpanId, SpanId> =
        spans.iter().filter_map(|span| Some((span.id, span.parent?))).collect();
    let depth = |span: &Span| {
        let above = std::iter::successors(Some(span.id), |id| parents.get(id).copied());
        // ids that collide by chance must not cause an endless loop
        above.take(parents.len()).count()
    };
    spans.sort_by_cached_key(|span| (span.start, depth(span)));
}
