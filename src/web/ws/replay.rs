//! Replay of the latest events for observers that request it, in the same frames as live events.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::observe::span::{
    ObserverFilter, Span, SpanEvent, SpanId, SpanPhase, SpanStatus,
};
use greenroom_actors::ports::store::{LogFilter, RootFilter};

use crate::api::ApiError;
use crate::api::query::{Pairs, time_from, value_of};
use crate::api::wire::log::log_limit_of;
use crate::web::ws::frames::{Frame, time_of};
use crate::web::ws::history::Read;

/// Maximum number of traces to read, newest first.
const TRACES_MAX: usize = 100;
/// Traces per page.
const PAGE: usize = 20;

/// Range of past events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replay {
    since: Option<Timestamp>,
    limit: usize,
}

enum Event {
    Span(Box<SpanEvent>),
    Log(Box<LogRecord>),
}

impl Replay {
    /// Parses the parameters; either of them requests a replay.
    pub(super) fn parse(pairs: &Pairs) -> Result<Option<Self>, ApiError> {
        let since = time_from(pairs, "since")?;
        let limit = log_limit_of(pairs)?;
        let is_asked_for = since.is_some() || value_of(pairs, "limit").is_some();
        Ok(is_asked_for.then_some(Self { since, limit }))
    }

    /// Reads the newest events and log records of the newest traces, in order of time.
    pub(super) async fn read(
        self,
        filter: &ObserverFilter,
        runtime: &Runtime,
        content: bool,
    ) -> Result<Read, ApiError> {
        let mut events = self.events(filter, runtime).await?;
        // Stable: events of the same time keep the order of their nesting.
        events.sort_by_key(Event::at);
        let surplus = events.len().saturating_sub(self.limit);
        let mut past = Read::default();
        for event in &events[surplus..] {
            let frame = match event {
                Event::Span(event) => Frame::of_span(event, content),
                Event::Log(record) => Frame::of_record(record),
            };
            if let Some(Frame { text, key, at }) = frame {
                past.deduplicator.add(key, at);
                past.texts.push(text);
            }
        }
        Ok(past)
    }

    async fn events(
        self,
        filter: &ObserverFilter,
        runtime: &Runtime,
    ) -> Result<Vec<Event>, ApiError> {
        let ObserverFilter { entity_type, entity_id, visibility } = filter.clone();
        let is_everything = entity_type.is_none() && entity_id.is_none();
        let roots =
            RootFilter { entity_type, entity_id, visibility: visibility.clone(), from: None };
        let logged = LogFilter { since: self.since, visibility, ..LogFilter::default() };
        let mut events = Vec::new();
        let mut logs = self.limit;
        if is_everything {
            events.extend(self.logged(logged.clone(), runtime).await?);
            logs = 0;
        }
        let (mut spans, mut after, mut seen) = (self.limit, None, HashSet::new());
        while seen.len() < TRACES_MAX && (spans > 0 || logs > 0) {
            let page = runtime.roots(&roots, after, PAGE).await?;
            for root in &page.roots {
                // Callers may begin several roots of one trace.
                if !seen.insert(Arc::clone(root.trace_id())) {
                    continue;
                }
                let trace_id = root.trace_id().to_string();
                if logs > 0 {
                    let of_trace = Some(trace_id.clone());
                    let filter = LogFilter { trace_id: of_trace, ..logged.clone() };
                    let before = events.len();
                    events.extend(self.logged(filter, runtime).await?);
                    logs = logs.saturating_sub(events.len() - before);
                }
                let is_over = self.since.zip(root.ended_at()).is_some_and(|(it, end)| end < it);
                if is_over || spans == 0 {
                    continue;
                }
                let view = runtime.trace(&trace_id, &roots.visibility).await?.unwrap_or_default();
                let replayed = events_of(&view.spans).into_iter();
                let wanted = replayed.map(|event| Event::Span(Box::new(event)));
                let before = events.len();
                events.extend(wanted.filter(|event| self.since.is_none_or(|it| event.at() >= it)));
                spans = spans.saturating_sub(events.len() - before);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(events)
    }

    async fn logged(
        self,
        filter: LogFilter,
        runtime: &Runtime,
    ) -> Result<impl Iterator<Item = Event>, ApiError> {
        let page = runtime.logs(&filter, None, self.limit).await?;
        Ok(page.records.into_iter().map(|record| Event::Log(Box::new(record))))
    }
}

impl Event {
    fn at(&self) -> Timestamp {
        match self {
            Self::Span(event) => time_of(event),
            Self::Log(record) => record.at,
        }
    }
}

/// Returns the starts and ends of a trace's spans, in the order of their nesting.
fn events_of(spans: &[Span]) -> Vec<SpanEvent> {
    let known: HashMap<SpanId, &Span> = spans.iter().map(|span| (span.id, span)).collect();
    let mut children: HashMap<Option<SpanId>, Vec<&Span>> = HashMap::new();
    for span in spans {
        let parent = span.parent.filter(|parent| known.contains_key(parent) && *parent != span.id);
        children.entry(parent).or_default().push(span);
    }
    let mut events = Vec::with_capacity(spans.len() * 2);
    // Stack of the remaining visits.
    let mut left = vec![Visit::Children(None)];
    while let Some(visit) = left.pop() {
        match visit {
            Visit::Children(of) => {
                let below = children.remove(&of).unwrap_or_default();
                left.extend(below.into_iter().rev().map(Visit::Whole));
            }
            Visit::Whole(span) => {
                events.push(begun(span));
                left.push(Visit::End(span));
                left.push(Visit::Children(Some(span.id)));
            }
            Visit::End(span) if span.end.is_some() => {
                events.push(SpanEvent { phase: SpanPhase::Ended, span: span.clone() });
            }
            Visit::End(_) => {}
        }
    }
    events
}

enum Visit<'a> {
    Whole(&'a Span),
    Children(Option<SpanId>),
    End(&'a Span),
}

fn begun(span: &Span) -> SpanEvent {
    Span { end: None, status: SpanStatus::Unset, ..span.clone() }.started()
}
