//! Traces and logs in the database.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::RootRow;
use greenroom_actors::log_record::LogRecord;
use greenroom_actors::ports::store::{
    AppendError, LogFilter, LogNumber, LogPage, Logs, Read, ReadError, RootCursor, RootFilter,
    RootPage, TraceRecord, Traces,
};

use super::SqliteStore;

fn not_yet<'a, T: Send + 'a>() -> Read<'a, T> {
    Box::pin(std::future::ready(Err(ReadError(Arc::from("not yet")))))
}

impl Traces for SqliteStore {
    fn roots<'a>(
        &'a self,
        _: &'a RootFilter,
        _: Option<RootCursor>,
        _: usize,
    ) -> Read<'a, RootPage> {
        not_yet()
    }

    fn trace<'a>(&'a self, _: &'a str, _: usize) -> Read<'a, TraceRecord> {
        not_yet()
    }

    fn trace_of(&self, _: RootRow) -> Read<'_, Option<Arc<str>>> {
        not_yet()
    }
}

impl Logs for SqliteStore {
    fn write_logs(&self, _: Vec<Arc<LogRecord>>) -> BoxFuture<'static, Result<(), AppendError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn logs<'a>(&'a self, _: &'a LogFilter, _: Option<LogNumber>, _: usize) -> Read<'a, LogPage> {
        not_yet()
    }

    fn prune_logs(&self, _: Timestamp, _: u64) -> BoxFuture<'static, Result<u64, AppendError>> {
        Box::pin(std::future::ready(Ok(0)))
    }

    fn log_count(&self) -> Read<'_, u64> {
        not_yet()
    }
}
