//! Writes of generations: a row for each, and rows for later turns.

use std::collections::HashMap;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{GenerationRecord, GenerationStatus, Row};
use greenroom_store_codec::history::BLOCK;
use greenroom_store_codec::prepared::PreparedGeneration;
use greenroom_store_codec::trace::TraceColumns;
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

use super::changes::Part;
use super::codec::{generation_code, limit_of};

/// The prepared statements of the writer.
pub(super) struct Generations<'c> {
    insert: Statement<'c>,
    update: Statement<'c>,
    put_step: Statement<'c>,
    newest: Statement<'c>,
    interrupt: Statement<'c>,
    of_user: Statement<'c>,
    disown: Statement<'c>,
    ended: Statement<'c>,
    drop_steps: Statement<'c>,
    drop_steps_of: Statement<'c>,
    drop_continuation: Statement<'c>,
    drop_asks: Statement<'c>,
    drop_row: Statement<'c>,
    count_hole: Statement<'c>,
    /// Cache of the newest number of each agent. Agents are few: those of the registry.
    numbers: HashMap<String, i64>,
}

const INSERT: &str = "INSERT INTO generations (n, id, agent, number, status, started, ended, input,
    output, usage, error, user_id, conversation, execution, path, steps, trace, joined,
    around)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)
    ON CONFLICT (id) DO NOTHING";

const UPDATE: &str = "UPDATE generations SET status = ?2, started = ?3, ended = ?4, input = ?5,
    output = ?6, usage = ?7, error = ?8, user_id = ?9, conversation = ?10, execution = ?11,
    path = ?12, steps = CASE WHEN ?13 THEN NULL ELSE steps END, trace = ?14,
    joined = ?15, around = ?16 WHERE id = ?1";

const PUT_STEP: &str = "INSERT INTO steps (generation, number, body)
    VALUES ((SELECT n FROM generations WHERE id = ?1), ?2, ?3)
    ON CONFLICT (generation, number) DO UPDATE SET body = excluded.body";

/// Every assigned number is in a row or counted in `forgotten`.
pub(super) const NEWEST: &str = "SELECT max(
    ifnull((SELECT number FROM generations WHERE agent = ?1 ORDER BY number DESC LIMIT 1), 0),
    ifnull((SELECT last FROM forgotten WHERE agent = ?1 ORDER BY block DESC LIMIT 1), 0))";

const INTERRUPT: &str = "UPDATE generations SET status = ?1, ended = ?2,
    error = 'interrupted by a restart' WHERE status = 0 AND execution IS NULL
    AND NOT EXISTS (SELECT 1 FROM continuations WHERE generation = generations.n)";

const OF_USER: &str = "SELECT n, agent, number FROM generations
    WHERE user_id = ?1 AND status NOT IN (0, 4) LIMIT ?2";

const DISOWN: &str = "UPDATE generations SET user_id = NULL, conversation = NULL
    WHERE n IN (SELECT n FROM generations
        WHERE user_id = ?1 AND status IN (0, 4) AND execution IS NOT NULL LIMIT ?2)";

const ENDED: &str = "SELECT agent, number FROM generations
    WHERE n = ?1 AND ended IS NOT NULL AND status NOT IN (0, 4)";

const DROP_STEPS: &str = "DELETE FROM steps WHERE generation = ?1";

const DROP_STEPS_OF: &str =
    "DELETE FROM steps WHERE generation = (SELECT n FROM generations WHERE id = ?1)";

const DROP_CONTINUATION: &str = "DELETE FROM continuations WHERE generation = ?1";

const DROP_ASKS: &str = "DELETE FROM asks WHERE generation = ?1";

const DROP_ROW: &str = "DELETE FROM generations WHERE n = ?1";

const COUNT_HOLE: &str = "INSERT INTO forgotten (agent, block, count, last) VALUES (?1, ?2, 1, ?3)
    ON CONFLICT (agent, block) DO UPDATE SET count = count + 1, last = max(last, excluded.last)";

const LAST_ROW: &str = "SELECT ifnull(max(n), 0) FROM generations";

/// Returns the number of the newest row.
pub(super) fn last_row(connection: &Connection) -> Result<Row> {
    connection.query_row(LAST_ROW, [], |row| row.get(0))
}

impl<'c> Generations<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            insert: connection.prepare(INSERT)?,
            update: connection.prepare(UPDATE)?,
            put_step: connection.prepare(PUT_STEP)?,
            newest: connection.prepare(NEWEST)?,
            interrupt: connection.prepare(INTERRUPT)?,
            of_user: connection.prepare(OF_USER)?,
            disown: connection.prepare(DISOWN)?,
            ended: connection.prepare(ENDED)?,
            drop_steps: connection.prepare(DROP_STEPS)?,
            drop_steps_of: connection.prepare(DROP_STEPS_OF)?,
            drop_continuation: connection.prepare(DROP_CONTINUATION)?,
            drop_asks: connection.prepare(DROP_ASKS)?,
            drop_row: connection.prepare(DROP_ROW)?,
            count_hole: connection.prepare(COUNT_HOLE)?,
            numbers: HashMap::new(),
        })
    }

    /// Clears the cache after a transaction was rolled back.
    pub(super) fn roll_back(&mut self) {
        self.numbers.clear();
    }

    /// Writes the generation and its turns, but neither its messages nor its continuation.
    pub(super) fn put(&mut self, prepared: &PreparedGeneration) -> Result<()> {
        let PreparedGeneration { row, record, input, output, usage, steps, trace, .. } = prepared;
        let TraceColumns { joined, around } = trace;
        let inline = prepared.inline_steps();
        let number = self.newest_of(&record.agent_id)? + 1;
        let (execution, path) = match &record.origin {
            Some(origin) => (Some(origin.execution_id.as_str()), Some(&*origin.path)),
            None => (None, None),
        };
        let status = generation_code(record.status);
        let started = record.start_time.0;
        let ended = record.end_time.map(|time| time.0);
        let name = prepared.trace_name();
        let GenerationRecord { id, agent_id, error, user_id, conversation_id, .. } = record;
        let inserted = self.insert.execute(params![
            row,
            id,
            agent_id,
            number,
            status,
            started,
            ended,
            input,
            output,
            usage,
            error,
            user_id,
            conversation_id,
            execution,
            path,
            inline,
            name,
            joined,
            around,
        ])?;
        if inserted == 1 {
            self.remember(agent_id, number);
            if inline.is_some() {
                return Ok(());
            }
        } else {
            self.update.execute(params![
                id,
                status,
                started,
                ended,
                input,
                output,
                usage,
                error,
                user_id,
                conversation_id,
                execution,
                path,
                steps.replace_all(),
                name,
                joined,
                around,
            ])?;
            if steps.replace_all() {
                self.drop_steps_of.execute([id])?;
            }
        }
        for (number, step) in steps.iter() {
            self.put_step.execute(params![id, number, step])?;
        }
        Ok(())
    }

    fn newest_of(&mut self, agent: &str) -> Result<i64> {
        match self.numbers.get(agent) {
            Some(number) => Ok(*number),
            None => self.newest.query_row([agent], |row| row.get(0)),
        }
    }

    fn remember(&mut self, agent: &str, number: i64) {
        match self.numbers.get_mut(agent) {
            Some(newest) => *newest = number,
            None => {
                self.numbers.insert(agent.to_owned(), number);
            }
        }
    }

    pub(super) fn interrupt_working(&mut self, now: Timestamp) -> Result<()> {
        self.interrupt.execute(params![generation_code(GenerationStatus::Error), now.0]).map(drop)
    }

    /// Removes a user from up to `limit` generations of steps that have not ended; returns their number.
    pub(super) fn disown(&mut self, user: &str, limit: usize) -> Result<usize> {
        self.disown.execute(params![user, limit_of(limit)])
    }

    /// Deletes up to `limit` ended generations of a user; returns their number.
    pub(super) fn forget(&mut self, user: &str, limit: usize) -> Result<usize> {
        let found = self.of_user.query_map(params![user, limit_of(limit)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
        })?;
        let found = found.collect::<Result<Vec<_>>>()?;
        for (n, agent, number) in &found {
            self.drop(*n, agent, *number)?;
        }
        Ok(found.len())
    }

    /// Deletes ended generations until `limit` rows are touched. Called again with the same rows,
    /// it continues.
    pub(super) fn drop_ended(&mut self, rows: &[Row], limit: usize) -> Result<Part> {
        let (mut touched, mut dropped) = (0, 0);
        for n in rows {
            if touched >= limit {
                return Ok(Part { changed: dropped, is_last: false });
            }
            let place = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let found: Option<(String, i64)> = self.ended.query_row([n], place).optional()?;
            if let Some((agent, number)) = found {
                touched += self.drop(*n, &agent, number)?;
                dropped += 1;
            }
        }
        Ok(Part::whole(dropped))
    }

    /// Deletes a generation; returns the number of touched rows.
    fn drop(&mut self, n: i64, agent: &str, number: i64) -> Result<usize> {
        let steps = self.drop_steps.execute([n])?;
        let waits = self.drop_continuation.execute([n])? + self.drop_asks.execute([n])?;
        self.drop_row.execute([n])?;
        self.count_hole.execute(params![agent, number / BLOCK, number])?;
        Ok(steps + waits + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn changes_find_their_rows_by_an_index() {
        let all = [
            INSERT,
            UPDATE,
            PUT_STEP,
            NEWEST,
            INTERRUPT,
            OF_USER,
            ENDED,
            DROP_STEPS,
            DROP_STEPS_OF,
            DROP_CONTINUATION,
            DROP_ASKS,
            DROP_ROW,
            COUNT_HOLE,
            LAST_ROW,
        ];
        all.into_iter().for_each(assert_uses_indexes);
    }
}
