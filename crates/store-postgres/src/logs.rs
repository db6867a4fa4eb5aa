//! Log records: the port, and the queries.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::LogRecord;
use greenroom_actors::ports::store::{AppendError, LogFilter, LogNumber, LogPage, Logs, Read};
use greenroom_actors::visibility::Visibility;
use greenroom_store_codec::codes::level_code;
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::lists::LogRange;
use greenroom_store_codec::log_columns;
use greenroom_store_codec::numbers::limit_of;
use greenroom_store_codec::prepared::PreparedLog;
use greenroom_store_codec::records::log_record_of;

use crate::columns::Stored;
use crate::defects::Defects;
use crate::log_writes;
use crate::pool::{Failure, Reading};
use crate::store::PostgresStore;
use crate::text::Text;

/// Maximum number of records that a page scans: about ten milliseconds if none matches.
const SCANNED_MAX: i64 = 5_000;

/// Selects a page: of the records of a range, up to `$13` that match, in the order of the range,
/// which is newest first. The first column is the oldest record of the range that was scanned, if
/// the page is not full; it is in every row, and there is always one.
macro_rules! page {
    ($range:expr, $order:literal) => {
        concat!(
            "WITH found AS (
                SELECT n, ",
            log_columns!(),
            " FROM (",
            $range,
            ") AS scanned
                WHERE level BETWEEN $1::bigint AND $2::bigint AND at BETWEEN $3 AND $4
                AND ($5::text IS NULL OR trace = $5) AND ($6::text IS NULL OR span = $6)
                AND ($7::text IS NULL OR execution = $7 OR parent = $7)
                AND ($8::text IS NULL OR workflow = $8) AND ($9::text IS NULL OR agent = $9)
                AND ($10::text IS NULL OR conversation = $10)
                AND ($11::text IS NULL OR user_id = $11)
                ORDER BY ",
            $order,
            " LIMIT $13)
            SELECT CASE WHEN (SELECT count(*) FROM found) < $13 THEN
                (SELECT min(n) FROM (",
            $range,
            ") AS scanned HAVING count(*) = $14) END, found.*
            FROM (VALUES (1)) AS one LEFT JOIN found ON true ORDER BY found.n DESC"
        )
    };
}

/// Selects up to `$14` records before `$12` that have a value in a column, newest first.
///
/// The range of the two columns has the same rows as an equality, but only the index on them has
/// its order. With an equality, PostgreSQL could read all records by their number instead, and
/// check each.
macro_rules! of_value {
    ($column:literal, $value:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            $column,
            " AS value, * FROM logs WHERE (",
            $column,
            ", n) < (",
            $value,
            ", $12::bigint) AND ",
            $column,
            " >= ",
            $value,
            $condition,
            " ORDER BY ",
            $column,
            " DESC, n DESC LIMIT $14"
        )
    };
}

pub(crate) const OF_ALL: &str =
    page!("SELECT * FROM logs WHERE n < $12 ORDER BY n DESC LIMIT $14", "n DESC");

pub(crate) const OF_TRACE: &str = page!(of_value!("trace", "$5", ""), "value DESC, n DESC");

pub(crate) const OF_USER: &str = page!(of_value!("user_id", "$11", ""), "value DESC, n DESC");

/// Merges two ranges, which both have the execution as their value.
pub(crate) const OF_EXECUTION: &str = page!(
    concat!(
        "(",
        of_value!("execution", "$7", ""),
        ") UNION ALL (",
        of_value!("parent", "$7", " AND execution IS DISTINCT FROM $7"),
        ") ORDER BY value DESC, n DESC LIMIT $14"
    ),
    "value DESC, n DESC"
);

pub(crate) const COUNT: &str = "SELECT count(*) FROM logs";

impl Logs for PostgresStore {
    fn write_logs(
        &self,
        batch: Vec<Arc<LogRecord>>,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        let logs = batch.into_iter().map(PreparedLog::new).collect::<serde_json::Result<Vec<_>>>();
        match logs {
            Ok(logs) => self.change(move |shared| async move {
                log_writes::write(&shared.pool, &logs).await.map(Ok)
            }),
            Err(error) => {
                ready(Err(AppendError::Unavailable(Arc::from(error.to_string())))).boxed()
            }
        }
    }

    fn logs<'a>(
        &'a self,
        filter: &'a LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Read<'a, LogPage> {
        let query = move |reading| page(reading, filter, before, limit);
        self.shared.pool.read(|| "the log".to_owned(), query)
    }

    /// Of several members, one deletes.
    fn prune_logs(
        &self,
        before: Timestamp,
        rows_max: u64,
    ) -> BoxFuture<'static, Result<u64, AppendError>> {
        self.change(move |shared| async move {
            if !shared.membership.has_housework() {
                return Ok(Ok(0));
            }
            log_writes::prune(&shared.pool, before, rows_max).await.map(Ok)
        })
    }

    fn log_count(&self) -> Read<'_, u64> {
        let count = async |reading: Reading| match reading.row(COUNT, &[]).await? {
            Some(row) => row.unsigned(0),
            None => Ok(0),
        };
        self.shared.pool.read(|| "the log".to_owned(), count)
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

async fn page(
    reading: Reading,
    filter: &LogFilter,
    before: Option<LogNumber>,
    limit: usize,
) -> Result<LogPage, Failure> {
    let user = match &filter.visibility {
        Visibility::Everything => None,
        Visibility::Of(user) => Some(Text(&**user)),
        Visibility::Nothing => return Ok(LogPage::default()),
    };
    let text = |id: &Option<String>| id.clone().map(Text);
    let before = before.unwrap_or(LogNumber::MAX);
    let rows = reading
        .rows(
            statement_for(filter),
            &[
                &filter.level.map_or(0, level_code),
                &filter.level_max.map_or(i64::MAX, level_code),
                &filter.since.map_or(i64::MIN, |since| since.0),
                &filter.until.map_or(i64::MAX, |until| until.0),
                &text(&filter.trace_id),
                &filter.span_id.map(|id| id.to_string()),
                &text(&filter.execution_id),
                &text(&filter.workflow_id),
                &text(&filter.agent_id),
                &text(&filter.conversation_id),
                &user,
                &before,
                // one more, to detect older ones
                &limit_of(limit.saturating_add(1)),
                &SCANNED_MAX,
            ],
        )
        .await?;
    reading.decoded(rows, move |rows, defects| page_of(rows, defects, before, limit)).await
}

fn page_of(
    rows: &[Stored],
    defects: &Defects,
    before: LogNumber,
    limit: usize,
) -> Result<LogPage, Failure> {
    let scanned = rows.first().map_or(Ok(None), |row| row.optional_integer(0))?;
    let mut page = LogPage { records: Vec::new(), older: scanned };
    let mut passed = before;
    for (place, row) in rows.iter().enumerate() {
        let Some(number) = row.optional_integer(1)? else { break };
        if place == limit {
            page.older = Some(passed);
            break;
        }
        passed = number;
        let name = || format!("log entry {number}");
        page.records.extend(defects.readable(name, log_record_of(row, 2))?);
    }
    page.records.reverse();
    Ok(page)
}
