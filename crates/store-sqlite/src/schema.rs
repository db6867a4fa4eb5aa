//! Tables, indexes and settings of the database, and migrations of older files.
//!
//! Reasons for the layout:
//!
//! - An execution that ends without a wait is one INSERT: its facts are in `events` of its row.
//!   Later facts go to `chunks`, one row per append. A large first chunk whose row will change
//!   goes there too, because an UPDATE rewrites the whole row.
//! - Chunks are found by the number of their last fact. A fact without an event has the number of
//!   the next event, so two chunks may end with one number: `part` distinguishes them. It is the
//!   revision of the append; of an older chunk, its number among those that end with one number.
//! - `revision` numbers the appends of an execution. Like the columns of traces it follows large
//!   ones: the row is written anew whenever it is read, and 0 is in the header of the row.
//! - `by_status` and `by_workflow` have every row once, grouped by status, newest last. A list of
//!   one status is one range; a list of all merges one range per status. So no list reads rows
//!   that it does not return, however rare its status. An index on `created` alone would cost a
//!   new row the same without this guarantee. Completed has the highest code, so that most new
//!   rows go to the right edge of `by_status`.
//! - `by_user` is partial, since most executions of machines have no user. Other filters are
//!   checked on the rows of that user.
//! - `by_end` serves lists by time of end: one range per status, merged. It has only ended
//!   executions; other filters are checked on its rows, a limited number at once. `replays` has
//!   the few executions that replay another one.
//! - `running` serves only the restart, which pages by row. A row that ends in its first commit
//!   never enters it.
//! - Snapshots are in a separate table, so that neither lists nor updates carry them.
//! - A generation that ends in its first record is one INSERT: its turns are in `steps` of its
//!   row. Later or rewritten turns go to the table `steps`.
//! - Generations of an agent are numbered 1, 2, 3, … without a gap, so a page of the history and
//!   its length are ranges of numbers. Deletions leave holes; `forgotten` counts them by blocks of
//!   numbers, and is empty until a user is forgotten or retention deletes something.
//! - Pages and counts of one user's generations use `generations_by_user`, which has their
//!   numbers; a separate count per user would be another row to write for each generation.
//! - A memory belongs to one agent and one user. Messages are numbered within it: the number of
//!   the memory is the upper half of theirs. So the messages of a conversation are in order, and
//!   those of one user are a range of `messages_text`.
//! - `messages_text` indexes trigrams, which find any part of a text, also in languages without
//!   spaces. It stores no copy of the text.
//! - A trace is named after the execution or generation that started it, and found by that id.
//!   Rows that joined it otherwise are in `executions_by_trace` and `generations_by_trace`, which
//!   most rows never enter. Those columns follow large ones: SQLite reads null, 0 and 1 from the
//!   header of a row, without the columns before them.
//! - `around` has the rest of a trace. Rows of older files have its default, `{}`: their spans are
//!   named without an anchor, as their children recorded them. The default is not written into
//!   those rows.
//! - `generations_by_root` has what a user started, for lists of a user's traces: the other
//!   indexes of generations are grouped by agent.
//! - `execution_counts` is updated once per commit for all executions whose status changes: one
//!   more page in the log, whatever the number of executions.
//! - `asks` has what waits for a person: a step of an execution, or a call of a generation, whose id
//!   is in `path`. Lists of open asks have an index each for all, for a workflow, for an agent and for
//!   a user, which closed asks leave; those of closed ones follow the time of closing. An ask without
//!   a deadline has the last time there is, so that it comes last. Reminders follow `asks_due`.
//! - `asks_claimed` and `asks_answered` serve only the removal of a user. `answered_by` repeats a name
//!   in `answer`.
//! - `continuations` has what a generation needs that is interrupted or waits for people. Most
//!   generations never have one, and their writes do not touch it.
//! - `has_asks` is 0 for executions of versions without asks, until theirs are filled in; those that
//!   have not ended are in an index, which every other one never enters.
//! - `error` is the excerpt that lists show; the whole error is in the facts.
//! - `logs` are scanned, within a limit, unless a filter has an index. Long columns come last.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Result};

use super::Durability;

/// Application id of greenroom's databases: `grnr`.
pub(super) const APPLICATION_ID: i32 = 0x6772_6e72;

/// Schema version that this build writes and reads; `user_version` of the file.
pub(super) const VERSION: i32 = 8;

/// Migrations; number `i` leads from version `i` to `i + 1`.
pub(super) const MIGRATIONS: [&str; VERSION as usize] = [V1, V2, V3, V4, V5, V6, V7, V8];

const V1: &str = "
CREATE TABLE executions (
    n             INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    workflow      TEXT    NOT NULL,
    status        INTEGER NOT NULL,
    created       INTEGER NOT NULL,
    updated       INTEGER NOT NULL,
    ended         INTEGER,
    last_seq      INTEGER NOT NULL,
    definition    TEXT    NOT NULL,
    user_id       TEXT,
    conversation  TEXT,
    parent        TEXT,
    parent_path   TEXT,
    trace         TEXT    NOT NULL,
    parent_span   TEXT,
    root_workflow TEXT    NOT NULL,
    suspension    BLOB,
    events        BLOB
) STRICT;
CREATE INDEX by_status ON executions (status, created);
CREATE INDEX by_workflow ON executions (workflow, status, created);
CREATE INDEX by_user ON executions (user_id, created) WHERE user_id IS NOT NULL;
CREATE INDEX running ON executions (status) WHERE status = 0;

CREATE TABLE chunks (
    execution INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    part      INTEGER NOT NULL,
    events    BLOB    NOT NULL,
    PRIMARY KEY (execution, last, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE snapshots (
    execution INTEGER PRIMARY KEY,
    last_seq  INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    part      INTEGER NOT NULL,
    state     BLOB    NOT NULL
) STRICT;

CREATE TABLE timers (
    execution TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    due       INTEGER NOT NULL,
    PRIMARY KEY (execution, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_due ON timers (due);

CREATE TABLE idempotency (
    scope     TEXT    NOT NULL PRIMARY KEY,
    body_hash TEXT    NOT NULL,
    execution TEXT    NOT NULL,
    after_seq INTEGER NOT NULL,
    expires   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expires ON idempotency (expires);

CREATE TABLE definitions (
    hash TEXT NOT NULL PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE generations (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    agent        TEXT    NOT NULL,
    status       INTEGER NOT NULL,
    started      INTEGER NOT NULL,
    ended        INTEGER,
    input        BLOB    NOT NULL,
    output       BLOB,
    usage        BLOB,
    error        TEXT,
    user_id      TEXT,
    conversation TEXT
) STRICT;
CREATE INDEX by_agent ON generations (agent, started);
CREATE INDEX working ON generations (status) WHERE status = 0;

CREATE TABLE probe (
    n       INTEGER PRIMARY KEY,
    padding BLOB NOT NULL
) STRICT;
";

const V2: &str = "
DROP INDEX by_agent;
DROP INDEX working;
ALTER TABLE generations RENAME TO generations_1;
CREATE TABLE generations (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    agent        TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    status       INTEGER NOT NULL,
    started      INTEGER NOT NULL,
    ended        INTEGER,
    input        BLOB    NOT NULL,
    output       BLOB,
    usage        BLOB,
    error        TEXT,
    user_id      TEXT,
    conversation TEXT,
    execution    TEXT,
    path         TEXT,
    steps        BLOB
) STRICT;
INSERT INTO generations (n, id, agent, number, status, started, ended, input, output, usage,
    error, user_id, conversation)
    SELECT n, id, agent, row_number() OVER (PARTITION BY agent ORDER BY n), status, started, ended,
        input, output, usage, error, user_id, conversation FROM generations_1 ORDER BY n;
DROP TABLE generations_1;
CREATE UNIQUE INDEX generations_by_agent ON generations (agent, number);
CREATE INDEX generations_by_user ON generations (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX working ON generations (status) WHERE status = 0;

CREATE TABLE steps (
    generation INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    body       BLOB    NOT NULL,
    PRIMARY KEY (generation, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE forgotten (
    agent TEXT    NOT NULL,
    block INTEGER NOT NULL,
    count INTEGER NOT NULL,
    last  INTEGER NOT NULL,
    PRIMARY KEY (agent, block)
) STRICT, WITHOUT ROWID;

CREATE TABLE memories (
    n     INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    user  TEXT NOT NULL,
    UNIQUE (user, agent)
) STRICT;

CREATE TABLE conversations (
    n              INTEGER PRIMARY KEY,
    memory         INTEGER NOT NULL,
    id             TEXT    NOT NULL,
    agent          TEXT    NOT NULL,
    user           TEXT    NOT NULL,
    title          TEXT,
    metadata       BLOB    NOT NULL,
    working_memory TEXT,
    created        INTEGER NOT NULL,
    updated        INTEGER NOT NULL,
    UNIQUE (memory, id)
) STRICT;
CREATE INDEX conversations_by_agent ON conversations (agent, updated);
CREATE INDEX conversations_by_user ON conversations (user, updated);
CREATE INDEX conversations_by_change ON conversations (updated);

CREATE TABLE messages (
    n            INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    id           TEXT    NOT NULL,
    role         INTEGER NOT NULL,
    parts        BLOB    NOT NULL,
    created      INTEGER NOT NULL,
    generation   TEXT,
    UNIQUE (conversation, id)
) STRICT;
CREATE INDEX messages_by_conversation ON messages (conversation);

CREATE VIRTUAL TABLE messages_text USING fts5(
    text, content='', contentless_delete=1, tokenize='trigram case_sensitive 1'
);
";

const V3: &str = "
DROP INDEX generations_by_user;
CREATE INDEX generations_by_user ON generations (user_id, agent, number)
    WHERE user_id IS NOT NULL;
";

const V4: &str = "
ALTER TABLE executions ADD COLUMN joined INTEGER;
ALTER TABLE executions ADD COLUMN around BLOB DEFAULT x'7b7d';
UPDATE executions SET joined = iif(parent_span IS NULL, 0, 1)
    WHERE parent_span IS NOT NULL OR id <> substr(trace, 1, 8) || '-' || substr(trace, 9, 4) || '-'
        || substr(trace, 13, 4) || '-' || substr(trace, 17, 4) || '-' || substr(trace, 21);
CREATE INDEX executions_by_trace ON executions (trace) WHERE joined IS NOT NULL;

ALTER TABLE generations ADD COLUMN trace TEXT;
ALTER TABLE generations ADD COLUMN joined INTEGER;
ALTER TABLE generations ADD COLUMN around BLOB DEFAULT x'7b7d';
UPDATE generations SET joined = 1 WHERE execution IS NOT NULL;
CREATE INDEX generations_by_trace ON generations (trace) WHERE trace IS NOT NULL;
CREATE INDEX generations_by_root ON generations (user_id)
    WHERE user_id IS NOT NULL AND joined IS NOT 1;

CREATE TABLE logs (
    n            INTEGER PRIMARY KEY,
    at           INTEGER NOT NULL,
    level        INTEGER NOT NULL,
    target       TEXT    NOT NULL,
    trace        TEXT,
    span         TEXT,
    execution    TEXT,
    parent       TEXT,
    workflow     TEXT,
    generation   TEXT,
    agent        TEXT,
    conversation TEXT,
    user_id      TEXT,
    request      TEXT,
    attributes   BLOB,
    message      TEXT    NOT NULL
) STRICT;
CREATE INDEX logs_by_trace ON logs (trace) WHERE trace IS NOT NULL;
CREATE INDEX logs_by_execution ON logs (execution) WHERE execution IS NOT NULL;
CREATE INDEX logs_by_parent ON logs (parent) WHERE parent IS NOT NULL;
CREATE INDEX logs_by_user ON logs (user_id) WHERE user_id IS NOT NULL;
";

/// Adds the users who suspended, resumed, cancelled or replayed executions; older facts name none.
/// Errors of older executions are taken from their last fact, in the newest chunk or in the row.
const V5: &str = "
ALTER TABLE executions ADD COLUMN error BLOB;
UPDATE executions SET error = (
    SELECT CAST(json_object('message', substr(json_extract(fact, '$.error'), 1, 500),
        'step_id', json_extract(fact, '$.step_id')) AS BLOB)
    FROM (SELECT json_extract(iif(json_valid(facts), facts, '[]'), '$[#-1].f.WorkflowFailed') AS fact
        FROM (SELECT CAST(ifnull((SELECT c.events FROM chunks c WHERE c.execution = executions.n
            ORDER BY c.last DESC, c.part DESC LIMIT 1), executions.events) AS TEXT) AS facts))
    WHERE json_extract(fact, '$.error') IS NOT NULL)
    WHERE status = 2;

CREATE TABLE execution_counts (
    workflow TEXT    NOT NULL,
    status   INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (workflow, status)
) STRICT, WITHOUT ROWID;
INSERT INTO execution_counts (workflow, status, count)
    SELECT workflow, status, count(*) FROM executions INDEXED BY by_workflow
    GROUP BY workflow, status;

CREATE TABLE acted (
    user_id   TEXT    NOT NULL,
    execution INTEGER NOT NULL,
    PRIMARY KEY (user_id, execution)
) STRICT, WITHOUT ROWID;
CREATE INDEX acted_on ON acted (execution);
";

/// Older rows do not name the execution that they replay; their facts and states do.
const V6: &str = "
CREATE INDEX by_end ON executions (status, ended) WHERE ended IS NOT NULL;
ALTER TABLE executions ADD COLUMN replayed_from TEXT;
ALTER TABLE executions ADD COLUMN replayed_step TEXT;
CREATE INDEX replays ON executions (replayed_from, created) WHERE replayed_from IS NOT NULL;
";

/// Numbers the appends of older executions: by their chunks, so that no number is below the parts of
/// those.
const V7: &str = "
ALTER TABLE executions ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
UPDATE executions SET revision = counted.chunks
    FROM (SELECT execution, count(*) AS chunks FROM chunks GROUP BY execution) AS counted
    WHERE counted.execution = executions.n;
";

/// Executions of older versions have no asks here, and generations no continuations.
const V8: &str = "
ALTER TABLE executions ADD COLUMN has_asks INTEGER NOT NULL DEFAULT 0;
CREATE INDEX executions_without_asks ON executions (n) WHERE has_asks = 0 AND ended IS NULL;
CREATE TABLE asks (
    n             INTEGER PRIMARY KEY,
    id            TEXT    NOT NULL UNIQUE,
    execution     INTEGER,
    generation    INTEGER,
    kind          INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    opened        INTEGER NOT NULL,
    due           INTEGER NOT NULL,
    closed        INTEGER,
    workflow      TEXT,
    agent         TEXT,
    path          TEXT    NOT NULL,
    tool          TEXT,
    user_id       TEXT,
    reason        TEXT    NOT NULL,
    revision      INTEGER NOT NULL DEFAULT 0,
    rules         TEXT,
    claimed_by    TEXT,
    claimed_until INTEGER,
    next_due      INTEGER,
    details       TEXT,
    answer        TEXT,
    answered_by   TEXT
) STRICT;
CREATE INDEX asks_open ON asks (due, opened) WHERE state = 0;
CREATE INDEX asks_open_by_workflow ON asks (workflow, due, opened)
    WHERE state = 0 AND workflow IS NOT NULL;
CREATE INDEX asks_open_by_agent ON asks (agent, due, opened)
    WHERE state = 0 AND agent IS NOT NULL;
CREATE INDEX asks_open_by_user ON asks (user_id, due, opened)
    WHERE state = 0 AND user_id IS NOT NULL;
CREATE INDEX asks_due ON asks (next_due) WHERE state = 0 AND next_due IS NOT NULL;
CREATE INDEX asks_closed ON asks (closed) WHERE closed IS NOT NULL;
CREATE INDEX asks_claimed ON asks (claimed_by) WHERE claimed_by IS NOT NULL;
CREATE INDEX asks_answered ON asks (answered_by) WHERE answered_by IS NOT NULL;
CREATE INDEX asks_of ON asks (execution) WHERE execution IS NOT NULL;
CREATE INDEX asks_of_generation ON asks (generation) WHERE generation IS NOT NULL;

CREATE TABLE continuations (
    generation INTEGER PRIMARY KEY,
    revision   INTEGER NOT NULL,
    body       TEXT    NOT NULL
) STRICT;
CREATE INDEX suspended ON generations (conversation) WHERE status = 4;
";

/// Size of the write-ahead log, in pages, from which a commit copies it into the database.
const CHECKPOINT_PAGES: i32 = 4000;

/// Maximum wait of the writer for a reader's lock during a checkpoint, and of readers for the
/// recovery of the log.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of prepared statements that a connection caches.
const STATEMENTS_CACHED: usize = 64;

/// Opens the connection of the writer; creates the file if there is none.
pub(super) fn open_writer(path: &Path, durability: Durability) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // both take effect only in a new file; an older one keeps its settings
    connection.pragma_update(None, "page_size", 4096)?;
    give_pages_back(&connection)?;
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        let cannot_open = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
        let reason = "no write-ahead log is possible on this file system".to_owned();
        return Err(rusqlite::Error::SqliteFailure(cannot_open, Some(reason)));
    }
    let synchronous = match durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_PAGES, |_| Ok(()))?;
    Ok(connection)
}

/// Enables incremental vacuum for a file that this connection creates or rewrites. Setting it
/// again would be a write.
pub(super) fn give_pages_back(connection: &Connection) -> Result<()> {
    let mode: i64 = connection.pragma_query_value(None, "auto_vacuum", |row| row.get(0))?;
    if mode == 0 { connection.pragma_update(None, "auto_vacuum", "INCREMENTAL") } else { Ok(()) }
}

/// Opens a read-only connection.
pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    Ok(connection)
}

/// Migrates the tables to [`VERSION`], in one transaction.
pub(super) fn migrate(connection: &mut Connection) -> Result<()> {
    let found = user_version(connection)?;
    let steps = MIGRATIONS.get(usize::try_from(found).unwrap_or(0)..).unwrap_or_default();
    if steps.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction()?;
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

pub(super) fn user_version(connection: &Connection) -> Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

pub(super) fn application_id(connection: &Connection) -> Result<i32> {
    connection.pragma_query_value(None, "application_id", |row| row.get(0))
}
