//! Encoded frames of spans and log records.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytestring::ByteString;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::observe::span::{SpanEvent, SpanPhase};
use serde::Serialize;

use crate::api::wire::log_frame::{LogsFrame, log_event};
use crate::api::wire::span::SpanEventView;

/// Encoded event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) text: ByteString,
    /// Equal for the same event, whether live or read from the store.
    pub(super) key: u64,
    pub(super) at: Timestamp,
}

impl Frame {
    /// Encodes a span; `content` adds its inputs and outputs.
    pub(super) fn of_span(event: &SpanEvent, content: bool) -> Option<Self> {
        let text = text_of(&SpanEventView::frame(event, content))?;
        Some(Self { text, key: key_of_span(event), at: time_of(event) })
    }

    /// Encodes a log record in the format of OpenTelemetry.
    pub(super) fn of_record(record: &LogRecord) -> Option<Self> {
        let text = text_of(&log_event(record))?;
        Some(Self { text, key: key_of_record(record), at: record.at })
    }

    /// Encodes a log record as an entry of the log.
    pub(super) fn of_entry(record: &LogRecord, now: Timestamp) -> Option<Self> {
        let text = text_of(&LogsFrame::update(record, now))?;
        Some(Self { text, key: key_of_record(record), at: record.at })
    }
}

/// Returns the time of an event.
pub(super) fn time_of(event: &SpanEvent) -> Timestamp {
    match event.phase {
        SpanPhase::Started => event.span.start,
        SpanPhase::Ended => event.span.end.unwrap_or(event.span.start),
    }
}

fn key_of_span(event: &SpanEvent) -> u64 {
    hash_of(&(event.span.id, event.phase))
}

/// Returns a key over all fields that distinguish records for a subscriber.
pub(super) fn key_of_record(record: &LogRecord) -> u64 {
    let LogRecord { at, level, target, message, attributes: _, scope } = record;
    let ids = (&scope.trace_id, scope.span_id, &scope.execution_id, &scope.request_id);
    hash_of(&(at, level, target, message, ids))
}

fn hash_of(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Encodes a frame; logs an error and returns `None` if that fails.
pub(super) fn text_of(frame: &impl Serialize) -> Option<ByteString> {
    match serde_json::to_string(frame) {
        Ok(text) => Some(text.into()),
        Err(error) => {
            log::error!("cannot serialize a frame: {error}");
            None
        }
    }
}
