//! Checks before a store is opened: the lock, and an inspection of the file.
//!
//! A rejected file is left byte for byte as it was.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

use super::files::{beside, folder_of, log_bytes};
use super::session::Session;
use super::{restore, schema};

/// Maximum size of a file whose structure is fully checked at start, which takes milliseconds.
const QUICK_CHECK_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Maximum number of links from the name of a store to its file.
const LINKS_MAX: usize = 8;

const MAGIC: &[u8] = b"SQLite format 3\0";

/// Failure to open a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot open the store {path}: the directory {directory} does not exist")]
    NoDirectory { path: PathBuf, directory: PathBuf },
    #[error("the store {path} is in use by another process, which holds {lock}")]
    InUse { path: PathBuf, lock: PathBuf },
    #[error(
        "the store {path} is in use by another process, whose lock {lock} was removed; stop that \
         process first"
    )]
    InUseUnlocked { path: PathBuf, lock: PathBuf },
    #[error(
        "the store {path} has {names} names (hard links): two servers could use it under different \
         names and damage it; remove all but one"
    )]
    Linked { path: PathBuf, names: u64 },
    #[error(
        "{path} has a second name, {kept}: a restore was interrupted; run the same \
         `greenroom restore … --replace` again"
    )]
    Interrupted { path: PathBuf, kept: PathBuf },
    #[error("cannot write to the store {path}: {reason}")]
    NotWritable { path: PathBuf, reason: String },
    #[error("{path} is not a SQLite database; it was left as it is")]
    NotADatabase { path: PathBuf },
    #[error(
        "{path} is a database of another program (application id {application_id}); \
         it was left as it is"
    )]
    Foreign { path: PathBuf, application_id: i32 },
    #[error(
        "{path} was written by a newer greenroom (schema {found}, this one knows {known}); \
         it was left as it is"
    )]
    Newer { path: PathBuf, found: i32, known: i32 },
    #[error("the store {path} is damaged: {reason}; it was left as it is")]
    Damaged { path: PathBuf, reason: String },
    #[error("cannot open the store {path}: {reason}")]
    Failed { path: PathBuf, reason: String },
}

/// Resolves a link, because the lock and the write-ahead log are next to its target.
pub(super) fn resolved(path: &Path) -> Result<PathBuf, OpenError> {
    if !path.is_symlink() {
        return Ok(path.to_owned());
    }
    let refused = |error: std::io::Error| {
        let reason = format!("cannot follow the link: {error}");
        OpenError::Failed { path: path.into(), reason }
    };
    fs::canonicalize(path).map_err(refused)
}

/// The lock on a store, which excludes other processes until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _beside: File,
    /// The store itself; `None` while it has no file.
    file: Option<File>,
}

impl Lock {
    /// Locks the file of a store that has just been made.
    pub(super) fn extend(&mut self, path: &Path) -> Result<(), OpenError> {
        if self.file.is_none() {
            self.file = lock_file(path)?;
        }
        Ok(())
    }
}

/// Returns true if the store was locked before, and is not there now. Must be called before [`lock`],
/// which leaves its file.
pub(super) fn is_gone(path: &Path) -> bool {
    !path.exists() && beside(path, ".lock").exists()
}

/// Takes the lock.
///
/// The lock file stays after the release: if it were removed, two processes could lock two files. The
/// store itself is locked as well, in case the lock file of a running server is removed.
pub(super) fn lock(path: &Path) -> Result<Lock, OpenError> {
    let directory = folder_of(path);
    if !directory.is_dir() {
        return Err(OpenError::NoDirectory { path: path.into(), directory: directory.into() });
    }
    if path.is_dir() {
        let reason = "it is a directory".to_owned();
        return Err(OpenError::Failed { path: path.into(), reason });
    }
    let lock = beside(path, ".lock");
    let not_writable = |error: std::io::Error| OpenError::NotWritable {
        path: path.into(),
        reason: format!("{}: {error}", lock.display()),
    };
    let beside = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock)
        .map_err(not_writable)?;
    match beside.try_lock() {
        Ok(()) => Ok(Lock { _beside: beside, file: lock_file(path)? }),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.into(), lock }),
        Err(TryLockError::Error(error)) => Err(not_writable(error)),
    }
}

/// Locks the file of a store, if there is one. Only on Linux, where this lock is independent of those
/// of SQLite on the same file; elsewhere they would exclude each other.
///
/// The file must be opened before SQLite opens it, or stay open until SQLite has closed it: closing a
/// file releases all locks of SQLite that the process has on it.
fn lock_file(path: &Path) -> Result<Option<File>, OpenError> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    // one that cannot be read is refused by the inspection
    let Ok(file) = File::open(path) else { return Ok(None) };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(OpenError::InUseUnlocked { path: path.into(), lock: beside(path, ".lock") })
        }
        // file systems without locks have the lock file
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// A store as it is found, without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Size of the file.
    pub bytes: u64,
    /// Version of its tables; `None` if there is no store yet.
    pub version: Option<i32>,
    /// Version that this program gives it.
    pub newest: i32,
    /// True while a server has it open.
    pub is_in_use: bool,
    /// True if that server has another file open, which was removed, renamed or replaced.
    pub is_displaced: bool,
}

/// Looks at a store, also while a server uses it. Nothing in it is changed; its locks are held for a
/// moment, if they are free.
pub fn look(path: &Path) -> Result<Look, OpenError> {
    let is_displaced = is_displaced(path);
    // what is there instead is not the store
    let path = &if is_displaced { path.to_owned() } else { resolved(path)? };
    // before SQLite opens the file
    let is_in_use = is_in_use(path);
    let version = if is_displaced { None } else { inspect_as_found(path, is_in_use)? };
    let bytes = fs::metadata(path).map_or(0, |file| file.len());
    Ok(Look { bytes, version, newest: schema::VERSION, is_in_use, is_displaced })
}

/// Returns true if a server has the lock of a store, and another file open than the one that has the
/// name. Must be called before SQLite opens the file.
///
/// A server resolves links and has the lock beside the file that they lead to: where it has that of a
/// link, the link is in the place of its file.
pub(super) fn is_displaced(path: &Path) -> bool {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let target = fs::read_link(&path);
        match target {
            target if is_locked(&path) => return target.is_ok() || is_replaced(&path),
            Ok(target) => path = folder_of(&path).join(target),
            Err(_) => return false,
        }
    }
    false
}

/// Returns true if a locked name has another file than the one of the server, or none. Files that
/// replace that one, which the server has locked as well, are noticed on Linux alone. A server leaves
/// its index beside the file; a restore or a copy that begins has none.
fn is_replaced(path: &Path) -> bool {
    match lock_file(path) {
        Ok(Some(_)) => cfg!(target_os = "linux"),
        Ok(None) | Err(_) => !path.exists() && beside(path, "-shm").exists(),
    }
}

/// Returns true while a process has the lock beside the store.
fn is_locked(path: &Path) -> bool {
    let held = File::open(beside(path, ".lock")).map(|file| file.try_lock());
    matches!(held, Ok(Err(TryLockError::WouldBlock)))
}

/// Returns true while a server has the store open. Must be called before SQLite opens the file.
pub(super) fn is_in_use(path: &Path) -> bool {
    is_locked(path) || matches!(lock_file(path), Err(OpenError::InUseUnlocked { .. }))
}

/// Inspects a store beside the server that uses it, if one does; leaves no files.
pub(super) fn inspect_as_found(path: &Path, is_in_use: bool) -> Result<Option<i32>, OpenError> {
    if is_in_use { inspect(path) } else { inspect_unused(path) }
}

/// Inspects a store that no process uses, without the files that SQLite makes beside it to read it.
/// What a killed server has left in its log is read with them.
fn inspect_unused(path: &Path) -> Result<Option<i32>, OpenError> {
    if log_bytes(path) > 0 {
        return inspect(path);
    }
    let inspected = inspect_by(path, schema::open_unused);
    // what a server that starts meanwhile writes was not seen
    if is_locked(path) || log_bytes(path) > 0 { inspect(path) } else { inspected }
}

/// Function that opens a database to read it.
pub(super) type OpenReader = fn(&Path) -> rusqlite::Result<Connection>;

/// Inspects the file without changing it, and returns the version of its tables, if it has some. Must
/// be called under the lock and before SQLite opens the file: closing a file releases all locks that
/// the process has on it.
pub(super) fn inspect(path: &Path) -> Result<Option<i32>, OpenError> {
    inspect_by(path, schema::open_reader)
}

fn inspect_by(path: &Path, open: OpenReader) -> Result<Option<i32>, OpenError> {
    match fs::metadata(path) {
        Ok(file) if file.nlink() > 1 => match restore::interrupted(path) {
            Some(kept) => Err(OpenError::Interrupted { path: path.into(), kept }),
            None => Err(OpenError::Linked { path: path.into(), names: file.nlink() }),
        },
        _ => inspect_content_by(path, open),
    }
}

/// Inspects a file that is only read: it may have several names.
pub(super) fn inspect_content(path: &Path) -> Result<Option<i32>, OpenError> {
    inspect_content_by(path, schema::open_reader)
}

fn inspect_content_by(path: &Path, open: OpenReader) -> Result<Option<i32>, OpenError> {
    let damaged = |reason: &str| OpenError::Damaged { path: path.into(), reason: reason.into() };
    let log_bytes = log_bytes(path);
    let bytes = match fs::metadata(path) {
        Ok(file) => file.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
        Err(error) => {
            return Err(OpenError::Failed { path: path.into(), reason: error.to_string() });
        }
    };
    if bytes == 0 {
        // SQLite would delete the log of an empty database
        return if log_bytes == 0 {
            Ok(None)
        } else {
            Err(damaged("there is a write-ahead log (-wal) and no database"))
        };
    }
    let header = read_header(path)?;
    let pages = u64::from(u32::from_be_bytes([header[28], header[29], header[30], header[31]]));
    let page_size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    if log_bytes == 0 && bytes < pages.saturating_mul(page_size) {
        return Err(damaged("it is shorter than its header says"));
    }
    let connection = open(path).map_err(|error| refusal(path, &error))?;
    inspect_tables(path, &connection, bytes)
}

fn read_header(path: &Path) -> Result<[u8; 100], OpenError> {
    let mut header = [0; 100];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut header));
    match read {
        Ok(()) if header.starts_with(MAGIC) => Ok(header),
        Ok(()) => Err(OpenError::NotADatabase { path: path.into() }),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Err(OpenError::NotADatabase { path: path.into() })
        }
        Err(error) => Err(OpenError::Failed { path: path.into(), reason: error.to_string() }),
    }
}

fn inspect_tables(
    path: &Path,
    connection: &Connection,
    bytes: u64,
) -> Result<Option<i32>, OpenError> {
    let asked = |error: rusqlite::Error| refusal(path, &error);
    let count = "SELECT count(*) FROM sqlite_schema";
    let tables: i64 = connection.query_row(count, [], |row| row.get(0)).map_err(asked)?;
    let application_id = schema::application_id(connection).map_err(asked)?;
    let found = schema::user_version(connection).map_err(asked)?;
    if application_id != schema::APPLICATION_ID {
        // an interrupted first start leaves a database without tables and marks
        return if tables == 0 && application_id == 0 && found == 0 {
            Ok(None)
        } else {
            Err(OpenError::Foreign { path: path.into(), application_id })
        };
    }
    if found > schema::VERSION {
        return Err(OpenError::Newer { path: path.into(), found, known: schema::VERSION });
    }
    if found == schema::VERSION {
        Session::prepare(connection).map_err(asked)?;
    }
    if bytes <= QUICK_CHECK_BYTES_MAX {
        let check = "PRAGMA quick_check(1)";
        let verdict: String = connection.query_row(check, [], |row| row.get(0)).map_err(asked)?;
        if verdict != "ok" {
            return Err(OpenError::Damaged { path: path.into(), reason: verdict });
        }
    }
    Ok(Some(found))
}

/// Converts an error of SQLite.
pub(super) fn refusal(path: &Path, error: &rusqlite::Error) -> OpenError {
    let reason = error.to_string();
    let path = path.into();
    if matches!(error, rusqlite::Error::SqlInputError { .. }) {
        // the tables do not match the version of the file
        return OpenError::Damaged { path, reason };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
            OpenError::Damaged { path, reason }
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::DiskFull) => {
            OpenError::NotWritable { path, reason }
        }
        _ => OpenError::Failed { path, reason },
    }
}
