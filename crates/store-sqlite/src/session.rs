//! The writer's statements, prepared once per connection, and appends.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Append, AppendError, IdempotencyRecord, Row, Snapshot, Status, TimerChange,
};
use greenroom_store_codec::prepared::{PreparedAppend, PreparedGeneration};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};

use super::acted::Acted;
use super::ask_writes::{AskWrites, Owner};
use super::codec::{limit_of, signed, status_code, status_of, timer_key_text};
use super::continuations::Continuations;
use super::conversations::Conversations;
use super::counts::Counts;
use super::generations::Generations;
use super::known_tools::ToolWrites;
use super::log_writes::LogWrites;
use super::retention::Drops;

/// Size of a test write; too large for space that happens to be free.
const PROBE_BYTES: usize = 64 * 1024;

/// Outcome of a change: made or refused. The transaction continues in both cases.
pub(super) type Verdict<T = ()> = std::result::Result<T, AppendError>;

/// Prepared statements of a connection.
pub(super) struct Session<'c> {
    pub(super) connection: &'c Connection,
    begin: Statement<'c>,
    commit: Statement<'c>,
    create: Statement<'c>,
    advance: Statement<'c>,
    status: Statement<'c>,
    change_status: Statement<'c>,
    put_chunk: Statement<'c>,
    store_snapshot: Statement<'c>,
    arm: Statement<'c>,
    disarm: Statement<'c>,
    drop_node_timers: Statement<'c>,
    find_key: Statement<'c>,
    put_key: Statement<'c>,
    purge_keys: Statement<'c>,
    put_definition: Statement<'c>,
    pub(super) known_tools: ToolWrites<'c>,
    pub(super) generations: Generations<'c>,
    pub(super) continuations: Continuations<'c>,
    pub(super) conversations: Conversations<'c>,
    pub(super) logs: LogWrites<'c>,
    pub(super) drops: Drops<'c>,
    pub(super) counts: Counts<'c>,
    pub(super) acted: Acted<'c>,
    pub(super) asks: AskWrites<'c>,
}

const CREATE: &str = "INSERT INTO executions (n, id, workflow, status, created, updated, ended,
    last_seq, definition, user_id, conversation, parent, parent_path, trace, parent_span,
    root_workflow, suspension, events, joined, around, error, replayed_from, replayed_step,
    has_asks)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
        ?19, ?20, ?21, ?22, ?23, 1)
    ON CONFLICT DO NOTHING";

/// Updates an execution that keeps running. Does not name `status` or `ended`, because that would
/// update their indexes even for equal values.
const ADVANCE: &str = "UPDATE executions SET revision = ?2, updated = ?4, last_seq = ?5,
    suspension = ?6 WHERE n = ?1 AND revision = ?2 - 1 AND status = ?3";

const STATUS: &str = "SELECT status FROM executions WHERE n = ?1 AND revision = ?2 - 1";

const CHANGE_STATUS: &str = "UPDATE executions SET revision = ?2, status = ?3, updated = ?4,
    ended = ?5, last_seq = ?6, suspension = ?7, error = ?8 WHERE n = ?1 AND revision = ?2 - 1";

const PUT_CHUNK: &str =
    "INSERT INTO chunks (execution, last, part, events) VALUES (?1, ?2, ?3, ?4)";

/// Stores the snapshot of the newest revision. The chunks that it includes are those up to a place:
/// the last fact of a chunk has at most the number of the next event, and a later chunk at least
/// that number and a higher part.
const STORE_SNAPSHOT: &str = "INSERT INTO snapshots (execution, last_seq, last, part, state)
    SELECT n, last_seq, last_seq + 1, revision, ?3 FROM executions WHERE n = ?1 AND revision = ?2
    ON CONFLICT (execution) DO UPDATE SET last_seq = excluded.last_seq, last = excluded.last,
        part = excluded.part, state = excluded.state";

const ARM: &str = "INSERT INTO timers (execution, key, due) VALUES (?1, ?2, ?3)
    ON CONFLICT (execution, key) DO UPDATE SET due = excluded.due";

const DISARM: &str = "DELETE FROM timers WHERE execution = ?1 AND key = ?2";

/// Deletes every key that begins with `node:`; `;` is the character after `:`.
const DROP_NODE_TIMERS: &str =
    "DELETE FROM timers WHERE execution = ?1 AND key >= 'node:' AND key < 'node;'";

const FIND_KEY: &str = "SELECT 1 FROM idempotency WHERE scope = ?1 AND expires > ?2";

const PUT_KEY: &str = "INSERT OR REPLACE INTO idempotency
    (scope, body_hash, execution, after_seq, expires) VALUES (?1, ?2, ?3, ?4, ?5)";

const PURGE_KEYS: &str = "DELETE FROM idempotency WHERE scope IN
    (SELECT scope FROM idempotency WHERE expires <= ?1 ORDER BY expires LIMIT ?2)";

const PUT_DEFINITION: &str = "INSERT INTO definitions (hash, body) VALUES (?1, ?2)
    ON CONFLICT (hash) DO UPDATE SET body = excluded.body";

const LAST_ROW: &str = "SELECT max(n) FROM executions";

impl<'c> Session<'c> {
    /// Prepares every statement, which also validates the tables.
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            connection,
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            create: connection.prepare(CREATE)?,
            advance: connection.prepare(ADVANCE)?,
            status: connection.prepare(STATUS)?,
            change_status: connection.prepare(CHANGE_STATUS)?,
            put_chunk: connection.prepare(PUT_CHUNK)?,
            store_snapshot: connection.prepare(STORE_SNAPSHOT)?,
            arm: connection.prepare(ARM)?,
            disarm: connection.prepare(DISARM)?,
            drop_node_timers: connection.prepare(DROP_NODE_TIMERS)?,
            find_key: connection.prepare(FIND_KEY)?,
            put_key: connection.prepare(PUT_KEY)?,
            purge_keys: connection.prepare(PURGE_KEYS)?,
            put_definition: connection.prepare(PUT_DEFINITION)?,
            known_tools: ToolWrites::prepare(connection)?,
            generations: Generations::prepare(connection)?,
            continuations: Continuations::prepare(connection)?,
            conversations: Conversations::prepare(connection)?,
            logs: LogWrites::prepare(connection)?,
            drops: Drops::prepare(connection)?,
            counts: Counts::prepare(connection)?,
            acted: Acted::prepare(connection)?,
            asks: AskWrites::prepare(connection)?,
        })
    }

    pub(super) fn begin(&mut self) -> Result<()> {
        self.counts.clear();
        self.begin.execute([]).map(drop)
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        self.counts.write()?;
        self.commit.execute([]).map(drop)
    }

    /// Rolls back an open transaction. If that fails, closing the connection does it.
    pub(super) fn roll_back(&mut self) -> Result<()> {
        self.generations.roll_back();
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.connection.execute_batch("ROLLBACK")
    }

    /// Appends to an execution in the open transaction. A refusal has changed nothing.
    pub(super) fn append(&mut self, prepared: &PreparedAppend) -> Result<Verdict> {
        let append = &prepared.append;
        let projection = &append.projection;
        if let Some(record) = &append.idempotency
            && self.is_taken(record, projection.updated_at)?
        {
            return Ok(Err(AppendError::KeyTaken));
        }
        let verdict = match append.revision {
            0 => self.create(prepared)?,
            _ => self.advance(prepared)?,
        };
        if verdict.is_err() {
            return Ok(verdict);
        }
        if let Some(state) = &append.snapshot {
            self.put_snapshot(append.row, append.revision, state)?;
        }
        self.acted.note(&prepared.users, append.row)?;
        self.change_timers(&append.timers)?;
        let of = Owner::Execution { row: append.row, header: &projection.header };
        self.asks.change(of, &prepared.asks)?;
        // most executions end in the append that creates them and have no timers
        let may_have_timers = append.revision > 0 || !append.timers.is_empty();
        if projection.status.is_terminal() && may_have_timers {
            self.drop_node_timers.execute([projection.header.id.as_str()])?;
        }
        if let Some(record) = &append.idempotency {
            let IdempotencyRecord { scope, body_hash, execution, after_seq, expires_at } = record;
            let after_seq = signed(*after_seq);
            let execution = execution.as_str();
            self.put_key.execute(params![scope, body_hash, execution, after_seq, expires_at.0])?;
        }
        Ok(Ok(()))
    }

    /// Stores a snapshot, unless the execution has newer facts.
    pub(super) fn store_snapshot(&mut self, snapshot: &Snapshot) -> Result<()> {
        self.put_snapshot(snapshot.row, snapshot.revision, &snapshot.state)
    }

    fn put_snapshot(&mut self, row: Row, revision: u64, state: &[u8]) -> Result<()> {
        self.store_snapshot.execute(params![row, signed(revision), state]).map(drop)
    }

    fn is_taken(&mut self, record: &IdempotencyRecord, now: Timestamp) -> Result<bool> {
        self.find_key.exists(params![record.scope, now.0])
    }

    fn create(&mut self, prepared: &PreparedAppend) -> Result<Verdict> {
        let projection = &prepared.append.projection;
        let header = &*projection.header;
        let row = prepared.append.row;
        let is_inline = prepared.fits_row(projection.status);
        let created = self.create.execute(params![
            row,
            header.id.as_str(),
            header.workflow_id,
            status_code(projection.status),
            header.created_at.0,
            projection.updated_at.0,
            projection.ended_at.map(|time| time.0),
            signed(projection.last_seq),
            header.definition_hash,
            header.user_id,
            header.conversation_id,
            header.parent.as_ref().map(|parent| parent.execution.as_str()),
            header.parent.as_ref().map(|parent| &*parent.path),
            header.trace.id,
            header.trace.parent_span.map(|id| id.to_string()),
            header.trace.root_id,
            prepared.suspension,
            is_inline.then_some(&prepared.events),
            prepared.trace.joined,
            prepared.trace.around,
            prepared.error,
            projection.replayed_from.as_ref().map(|from| from.execution.as_str()),
            projection.replayed_from.as_ref().map(|from| &*from.step_id),
        ])?;
        if created == 0 {
            return Ok(Err(AppendError::Exists));
        }
        self.counts.came(&header.workflow_id, projection.status);
        if !is_inline {
            self.put_chunk(prepared)?;
        }
        Ok(Ok(()))
    }

    fn advance(&mut self, prepared: &PreparedAppend) -> Result<Verdict> {
        let Append { row, revision, projection, .. } = &prepared.append;
        let values = params![
            row,
            signed(*revision),
            status_code(projection.status),
            projection.updated_at.0,
            signed(projection.last_seq),
            prepared.suspension,
        ];
        // running usually follows running; any other status is usually new
        let stays = projection.status == Status::Running && self.advance.execute(values)? == 1;
        if !stays && !self.change_status(prepared)? {
            return Ok(Err(AppendError::Stale));
        }
        self.put_chunk(prepared)?;
        Ok(Ok(()))
    }

    /// Updates an execution with a new status. Returns false if another revision is stored than the
    /// one before the append's.
    fn change_status(&mut self, prepared: &PreparedAppend) -> Result<bool> {
        let Append { row, revision, projection, .. } = &prepared.append;
        let followed = params![row, signed(*revision)];
        let before = self.status.query_row(followed, |row| status_of(row, 0)).optional()?;
        let Some(before) = before else { return Ok(false) };
        self.change_status.execute(params![
            row,
            signed(*revision),
            status_code(projection.status),
            projection.updated_at.0,
            projection.ended_at.map(|time| time.0),
            signed(projection.last_seq),
            prepared.suspension,
            prepared.error,
        ])?;
        let workflow = &projection.header.workflow_id;
        self.counts.went(workflow, before);
        self.counts.came(workflow, projection.status);
        Ok(true)
    }

    fn put_chunk(&mut self, prepared: &PreparedAppend) -> Result<()> {
        let Append { row, revision, .. } = &prepared.append;
        let values = params![row, prepared.last(), signed(*revision), prepared.events];
        self.put_chunk.execute(values).map(drop)
    }

    pub(super) fn change_timers(&mut self, changes: &[TimerChange]) -> Result<()> {
        for change in changes {
            match change {
                TimerChange::Arm(timer) => {
                    let key = timer_key_text(&timer.key);
                    self.arm.execute(params![timer.execution.as_str(), key, timer.due.0])?;
                }
                TimerChange::Disarm { execution, key } => {
                    self.disarm.execute(params![execution.as_str(), timer_key_text(key)])?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn put_definition(&mut self, hash: &str, body: &[u8]) -> Result<()> {
        self.put_definition.execute(params![hash, body]).map(drop)
    }

    /// Writes a generation with its continuation, and the messages that it adds to a conversation.
    pub(super) fn put_generation(&mut self, write: &PreparedGeneration) -> Result<()> {
        self.generations.put(write)?;
        self.change_continuation(write)?;
        match &write.messages {
            Some(messages) => self.conversations.write(messages),
            None => Ok(()),
        }
    }

    /// Deletes up to `limit` expired keys; returns their number.
    pub(super) fn purge_keys(&mut self, now: Timestamp, limit: usize) -> Result<usize> {
        self.begin()?;
        let purged = self.purge_keys.execute(params![now.0, limit_of(limit)])?;
        self.commit()?;
        Ok(purged)
    }

    /// Makes a test write that needs free space.
    pub(super) fn probe(&mut self) -> Result<()> {
        let padding = vec![0_u8; PROBE_BYTES];
        self.begin()?;
        let put = "INSERT OR REPLACE INTO probe (n, padding) VALUES (1, ?1)";
        self.connection.execute(put, [padding])?;
        self.commit()?;
        self.connection.execute("DELETE FROM probe", []).map(drop)
    }

    /// Returns the largest row number in use.
    pub(super) fn last_row(connection: &Connection) -> Result<Row> {
        let max: Option<Option<Row>> =
            connection.query_row(LAST_ROW, [], |row| row.get(0)).optional()?;
        Ok(max.flatten().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn changes_find_their_rows_by_an_index() {
        for sql in [
            ADVANCE,
            STATUS,
            CHANGE_STATUS,
            PUT_CHUNK,
            STORE_SNAPSHOT,
            ARM,
            DISARM,
            DROP_NODE_TIMERS,
            FIND_KEY,
            PURGE_KEYS,
            LAST_ROW,
        ] {
            assert_uses_indexes(sql);
        }
    }
}
