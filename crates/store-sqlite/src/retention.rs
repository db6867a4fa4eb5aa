//! Retention: readers find ended executions and generations, the writer deletes them.
//!
//! There is no index for this. Executions are scanned in the order of their creation along
//! `by_workflow`, a limited number at a time; a sweep skips those that were created long ago and
//! ended recently, and otherwise scans only what it deletes.

use std::sync::Arc;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Cursor, Ended, EndedExecutions, EndedGenerations, Read, Retention, Row, Written,
};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

use super::SqliteStore;
use super::changes::{Change, PART, Part};
use super::codec::{limit_of, signed, status_code, status_of, time_of, unsigned_of};
use super::counts::Counts;
use super::defects::Reading;
use super::reader::Lane;

const WORKFLOW_AFTER: &str = "SELECT workflow FROM executions INDEXED BY by_workflow
    WHERE workflow > ?1 ORDER BY workflow LIMIT 1";

const ENDED: &str = "SELECT n, created, ended, parent FROM executions INDEXED BY by_workflow
    WHERE workflow = ?1 AND status = ?2 AND (created, n) > (?3, ?4) AND created < ?5
    ORDER BY created, n LIMIT ?6";

/// Finds an execution that is running or suspended.
const IS_OPEN: &str = "SELECT 1 FROM executions WHERE id = ?1 AND status IN (0, 1)";

const AGENT_AFTER: &str = "SELECT agent FROM generations INDEXED BY generations_by_agent
    WHERE agent > ?1 ORDER BY agent LIMIT 1";

const ENDED_GENERATIONS: &str = "SELECT n, number, started, iif(status IN (0, 4), NULL, ended)
    FROM generations
    WHERE agent = ?1 AND number > ?2 ORDER BY number LIMIT ?3";

fn name_after(connection: &Connection, sql: &str, name: &str) -> Result<Option<Arc<str>>> {
    connection.prepare_cached(sql)?.query_row([name], |row| row.get(0)).optional()
}

fn ended(reading: &Reading<'_>, sought: &EndedExecutions, limit: usize) -> Result<Ended<Cursor>> {
    let EndedExecutions { workflow_id, status, before, after } = sought;
    let (created, row) = after.map_or((i64::MIN, Row::MIN), |at| (at.at.0, at.row));
    let mut is_open = reading.prepare_cached(IS_OPEN)?;
    let mut statement = reading.prepare_cached(ENDED)?;
    let place = params![
        workflow_id,
        status_code(*status),
        created,
        row,
        before.0,
        limit_of(limit.saturating_add(1))
    ];
    let mut rows = statement.query(place)?;
    let mut found = Ended::default();
    let mut looked_at = 0;
    while let Some(row) = rows.next()? {
        if looked_at == limit {
            return Ok(found);
        }
        looked_at += 1;
        let n: Row = row.get(0)?;
        found.next = Some(Cursor { at: time_of(row, 1)?, row: n });
        let name = || format!("execution number {n}");
        let facts = row.get(2).and_then(|ended| Ok((ended, row.get(3)?)));
        let Some(facts) = reading.defects.readable(name, facts)? else { continue };
        let (ended, parent): (Option<i64>, Option<String>) = facts;
        let is_old = ended.is_some_and(|ended| ended < before.0);
        let is_needed = match parent {
            Some(parent) if is_old => is_open.exists([parent])?,
            Some(_) | None => false,
        };
        if is_old && !is_needed {
            found.rows.push(n);
        }
    }
    found.next = None;
    Ok(found)
}

fn ended_generations(
    connection: &Connection,
    sought: &EndedGenerations,
    limit: usize,
) -> Result<Ended<u64>> {
    let EndedGenerations { agent_id, before, after } = sought;
    let mut statement = connection.prepare_cached(ENDED_GENERATIONS)?;
    let bound = limit_of(limit.saturating_add(1));
    let mut rows = statement.query(params![agent_id, signed(*after), bound])?;
    let (mut found, mut is_any_old) = (Ended::default(), false);
    let mut looked_at = 0;
    while let Some(row) = rows.next()? {
        if looked_at == limit {
            // old ones may follow one that began under a clock that was ahead, but hardly so many
            found.next = found.next.filter(|_| is_any_old);
            return Ok(found);
        }
        looked_at += 1;
        found.next = Some(unsigned_of(row, 1)?);
        // NULL while it runs or waits
        let ended: Option<i64> = row.get(3)?;
        let has_ended = ended.map(Timestamp).is_some_and(|ended| ended < *before);
        if has_ended {
            found.rows.push(row.get(0)?);
        }
        is_any_old |= has_ended || time_of(row, 2)? < *before;
    }
    found.next = None;
    Ok(found)
}

fn retention() -> String {
    "ended executions and generations".to_owned()
}

impl Retention for SqliteStore {
    fn workflow_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        self.read(retention, move |it| name_after(it, WORKFLOW_AFTER, name))
    }

    fn ended_executions<'a>(
        &'a self,
        sought: &'a EndedExecutions,
        limit: usize,
    ) -> Read<'a, Ended<Cursor>> {
        let sought = sought.clone();
        self.read_aside(Lane::Lists, retention, move |it| ended(it, &sought, limit))
    }

    fn drop_executions(&self, rows: Vec<Row>) -> Written<u64> {
        self.change(Change::DropExecutions(rows))
    }

    fn agent_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        self.read(retention, move |it| name_after(it, AGENT_AFTER, name))
    }

    fn ended_generations<'a>(
        &'a self,
        sought: &'a EndedGenerations,
        limit: usize,
    ) -> Read<'a, Ended<u64>> {
        let sought = sought.clone();
        self.read_aside(Lane::Lists, retention, move |it| ended_generations(it, &sought, limit))
    }

    fn drop_generations(&self, rows: Vec<Row>) -> Written<u64> {
        self.change(Change::DropGenerations(rows))
    }
}

const OVER: &str =
    "SELECT id, workflow, status FROM executions WHERE n = ?1 AND status NOT IN (0, 1)";

const DROP_CHUNKS: &str = "DELETE FROM chunks WHERE execution = ?1";

const DROP_SNAPSHOT: &str = "DELETE FROM snapshots WHERE execution = ?1";

const DROP_TIMERS: &str = "DELETE FROM timers WHERE execution = ?1";

const DROP_ASKS: &str = "DELETE FROM asks WHERE execution = ?1";

const DROP_ACTED: &str = "DELETE FROM acted WHERE execution = ?1";

const DROP_EXECUTION: &str = "DELETE FROM executions WHERE n = ?1";

/// The prepared statements of the writer.
pub(super) struct Drops<'c> {
    over: Statement<'c>,
    chunks: Statement<'c>,
    snapshot: Statement<'c>,
    timers: Statement<'c>,
    asks: Statement<'c>,
    acted: Statement<'c>,
    execution: Statement<'c>,
}

impl<'c> Drops<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            over: connection.prepare(OVER)?,
            chunks: connection.prepare(DROP_CHUNKS)?,
            snapshot: connection.prepare(DROP_SNAPSHOT)?,
            timers: connection.prepare(DROP_TIMERS)?,
            asks: connection.prepare(DROP_ASKS)?,
            acted: connection.prepare(DROP_ACTED)?,
            execution: connection.prepare(DROP_EXECUTION)?,
        })
    }

    /// Deletes executions until a part is full. Called again with the same rows, it continues.
    pub(super) fn executions(&mut self, rows: &[Row], counts: &mut Counts<'_>) -> Result<Part> {
        let (mut touched, mut dropped) = (0, 0);
        for n in rows {
            if touched >= PART {
                return Ok(Part { changed: dropped, is_last: false });
            }
            let over = self.over.query_row([n], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, Arc<str>>(1)?, status_of(row, 2)?))
            });
            let Some((id, workflow, status)) = over.optional()? else { continue };
            counts.went(&workflow, status);
            touched += self.chunks.execute([n])? + self.snapshot.execute([n])?;
            touched += self.timers.execute([&id])? + self.asks.execute([n])?;
            touched += self.acted.execute([n])? + self.execution.execute([n])?;
            dropped += 1;
        }
        Ok(Part::whole(dropped))
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn ended_executions_are_found_and_deleted_by_an_index() {
        let all = [
            WORKFLOW_AFTER,
            ENDED,
            IS_OPEN,
            AGENT_AFTER,
            ENDED_GENERATIONS,
            OVER,
            DROP_CHUNKS,
            DROP_SNAPSHOT,
            DROP_TIMERS,
            DROP_ASKS,
            DROP_ACTED,
            DROP_EXECUTION,
        ];
        all.into_iter().for_each(assert_uses_indexes);
    }
}
