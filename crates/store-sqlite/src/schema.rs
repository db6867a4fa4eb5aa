//! Settings of the database, and the layout of its tables and indexes, which [`migrations`] create.
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
//!   a user, which closed asks leave for others, by the time of closing. An ask without a deadline has
//!   the last time there is, so that it comes last. Reminders follow `asks_due`.
//! - `asks_claimed` and `asks_answered` serve only the removal of a user. `answered_by` repeats a name
//!   in `answer`.
//! - `continuations` has what a generation needs that is interrupted or waits for people. Most
//!   generations never have one, and their writes do not touch it.
//! - `has_asks` is 0 for executions of versions without asks, until theirs are filled in; those that
//!   have not ended are in an index, which every other one never enters.
//! - `error` is the excerpt that lists show; the whole error is in the facts.
//! - `logs` are scanned, within a limit, unless a filter has an index. Long columns come last.

mod migrations;

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Result};

pub(super) use self::migrations::{MIGRATIONS, VERSION};
use super::Durability;
use super::files::log_bytes;

/// Application id of greenroom's databases: `grnr`.
pub(super) const APPLICATION_ID: i32 = 0x6772_6e72;

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
    prepare(&connection)?;
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
    prepare(&connection)?;
    Ok(connection)
}

/// Opens a database to read it, whether a server uses it or not. It leaves no log and no index that it
/// has made: SQLite removes them with the last connection, but only with one that may write. What a
/// killed server has left in a log stays there.
pub(super) fn open_visitor(path: &Path) -> Result<Connection> {
    if log_bytes(path) > 0 {
        return open_reader(path);
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

/// Opens a database that no process writes to, with an empty write-ahead log. Other read-only
/// connections make a log and its index, and leave them.
pub(super) fn open_unused(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(immutable(path), flags)?;
    prepare(&connection)?;
    Ok(connection)
}

/// Returns the address of a database that does not change.
fn immutable(path: &Path) -> String {
    let mut address = "file:".to_owned();
    // what follows two slashes would be a host
    let parts = path.components().map(|part| part.as_os_str());
    for byte in parts.collect::<PathBuf>().as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address + "?immutable=1"
}

/// Makes the settings that the connections of the store have.
fn prepare(connection: &Connection) -> Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // Without it, a statement whose plan may depend on a value is compiled again for each value,
    // which takes several times as long as finding a row. `LIMIT ?1` is enough for that.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
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
