//! Spans of executions, derived from recorded facts alone.

use std::sync::Arc;

use actix::{Message, Recipient};

use crate::domain::time::Timestamp;
use crate::requests::Cut;
use crate::sight::Sight;

/// A span that began or ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SpanEvent {
    pub phase: SpanPhase,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanPhase {
    Started,
    Ended,
}

/// One span: an execution, a step's attempt, or a generation.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// 32 hexadecimal digits.
    pub trace_id: Arc<str>,
    /// 16 hexadecimal digits.
    pub span_id: String,
    pub parent_span_id: Option<String>,
    pub name: String,
    pub start: Timestamp,
    /// Set once the span has ended.
    pub end: Option<Timestamp>,
    pub status: SpanStatus,
    /// OpenTelemetry attribute names and text values.
    pub attributes: Vec<(&'static str, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanStatus {
    Unset,
    Ok,
    Error(String),
}

/// What kind of root a trace has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntityType {
    Agent,
    Workflow,
}

/// Which traces an observer wants; decided by the root of each trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObserverFilter {
    pub entity_type: Option<EntityType>,
    pub entity_id: Option<String>,
    /// A trace belongs to the user of its root, and so does all that is below it.
    pub sight: Sight,
}

/// Tells an observer what happened to one execution in one commit.
#[derive(Debug, Clone, Message)]
#[rtype(result = "()")]
pub struct SpansObserved {
    pub spans: Arc<[SpanEvent]>,
    /// Earlier ones that found the observer's mailbox full, or the feed too far behind.
    pub missed: u64,
}

/// A listener of spans: an address with a bounded mailbox of its own.
#[derive(Clone)]
pub struct Observer {
    pub spans: Recipient<SpansObserved>,
    pub filter: ObserverFilter,
    pub cut: Cut,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("filter", &self.filter).finish_non_exhaustive()
    }
}

/// Names a registered observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObserverId(pub u64);
