//! Log records: the port, and the queries.

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::ports::store::{AppendError, LogFilter, LogNumber, LogPage, Logs, Read};
use greenroom_actors::visibility::Visibility;
use greenroom_store_codec::lists::LogRange;
use greenroom_store_codec::log_columns;
use greenroom_store_codec::prepared::PreparedLog;
use greenroom_store_codec::records::log_record_of;
use rusqlite::{Result, ToSql};

use super::SqliteStore;
use super::changes::Change;
use super::codec::{Stored, level_code, unsigned_of};
use super::defects::Reading;
use super::job::Job;
use super::reader::{Lane, bind};

/// Maximum number of records that a page scans: about ten milliseconds if none matches.
const SCANNED_MAX: usize = 5_000;

/// Columns: the number, whether the record matches, and those of the record.
macro_rules! columns {
    () => {
        concat!(
            "SELECT n, level BETWEEN :level AND :level_max AND at BETWEEN :since AND :until
            AND (:trace IS NULL OR trace IS :trace) AND (:span IS NULL OR span IS :span)
            AND (:execution IS NULL OR execution IS :execution OR parent IS :execution)
            AND (:workflow IS NULL OR workflow IS :workflow)
            AND (:agent IS NULL OR agent IS :agent)
            AND (:conversation IS NULL OR conversation IS :conversation)
            AND (:user IS NULL OR user_id IS :user), ",
            log_columns!(),
            " FROM logs "
        )
    };
}

macro_rules! newest_first {
    () => {
        " AND n < :before ORDER BY n DESC"
    };
}

const OF_ALL: &str = concat!(columns!(), "WHERE n > 0", newest_first!());

const OF_TRACE: &str =
    concat!(columns!(), "INDEXED BY logs_by_trace WHERE trace = :trace", newest_first!());

const OF_USER: &str =
    concat!(columns!(), "INDEXED BY logs_by_user WHERE user_id = :user", newest_first!());

/// Merges two ranges as they are read.
const OF_EXECUTION: &str = concat!(
    columns!(),
    "INDEXED BY logs_by_execution WHERE execution = :execution AND n < :before UNION ALL ",
    columns!(),
    "INDEXED BY logs_by_parent WHERE parent = :execution AND execution IS NOT :execution",
    newest_first!()
);

const COUNT: &str = "SELECT count(*) FROM logs";

impl Logs for SqliteStore {
    fn write_logs(
        &self,
        batch: Vec<Arc<LogRecord>>,
    ) -> BoxFuture<'static, std::result::Result<(), AppendError>> {
        let logs = batch.into_iter().map(PreparedLog::new).collect::<serde_json::Result<Vec<_>>>();
        match logs {
            Ok(logs) => self.queue.ask(|done| Job::Logs { logs, written: 0, done }),
            Err(error) => {
                Box::pin(ready(Err(AppendError::Unavailable(Arc::from(error.to_string())))))
            }
        }
    }

    fn logs<'a>(
        &'a self,
        filter: &'a LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Read<'a, LogPage> {
        let filter = filter.clone();
        let query = move |reading: &Reading<'_>| page(reading, &filter, before, limit);
        self.read_aside(Lane::Lists, || "the log".to_owned(), query)
    }

    fn prune_logs(
        &self,
        before: Timestamp,
        rows_max: u64,
    ) -> BoxFuture<'static, std::result::Result<u64, AppendError>> {
        self.change(Change::PruneLogs { before, rows_max })
    }

    fn log_count(&self) -> Read<'_, u64> {
        let count = |reading: &Reading<'_>| {
            reading.prepare_cached(COUNT)?.query_row([], |row| unsigned_of(row, 0))
        };
        self.read_aside(Lane::Lists, || "the log".to_owned(), count)
    }
}

fn statement_for(filter: &LogFilter) -> &'static str {
    match LogRange::of(filter) {
        LogRange::OfExecution => OF_EXECUTION,
        LogRange::OfTrace => OF_TRACE,
        LogRange::OfUser => OF_USER,
        LogRange::All => OF_ALL,
    }
}

fn page(
    reading: &Reading<'_>,
    filter: &LogFilter,
    before: Option<LogNumber>,
    limit: usize,
) -> Result<LogPage> {
    let user = match &filter.visibility {
        Visibility::Everything => None,
        Visibility::Of(user) => Some(user),
        Visibility::Nothing => return Ok(LogPage::default()),
    };
    let mut statement = reading.prepare_cached(statement_for(filter))?;
    let mut passed = before.unwrap_or(LogNumber::MAX);
    let most = filter.level_max.map_or(i64::MAX, level_code);
    let values: [(&str, &dyn ToSql); 12] = [
        (":level", &filter.level.map_or(0, level_code)),
        (":level_max", &most),
        (":since", &filter.since.map_or(i64::MIN, |since| since.0)),
        (":until", &filter.until.map_or(i64::MAX, |until| until.0)),
        (":trace", &filter.trace_id),
        (":span", &filter.span_id.map(|id| id.to_string())),
        (":execution", &filter.execution_id),
        (":workflow", &filter.workflow_id),
        (":agent", &filter.agent_id),
        (":conversation", &filter.conversation_id),
        (":user", &user),
        (":before", &passed),
    ];
    bind(&mut statement, &values)?;
    let mut rows = statement.raw_query();
    let (mut records, mut left, mut older) = (Vec::new(), SCANNED_MAX, None);
    while let Some(row) = rows.next()? {
        let matches: bool = row.get(1)?;
        if left == 0 || matches && records.len() == limit {
            older = Some(passed);
            break;
        }
        left -= 1;
        passed = row.get(0)?;
        if matches {
            let name = || format!("log entry {passed}");
            records.extend(reading.defects.readable(name, log_record_of(&Stored(row), 2))?);
        }
    }
    records.reverse();
    Ok(LogPage { records, older })
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn pages_of_logs_use_indexes() {
        for sql in [OF_ALL, OF_TRACE, OF_USER, OF_EXECUTION] {
            assert_uses_indexes(sql);
        }
    }
}
