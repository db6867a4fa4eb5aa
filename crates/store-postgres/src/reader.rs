//! Queries of executions, timers, keys and definitions.

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::{Slot, SlotSet};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{IdempotencyRecord, Projection, Row, StoredExecution, Timer};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::execution_columns;
use greenroom_store_codec::json::parse;
use greenroom_store_codec::numbers::limit_of;
use greenroom_store_codec::records::{EVENTS, idempotency_of, projection_of, timer_of};
use serde_json::Value;

use crate::changes::Changing;
use crate::columns::Stored;
use crate::pool::{Failure, Reading};
use crate::text::Text;

pub(crate) const DESCRIBE: &str =
    concat!("SELECT ", execution_columns!(), " FROM executions WHERE id = $1");

/// Reads a whole execution in one round trip: without a snapshot all facts, else those behind it.
/// `$2` is false if the snapshot is damaged.
pub(crate) const LOAD: &str = concat!(
    "SELECT ",
    execution_columns!(),
    ", CASE WHEN snapshot_seq IS NULL THEN events END, revision, snapshot_seq, snapshot_state,
        ARRAY(SELECT events FROM chunks WHERE execution = n
            AND (last, revision) > (coalesce(snapshot_last, -1), coalesce(snapshot_revision, -1))
            ORDER BY last, revision)
    FROM executions LEFT JOIN LATERAL (
        SELECT last_seq AS snapshot_seq, last AS snapshot_last, revision AS snapshot_revision,
            state AS snapshot_state
        FROM snapshots WHERE execution = ANY (ARRAY[n]) AND $2
    ) kept ON true WHERE id = $1"
);

pub(crate) const RUNNING: &str = "SELECT n, id FROM executions
    WHERE status = 0 AND n > $1 ORDER BY n LIMIT $2";

/// Checks the slots on the rows: an index by slot would not have the order of the list. All running
/// executions are read once for all pages.
pub(crate) const RUNNING_IN: &str = "SELECT n, id FROM executions
    WHERE status = 0 AND n > $1 AND slot = ANY($3) ORDER BY n LIMIT $2";

/// Reads a page of each slot, and sorts them.
pub(crate) const RUNNING_IN_FEW: &str = "SELECT e.n, e.id FROM unnest($3::smallint[]) AS s (slot),
    LATERAL (SELECT n, id FROM executions
        WHERE status = 0 AND slot = s.slot AND n > $1 ORDER BY n LIMIT $2) AS e
    ORDER BY e.n LIMIT $2";

/// Number of slots up to which running executions are found by slot.
const FEW_SLOTS: usize = 64;

/// Finds timers, the soonest first. The time of the last one is found along the index, so that those
/// that are sorted are few; all that are due at that time are among them.
macro_rules! timers_due {
    ($condition:literal) => {
        concat!(
            "SELECT execution, key, due FROM timers WHERE due <= (
                SELECT max(due) FROM (
                    SELECT due FROM timers WHERE ",
            $condition,
            " ORDER BY due LIMIT $2) AS soonest) AND ",
            $condition,
            " ORDER BY due, execution, key LIMIT $2"
        )
    };
}

pub(crate) const TIMERS_DUE: &str = timers_due!("due < $1");

pub(crate) const TIMERS_DUE_IN: &str = timers_due!("due < $1 AND slot = ANY($3)");

pub(crate) const TIMERS_OF: &str = "SELECT execution, key, due FROM timers WHERE execution = $1";

/// Looks up a key. Whether it has expired is checked on its row, for which no index is used.
pub(crate) const KEY: &str = "SELECT scope, body_hash, execution, after_seq, expires
    FROM idempotency WHERE scope = $1 AND coalesce(expires, 0) > $2";

pub(crate) const DEFINITION: &str = "SELECT body FROM definitions WHERE hash = $1";

pub(crate) const PUT_DEFINITION: &str = "INSERT INTO definitions (hash, body) VALUES ($1, $2)
    ON CONFLICT (hash) DO UPDATE SET body = excluded.body";

/// Indexes of the columns of [`LOAD`].
const REVISION: usize = EVENTS + 1;
const KEPT_SEQ: usize = EVENTS + 2;
const KEPT_STATE: usize = EVENTS + 3;
const LATER: usize = EVENTS + 4;

pub(crate) async fn describe(
    reading: Reading,
    id: &ExecutionId,
) -> Result<Option<Projection>, Failure> {
    let rows = reading.rows(DESCRIBE, &[&Text(id.as_str())]).await?;
    reading.decoded(rows, |rows, _| rows.first().map(projection_of).transpose()).await
}

/// Reads an execution with its snapshot and facts.
pub(crate) async fn load(
    reading: Reading,
    id: &ExecutionId,
) -> Result<Option<StoredExecution>, Failure> {
    let key = Text(id.as_str());
    let mut rows = reading.rows(LOAD, &[&key, &true]).await?;
    let number = rows.first().map(last_seq_of_snapshot).transpose();
    let name = || format!("the snapshot of execution {id}");
    if reading.defects.readable(name, number)?.is_none() {
        // the facts suffice
        rows = reading.rows(LOAD, &[&key, &false]).await?;
    }
    reading.decoded(rows, |rows, _| rows.first().map(stored_execution_of).transpose()).await
}

fn last_seq_of_snapshot(row: &Stored) -> Result<Option<u64>, Failure> {
    row.optional_integer(KEPT_SEQ)?.map(|_| row.unsigned(KEPT_SEQ)).transpose()
}

fn stored_execution_of(row: &Stored) -> Result<StoredExecution, Failure> {
    let last_seq = last_seq_of_snapshot(row)?;
    let state = row.optional_bytes(KEPT_STATE)?.map(<[u8]>::to_vec);
    let mut facts: Vec<Recorded> = row.optional_json(EVENTS)?.unwrap_or_default();
    for chunk in row.pieces(LATER)? {
        facts.extend(parse::<Vec<Recorded>>(chunk)?);
    }
    Ok(StoredExecution {
        row: row.integer(0)?,
        revision: row.unsigned(REVISION)?,
        projection: projection_of(row)?,
        snapshot: last_seq.zip(state),
        facts,
    })
}

pub(crate) async fn running(
    reading: Reading,
    slots: &SlotSet,
    after: Row,
    limit: usize,
) -> Result<Vec<(Row, ExecutionId)>, Failure> {
    let limit = limit_of(limit);
    let rows = match numbers_of(slots) {
        None => reading.rows(RUNNING, &[&after, &limit]).await?,
        Some(slots) if slots.len() <= FEW_SLOTS => {
            reading.rows(RUNNING_IN_FEW, &[&after, &limit, &slots]).await?
        }
        Some(slots) => reading.rows(RUNNING_IN, &[&after, &limit, &slots]).await?,
    };
    reading.defects.readable_rows(
        &rows,
        |row| row.named("execution", 1),
        |row| Ok((row.integer(0)?, row.execution_id(1)?)),
    )
}

pub(crate) async fn timers_due(
    reading: Reading,
    slots: &SlotSet,
    until: Timestamp,
    limit: usize,
) -> Result<Vec<Timer>, Failure> {
    let limit = limit_of(limit);
    let rows = match numbers_of(slots) {
        None => reading.rows(TIMERS_DUE, &[&until.0, &limit]).await?,
        Some(slots) => reading.rows(TIMERS_DUE_IN, &[&until.0, &limit, &slots]).await?,
    };
    reading.defects.readable_rows(&rows, timer_name, timer_of)
}

/// Returns the numbers of slots; `None` for all slots.
fn numbers_of(slots: &SlotSet) -> Option<Vec<i16>> {
    (!slots.is_all()).then(|| slots.iter().map(number_of).collect())
}

/// Returns the number of a slot, as the database has it.
pub(crate) fn number_of(slot: Slot) -> i16 {
    // below 4096, so it fits
    i16::try_from(slot.number()).unwrap_or(i16::MAX)
}

pub(crate) async fn timers_of(reading: Reading, id: &ExecutionId) -> Result<Vec<Timer>, Failure> {
    let rows = reading.rows(TIMERS_OF, &[&Text(id.as_str())]).await?;
    reading.defects.readable_rows(&rows, timer_name, timer_of)
}

fn timer_name(row: &Stored) -> String {
    row.named("a timer of execution", 0)
}

pub(crate) async fn idempotency(
    reading: Reading,
    scope: &str,
    now: Timestamp,
) -> Result<Option<IdempotencyRecord>, Failure> {
    let row = reading.row(KEY, &[&Text(scope), &now.0]).await?;
    row.as_ref().map(idempotency_of).transpose()
}

pub(crate) async fn definition(reading: Reading, hash: &str) -> Result<Option<Value>, Failure> {
    let rows = reading.rows(DEFINITION, &[&Text(hash)]).await?;
    reading.decoded(rows, |rows, _| rows.first().map(|row| row.json(0)).transpose()).await
}

pub(crate) async fn put_definition(
    changing: Changing,
    hash: &str,
    body: &[u8],
) -> Result<(), Failure> {
    changing.execute(PUT_DEFINITION, &[&Text(hash), &body]).await.map(drop)
}
