//! Names of files beside each other, their durability, and whether open files are still in place.

use std::cell::Cell;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rusqlite::ffi;

/// Appends a suffix to the file name of a path, as in `greenroom.db.lock`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Returns the size of the write-ahead log of a database, 0 if there is none.
pub(super) fn log_bytes(path: &Path) -> u64 {
    fs::metadata(beside(path, "-wal")).map_or(0, |log| log.len())
}

/// Returns the folder that a path is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the content of a file durable; of a folder, its new and removed names.
pub(super) fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// A file, whatever name it has: its device and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Returns the file that has this name now. A link is not what it leads to: the log of a store is
    /// beside its file, where the next process would look for it.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&fs::symlink_metadata(path)?))
    }

    /// Fails like SQLite for files that have moved, unless this file still has the name.
    pub(super) fn check_at(self, path: &Path) -> rusqlite::Result<()> {
        self.found_at(path).map(drop)
    }

    /// Returns what is known of this file, like [`FileId::check_at`].
    fn found_at(self, path: &Path) -> rusqlite::Result<Metadata> {
        let found = fs::symlink_metadata(path);
        let path = path.display();
        let reason = match found {
            Ok(found) if Self::of(&found) == self => return Ok(found),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                format!("cannot see {path} while it is open: {error}")
            }
            Ok(_) | Err(_) => format!(
                "{path} was removed, renamed or replaced while it is open; docs/troubleshooting.md \
                 says how to rescue it before the server is stopped"
            ),
        };
        Err(moved(reason))
    }

    fn of(found: &Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }
}

/// Returns the error of SQLite for files that have moved.
fn moved(reason: String) -> rusqlite::Error {
    let moved = ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED);
    rusqlite::Error::SqliteFailure(moved, Some(reason))
}

/// The files that the writer's connection has open. What is written to files without a name is lost
/// when the last process closes them.
#[derive(Debug, Clone)]
pub(super) struct OpenFiles {
    path: PathBuf,
    database: FileId,
    /// The write-ahead log, which SQLite makes anew with the first connection.
    log: Option<FileId>,
    /// Size of the log, which begins again from its start and keeps its size: it becomes shorter only
    /// when it is emptied into the database. A log that something else has cut is written to behind
    /// its new end, so that nothing of it is read any longer, or zeros are.
    log_bytes: Cell<u64>,
}

impl OpenFiles {
    /// Notes the files of a store that has just been opened.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let (path, database) = (path.into(), FileId::at(path)?);
        Ok(Self { path, database, log: None, log_bytes: Cell::new(0) }.reopened())
    }

    /// Notes the write-ahead log of a new connection to the same database.
    pub(super) fn reopened(self) -> Self {
        let found = fs::symlink_metadata(self.log_path()).ok();
        let bytes = found.as_ref().map_or(0, Metadata::len);
        Self { log: found.as_ref().map(FileId::of), log_bytes: Cell::new(bytes), ..self }
    }

    /// Notes that the write-ahead log was emptied into the database.
    pub(super) fn log_is_empty(&self) {
        self.log_bytes.set(0);
    }

    /// Notes the size of the write-ahead log after a commit.
    pub(super) fn committed(&self) {
        let bytes = fs::symlink_metadata(self.log_path()).map_or(0, |log| log.len());
        self.log_bytes.set(self.log_bytes.get().max(bytes));
    }

    fn log_path(&self) -> PathBuf {
        beside(&self.path, "-wal")
    }

    pub(super) fn database(&self) -> FileId {
        self.database
    }

    /// Fails if a file does not have its name any longer, or the log was cut.
    pub(super) fn check(&self) -> rusqlite::Result<()> {
        self.database.check_at(&self.path)?;
        let Some(log) = self.log else { return Ok(()) };
        let path = self.log_path();
        let (bytes, known) = (log.found_at(&path)?.len(), self.log_bytes.get());
        if bytes < known {
            return Err(moved(format!(
                "{} was cut from {known} to {bytes} bytes while it is open; docs/troubleshooting.md \
                 says what that means",
                path.display()
            )));
        }
        self.log_bytes.set(bytes);
        Ok(())
    }
}
