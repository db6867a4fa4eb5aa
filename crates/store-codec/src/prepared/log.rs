//! Log records.

use std::sync::Arc;

use greenroom_actors::observe::log_record::LogRecord;

/// A serialized log record.
#[derive(Debug)]
pub struct PreparedLog {
    /// The record; its attributes are serialized.
    pub record: Arc<LogRecord>,
    /// JSON; `None` if there are none.
    pub attributes: Option<Vec<u8>>,
    /// Id of the span as text.
    pub span: Option<String>,
}

impl PreparedLog {
    /// Serializes a record.
    pub fn new(record: Arc<LogRecord>) -> serde_json::Result<Self> {
        let attributes = &record.attributes;
        let attributes = (!attributes.is_empty()).then(|| serde_json::to_vec(attributes));
        let attributes = attributes.transpose()?;
        let span = record.scope.span_id.map(|id| id.to_string());
        Ok(Self { record, attributes, span })
    }
}
