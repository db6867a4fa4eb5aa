//! Continuations: what interrupted and suspended generations need to continue.

use greenroom_actors::ports::store::{ConversationKey, Row, StoredContinuation, UserCursor};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::signed;
use greenroom_store_codec::prepared::{PreparedContinuation, PreparedGeneration};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

use super::ask_writes::Owner;
use super::codec::{Stored, limit_of};
use super::session::Session;

const PUT: &str = "INSERT INTO continuations (generation, revision, body)
    VALUES ((SELECT n FROM generations WHERE id = ?1), 1, ?2)
    ON CONFLICT (generation) DO UPDATE SET revision = revision + 1, body = excluded.body";

const REMOVE: &str = "DELETE FROM continuations
    WHERE generation = (SELECT n FROM generations WHERE id = ?1)";

const FIND: &str = "SELECT revision, body FROM continuations
    WHERE generation = (SELECT n FROM generations WHERE id = ?1)";

const REVISION: &str = "SELECT revision FROM continuations
    WHERE generation = (SELECT n FROM generations WHERE id = ?1)";

const SUSPENDED_IN: &str = "SELECT id FROM generations INDEXED BY suspended
    WHERE status = 4 AND conversation = ?1 AND agent = ?2 AND user_id IS ?3 ORDER BY n";

const UNFINISHED_OF_USER: &str = "SELECT agent, number, id FROM generations
    INDEXED BY generations_by_user
    WHERE user_id = ?1 AND (agent, number) > (?2, ?3) AND status IN (0, 4)
    ORDER BY agent, number LIMIT ?4";

const INTERRUPTED: &str = "SELECT g.n, g.id FROM generations g INDEXED BY working
    CROSS JOIN continuations c ON c.generation = g.n
    WHERE g.status = 0 AND g.n > ?1 ORDER BY g.n LIMIT ?2";

/// The prepared statements of the writer.
pub(super) struct Continuations<'c> {
    put: Statement<'c>,
    remove: Statement<'c>,
    revision: Statement<'c>,
}

impl<'c> Continuations<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            put: connection.prepare(PUT)?,
            remove: connection.prepare(REMOVE)?,
            revision: connection.prepare(REVISION)?,
        })
    }

    /// Returns the revision of the continuation of a generation, 0 if there is none.
    fn revision(&mut self, id: &str) -> Result<i64> {
        let found = self.revision.query_row([id], |row| row.get(0)).optional()?;
        Ok(found.unwrap_or(0))
    }
}

impl Session<'_> {
    /// Writes a generation if its continuation has this revision.
    pub(super) fn settle(&mut self, revision: u64, write: &PreparedGeneration) -> Result<bool> {
        let is_newest = self.continuations.revision(&write.record.id)? == signed(revision);
        if is_newest {
            self.put_generation(write)?;
        }
        Ok(is_newest)
    }

    /// Changes the continuation and the asks of a stored generation.
    pub(super) fn change_continuation(&mut self, write: &PreparedGeneration) -> Result<()> {
        let id = &write.record.id;
        let asks = match &write.continuation {
            PreparedContinuation::Keep => return Ok(()),
            PreparedContinuation::Put { body, asks } => {
                self.continuations.put.execute(params![id, body])?;
                asks
            }
            PreparedContinuation::Remove { asks } => {
                self.continuations.remove.execute([id])?;
                asks
            }
        };
        self.asks.change(Owner::Generation(&write.record), asks)
    }
}

pub(super) fn continuation(
    connection: &Connection,
    id: &str,
) -> Result<Option<StoredContinuation>> {
    let mut statement = connection.prepare_cached(FIND)?;
    let found = statement.query_row([id], |row| {
        let row = Stored(row);
        Ok(StoredContinuation { revision: row.unsigned(0)?, body: row.shared(1)? })
    });
    found.optional()
}

pub(super) fn suspended_in(connection: &Connection, key: &ConversationKey) -> Result<Vec<String>> {
    let ConversationKey { agent_id, user_id, conversation_id } = key;
    let mut statement = connection.prepare_cached(SUSPENDED_IN)?;
    let place = params![conversation_id, agent_id, user_id];
    statement.query_map(place, |row| row.get(0))?.collect()
}

pub(super) fn unfinished_of_user(
    connection: &Connection,
    user: &str,
    after: Option<&UserCursor>,
    limit: usize,
) -> Result<Vec<(UserCursor, String)>> {
    let (agent, number) = after.map_or(("", 0), |place| (&*place.agent_id, place.number));
    let mut statement = connection.prepare_cached(UNFINISHED_OF_USER)?;
    let found = statement.query_map(params![user, agent, number, limit_of(limit)], |row| {
        Ok((UserCursor { agent_id: row.get(0)?, number: row.get(1)? }, row.get(2)?))
    });
    found?.collect()
}

/// Returns generations that are `working` and have a continuation, by row.
pub(super) fn interrupted(
    connection: &Connection,
    after: Row,
    limit: usize,
) -> Result<Vec<(Row, String)>> {
    let mut statement = connection.prepare_cached(INTERRUPTED)?;
    let place = params![after, limit_of(limit)];
    statement.query_map(place, |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn continuations_are_found_by_an_index() {
        let all = [PUT, REMOVE, FIND, REVISION, SUSPENDED_IN, UNFINISHED_OF_USER, INTERRUPTED];
        all.into_iter().for_each(assert_uses_indexes);
    }
}
