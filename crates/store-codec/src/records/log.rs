//! Log records.

use std::sync::Arc;

use greenroom_actors::observe::log_record::{LogRecord, LogScope};

use crate::codes::level_of;
use crate::columns::Columns;

/// Columns of a log record for [`log_record_of`](crate::records::log_record_of).
#[macro_export]
macro_rules! log_columns {
    () => {
        "at, level, target, trace, span, execution, parent, workflow, generation, agent, \
         conversation, user_id, request, attributes, message"
    };
}

/// Decodes the columns of [`log_columns`](crate::log_columns), which start at column `first`.
pub fn log_record_of<C: Columns>(row: &C, first: usize) -> Result<LogRecord, C::Error> {
    let span = row.optional_text(first + 4)?;
    Ok(LogRecord {
        at: row.time(first)?,
        level: row.code(first + 1, level_of)?,
        target: row.shared(first + 2)?,
        attributes: row.optional_json(first + 13)?.unwrap_or_default(),
        message: row.string(first + 14)?,
        scope: Arc::new(LogScope {
            trace_id: row.optional_shared(first + 3)?,
            span_id: span.and_then(|id| id.parse().ok()),
            // only for live subscribers, not stored
            root_type: None,
            root_id: None,
            execution_id: row.optional_execution_id(first + 5)?,
            parent_execution_id: row.optional_execution_id(first + 6)?,
            workflow_id: row.optional_shared(first + 7)?,
            generation_id: row.optional_shared(first + 8)?,
            agent_id: row.optional_shared(first + 9)?,
            conversation_id: row.optional_shared(first + 10)?,
            user_id: row.optional_shared(first + 11)?,
            request_id: row.optional_shared(first + 12)?,
        }),
    })
}
