//! A copy of a store, also while a server writes to it.
//!
//! SQLite itself makes the copy: `VACUUM INTO` on a connection of its own reads the store as it is
//! at one moment, and holds no writer up. So all that was acknowledged before is in the copy, and
//! nothing by halves. The copy is one file without a log, without free pages, and gives pages back
//! that become free in it. It gets its name when it is checked and on the disk, not before.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};
use tempfile::TempPath;

use super::codec::unsigned_of;
use super::guard::{self, OpenError};
use super::schema;

/// What a copy holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    pub bytes: u64,
    pub executions: u64,
    pub generations: u64,
    pub conversations: u64,
}

/// Why there is no copy. Nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("there is no store at {path}")]
    NoStore { path: PathBuf },
    #[error("{path} exists; a backup overwrites nothing, name another file")]
    Exists { path: PathBuf },
    #[error("{path} names no file")]
    NoName { path: PathBuf },
    #[error("cannot write {path}: the directory {directory} does not exist")]
    NoDirectory { path: PathBuf, directory: PathBuf },
    #[error("cannot write {path}: {reason}")]
    NotWritten { path: PathBuf, reason: String },
    #[error("cannot write {path}: there is no room left")]
    Full { path: PathBuf },
    #[error("the copy of {path} is not sound: {reason}; nothing was kept of it")]
    Unsound { path: PathBuf, reason: String },
    #[error(transparent)]
    Unusable(#[from] OpenError),
}

/// Copies the store to a file that does not exist yet. To be called in a process that does not
/// have the store open.
pub fn back_up(store: &Path, target: &Path) -> Result<Backup, BackupError> {
    let folder = check_names(store, target)?;
    guard::inspect(store)?;
    let not_written = |error: io::Error| not_written(target, &error);
    let partial = make_empty(store, folder).map_err(not_written)?;
    let text = partial.to_str().ok_or_else(|| {
        not_written(io::Error::new(io::ErrorKind::InvalidInput, "its name is no UTF-8"))
    })?;

    let source = schema::open_reader(store).map_err(|error| guard::refusal(store, &error))?;
    copy(&source, text).map_err(|error| refusal(store, target, &error))?;
    drop(source);
    let unsound = |reason| BackupError::Unsound { path: store.into(), reason };
    let examined = examine(&partial).map_err(|error| unsound(error.to_string()))?;
    let backup = examined.map_err(unsound)?;

    File::open(&partial).and_then(|file| file.sync_all()).map_err(not_written)?;
    partial.persist_noclobber(target).map_err(|refused| match refused.error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists { path: target.into() },
        _ => not_written(refused.error),
    })?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(not_written)?;
    Ok(backup)
}

/// Gives the folder of the target.
fn check_names<'t>(store: &Path, target: &'t Path) -> Result<&'t Path, BackupError> {
    if !store.is_file() {
        return Err(BackupError::NoStore { path: store.into() });
    }
    if target.file_name().is_none() {
        return Err(BackupError::NoName { path: target.into() });
    }
    let folder = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        let (path, directory) = (target.into(), folder.into());
        return Err(BackupError::NoDirectory { path, directory });
    }
    // A link that leads nowhere is in the way, too.
    if target.symlink_metadata().is_ok() {
        return Err(BackupError::Exists { path: target.into() });
    }
    Ok(folder)
}

/// Makes the file that the copy goes to, which nobody may read who may not read the store. It goes
/// with the value, unless it gets its name.
fn make_empty(store: &Path, folder: &Path) -> io::Result<TempPath> {
    let permissions = fs::metadata(store)?.permissions();
    let file = tempfile::Builder::new().prefix(".greenroom-backup-").tempfile_in(folder)?;
    file.as_file().set_permissions(permissions)?;
    // Closed: SQLite's locks on a file do not outlive the first of its handles to be closed.
    Ok(file.into_temp_path())
}

fn copy(source: &Connection, target: &str) -> rusqlite::Result<()> {
    schema::give_pages_back(source)?;
    source.execute("VACUUM INTO ?1", [target]).map(drop)
}

/// What is in the copy, or what is wrong with it.
fn examine(copy: &Path) -> rusqlite::Result<Result<Backup, String>> {
    let connection = schema::open_reader(copy)?;
    let check = "PRAGMA integrity_check(1)";
    let verdict: String = connection.query_row(check, [], |row| row.get(0))?;
    if verdict != "ok" {
        return Ok(Err(verdict));
    }
    let count = |table: &str| -> rusqlite::Result<u64> {
        let is_there = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        let is_there: i64 = connection.query_row(is_there, [table], |row| row.get(0))?;
        if is_there == 0 {
            // A store of an older version, which has not been started since.
            return Ok(0);
        }
        let count = format!("SELECT count(*) FROM {table}");
        connection.query_row(&count, [], |row| unsigned_of(row, 0))
    };
    Ok(Ok(Backup {
        bytes: fs::metadata(copy).map_or(0, |file| file.len()),
        executions: count("executions")?,
        generations: count("generations")?,
        conversations: count("conversations")?,
    }))
}

fn not_written(target: &Path, error: &io::Error) -> BackupError {
    let path = target.into();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BackupError::Full { path },
        _ => BackupError::NotWritten { path, reason: error.to_string() },
    }
}

/// What SQLite's error says: of the copy, or of the store.
fn refusal(store: &Path, target: &Path, error: &rusqlite::Error) -> BackupError {
    let path = target.into();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => BackupError::Full { path },
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            BackupError::NotWritten { path, reason: error.to_string() }
        }
        _ => BackupError::Unusable(guard::refusal(store, error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::tests::{assert_has, database, filled, open};
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn a_copy_has_all_that_was_acknowledged_and_is_one_file() {
        let (directory, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = database(&directory);
        let drafts = filled(&path).await;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let target = database(&copies);
        let backup = back_up(&path, &target).unwrap();
        let bytes = fs::metadata(&target).unwrap().len();
        let expected = Backup { bytes, executions: 3, generations: 0, conversations: 0 };
        assert_eq!(backup, expected);
        assert_eq!(names(copies.path()), ["greenroom.db"], "nothing is left beside it");
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "who may not read the store may not read its copy");
        let reader = schema::open_reader(&target).unwrap();
        let vacuum: i64 = reader.pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap();
        assert_eq!(vacuum, 2, "incremental");
        drop(reader);
        assert_has(&*open(&target), &drafts).await;
    }

    #[tokio::test]
    async fn what_is_wrong_is_named_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory);
        filled(&path).await;
        let folder = directory.path();
        fs::write(folder.join("other.db"), "a text").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.join("link.db")).unwrap();
        let before = names(folder);
        for (store, target, says) in [
            ("none.db", "copy.db", "there is no store at"),
            ("greenroom.db", "other.db", "exists; a backup overwrites nothing"),
            ("greenroom.db", "greenroom.db", "exists; a backup overwrites nothing"),
            ("greenroom.db", "link.db", "exists; a backup overwrites nothing"),
            ("greenroom.db", "no/copy.db", "no does not exist"),
            ("greenroom.db", "..", "names no file"),
            ("other.db", "copy.db", "is not a SQLite database"),
        ] {
            let refusal = back_up(&folder.join(store), &folder.join(target)).unwrap_err();
            assert!(refusal.to_string().contains(says), "{store} to {target}: {refusal}");
            assert_eq!(names(folder), before, "{store} to {target}");
        }
        assert_eq!(fs::read_to_string(folder.join("other.db")).unwrap(), "a text");
    }
}
