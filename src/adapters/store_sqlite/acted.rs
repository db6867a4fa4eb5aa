//! Who did something to which execution, so that whoever is forgotten is found in its record.

use std::sync::Arc;

use greenroom_actors::domain::fact::{Others, Recorded, Suspension};
use greenroom_actors::ports::store::Row;
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of facts that count as one row of what one commit does.
const BYTES_PER_ROW: usize = 16 * 1024;

const PUT: &str = "INSERT OR IGNORE INTO acted (user_id, execution) VALUES (?1, ?2)";

const FIND: &str = "SELECT execution FROM acted WHERE user_id = ?1 LIMIT 1";

const DONE: &str = "DELETE FROM acted WHERE user_id = ?1 AND execution = ?2";

const ROW: &str = "SELECT events, suspension FROM executions WHERE n = ?1";

const PUT_ROW: &str = "UPDATE executions SET events = ?2, suspension = ?3 WHERE n = ?1";

const NEXT_CHUNK: &str = "SELECT last, part, events FROM chunks WHERE execution = ?1
    AND (last, part) > (?2, ?3) AND instr(events, ?4) > 0 ORDER BY last, part LIMIT 1";

const PUT_CHUNK: &str =
    "UPDATE chunks SET events = ?4 WHERE execution = ?1 AND last = ?2 AND part = ?3";

const DROP_STATE: &str = "DELETE FROM snapshots WHERE execution = ?1 AND instr(state, ?2) > 0";

/// The statements on what users did.
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

    /// Notes that these users are named in the facts of an execution.
    pub(super) fn note(&mut self, users: &[Arc<str>], execution: Row) -> Result<()> {
        for user in users {
            self.put.execute(params![user, execution])?;
        }
        Ok(())
    }

    /// Strikes a user from the record of executions; gives how much was done. All is done when
    /// that is less than `limit`.
    pub(super) fn forget(&mut self, user: &str, limit: usize) -> Result<usize> {
        let needle = needle_of(user);
        let mut rows = 0;
        while rows < limit {
            let found = self.find.query_row([user], |row| row.get(0)).optional()?;
            let Some(execution) = found else { break };
            rows += self.strike_chunks(execution, user, &needle, limit - rows)?;
            if rows < limit {
                self.strike_row(execution, user)?;
                self.drop_state.execute(params![execution, needle])?;
                self.done.execute(params![user, execution])?;
                rows += 1;
            }
        }
        Ok(rows)
    }

    fn strike_chunks(
        &mut self,
        execution: Row,
        user: &str,
        needle: &[u8],
        limit: usize,
    ) -> Result<usize> {
        let (mut last, mut part, mut rows) = (i64::MIN, i64::MIN, 0);
        while rows < limit {
            let place = params![execution, last, part, needle];
            let found = self
                .next_chunk
                .query_row(place, |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)));
            let Some((at, of, events)) = found.optional()? else { break };
            (last, part) = (at, of);
            // What only looks like the user's id is passed over, and does not come again here.
            if let Some(struck) = struck_facts(&events, user) {
                self.put_chunk.execute(params![execution, last, part, struck])?;
                rows += 1 + events.len() / BYTES_PER_ROW;
            }
        }
        Ok(rows)
    }

    fn strike_row(&mut self, execution: Row, user: &str) -> Result<()> {
        let found = self.row.query_row([execution], |row| {
            Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, Option<Vec<u8>>>(1)?))
        });
        let Some((events, suspension)) = found.optional()? else { return Ok(()) };
        let events_struck = events.as_deref().and_then(|events| struck_facts(events, user));
        let suspension_struck = suspension.as_deref().and_then(|it| struck_suspension(it, user));
        if events_struck.is_none() && suspension_struck.is_none() {
            return Ok(());
        }
        let (events, suspension) = (events_struck.or(events), suspension_struck.or(suspension));
        self.put_row.execute(params![execution, events, suspension]).map(drop)
    }
}

/// The users that facts name.
pub(super) fn users_in(facts: &[Recorded]) -> Vec<Arc<str>> {
    let mut users: Vec<Arc<str>> = Vec::new();
    for recorded in facts {
        recorded.each_principal(&mut |principal| {
            if !users.contains(&principal.id) {
                users.push(Arc::clone(&principal.id));
            }
        });
    }
    users
}

/// How a principal of this id begins, as it is written in facts and states.
fn needle_of(user: &str) -> Vec<u8> {
    format!("{{\"id\":{},\"verified\":", serde_json::Value::from(user)).into_bytes()
}

/// The facts without the user; nothing when they do not name it.
fn struck_facts(events: &[u8], user: &str) -> Option<Vec<u8>> {
    struck(events, |facts: &mut Vec<Recorded>| {
        facts.iter_mut().fold(false, |any, recorded| recorded.forget(user) | any)
    })
}

fn struck_suspension(bytes: &[u8], user: &str) -> Option<Vec<u8>> {
    if bytes.first() == Some(&b'[') {
        return struck(bytes, |(shown, others): &mut (Suspension, Others)| {
            shown.forget(user) | others.forget(user)
        });
    }
    struck(bytes, |shown: &mut Suspension| shown.forget(user))
}

fn struck<T: DeserializeOwned + Serialize>(
    bytes: &[u8],
    strike: impl FnOnce(&mut T) -> bool,
) -> Option<Vec<u8>> {
    let mut read: T = serde_json::from_slice(bytes).ok()?;
    strike(&mut read).then(|| serde_json::to_vec(&read).ok())?
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn whoever_is_forgotten_is_found_by_an_index() {
        for sql in [PUT, FIND, DONE, ROW, PUT_ROW, NEXT_CHUNK, PUT_CHUNK, DROP_STATE] {
            assert_uses_indexes(sql);
        }
    }
}
