//! Names of files beside each other, their durability, and whether open files are still in place.

use std::fs::{self, File};
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
        let found = fs::symlink_metadata(path)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }

    /// Fails like SQLite for files that have moved, unless this file still has the name.
    pub(super) fn check_at(self, path: &Path) -> rusqlite::Result<()> {
        let found = Self::at(path);
        let path = path.display();
        let reason = match found {
            Ok(found) if found == self => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                format!("cannot see {path} while it is open: {error}")
            }
            Ok(_) | Err(_) => format!(
                "{path} was removed, renamed or replaced while it is open; docs/troubleshooting.md \
                 says how to rescue it before the server is stopped"
            ),
        };
        let moved = ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED);
        Err(rusqlite::Error::SqliteFailure(moved, Some(reason)))
    }
}

/// The files that the writer's connection has open. What is written to files without a name is lost
/// when the last process closes them.
#[derive(Debug, Clone)]
pub(super) struct OpenFiles {
    path: PathBuf,
    database: FileId,
    /// The write-ahead log, which SQLite makes anew with the first connection.
    log: Option<FileId>,
}

impl OpenFiles {
    /// Notes the files of a store that has just been opened.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let files = Self { path: path.into(), database: FileId::at(path)?, log: None };
        Ok(files.reopened())
    }

    /// Notes the write-ahead log of a new connection to the same database.
    pub(super) fn reopened(self) -> Self {
        let log = FileId::at(&beside(&self.path, "-wal")).ok();
        Self { log, ..self }
    }

    pub(super) fn database(&self) -> FileId {
        self.database
    }

    /// Fails if a file does not have its name any longer.
    pub(super) fn check(&self) -> rusqlite::Result<()> {
        self.database.check_at(&self.path)?;
        self.log.map_or(Ok(()), |log| log.check_at(&beside(&self.path, "-wal")))
    }
}
