//! Counts of executions by workflow and status, in a separate table, updated once per commit.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_actors::ports::store::{CountsOfUser, ExecutionCount, Status};
use rusqlite::{Connection, Result, Statement, params};

use super::codec::{limit_of, named, status_code, status_of, unsigned_of};
use super::defects::Reading;

const ADD: &str = "INSERT INTO execution_counts (workflow, status, count) VALUES (?1, ?2, ?3)
    ON CONFLICT (workflow, status) DO UPDATE SET count = count + excluded.count";

const ALL: &str = "SELECT workflow, status, count FROM execution_counts
    WHERE count > 0 ORDER BY workflow, status";

const OF_USER: &str = "SELECT workflow, status FROM executions INDEXED BY by_user
    WHERE user_id = ?1 ORDER BY created DESC, n DESC LIMIT ?2";

/// Changes of counts in the open transaction.
pub(super) struct Counts<'c> {
    add: Statement<'c>,
    changed: BTreeMap<(Arc<str>, i64), i64>,
}

impl<'c> Counts<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self { add: connection.prepare(ADD)?, changed: BTreeMap::new() })
    }

    /// Discards the changes of a transaction that was not committed.
    pub(super) fn clear(&mut self) {
        self.changed.clear();
    }

    /// Counts an execution in a status.
    pub(super) fn came(&mut self, workflow: &Arc<str>, status: Status) {
        self.note(workflow, status, 1);
    }

    /// Counts an execution out of a status.
    pub(super) fn went(&mut self, workflow: &Arc<str>, status: Status) {
        self.note(workflow, status, -1);
    }

    fn note(&mut self, workflow: &Arc<str>, status: Status, by: i64) {
        let place = (Arc::clone(workflow), status_code(status));
        *self.changed.entry(place).or_default() += by;
    }

    /// Writes the changes in the open transaction.
    pub(super) fn write(&mut self) -> Result<()> {
        while let Some(((workflow, status), by)) = self.changed.pop_first() {
            if by != 0 {
                self.add.execute(params![workflow, status, by])?;
            }
        }
        Ok(())
    }
}

/// Reads all counts, by workflow.
pub(super) fn all(reading: &Reading<'_>) -> Result<Vec<ExecutionCount>> {
    let mut statement = reading.prepare_cached(ALL)?;
    let mut rows = statement.query([])?;
    let name = |row: &rusqlite::Row<'_>| named("the counts of workflow", row, 0);
    reading.defects.readable_rows(&mut rows, name, |row| {
        Ok(ExecutionCount {
            workflow_id: row.get(0)?,
            status: status_of(row, 1)?,
            count: unsigned_of(row, 2)?,
        })
    })
}

/// Counts a user's newest executions.
pub(super) fn of_user(reading: &Reading<'_>, user: &str, limit: usize) -> Result<CountsOfUser> {
    let mut statement = reading.prepare_cached(OF_USER)?;
    // one more, to detect further executions
    let mut rows = statement.query(params![user, limit_of(limit.saturating_add(1))])?;
    let mut counted: BTreeMap<(Arc<str>, i64), ExecutionCount> = BTreeMap::new();
    let mut seen = 0;
    while let Some(row) = rows.next()? {
        if seen == limit {
            return Ok(CountsOfUser {
                counts: counted.into_values().collect(),
                is_complete: false,
            });
        }
        seen += 1;
        let name = || format!("an execution of user {user}");
        let read = row.get::<_, Arc<str>>(0).and_then(|id| Ok((id, status_of(row, 1)?)));
        let Some((workflow_id, status)) = reading.defects.readable(name, read)? else { continue };
        let place = (Arc::clone(&workflow_id), status_code(status));
        let entry = counted.entry(place);
        entry.or_insert(ExecutionCount { workflow_id, status, count: 0 }).count += 1;
    }
    Ok(CountsOfUser { counts: counted.into_values().collect(), is_complete: true })
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn counts_are_found_by_an_index() {
        assert_uses_indexes(ADD);
        assert_uses_indexes(OF_USER);
    }
}
