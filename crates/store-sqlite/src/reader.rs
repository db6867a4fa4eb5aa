//! Read-only connections, and queries of executions, timers, keys and definitions.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    IdempotencyRecord, Projection, ReadError, Row, StoredExecution, Timer,
};
use greenroom_store_codec::execution_columns as columns;
use greenroom_store_codec::facts::FactPage;
use greenroom_store_codec::records::{self, EVENTS, idempotency_of};
use rusqlite::{Connection, OptionalExtension, Result, Statement, ToSql, params};
use serde_json::Value;
use tokio::sync::Semaphore;

use super::codec::{
    Stored, json_of, limit_of, named, optional_json_of, projection_of, signed, unsigned_of,
};
use super::defects::{Defects, Reading, is_defect};
use super::files::FileId;
use super::page::page_too_large;
use super::schema;
use greenroom_actors::threads::Pool;

/// Maximum number of idle connections, and of threads for long queries. More connections are
/// opened under load and closed after use.
const IDLE_MAX: usize = 10;
/// Maximum number of concurrent long queries of each kind; their sum is the number of threads.
const LOADS_AT_ONCE: usize = 2;
const PORTIONS_AT_ONCE: usize = 2;
const LISTS_AT_ONCE: usize = 4;
const SEARCHES_AT_ONCE: usize = 2;

/// Kind of long queries. Each kind has its own queue and its own share of threads and connections,
/// so that many queries of one kind do not delay the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    /// Executions to recover.
    Loads,
    /// Parts of large executions, for event streams.
    Portions,
    /// Lists, histories, traces, logs and retention.
    Lists,
    /// Searches in messages.
    Searches,
}

/// Pool of read-only connections.
pub(super) struct Readers {
    path: PathBuf,
    /// The file that every connection must be to.
    database: FileId,
    idle: Mutex<Vec<Connection>>,
    is_closed: AtomicBool,
    pool: Pool,
    loads: Arc<Semaphore>,
    portions: Arc<Semaphore>,
    lists: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    defects: Arc<Defects>,
}

impl Readers {
    /// Starts the first thread for long queries.
    pub(super) fn start(
        path: PathBuf,
        database: FileId,
        defects: Arc<Defects>,
    ) -> io::Result<Self> {
        let pool = Pool::start("store-reader", IDLE_MAX)?;
        let [loads, portions, lists, searches] =
            [LOADS_AT_ONCE, PORTIONS_AT_ONCE, LISTS_AT_ONCE, SEARCHES_AT_ONCE]
                .map(|it| Arc::new(Semaphore::new(it)));
        let (idle, is_closed) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        Ok(Self {
            path,
            database,
            idle,
            is_closed,
            pool,
            loads,
            portions,
            lists,
            searches,
            defects,
        })
    }

    /// Runs a query on this thread. It usually takes about ten microseconds, so the futures of the
    /// ports run it in their first poll. `record` names the record in errors.
    pub(super) fn read<T>(
        &self,
        record: impl FnOnce() -> String,
        query: impl FnOnce(&Reading<'_>) -> Result<T>,
    ) -> std::result::Result<T, ReadError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(ReadError::Unavailable(Arc::from("the store is closed")));
        }
        let idle = self.idle().pop();
        let asked = match idle {
            Some(connection) => Ok(connection),
            None => {
                self.database.check_at(&self.path).and_then(|()| schema::open_reader(&self.path))
            }
        }
        .and_then(|connection| {
            let reading = Reading { connection: &connection, defects: &self.defects };
            match query(&reading) {
                Err(error) => match page_too_large(&error) {
                    Some(refusal) => Ok((Err(refusal), connection)),
                    None => Err(error),
                },
                Ok(answer) => Ok((Ok(answer), connection)),
            }
        });
        // a connection that met an error is closed
        let (answer, connection) = asked.map_err(|error| self.failure(record, &error))?;
        let mut idle = self.idle();
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
        Ok(answer?)
    }

    /// Runs a long query, which may read thousands of rows or large ones, on a separate thread when
    /// its lane is free.
    pub(super) async fn read_aside<T: Send + 'static>(
        self: &Arc<Self>,
        lane: Lane,
        record: impl FnOnce() -> String + Send + 'static,
        query: impl FnOnce(&Reading<'_>) -> Result<T> + Send + 'static,
    ) -> std::result::Result<T, ReadError> {
        // the semaphore is never closed; the permit is held until the query ends, even if this
        // future is dropped
        let turn = Arc::clone(self.turns(lane)).acquire_owned().await;
        let readers = Arc::clone(self);
        let stopped = |_| Err(ReadError::Unavailable(Arc::from("a query stopped unexpectedly")));
        let reading = self.pool.run(move || {
            let answer = readers.read(record, query);
            drop(turn);
            answer
        });
        reading.await.unwrap_or_else(stopped)
    }

    /// Returns the permits of a lane, one for each query that can run at once.
    pub(super) fn turns(&self, lane: Lane) -> &Arc<Semaphore> {
        match lane {
            Lane::Loads => &self.loads,
            Lane::Portions => &self.portions,
            Lane::Lists => &self.lists,
            Lane::Searches => &self.searches,
        }
    }

    fn failure(&self, record: impl FnOnce() -> String, error: &rusqlite::Error) -> ReadError {
        if is_defect(error) {
            let record = record();
            self.defects.report(&record, error);
            return ReadError::Corrupt(Arc::from(record));
        }
        log::error!("cannot read the store: {error}");
        ReadError::Unavailable(Arc::from(error.to_string()))
    }

    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.idle().clear();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const DESCRIBE: &str = concat!("SELECT ", columns!(), " FROM executions WHERE id = ?1");

const LOAD: &str =
    concat!("SELECT ", columns!(), ", events, revision FROM executions WHERE id = ?1");

const SNAPSHOT: &str = "SELECT last_seq, last, part, state FROM snapshots WHERE execution = ?1";

const CHUNKS_BEHIND: &str = "SELECT events FROM chunks
    WHERE execution = ?1 AND (last, part) > (?2, ?3) ORDER BY last, part";

const FIRST_EVENTS: &str = "SELECT n, events FROM executions WHERE id = ?1";

const CHUNKS_AFTER: &str = "SELECT events FROM chunks
    WHERE execution = ?1 AND last > ?2 ORDER BY last, part";

const RUNNING: &str = "SELECT n, id FROM executions INDEXED BY running
    WHERE status = 0 AND n > ?1 ORDER BY n LIMIT ?2";

const TIMERS_DUE: &str = "SELECT execution, key, due FROM timers
    WHERE due < ?1 ORDER BY due, execution, key LIMIT ?2";

const TIMERS_OF: &str = "SELECT execution, key, due FROM timers WHERE execution = ?1";

const KEY: &str = "SELECT scope, body_hash, execution, after_seq, expires FROM idempotency
    WHERE scope = ?1 AND expires > ?2";

const DEFINITION: &str = "SELECT body FROM definitions WHERE hash = ?1";

pub(super) fn describe(connection: &Connection, id: &ExecutionId) -> Result<Option<Projection>> {
    let mut statement = connection.prepare_cached(DESCRIBE)?;
    statement.query_row([id.as_str()], projection_of).optional()
}

/// Reads an execution with its snapshot and facts in one transaction.
pub(super) fn load(reading: &Reading<'_>, id: &ExecutionId) -> Result<Option<StoredExecution>> {
    let transaction = reading.unchecked_transaction()?;
    let mut statement = transaction.prepare_cached(LOAD)?;
    let stored = statement.query_row([id.as_str()], |row| {
        let first: Option<Vec<Recorded>> = optional_json_of(row, EVENTS)?;
        let revision = unsigned_of(row, EVENTS + 1)?;
        Ok((row.get::<_, Row>(0)?, revision, projection_of(row)?, first.unwrap_or_default()))
    });
    let Some((row, revision, projection, first)) = stored.optional()? else { return Ok(None) };

    let mut statement = transaction.prepare_cached(SNAPSHOT)?;
    let snapshot = statement
        .query_row([row], |columns| {
            let place: (i64, i64) = (columns.get(1)?, columns.get(2)?);
            Ok((unsigned_of(columns, 0)?, place, columns.get::<_, Vec<u8>>(3)?))
        })
        .optional();
    // a damaged snapshot is skipped: the facts suffice
    let name = || format!("the snapshot of execution {id}");
    let snapshot = reading.defects.readable(name, snapshot)?;
    let snapshot = snapshot.flatten();
    // a snapshot includes the first chunk at least; numbers of facts are not negative
    let (mut facts, place) = match &snapshot {
        Some((_, place, _)) => (Vec::new(), *place),
        None => (first, (-1, -1)),
    };
    let mut statement = transaction.prepare_cached(CHUNKS_BEHIND)?;
    let mut chunks = statement.query(params![row, place.0, place.1])?;
    while let Some(chunk) = chunks.next()? {
        facts.extend(json_of::<Vec<Recorded>>(chunk, 0)?);
    }
    let snapshot = snapshot.map(|(last_seq, _, state)| (last_seq, state));
    Ok(Some(StoredExecution { row, revision, projection, snapshot, facts }))
}

pub(super) fn facts(
    connection: &Connection,
    id: &ExecutionId,
    after: u64,
    limit: usize,
) -> Result<Vec<Recorded>> {
    let mut page = FactPage::new(after, limit);
    let mut statement = connection.prepare_cached(FIRST_EVENTS)?;
    let stored = statement.query_row([id.as_str()], |row| {
        Ok((row.get::<_, Row>(0)?, optional_json_of::<Vec<Recorded>>(row, 1)?))
    });
    let Some((row, first)) = stored.optional()? else { return Ok(page.into_facts()) };
    page.add(first.unwrap_or_default());
    let mut statement = connection.prepare_cached(CHUNKS_AFTER)?;
    let mut chunks = statement.query(params![row, signed(after)])?;
    while !page.is_full() {
        let Some(chunk) = chunks.next()? else { break };
        page.add(json_of(chunk, 0)?);
    }
    Ok(page.into_facts())
}

pub(super) fn running(
    reading: &Reading<'_>,
    slots: &SlotSet,
    after: Row,
    limit: usize,
) -> Result<Vec<(Row, ExecutionId)>> {
    let mut statement = reading.prepare_cached(RUNNING)?;
    let mut rows = statement.query(params![after, rows_to_read(slots, limit)])?;
    reading.defects.sought_rows(
        &mut rows,
        limit,
        |row| named("execution", row, 1),
        |row| Ok((row.get(0)?, ExecutionId::trusted(row.get::<_, Arc<str>>(1)?))),
        |(_, id)| slots.has(id),
    )
}

/// Returns the number of rows that a statement reads to find `limit` rows of these slots. The one
/// process that has the file owns all slots; then the statement reads no other row.
fn rows_to_read(slots: &SlotSet, limit: usize) -> i64 {
    if slots.is_all() { limit_of(limit) } else { i64::MAX }
}

pub(super) fn timers_due(
    reading: &Reading<'_>,
    slots: &SlotSet,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<Timer>> {
    let mut statement = reading.prepare_cached(TIMERS_DUE)?;
    let mut rows = statement.query(params![until.0, rows_to_read(slots, limit)])?;
    let is_sought = |timer: &Timer| slots.has(&timer.execution);
    reading.defects.sought_rows(&mut rows, limit, timer_name, timer_of, is_sought)
}

pub(super) fn timers_of(reading: &Reading<'_>, id: &ExecutionId) -> Result<Vec<Timer>> {
    let mut statement = reading.prepare_cached(TIMERS_OF)?;
    let mut rows = statement.query([id.as_str()])?;
    reading.defects.readable_rows(&mut rows, timer_name, timer_of)
}

fn timer_name(row: &rusqlite::Row<'_>) -> String {
    named("a timer of execution", row, 0)
}

fn timer_of(row: &rusqlite::Row<'_>) -> Result<Timer> {
    records::timer_of(&Stored(row))
}

pub(super) fn idempotency(
    connection: &Connection,
    scope: &str,
    now: Timestamp,
) -> Result<Option<IdempotencyRecord>> {
    let mut statement = connection.prepare_cached(KEY)?;
    statement.query_row(params![scope, now.0], |row| idempotency_of(&Stored(row))).optional()
}

pub(super) fn definition(connection: &Connection, hash: &str) -> Result<Option<Value>> {
    let mut statement = connection.prepare_cached(DEFINITION)?;
    statement.query_row([hash], |row| json_of(row, 0)).optional()
}

/// Binds the values whose parameters the statement has.
pub(super) fn bind(statement: &mut Statement<'_>, values: &[(&str, &dyn ToSql)]) -> Result<()> {
    for (name, value) in values {
        if let Some(place) = statement.parameter_index(name)? {
            statement.raw_bind_parameter(place, value)?;
        }
    }
    Ok(())
}

/// Fails if the statement scans a table without an index, or sorts.
#[cfg(test)]
pub(super) fn assert_uses_indexes(sql: &str) {
    let mut connection = Connection::open_in_memory().unwrap();
    schema::migrate(&mut connection).unwrap();
    let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next().unwrap() {
        let step: String = row.get(3).unwrap();
        // the strategy of a virtual table follows the colon
        let enters = step.contains("VIRTUAL TABLE INDEX") && !step.ends_with(':');
        let is_slow = step.contains("TEMP B-TREE") || step.starts_with("SCAN") && !enters;
        assert!(!is_slow || step == "SCAN CONSTANT ROW", "{step} in {sql}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_find_their_rows_by_an_index() {
        for sql in [
            DESCRIBE,
            LOAD,
            SNAPSHOT,
            CHUNKS_BEHIND,
            FIRST_EVENTS,
            CHUNKS_AFTER,
            RUNNING,
            TIMERS_DUE,
            TIMERS_OF,
            KEY,
            DEFINITION,
        ] {
            assert_uses_indexes(sql);
        }
    }
}
