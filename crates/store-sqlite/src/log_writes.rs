//! Writes of log records.

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::{LogRecord, LogScope};
use greenroom_store_codec::prepared::PreparedLog;
use rusqlite::{Connection, Result, Statement, params};

use super::codec::{level_code, limit_of, signed};

/// The prepared statements of the writer.
pub(super) struct LogWrites<'c> {
    put: Statement<'c>,
    newest: Statement<'c>,
    oldest: Statement<'c>,
    drop_until: Statement<'c>,
    drop_of_user: Statement<'c>,
}

const PUT: &str = "INSERT INTO logs (at, level, target, trace, span, execution, parent, workflow,
    generation, agent, conversation, user_id, request, attributes, message)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

const NEWEST: &str = "SELECT ifnull(max(n), 0) FROM logs";

/// `n > 0` matches all rows and makes SQLite use the primary key.
const OLDEST: &str = "SELECT n, at FROM logs WHERE n > 0 ORDER BY n LIMIT ?1";

const DROP_UNTIL: &str = "DELETE FROM logs WHERE n <= ?1";

const DROP_OF_USER: &str =
    "DELETE FROM logs WHERE n IN (SELECT n FROM logs WHERE user_id = ?1 LIMIT ?2)";

impl<'c> LogWrites<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            put: connection.prepare(PUT)?,
            newest: connection.prepare(NEWEST)?,
            oldest: connection.prepare(OLDEST)?,
            drop_until: connection.prepare(DROP_UNTIL)?,
            drop_of_user: connection.prepare(DROP_OF_USER)?,
        })
    }

    pub(super) fn put(&mut self, logs: &[PreparedLog]) -> Result<()> {
        for PreparedLog { record, attributes, span } in logs {
            let LogRecord { at, level, target, message, scope, .. } = &**record;
            let LogScope { execution_id, parent_execution_id, .. } = &**scope;
            self.put.execute(params![
                at.0,
                level_code(*level),
                target,
                scope.trace_id,
                span,
                execution_id.as_ref().map(ExecutionId::as_str),
                parent_execution_id.as_ref().map(ExecutionId::as_str),
                scope.workflow_id,
                scope.generation_id,
                scope.agent_id,
                scope.conversation_id,
                scope.user_id,
                scope.request_id,
                attributes,
                message,
            ])?;
        }
        Ok(())
    }

    /// Deletes up to `limit` of the oldest records: those before a time, and those beyond the
    /// newest `rows_max` numbers. Returns their number.
    pub(super) fn prune(
        &mut self,
        before: Timestamp,
        rows_max: u64,
        limit: usize,
    ) -> Result<usize> {
        let newest: i64 = self.newest.query_row([], |row| row.get(0))?;
        let beyond = newest.saturating_sub(signed(rows_max));
        let mut last = None;
        let mut rows = self.oldest.query([limit_of(limit)])?;
        while let Some(row) = rows.next()? {
            let n: i64 = row.get(0)?;
            if n > beyond && row.get::<_, i64>(1)? >= before.0 {
                break;
            }
            last = Some(n);
        }
        drop(rows);
        last.map_or(Ok(0), |last| self.drop_until.execute([last]))
    }

    /// Deletes up to `limit` records about a user; returns their number.
    pub(super) fn forget(&mut self, user: &str, limit: usize) -> Result<usize> {
        self.drop_of_user.execute(params![user, limit_of(limit)])
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn changes_of_logs_find_their_rows_by_an_index() {
        for sql in [NEWEST, OLDEST, DROP_UNTIL, DROP_OF_USER] {
            assert_uses_indexes(sql);
        }
    }
}
