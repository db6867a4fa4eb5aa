//! A store made out of a backup, while no server uses it.
//!
//! The backup is copied and checked before anything changes. A store that is there already is kept
//! under another name: first it gets that name as well, then the files beside it move there, then the
//! copy takes the old name. Each of these is durable before the next. In between the store has two
//! names, with which no server starts, and a repeated restore continues from there.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use super::backup::{self, Backup, BackupError, not_written};
use super::files::{beside, folder_of, sync};
use super::guard::{self, OpenError};
use super::schema;

/// Maximum number of stores that are kept under other names.
const KEPT_MAX: u32 = 100;

/// Files that belong to a store, with what a crash has left in them.
const BESIDE: [&str; 3] = ["-wal", "-journal", ".crashes"];

/// A store after it was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Content that it has now.
    pub content: Backup,
    /// The name of the store that was there before.
    pub kept: Option<PathBuf>,
    /// The names of files that were left of a store which was not there any longer.
    pub left: Vec<PathBuf>,
}

/// Failure of a restore. The store is as it was, unless the text says something else.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("there is no backup at {path}")]
    NoBackup { path: PathBuf },
    #[error("there is a store at {path} already; with --replace it is kept under another name")]
    Exists { path: PathBuf },
    #[error(
        "{left} is there, of a store that is gone; with --replace it is kept under another name"
    )]
    Left { left: PathBuf },
    #[error("the backup is the store itself: {path}")]
    Same { path: PathBuf },
    #[error("{path} is empty: it is not a backup")]
    Empty { path: PathBuf },
    #[error(
        "{path} has {KEPT_MAX} earlier stores beside it; remove those that are not needed any longer"
    )]
    Crowded { path: PathBuf },
    #[error("the backup cannot be used: {0}")]
    Backup(OpenError),
    #[error("the store at {path} cannot be kept as {kept}: {reason}")]
    NotKept { path: PathBuf, kept: PathBuf, reason: io::Error },
    #[error("{path} is restored, but may not survive a failure of the machine yet: {reason}")]
    NotSynced { path: PathBuf, reason: io::Error },
    #[error(transparent)]
    Copy(#[from] BackupError),
    #[error(transparent)]
    Store(OpenError),
}

/// Makes a store out of a backup. Must be called in a process that does not have the store open. With
/// `replaces`, a store that is there is kept under another name.
pub fn restore(backup: &Path, store: &Path, replaces: bool) -> Result<Restored, RestoreError> {
    let store = &guard::resolved(store).map_err(RestoreError::Store)?;
    let backup = &guard::resolved(backup).map_err(RestoreError::Backup)?;
    if !backup.is_file() {
        return Err(RestoreError::NoBackup { path: backup.into() });
    }
    if is_same_file(backup, store) {
        return Err(RestoreError::Same { path: store.clone() });
    }
    let _lock = guard::lock(store).map_err(RestoreError::Store)?;
    let left = of_those_there(store).next();
    let is_there = store.exists();
    match left {
        _ if replaces => {}
        _ if is_there => return Err(RestoreError::Exists { path: store.clone() }),
        Some(ref left) => return Err(RestoreError::Left { left: left.clone() }),
        None => {}
    }
    let version = guard::inspect_content(backup).map_err(RestoreError::Backup)?;
    if version.is_none() {
        return Err(RestoreError::Empty { path: backup.into() });
    }
    let failed = |error: io::Error| not_written(store, &error);
    let (copy, content) = backup::copied(
        (backup, schema::open_reader),
        store,
        mode_for(store, backup).map_err(failed)?,
    )?;
    give_to_owner(store, &copy).map_err(failed)?;
    let is_kept = is_there || left.is_some();
    let kept = if is_kept { Some(Keeping::begin(store)?) } else { None };
    if let Err(refused) = copy.persist(store) {
        if let Some(kept) = kept {
            kept.undo();
        }
        return Err(failed(refused.error).into());
    }
    let not_synced = |reason| RestoreError::NotSynced { path: store.clone(), reason };
    sync(folder_of(store)).map_err(not_synced)?;
    let Some(Keeping { kept, .. }) = kept else {
        return Ok(Restored { content, kept: None, left: Vec::new() });
    };
    let left = if is_there { Vec::new() } else { of_those_there(&kept).collect() };
    Ok(Restored { content, kept: is_there.then_some(kept), left })
}

/// Returns the files that are beside a store of this name.
fn of_those_there(store: &Path) -> impl Iterator<Item = PathBuf> {
    BESIDE.iter().map(|suffix| beside(store, suffix)).filter(|file| file.exists())
}

/// Returns the permissions of the store that is there, else of the backup, and that its owner may
/// write.
fn mode_for(store: &Path, backup: &Path) -> io::Result<Permissions> {
    match fs::metadata(store) {
        Ok(there) => Ok(there.permissions()),
        Err(_) => Ok(Permissions::from_mode(fs::metadata(backup)?.permissions().mode() | 0o600)),
    }
}

/// Gives the copy and the lock to the owner of the store that is there, else of its folder, so that
/// the server can use what an administrator restores.
fn give_to_owner(store: &Path, copy: &Path) -> io::Result<()> {
    let is_there = store.exists();
    let like = fs::metadata(if is_there { store } else { folder_of(store) })?;
    if fs::metadata(copy)?.uid() == like.uid() {
        return Ok(());
    }
    let given = chown(copy, Some(like.uid()), Some(like.gid()))
        .and_then(|()| chown(beside(store, ".lock"), Some(like.uid()), Some(like.gid())));
    // a new store in the folder of another user belongs to who restores it
    if is_there { given } else { Ok(()) }
}

/// A store that is being kept under another name.
struct Keeping<'a> {
    store: &'a Path,
    kept: PathBuf,
}

impl<'a> Keeping<'a> {
    /// Gives the store its other name, and moves the files beside it.
    fn begin(store: &'a Path) -> Result<Self, RestoreError> {
        let kept = match interrupted(store) {
            Some(kept) => kept,
            None => free_name(store)?,
        };
        let keeping = Self { store, kept };
        keeping.carry_out().map_err(|reason| {
            keeping.undo();
            RestoreError::NotKept { path: store.into(), kept: keeping.kept.clone(), reason }
        })?;
        Ok(keeping)
    }

    fn carry_out(&self) -> io::Result<()> {
        let Self { store, kept } = self;
        let folder = folder_of(store);
        if store.exists() && !kept.exists() {
            fs::hard_link(store, kept)?;
            sync(folder)?;
        }
        for suffix in BESIDE {
            let file = beside(store, suffix);
            if file.exists() {
                fs::rename(file, beside(kept, suffix))?;
            }
        }
        match fs::remove_file(beside(store, "-shm")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        sync(folder)
    }

    /// Takes everything back. What cannot be taken back is left for a repeated restore.
    fn undo(&self) {
        let Self { store, kept } = self;
        for suffix in BESIDE {
            let file = beside(kept, suffix);
            if file.exists() && fs::rename(&file, beside(store, suffix)).is_err() {
                return;
            }
        }
        if is_same_file(store, kept) {
            let _ = fs::remove_file(kept);
        }
    }
}

/// Returns the other name of a store whose restore was interrupted.
pub(super) fn interrupted(store: &Path) -> Option<PathBuf> {
    names(store).find(|name| is_same_file(store, name))
}

/// Returns true if two names are of one file. A link counts as a separate file.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let (one, other) = (fs::symlink_metadata(one), fs::symlink_metadata(other));
    let id = |file: fs::Metadata| (file.dev(), file.ino());
    one.ok().map(id).is_some_and(|one| other.ok().map(id) == Some(one))
}

/// Returns a name that no file has, and no file beside it.
fn free_name(store: &Path) -> Result<PathBuf, RestoreError> {
    let is_taken = |path: &Path| path.symlink_metadata().is_ok();
    let is_free = |name: &PathBuf| {
        !is_taken(name) && BESIDE.iter().all(|suffix| !is_taken(&beside(name, suffix)))
    };
    names(store).find(is_free).ok_or_else(|| RestoreError::Crowded { path: store.into() })
}

/// Returns the names of kept stores, as in `greenroom.db.before-restore-1`.
fn names(store: &Path) -> impl Iterator<Item = PathBuf> {
    (1..=KEPT_MAX).map(|number| beside(store, &format!(".before-restore-{number}")))
}

#[cfg(test)]
mod tests;
