//! Frames of what happens, written once for all who are told.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytestring::ByteString;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::observe::span::{SpanEvent, SpanPhase};
use serde::Serialize;

use crate::api::wire::log_frame::{LogsFrame, log_event};
use crate::api::wire::span::SpanEventView;

/// A text for whoever listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) text: ByteString,
    /// The same for the same event, told live or read from the record.
    pub(super) key: u64,
    pub(super) at: Timestamp,
}

impl Frame {
    /// Tells of a span; with `content`, also what was said in it.
    pub(super) fn of_span(event: &SpanEvent, content: bool) -> Option<Self> {
        let text = text_of(&SpanEventView::frame(event, content))?;
        Some(Self { text, key: key_of_span(event), at: time_of(event) })
    }

    /// Tells of a log record as OpenTelemetry does.
    pub(super) fn of_record(record: &LogRecord) -> Option<Self> {
        let text = text_of(&log_event(record))?;
        Some(Self { text, key: key_of_record(record), at: record.at })
    }

    /// Tells of a log record as an entry of the log.
    pub(super) fn of_entry(record: &LogRecord, now: Timestamp) -> Option<Self> {
        let text = text_of(&LogsFrame::update(record, now))?;
        Some(Self { text, key: key_of_record(record), at: record.at })
    }
}

/// When it happened.
pub(super) fn time_of(event: &SpanEvent) -> Timestamp {
    match event.phase {
        SpanPhase::Started => event.span.start,
        SpanPhase::Ended => event.span.end.unwrap_or(event.span.start),
    }
}

fn key_of_span(event: &SpanEvent) -> u64 {
    hash_of(&(event.span.id, event.phase))
}

/// Records that differ in nothing that is in here tell their reader nothing new.
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

/// The text of a frame; none when it cannot be written, which is logged.
pub(super) fn text_of(frame: &impl Serialize) -> Option<ByteString> {
    match serde_json::to_string(frame) {
        Ok(text) => Some(text.into()),
        Err(error) => {
            log::error!("a frame could not be written: {error}");
            None
        }
    }
}
