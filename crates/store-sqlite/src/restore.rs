//! A store made out of a backup, while no server uses it.
//!
//! The backup is copied and checked before anything changes. A store that is there already is kept
//! under another name: first it gets that name as well, then the copy takes the old one in one step.
//! So there is a whole store at each moment; in between it has two names, with which no server starts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::backup::{self, Backup, BackupError, folder_of, not_written, sync_folder};
use super::guard::{self, OpenError, beside};

/// Maximum number of stores that are kept under other names.
const KEPT_MAX: u32 = 100;

/// A store after it was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Content that it has now.
    pub content: Backup,
    /// The name of the store that was there before.
    pub kept: Option<PathBuf>,
}

/// Failure of a restore. The store is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("there is a store at {path} already; with --replace it is kept under another name")]
    Exists { path: PathBuf },
    #[error("the backup is the store itself: {path}")]
    Same { path: PathBuf },
    #[error("{path} is empty: it is not a backup")]
    Empty { path: PathBuf },
    #[error(
        "{path} has {KEPT_MAX} earlier stores beside it; remove those that are not needed any longer"
    )]
    Crowded { path: PathBuf },
    #[error(transparent)]
    Copy(#[from] BackupError),
    #[error(transparent)]
    Unusable(#[from] OpenError),
}

/// Makes a store out of a backup. Must be called in a process that does not have the store open. With
/// `replaces`, a store that is there is kept under another name.
pub fn restore(backup: &Path, store: &Path, replaces: bool) -> Result<Restored, RestoreError> {
    let store = &guard::resolved(store)?;
    if !backup.is_file() {
        return Err(BackupError::NoStore { path: backup.into() }.into());
    }
    if is_same(backup, store) {
        return Err(RestoreError::Same { path: store.clone() });
    }
    if fs::metadata(backup).is_ok_and(|file| file.len() == 0) {
        return Err(RestoreError::Empty { path: backup.into() });
    }
    let _lock = guard::lock(store)?;
    let log = beside(store, "-wal");
    let is_there = store.exists() || log.exists();
    if is_there && !replaces {
        return Err(RestoreError::Exists { path: store.clone() });
    }
    let folder = folder_of(store);
    let (copy, content) = backup::copied(backup, store, folder)?;
    let failed = |error: io::Error| not_written(store, &error);
    let kept = if is_there { Some(keep(store, &log)?) } else { None };
    copy.persist(store).map_err(|refused| failed(refused.error))?;
    sync_folder(folder).map_err(failed)?;
    Ok(Restored { content, kept })
}

fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

/// Gives a store another name, with its write-ahead log. The name that it had stays beside.
fn keep(store: &Path, log: &Path) -> Result<PathBuf, RestoreError> {
    let failed = |error: io::Error| not_written(store, &error);
    let kept = free_name(store)?;
    if store.exists() {
        fs::hard_link(store, &kept).map_err(failed)?;
    }
    if log.exists() {
        fs::rename(log, beside(&kept, "-wal")).map_err(failed)?;
    }
    match fs::remove_file(beside(store, "-shm")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error).into()),
        _ => Ok(kept),
    }
}

/// Returns a name that no file has, as in `greenroom.db.before-restore-1`.
fn free_name(store: &Path) -> Result<PathBuf, RestoreError> {
    let mut names =
        (1..=KEPT_MAX).map(|number| beside(store, &format!(".before-restore-{number}")));
    let is_free =
        |name: &PathBuf| name.symlink_metadata().is_err() && !beside(name, "-wal").exists();
    names.find(is_free).ok_or_else(|| RestoreError::Crowded { path: store.into() })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_has, database, filled, open};
    use super::*;

    #[tokio::test]
    async fn a_restored_store_has_what_the_backup_has() {
        let (directory, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = database(&directory);
        let drafts = filled(&path).await;
        let backup = copies.path().join("backup.db");
        let content = backup::back_up(&path, &backup).unwrap();
        let target = database(&copies);
        let restored = restore(&backup, &target, false).unwrap();
        assert_eq!(restored, Restored { content, kept: None });
        assert_has(&*open(&target), &drafts).await;
        assert!(backup.exists());
    }

    #[tokio::test]
    async fn a_store_that_is_there_is_kept_whole() {
        let (directory, copies) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let backup = copies.path().join("backup.db");
        let empty = copies.path().join("empty.db");
        drop(open(&empty));
        backup::back_up(&empty, &backup).unwrap();
        let path = database(&directory);
        let drafts = filled(&path).await;

        let refusal = restore(&backup, &path, false).unwrap_err();
        assert!(matches!(refusal, RestoreError::Exists { .. }), "{refusal}");
        assert_has(&*open(&path), &drafts).await;
        for number in 1..=2 {
            let restored = restore(&backup, &path, true).unwrap();
            let kept = beside(&path, &format!(".before-restore-{number}"));
            assert_eq!((restored.content.executions, restored.kept), (0, Some(kept)));
        }
        assert_has(&*open(&beside(&path, ".before-restore-1")), &drafts).await;
    }

    #[tokio::test]
    async fn a_log_without_its_database_is_kept_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory);
        let other = directory.path().join("other.db");
        filled(&other).await;
        fs::write(beside(&path, "-wal"), "left over").unwrap();
        let restored = restore(&other, &path, true).unwrap();
        let kept = restored.kept.unwrap();
        assert_eq!(fs::read_to_string(beside(&kept, "-wal")).unwrap(), "left over");
        drop(open(&path));
    }

    #[tokio::test]
    async fn what_is_no_backup_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = database(&directory);
        let drafts = filled(&path).await;
        let file = |name: &str| directory.path().join(name);
        fs::write(file("text.db"), "a text").unwrap();
        fs::write(file("empty.db"), "").unwrap();
        std::os::unix::fs::symlink(&path, file("link.db")).unwrap();
        for (backup, says) in [
            ("none.db", "there is no store at"),
            ("text.db", "is not a SQLite database"),
            ("empty.db", "is empty"),
            ("link.db", "the backup is the store itself"),
        ] {
            let refusal = restore(&file(backup), &path, true).unwrap_err();
            assert!(refusal.to_string().contains(says), "{backup}: {refusal}");
        }
        let server = open(&path);
        let other = file("other.db");
        filled(&other).await;
        let refusal = restore(&other, &path, true).unwrap_err();
        assert!(refusal.to_string().contains("in use by another process"), "{refusal}");
        assert_has(&*server, &drafts).await;
    }
}
