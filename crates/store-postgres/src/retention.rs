//! Retention: reads find ended executions and generations, changes delete them.
//!
//! Nothing that has ended changes again, so what a read found can be deleted later.

use std::sync::Arc;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Cursor, Ended, EndedExecutions, EndedGenerations, Read, Retention, Row, Status, Written,
};
use greenroom_store_codec::codes::{status_code, status_of};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::{limit_of, signed};
use tokio_postgres::types::ToSql;

use crate::changes::{Changing, Part};
use crate::columns::Stored;
use crate::pool::{Failure, Pool, Reading, Values};
use crate::store::PostgresStore;
use crate::text::Text;

/// Maximum number of executions or generations, each with some rows of other tables, that a
/// transaction deletes.
const PART: usize = 100;

pub(crate) const WORKFLOW_AFTER: &str =
    "SELECT workflow FROM executions WHERE workflow > $1 ORDER BY workflow LIMIT 1";

/// Reads executions by their end, with the status of the parent if that is stored.
pub(crate) const ENDED: &str = "SELECT e.n, e.ended,
        (SELECT p.status FROM executions p WHERE p.id = e.parent)
    FROM executions e
    WHERE e.workflow = $1 AND e.status = $2::bigint AND (e.ended, e.n) > ($3, $4) AND e.ended < $5
    ORDER BY e.ended, e.n LIMIT $6";

pub(crate) const AGENT_AFTER: &str =
    "SELECT agent FROM generations WHERE agent > $1 ORDER BY agent LIMIT 1";

pub(crate) const ENDED_GENERATIONS: &str = "SELECT n, number, started,
        CASE WHEN status NOT IN (0, 4) THEN ended END FROM generations
    WHERE agent = $1 AND number > $2 ORDER BY number LIMIT $3";

/// Deletes those of the executions that have ended, and counts them out, in the row of this server
/// (`$2`) that no lane uses.
///
/// Rows of other tables are found by arrays, which PostgreSQL looks up one by one in an index, and
/// never by reading a whole table.
pub(crate) const DROP_EXECUTIONS: &str = "WITH over AS (
        SELECT n, id FROM executions WHERE n = ANY ($1::bigint[]) AND status NOT IN (0, 1)
        FOR UPDATE),
    no_chunks AS (DELETE FROM chunks WHERE execution = ANY (ARRAY(SELECT n FROM over))),
    no_snapshots AS (DELETE FROM snapshots WHERE execution = ANY (ARRAY(SELECT n FROM over))),
    no_timers AS (DELETE FROM timers WHERE execution = ANY (ARRAY(SELECT id FROM over))),
    no_asks AS (DELETE FROM asks WHERE execution = ANY (ARRAY(SELECT n FROM over))),
    no_users AS (DELETE FROM acted WHERE execution = ANY (ARRAY(SELECT n FROM over))),
    gone AS (
        DELETE FROM executions WHERE n = ANY (ARRAY(SELECT n FROM over))
        RETURNING workflow, status),
    counted AS (
        INSERT INTO execution_counts AS c (workflow, status, node, lane, count)
        SELECT workflow, status, $2::bigint, -1, -count(*) FROM gone GROUP BY workflow, status
        ON CONFLICT (workflow, status, node, lane) DO UPDATE SET count = c.count + excluded.count)
    SELECT count(*) FROM gone";

/// Deletes generations that match a condition, with all that belongs to them, and counts the holes that they
/// leave in the numbers of their agents, by blocks of
/// [`BLOCK`](greenroom_store_codec::history::BLOCK) numbers.
macro_rules! drop_generations {
    ($condition:literal) => {
        concat!(
            "WITH gone AS (DELETE FROM generations WHERE ",
            $condition,
            " RETURNING n, agent, number),
            no_steps AS (DELETE FROM steps WHERE generation = ANY (ARRAY(SELECT n FROM gone))),
            no_asks AS (DELETE FROM asks WHERE generation = ANY (ARRAY(SELECT n FROM gone))),
            no_continuations AS (
                DELETE FROM continuations WHERE generation = ANY (ARRAY(SELECT n FROM gone))),
            holes AS (
                INSERT INTO forgotten AS f (agent, block, count, last)
                SELECT agent, number / 1024, count(*), max(number) FROM gone GROUP BY 1, 2
                ORDER BY 1, 2
                ON CONFLICT (agent, block) DO UPDATE
                SET count = f.count + excluded.count, last = greatest(f.last, excluded.last))
            SELECT count(*) FROM gone"
        )
    };
}

pub(crate) const DROP_GENERATIONS: &str =
    drop_generations!("n = ANY ($1::bigint[]) AND ended IS NOT NULL AND status NOT IN (0, 4)");

/// Deletes up to `$2` ended generations of a user. The range of the two columns has the same rows as an
/// equality, but only one index has its order.
pub(crate) const FORGET_GENERATIONS: &str = drop_generations!(
    "n = ANY (ARRAY(
        SELECT n FROM generations WHERE user_id <= $1 AND (user_id, agent, number) > ($1, '', 0)
            AND status NOT IN (0, 4)
        ORDER BY user_id, agent, number LIMIT $2))"
);

/// Removes a user from those of steps among up to `$2` generations that have not ended. There are few of
/// them: those of no step have been ended before.
pub(crate) const DISOWN_GENERATIONS: &str =
    "UPDATE generations SET user_id = NULL, conversation = NULL WHERE n = ANY (ARRAY(
        SELECT n FROM generations WHERE user_id <= $1 AND (user_id, agent, number) > ($1, '', 0)
            AND status NOT IN (1, 2, 3)
        ORDER BY user_id, agent, number LIMIT $2)) AND status IN (0, 4) AND execution IS NOT NULL";

fn retention() -> String {
    "ended executions and generations".to_owned()
}

impl Retention for PostgresStore {
    fn workflow_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        let query = move |reading| name_after(reading, WORKFLOW_AFTER, name);
        self.shared.pool.read(retention, query)
    }

    fn ended_executions<'a>(
        &'a self,
        sought: &'a EndedExecutions,
        limit: usize,
    ) -> Read<'a, Ended<Cursor>> {
        self.shared.pool.read(retention, move |reading| ended(reading, sought, limit))
    }

    fn drop_executions(&self, rows: Vec<Row>) -> Written<u64> {
        self.change(|shared| async move {
            let node = Some(&shared.node);
            drop_in_parts(&shared.pool, DROP_EXECUTIONS, &rows, node).await.map(Ok)
        })
    }

    fn agent_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        let query = move |reading| name_after(reading, AGENT_AFTER, name);
        self.shared.pool.read(retention, query)
    }

    fn ended_generations<'a>(
        &'a self,
        sought: &'a EndedGenerations,
        limit: usize,
    ) -> Read<'a, Ended<u64>> {
        self.shared.pool.read(retention, move |reading| ended_generations(reading, sought, limit))
    }

    fn drop_generations(&self, rows: Vec<Row>) -> Written<u64> {
        self.change(|shared| async move {
            drop_in_parts(&shared.pool, DROP_GENERATIONS, &rows, None).await.map(Ok)
        })
    }
}

async fn name_after(
    reading: Reading,
    statement: &str,
    name: &str,
) -> Result<Option<Arc<str>>, Failure> {
    let row = reading.row(statement, &[&Text(name)]).await?;
    row.map(|row| row.shared(0)).transpose()
}

async fn ended(
    reading: Reading,
    sought: &EndedExecutions,
    limit: usize,
) -> Result<Ended<Cursor>, Failure> {
    let EndedExecutions { workflow_id, status, before, after } = sought;
    let (at, row) = after.map_or((i64::MIN, Row::MIN), |after| (after.at.0, after.row));
    let rows = reading
        .rows(
            ENDED,
            &[
                &Text(&**workflow_id),
                &status_code(*status),
                &at,
                &row,
                &before.0,
                &limit_of(limit.saturating_add(1)),
            ],
        )
        .await?;
    let mut found = Ended::default();
    for row in rows.iter().take(limit) {
        let n = row.integer(0)?;
        found.next = Some(Cursor { at: row.time(1)?, row: n });
        let name = || format!("the parent of execution number {n}");
        if reading.defects.readable(name, is_needed(row))? == Some(false) {
            found.rows.push(n);
        }
    }
    if rows.len() <= limit {
        found.next = None;
    }
    Ok(found)
}

/// Returns true if the parent of an execution may still need it.
fn is_needed(row: &Stored) -> Result<bool, Failure> {
    let parent = row.optional_integer(2)?.map(|_| row.code(2, status_of)).transpose()?;
    Ok(parent.is_some_and(|status| matches!(status, Status::Running | Status::Suspended)))
}

async fn ended_generations(
    reading: Reading,
    sought: &EndedGenerations,
    limit: usize,
) -> Result<Ended<u64>, Failure> {
    let EndedGenerations { agent_id, before, after } = sought;
    let rows = reading
        .rows(
            ENDED_GENERATIONS,
            &[&Text(&**agent_id), &signed(*after), &limit_of(limit.saturating_add(1))],
        )
        .await?;
    let (mut found, mut is_any_old) = (Ended::default(), false);
    for row in rows.iter().take(limit) {
        found.next = Some(row.unsigned(1)?);
        // null while it runs or waits
        let has_ended = row.optional_time(3)?.is_some_and(|ended: Timestamp| ended < *before);
        if has_ended {
            found.rows.push(row.integer(0)?);
        }
        is_any_old |= has_ended || row.time(2)? < *before;
    }
    // old ones may follow one that began under a clock that was ahead, but hardly so many
    found.next = found.next.filter(|_| is_any_old && rows.len() > limit);
    Ok(found)
}

/// Deletes rows in parts, by a statement that has them and a server as its parameters; returns the
/// number of those that it deleted.
async fn drop_in_parts(
    pool: &Pool,
    statement: &str,
    rows: &[Row],
    node: Option<&i64>,
) -> Result<u64, Failure> {
    let mut dropped = 0;
    for part in rows.chunks(PART) {
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&part];
        values.extend(node.map(|node| node as &(dyn ToSql + Sync)));
        let drop = async |changing: Changing| changing.row(statement, &values).await;
        dropped += pool.change(drop).await?.map_or(Ok(0), |row| row.unsigned(0))?;
    }
    Ok(dropped)
}

/// Deletes the generations of a user.
pub(crate) async fn forget_generations(pool: &Pool, user: &str) -> Result<u64, Failure> {
    let disown = async |changing: Changing| {
        let values: Values<'_> = &[&Text(user), &limit_of(PART)];
        let changed = changing.execute(DISOWN_GENERATIONS, values).await?;
        Ok(Part { changed, is_last: changed < PART as u64 })
    };
    pool.change_in_parts(disown).await?;
    let forget = async |changing: Changing| {
        let row = changing.row(FORGET_GENERATIONS, &[&Text(user), &limit_of(PART)]).await?;
        let changed = row.map_or(Ok(0), |row| row.unsigned(0))?;
        Ok(Part { changed, is_last: changed < PART as u64 })
    };
    pool.change_in_parts(forget).await
}

#[cfg(test)]
mod tests {
    use greenroom_store_codec::history::BLOCK;

    use super::*;

    #[test]
    fn holes_are_counted_by_the_blocks_of_histories() {
        for statement in [DROP_GENERATIONS, FORGET_GENERATIONS] {
            assert!(statement.contains(&format!("number / {BLOCK}")), "{statement}");
        }
    }
}
