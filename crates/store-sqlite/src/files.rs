//! Names of files beside each other, and their durability.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Appends a suffix to the file name of a path, as in `greenroom.db.lock`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
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
