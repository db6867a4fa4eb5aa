//! The environment file: variables are set in place, all other bytes stay, and the file is replaced
//! atomically.

mod lines;
#[cfg(test)]
mod tests;

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::maintenance::{FileError, VariableFile};

use self::lines::{value_of, with_variables};

/// Upper bound on the file, which people write by hand; larger files are rejected.
const BYTES_MAX: u64 = 1024 * 1024;
/// Symbolic links followed in a row.
const LINKS_MAX: usize = 40;
/// Access for the owner only: the file holds secrets.
const MODE: u32 = 0o600;

/// A file of `NAME=value` lines, such as `.env`.
#[derive(Debug, Clone)]
pub struct EnvFile {
    path: PathBuf,
}

impl EnvFile {
    /// Names a file that need not exist; a relative path is resolved in the working directory.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Reads variables, each as a shell would read its first assignment. A missing file sets none.
    pub fn values(&self, names: &[&str]) -> Result<Vec<Option<String>>, FileError> {
        let content = content_of(&target_of(&self.path)?)?;
        Ok(names.iter().map(|name| value_of(&content, name)).collect())
    }
}

impl VariableFile for EnvFile {
    fn set(&self, variables: &[(&str, &str)]) -> Result<(), FileError> {
        let target = target_of(&self.path)?;
        let old = content_of(&target)?;
        replace(&target, &with_variables(&old, variables))
    }
}

/// Follows symbolic links, also to a file that does not exist yet, so that writing keeps the link.
fn target_of(path: &Path) -> Result<PathBuf, FileError> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::symlink_metadata(&path) {
            Ok(metadata) if metadata.is_symlink() => {
                let link = fs::read_link(&path).map_err(failed("following a link"))?;
                path = folder_of(&path).join(link);
            }
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(failed("checking the file")(error)),
        }
    }
    Err(FileError("following a link: too many links".to_owned()))
}

/// Reads the file; empty if it does not exist.
fn content_of(path: &Path) -> Result<Vec<u8>, FileError> {
    let is_file = match fs::metadata(path).as_ref().map(Metadata::is_file) {
        Ok(is_file) => is_file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(reason("checking the file", error)),
    };
    // Checked before it is opened: opening a named pipe blocks until it has a writer.
    if !is_file {
        return Err(FileError("reading: it is not a regular file".to_owned()));
    }
    let file = File::open(path).map_err(failed("reading"))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed("reading"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(FileError(format!("reading: it is larger than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// Replaces the file atomically: readers see the old or the new one whole, also after a power
/// failure.
fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let folder = folder_of(path);
    let mut file = tempfile::Builder::new()
        .prefix(".env-")
        .permissions(fs::Permissions::from_mode(MODE))
        .tempfile_in(folder)
        .map_err(failed("writing"))?;
    file.write_all(content).map_err(failed("writing"))?;
    file.as_file().sync_all().map_err(failed("writing"))?;
    file.persist(path).map_err(|error| failed("replacing the file")(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("writing the folder"))
}

/// Returns the folder of a file; for a bare name, the working directory.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Keeps only the kind of an error: its text may hold the path.
fn reason(doing: &str, error: &io::Error) -> FileError {
    FileError(format!("{doing}: {}", error.kind()))
}

fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> FileError {
    move |error| reason(doing, &error)
}
