//! Log records in frames of WebSockets.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::LogRecord;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::error::ApiError;
use crate::api::wire::Iso;
use crate::api::wire::envelope::Frame;
use crate::api::wire::log::{LogEntry, LogRecordView};

/// Frame of `/ws/logs`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogsFrame)]
pub struct LogsFrame<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = frame_kind)]
    kind: &'static str,
    /// Newest last.
    logs: Vec<LogEntry<'a>>,
    timestamp: Iso,
}

impl<'a> LogsFrame<'a> {
    /// Creates the frame of existing records, sent when a filter is set.
    pub fn initial(records: &'a [LogRecord], now: Timestamp) -> Self {
        let logs = records.iter().map(LogEntry::of).collect();
        Self { kind: "initial", logs, timestamp: Iso(now) }
    }

    /// Creates the frame of a new record.
    pub fn update(record: &'a LogRecord, now: Timestamp) -> Self {
        Self { kind: "update", logs: vec![LogEntry::of(record)], timestamp: Iso(now) }
    }
}

/// Creates the frame of a log record for `/ws/observability`.
pub fn log_event(record: &LogRecord) -> Frame<LogRecordView<'_>> {
    Frame::of("OBSERVABILITY_LOG", LogRecordView::of(record))
}

fn frame_kind() -> utoipa::openapi::Object {
    crate::api::wire::shape::one_of(["initial", "update"])
}

/// Message of a client of `/ws/logs`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LogsMessage {
    #[serde(rename = "type")]
    pub kind: String,
    pub filter: Map<String, Value>,
}

/// Converts a filter in JSON to query parameters. `null` means no filter.
pub fn parameters_of(filter: Map<String, Value>) -> Result<Vec<(String, String)>, ApiError> {
    let mut pairs = Vec::with_capacity(filter.len());
    for (name, value) in filter {
        match value {
            Value::Null => {}
            Value::String(text) => pairs.push((name, text)),
            Value::Number(number) => pairs.push((name, number.to_string())),
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                let what = "must be a string or a number".to_owned();
                return Err(ApiError::InvalidQuery { name, what });
            }
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_is_read_like_parameters() {
        let message = json!({
            "type": "updateFilter",
            "filter": { "level": "warn", "limit": 5, "agentId": null }
        });
        let LogsMessage { kind, filter } = serde_json::from_value(message).unwrap();
        let pairs = [("level", "warn"), ("limit", "5")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!((kind.as_str(), parameters_of(filter).unwrap()), ("updateFilter", pairs.into()));
        for bad in [json!(true), json!([]), json!({})] {
            let filter = [("level".to_owned(), bad)].into_iter().collect();
            let text = parameters_of(filter).unwrap_err().to_string();
            assert!(text.contains("level: must be a string or a number"), "{text}");
        }
    }
}
