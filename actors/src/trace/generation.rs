//! Spans from the record of a generation: pure.

use std::sync::Arc;

use serde_json::Value;

use crate::ports::store::{GenerationEntry, GenerationRecord, GenerationStatus};
use crate::span::{Owner, Span, SpanEvent, SpanStatus, SpanWork};

/// The spans of a generation, as its record has it.
pub(crate) fn spans_of_entry(entry: &GenerationEntry) -> Vec<SpanEvent> {
    let record = GenerationRecord { input: Value::Null, output: None, ..entry.record.clone() };
    let span = Span {
        id: record.trace.span(&[&record.id]),
        parent: record.trace.parent_span,
        start: record.start_time,
        end: None,
        status: SpanStatus::Unset,
        work: SpanWork::Agent { usage: record.usage },
        owner: Owner::Generation(Arc::new(record)),
    };
    let record = &entry.record;
    let Some(end) = record.end_time else { return vec![span.started()] };
    let status = match record.status {
        GenerationStatus::Working => SpanStatus::Unset,
        GenerationStatus::Completed => SpanStatus::Ok,
        GenerationStatus::Cancelled => SpanStatus::Error(Arc::from("cancelled")),
        GenerationStatus::Error => {
            SpanStatus::Error(Arc::from(record.error.as_deref().unwrap_or_default()))
        }
    };
    vec![span.clone().started(), span.ended(end, status)]
}
