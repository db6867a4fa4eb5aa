//! A copy of a store, also while a server writes to it.
//!
//! SQLite makes the copy: `VACUUM INTO` on a separate connection reads one consistent state of the
//! store and blocks no writer. So the copy has everything that was acknowledged before, and only
//! whole transactions. It is one file without a log and without free pages, with incremental
//! vacuum. It gets its name once it is checked and synced to the disk.

use std::fs::{self, File, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};
use tempfile::TempPath;

use super::codec::unsigned_of;
use super::files::{beside, folder_of, sync};
use super::guard::{self, OpenError, OpenReader};
use super::schema;

/// Begin of the name of a copy that is being made.
const PARTIAL: &str = ".greenroom-backup-";

/// Content of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backup {
    pub bytes: u64,
    pub executions: u64,
    pub generations: u64,
    pub conversations: u64,
}

/// Failure of a backup, which leaves no file behind.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("there is no store at {path}")]
    NoStore { path: PathBuf },
    #[error(
        "{path} was removed, renamed or replaced while a server has it open: what is there now is not \
         its store; docs/troubleshooting.md says how to rescue it before that server is stopped"
    )]
    Displaced { path: PathBuf },
    #[error("{path} exists; a backup does not overwrite files, name another one")]
    Exists { path: PathBuf },
    #[error("{path} is not the path of a file")]
    NoName { path: PathBuf },
    #[error("cannot write {path}: the directory {directory} does not exist")]
    NoDirectory { path: PathBuf, directory: PathBuf },
    #[error("cannot write {path}: {reason}")]
    NotWritten { path: PathBuf, reason: String },
    #[error("cannot write {path}: the disk is full")]
    Full { path: PathBuf },
    #[error("the copy of {path} is damaged and was deleted: {reason}")]
    Unsound { path: PathBuf, reason: String },
    #[error(transparent)]
    Unusable(#[from] OpenError),
}

/// Copies the store to a file that does not exist yet. Must be called in a process that does not
/// have the store open.
pub fn back_up(store: &Path, target: &Path) -> Result<Backup, BackupError> {
    let folder = check_names(store, target)?;
    guard::inspect_as_found(store, guard::is_in_use(store))?;
    let permissions =
        fs::metadata(store).map_err(|error| not_written(target, &error))?.permissions();
    let (partial, backup) = copied((store, schema::open_visitor), target, permissions)?;
    partial.persist_noclobber(target).map_err(|refused| match refused.error.kind() {
        io::ErrorKind::AlreadyExists => BackupError::Exists { path: target.into() },
        _ => not_written(target, &refused.error),
    })?;
    sync(folder).map_err(|error| not_written(target, &error))?;
    Ok(backup)
}

/// Makes a checked copy of an inspected store in the folder of its future name, synced to the disk.
pub(super) fn copied(
    (store, open): (&Path, OpenReader),
    target: &Path,
    permissions: Permissions,
) -> Result<(TempPath, Backup), BackupError> {
    let not_written = |error: io::Error| not_written(target, &error);
    let _claim = claim(folder_of(target));
    let partial = make_empty(folder_of(target), permissions).map_err(not_written)?;
    let text = partial.to_str().ok_or_else(|| {
        not_written(io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8"))
    })?;

    let source = open(store).map_err(|error| guard::refusal(store, &error))?;
    let copying = copy(&source, text);
    drop(source);
    copying.map_err(|error| {
        // on a full disk SQLite leaves it
        let _ = fs::remove_file(beside(&partial, "-journal"));
        refusal(store, target, &error)
    })?;
    let unsound = |reason| BackupError::Unsound { path: store.into(), reason };
    let examined = examine(&partial).map_err(|error| unsound(error.to_string()))?;
    let backup = examined.map_err(unsound)?;
    sync(&partial).map_err(not_written)?;
    Ok((partial, backup))
}

/// Checks both paths; returns the folder of the target.
fn check_names<'t>(store: &Path, target: &'t Path) -> Result<&'t Path, BackupError> {
    if guard::is_displaced(store) {
        return Err(BackupError::Displaced { path: store.into() });
    }
    if !store.is_file() {
        return Err(BackupError::NoStore { path: store.into() });
    }
    if target.file_name().is_none() {
        return Err(BackupError::NoName { path: target.into() });
    }
    let folder = folder_of(target);
    if !folder.is_dir() {
        let (path, directory) = (target.into(), folder.into());
        return Err(BackupError::NoDirectory { path, directory });
    }
    // also rejects a dangling link
    if target.symlink_metadata().is_ok() {
        return Err(BackupError::Exists { path: target.into() });
    }
    Ok(folder)
}

/// Begins a copy in a folder, and removes what killed copies have left there: no other one is under
/// way if the folder can be locked. The copy holds the result. Where folders cannot be locked, nothing
/// is removed.
fn claim(folder: &Path) -> Option<File> {
    let claim = File::open(folder).ok()?;
    if claim.try_lock().is_ok() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
    claim.try_lock_shared().is_ok().then_some(claim)
}

/// Creates the temporary file for the copy.
fn make_empty(folder: &Path, permissions: Permissions) -> io::Result<TempPath> {
    let file = tempfile::Builder::new().prefix(PARTIAL).tempfile_in(folder)?;
    file.as_file().set_permissions(permissions)?;
    // closed: closing any handle of a file releases all of SQLite's locks on it
    Ok(file.into_temp_path())
}

fn copy(source: &Connection, target: &str) -> rusqlite::Result<()> {
    schema::give_pages_back(source)?;
    source.execute("VACUUM INTO ?1", [target]).map(drop)
}

/// Checks the copy; returns its content, or its damage.
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
            // a store of an older version that has not been migrated yet
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

pub(super) fn not_written(target: &Path, error: &io::Error) -> BackupError {
    let path = target.into();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => BackupError::Full { path },
        _ => BackupError::NotWritten { path, reason: error.to_string() },
    }
}

/// Converts an error of SQLite, which concerns the copy or the store.
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
    async fn a_backup_has_all_acknowledged_writes_in_one_file() {
        let (directory, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = database(&directory);
        let drafts = filled(&path).await;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let target = database(&copies);
        let before = names(directory.path());
        let backup = back_up(&path, &target).unwrap();
        assert_eq!(names(directory.path()), before, "nothing is left beside the store");
        let bytes = fs::metadata(&target).unwrap().len();
        let expected = Backup { bytes, executions: 3, generations: 0, conversations: 0 };
        assert_eq!(backup, expected);
        assert_eq!(names(copies.path()), ["greenroom.db"], "no other file is left");
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "the copy has the permissions of the store");
        let reader = schema::open_reader(&target).unwrap();
        let vacuum: i64 = reader.pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap();
        assert_eq!(vacuum, 2, "incremental");
        drop(reader);
        assert_has(&*open(&target), &drafts).await;
    }

    #[tokio::test]
    async fn a_store_that_could_not_shrink_is_not_changed_by_its_backup() {
        let (directory, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = database(&directory);
        let drafts = filled(&path).await;
        let older = "PRAGMA auto_vacuum = NONE; VACUUM";
        Connection::open(&path).unwrap().execute_batch(older).unwrap();
        let mode = |path: &Path| -> i64 {
            let reader = schema::open_unused(path).unwrap();
            reader.pragma_query_value(None, "auto_vacuum", |row| row.get(0)).unwrap()
        };
        let (before, files) = (fs::read(&path).unwrap(), names(directory.path()));
        let target = database(&copies);
        back_up(&path, &target).unwrap();
        assert_eq!((mode(&path), mode(&target)), (0, 2), "the copy can shrink");
        assert!(fs::read(&path).unwrap() == before);
        assert_eq!(names(directory.path()), files);
        assert_has(&*open(&target), &drafts).await;
    }

    #[tokio::test]
    async fn what_a_killed_backup_has_left_is_removed_by_the_next_one_alone() {
        let (directory, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = database(&directory);
        filled(&path).await;
        let left = [format!("{PARTIAL}abc"), format!("{PARTIAL}abc-journal"), "other".to_owned()];
        for name in &left {
            fs::write(copies.path().join(name), "x").unwrap();
        }
        let another = File::open(copies.path()).unwrap();
        another.lock_shared().unwrap();
        back_up(&path, &copies.path().join("one.db")).unwrap();
        let mut expected = [&left[..], &["one.db".to_owned()]].concat();
        expected.sort();
        assert_eq!(names(copies.path()), expected, "another backup may be making them");
        drop(another);
        back_up(&path, &copies.path().join("two.db")).unwrap();
        assert_eq!(names(copies.path()), ["one.db", "other", "two.db"]);
    }

    #[tokio::test]
    async fn a_failed_backup_names_the_reason_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory);
        filled(&path).await;
        let folder = directory.path();
        fs::write(folder.join("other.db"), "a text").unwrap();
        std::os::unix::fs::symlink("nowhere", folder.join("link.db")).unwrap();
        let before = names(folder);
        for (store, target, says) in [
            ("none.db", "copy.db", "there is no store at"),
            ("greenroom.db", "other.db", "exists; a backup does not overwrite files"),
            ("greenroom.db", "greenroom.db", "exists; a backup does not overwrite files"),
            ("greenroom.db", "link.db", "exists; a backup does not overwrite files"),
            ("greenroom.db", "no/copy.db", "no does not exist"),
            ("greenroom.db", "..", "is not the path of a file"),
            ("other.db", "copy.db", "is not a SQLite database"),
        ] {
            let refusal = back_up(&folder.join(store), &folder.join(target)).unwrap_err();
            assert!(refusal.to_string().contains(says), "{store} to {target}: {refusal}");
            assert_eq!(names(folder), before, "{store} to {target}");
        }
        assert_eq!(fs::read_to_string(folder.join("other.db")).unwrap(), "a text");
    }
}
