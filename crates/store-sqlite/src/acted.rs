//! Index of users named in facts of executions, to remove a user from them.

use std::sync::Arc;

use greenroom_actors::ports::store::Row;
use greenroom_store_codec::Damaged;
use greenroom_store_codec::users::{facts_without, suspensions_without, written_end};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

use super::codec::damage_in_part;
use super::defects::Defects;

/// Bytes of facts that count as one row of a commit's limit.
const BYTES_PER_ROW: usize = 16 * 1024;

const PUT: &str = "INSERT OR IGNORE INTO acted (user_id, execution) VALUES (?1, ?2)";

const FIND: &str = "SELECT acted.execution, executions.id FROM acted
    LEFT JOIN executions ON executions.n = acted.execution
    WHERE acted.user_id = ?1 AND acted.execution > ?2 ORDER BY acted.execution LIMIT 1";

const DONE: &str = "DELETE FROM acted WHERE user_id = ?1 AND execution = ?2";

const ROW: &str = "SELECT events, suspension FROM executions WHERE n = ?1";

const PUT_ROW: &str = "UPDATE executions SET events = ?2, suspension = ?3 WHERE n = ?1";

const NEXT_CHUNK: &str = "SELECT last, part, events FROM chunks WHERE execution = ?1
    AND (last, part) > (?2, ?3) AND instr(events, ?4) > 0 ORDER BY last, part LIMIT 1";

const PUT_CHUNK: &str =
    "UPDATE chunks SET events = ?4 WHERE execution = ?1 AND last = ?2 AND part = ?3";

const DROP_STATE: &str = "DELETE FROM snapshots WHERE execution = ?1 AND instr(state, ?2) > 0";

/// The prepared statements.
pub(super) struct Acted<'c> {
    put: Statement<'c>,
    find: Statement<'c>,
    done: Statement<'c>,
    row: Statement<'c>,
    put_row: Statement<'c>,
    next_chunk: Statement<'c>,
    put_chunk: Statement<'c>,
    drop_state: Statement<'c>,
}

impl<'c> Acted<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            put: connection.prepare(PUT)?,
            find: connection.prepare(FIND)?,
            done: connection.prepare(DONE)?,
            row: connection.prepare(ROW)?,
            put_row: connection.prepare(PUT_ROW)?,
            next_chunk: connection.prepare(NEXT_CHUNK)?,
            put_chunk: connection.prepare(PUT_CHUNK)?,
            drop_state: connection.prepare(DROP_STATE)?,
        })
    }

    /// Records that the facts of an execution name these users.
    pub(super) fn note(&mut self, users: &[Arc<str>], execution: Row) -> Result<()> {
        for user in users {
            self.put.execute(params![user, execution])?;
        }
        Ok(())
    }

    /// Removes a user from facts of executions; returns the amount of work done, in rows. The work
    /// is complete when that is less than `limit`. An execution with damaged facts is reported to
    /// `defects` and stays in the index; it does not count, or the work would never complete.
    pub(super) fn forget(&mut self, user: &str, limit: usize, defects: &Defects) -> Result<usize> {
        let needle = written_end(user).into_bytes();
        let (mut after, mut rows) = (Row::MIN, 0);
        while rows < limit {
            let place =
                |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?));
            let found = self.find.query_row(params![user, after], place).optional()?;
            let Some((execution, id)) = found else { break };
            after = execution;
            let record = Record { execution, id, user, needle: &needle, defects };
            let (chunks, is_struck) = self.strike_chunks(&record, limit - rows)?;
            rows += chunks;
            if rows < limit {
                let is_struck = self.strike_row(&record)? && is_struck;
                self.drop_state.execute(params![execution, needle])?;
                if is_struck {
                    self.done.execute(params![user, execution])?;
                    rows += 1;
                }
            }
        }
        Ok(rows)
    }

    /// Returns the amount of work done, and false if a chunk is damaged.
    fn strike_chunks(&mut self, record: &Record<'_>, limit: usize) -> Result<(usize, bool)> {
        let Record { execution, user, needle, .. } = *record;
        let (mut last, mut part, mut rows, mut is_struck) = (i64::MIN, i64::MIN, 0, true);
        while rows < limit {
            let place = params![execution, last, part, needle];
            let found = self
                .next_chunk
                .query_row(place, |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)));
            let Some((at, of, events)) = found.optional()? else { break };
            (last, part) = (at, of);
            match record.readable(facts_without(&events, user))? {
                Some(Some(struck)) => {
                    self.put_chunk.execute(params![execution, last, part, struck])?;
                    rows += 1 + events.len() / BYTES_PER_ROW;
                }
                // another text that looks like the user's id; the next query starts after it
                Some(None) => {}
                None => is_struck = false,
            }
        }
        Ok((rows, is_struck))
    }

    /// Returns false if the row is damaged.
    fn strike_row(&mut self, record: &Record<'_>) -> Result<bool> {
        let Record { execution, user, .. } = *record;
        let found = self.row.query_row([execution], |row| {
            Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, Option<Vec<u8>>>(1)?))
        });
        let Some((events, suspension)) = found.optional()? else { return Ok(true) };
        let read = events.as_deref().map_or(Ok(None), |events| facts_without(events, user));
        let events_struck = record.readable(read)?;
        let read = suspension.as_deref().map_or(Ok(None), |it| suspensions_without(it, user));
        let suspension_struck = record.readable(read)?;
        let is_struck = events_struck.is_some() && suspension_struck.is_some();
        let (events_struck, suspension_struck) =
            (events_struck.flatten(), suspension_struck.flatten());
        if events_struck.is_some() || suspension_struck.is_some() {
            let (events, suspension) = (events_struck.or(events), suspension_struck.or(suspension));
            self.put_row.execute(params![execution, events, suspension])?;
        }
        Ok(is_struck)
    }
}

/// An execution that a user is removed from.
struct Record<'a> {
    execution: Row,
    id: Option<String>,
    user: &'a str,
    /// Stored form of the user in facts.
    needle: &'a [u8],
    defects: &'a Defects,
}

impl Record<'_> {
    /// Returns `None` for damaged data, which is reported.
    fn readable<T>(&self, read: std::result::Result<T, Damaged>) -> Result<Option<T>> {
        let name = || format!("execution {}", self.id.as_deref().unwrap_or("without a name"));
        self.defects.readable(name, read.map_err(damage_in_part))
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn facts_of_a_user_are_found_by_an_index() {
        for sql in [PUT, FIND, DONE, ROW, PUT_ROW, NEXT_CHUNK, PUT_CHUNK, DROP_STATE] {
            assert_uses_indexes(sql);
        }
    }
}
