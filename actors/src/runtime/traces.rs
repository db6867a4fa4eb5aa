//! Traces, assembled from what is recorded.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::time::Timestamp;
use crate::domain::trace::{Anchor, EntityType, SpanId};
use crate::ports::store::{Root, RootCursor, RootFilter, TraceRecord};
use crate::requests::Unavailable;
use crate::runtime::{Runtime, unreadable};
use crate::sight::Sight;
use crate::span::{Span, SpanStatus};
use crate::trace::execution::{OpenAttempts, spans_of};

/// Facts and turns of one trace that are read at most.
const FACTS_MAX: usize = 100_000;

/// A page of traces, newest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TracePage {
    pub traces: Vec<TraceSummary>,
    /// Where the next page begins.
    pub next: Option<RootCursor>,
}

/// What a list shows of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSummary {
    pub trace_id: Arc<str>,
    /// The name of its root's span.
    pub name: String,
    pub entity_type: EntityType,
    pub entity_id: Arc<str>,
    pub start: Timestamp,
    pub end: Option<Timestamp>,
    pub status: SpanStatus,
    pub span_count: usize,
}

/// The spans of a trace, in the order of their beginnings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TraceView {
    pub spans: Vec<Span>,
    /// Whether there are more.
    pub is_cut: bool,
}

impl Runtime {
    /// Traces by their roots, newest first.
    pub async fn traces(
        &self,
        filter: &RootFilter,
        after: Option<RootCursor>,
        limit: usize,
    ) -> Result<TracePage, Unavailable> {
        let page = self.core.store.roots(filter, after, limit).await.map_err(unreadable)?;
        let mut traces = Vec::new();
        for root in &page.roots {
            let spans = spans_in(&self.recorded(root.trace_id()).await?);
            traces.extend(summary(root, &spans));
        }
        Ok(TracePage { traces, next: page.next })
    }

    /// A trace, unless nobody began it or the caller does not see it.
    pub async fn trace(&self, id: &str, sight: &Sight) -> Result<Option<TraceView>, Unavailable> {
        let record = self.recorded(id).await?;
        let mut spans = spans_in(&record);
        spans.retain(|span| sight.reaches(span.owner.user_id()));
        Ok((!spans.is_empty()).then_some(TraceView { spans, is_cut: record.is_cut }))
    }

    /// A span, by its id alone.
    pub async fn span(&self, id: SpanId, sight: &Sight) -> Result<Option<Span>, Unavailable> {
        let Some(root) = Anchor::in_span(id).root() else { return Ok(None) };
        let trace_id = self.core.store.trace_of(root).await.map_err(unreadable)?;
        let Some(trace_id) = trace_id else { return Ok(None) };
        let found = self.trace(&trace_id, sight).await?.unwrap_or_default();
        Ok(found.spans.into_iter().find(|span| span.id == id))
    }

    async fn recorded(&self, trace_id: &str) -> Result<TraceRecord, Unavailable> {
        self.core.store.trace(trace_id, FACTS_MAX).await.map_err(unreadable)
    }
}

fn spans_in(record: &TraceRecord) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut places = HashMap::new();
    for (header, facts) in &record.executions {
        for event in spans_of(header, facts, &mut OpenAttempts::default()) {
            match places.get(&event.span.id) {
                Some(place) => spans[*place] = event.span,
                None => {
                    places.insert(event.span.id, spans.len());
                    spans.push(event.span);
                }
            }
        }
    }
    spans.sort_by_key(|span| span.start);
    spans
}

fn summary(root: &Root, spans: &[Span]) -> Option<TraceSummary> {
    let top = spans.iter().find(|span| span.trace().is_root() && span.parent.is_none())?;
    let (entity_type, entity_id) = top.owner.entity();
    Some(TraceSummary {
        trace_id: Arc::clone(root.trace_id()),
        name: top.name(),
        entity_type,
        entity_id: entity_id.into(),
        start: top.start,
        end: top.end,
        status: top.status.clone(),
        span_count: spans.len(),
    })
}
