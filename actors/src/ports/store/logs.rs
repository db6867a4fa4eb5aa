//! Log records that are kept.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{AppendError, Read};
use crate::domain::time::Timestamp;
use crate::domain::trace::SpanId;
use crate::observe::log_record::{LogLevel, LogRecord};
use crate::visibility::Visibility;

/// Which records are wanted. All filters are combined.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// At least as grave.
    pub level: Option<LogLevel>,
    /// At most as grave.
    pub level_max: Option<LogLevel>,
    pub agent_id: Option<String>,
    pub workflow_id: Option<String>,
    /// Of the execution, or of one that it is the parent of.
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
    /// Whether a record is wanted.
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
            && self.visibility.reaches(scope.user_id.as_deref())
    }
}

/// A record's place among those that are kept: records with smaller numbers are older.
pub type LogNumber = i64;

/// A page of records, oldest first: the newest of those that are wanted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogPage {
    pub records: Vec<LogRecord>,
    /// Where the page of older ones begins: hand it in as `before`. A page may have fewer records
    /// than asked for, even none, and still have older ones: what a page reads is bounded.
    pub older: Option<LogNumber>,
}

/// Keeps log records, not for ever.
pub trait Logs: Send + Sync {
    /// Keeps a batch; resolves when it is written. The writer of the journal writes it, in commits
    /// of so few records that nobody else waits for long; a batch that is refused may have been
    /// kept in part. Log records never push other writes out: where the disk is full, they are
    /// refused and the rest is written, if that finds room.
    fn write_logs(&self, batch: Vec<Arc<LogRecord>>)
    -> BoxFuture<'static, Result<(), AppendError>>;

    /// The newest wanted records that are older than `before`, at most `limit`, oldest first.
    fn logs<'a>(
        &'a self,
        filter: &'a LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Read<'a, LogPage>;

    /// Drops records older than `before`, and the oldest beyond `rows_max`, in small batches, each
    /// in a commit of its own. Gives how many. Stops at the first that is to be kept: records are
    /// in the order of their writing. Numbers count, so where a user was forgotten since, a few
    /// less than `rows_max` may be left.
    fn prune_logs(
        &self,
        before: Timestamp,
        rows_max: u64,
    ) -> BoxFuture<'static, Result<u64, AppendError>>;

    /// Records that are kept. Counting costs what there are.
    fn log_count(&self) -> Read<'_, u64>;
}
