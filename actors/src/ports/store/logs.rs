//! Stored log records.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{AppendError, Read};
use crate::domain::time::Timestamp;
use crate::domain::trace::SpanId;
use crate::observe::log_record::{LogLevel, LogRecord};
use crate::visibility::Visibility;

/// Filter of log records. All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// Minimum severity.
    pub level: Option<LogLevel>,
    /// Maximum severity.
    pub level_max: Option<LogLevel>,
    pub agent_id: Option<String>,
    pub workflow_id: Option<String>,
    /// Matches records of the execution and of its children.
    pub execution_id: Option<String>,
    pub conversation_id: Option<String>,
    pub trace_id: Option<String>,
    pub span_id: Option<SpanId>,
    /// Logged at or after.
    pub since: Option<Timestamp>,
    /// Logged at or before.
    pub until: Option<Timestamp>,
    pub visibility: Visibility,
}

impl LogFilter {
    /// Returns true if the filter matches a record.
    pub fn admits(&self, record: &LogRecord) -> bool {
        let scope = &record.scope;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let of_execution = self.execution_id.as_deref().is_none_or(|wanted| {
            let ids = [&scope.execution_id, &scope.parent_execution_id];
            ids.into_iter().flatten().any(|id| id.as_str() == wanted)
        });
        self.level.is_none_or(|level| record.level >= level)
            && self.level_max.is_none_or(|level| record.level <= level)
            && of_execution
            && is(&self.agent_id, scope.agent_id.as_deref())
            && is(&self.workflow_id, scope.workflow_id.as_deref())
            && is(&self.conversation_id, scope.conversation_id.as_deref())
            && is(&self.trace_id, scope.trace_id.as_deref())
            && self.span_id.is_none_or(|wanted| scope.span_id == Some(wanted))
            && self.since.is_none_or(|since| record.at >= since)
            && self.until.is_none_or(|until| record.at <= until)
            && self.visibility.allows(scope.user_id.as_deref())
    }
}

/// Maximum number of records of a batch that is stored as a whole or not at all, so that a rejected
/// one can be written again.
pub const LOG_BATCH_MAX: usize = 128;

/// Number of a stored record: smaller numbers are older.
pub type LogNumber = i64;

/// A page of the newest matching records, oldest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogPage {
    pub records: Vec<LogRecord>,
    /// Value of `before` for the next older page. A page may be short or even empty and still have
    /// older ones, because the number of records read is bounded.
    pub older: Option<LogNumber>,
}

/// Store of log records, with limited retention.
pub trait Logs: Send + Sync {
    /// Stores a batch; resolves once written. The journal's writer commits it in parts small enough
    /// not to delay other writes; a rejected batch of more than [`LOG_BATCH_MAX`] may have been stored in
    /// part. Log records never displace other writes: on a full disk they are rejected first.
    fn write_logs(&self, batch: Vec<Arc<LogRecord>>)
    -> BoxFuture<'static, Result<(), AppendError>>;

    /// Returns at most `limit` of the newest matching records older than `before`, oldest first.
    fn logs<'a>(
        &'a self,
        filter: &'a LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Read<'a, LogPage>;

    /// Deletes records older than `before`, and the oldest beyond `rows_max`, in small batches with
    /// a commit each. Returns their number. Stops at the first record to keep: records are in the
    /// order of their writing. The limit applies to numbers, so after deletion of a user slightly
    /// fewer than `rows_max` may remain.
    fn prune_logs(
        &self,
        before: Timestamp,
        rows_max: u64,
    ) -> BoxFuture<'static, Result<u64, AppendError>>;

    /// Returns the number of stored records; the cost is linear in it.
    fn log_count(&self) -> Read<'_, u64>;
}
