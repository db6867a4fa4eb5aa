//! The environment file: variables set in place, the rest kept to the byte, the whole written at
//! once.

mod lines;
#[cfg(test)]
mod tests;

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::upkeep::{FileError, VariableFile};

use self::lines::{value_of, with_variables};

/// What is larger was not written by hand.
const BYTES_MAX: u64 = 1024 * 1024;
/// Links followed from one to the next.
const LINKS_MAX: usize = 40;
/// For its owner alone: it holds secrets.
const MODE: u32 = 0o600;

/// A file of `NAME=value` lines, such as `.env`.
#[derive(Debug, Clone)]
pub struct EnvFile {
    path: PathBuf,
}

impl EnvFile {
    /// A file that need not be there yet; a relative path counts from the working directory.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The values of variables, each as a shell would read it where it is first set. A file that
    /// is not there sets none.
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

/// Where links lead, also one to a file that is not there yet: the link stays what it is.
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
            Err(error) => return Err(failed("looking at the file")(error)),
        }
    }
    Err(FileError("following a link: there are too many".to_owned()))
}

/// The file as it is; empty when it is not there.
fn content_of(path: &Path) -> Result<Vec<u8>, FileError> {
    let is_file = match fs::metadata(path).as_ref().map(Metadata::is_file) {
        Ok(is_file) => is_file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(reason("looking at the file", error)),
    };
    // Asked before it is opened: a pipe would wait for somebody to write into it.
    if !is_file {
        return Err(FileError("reading: it is no file".to_owned()));
    }
    let file = File::open(path).map_err(failed("reading"))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed("reading"))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(FileError(format!("reading: it is larger than {BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// Puts a new file in the place of the old one: whoever reads it sees one or the other, whole,
/// also after a power cut.
fn replace(path: &Path, content: &[u8]) -> Result<(), FileError> {
    let folder = folder_of(path);
    let mut file = tempfile::Builder::new()
        .prefix(".env-")
        .permissions(fs::Permissions::from_mode(MODE))
        .tempfile_in(folder)
        .map_err(failed("writing"))?;
    file.write_all(content).map_err(failed("writing"))?;
    file.as_file().sync_all().map_err(failed("writing"))?;
    file.persist(path).map_err(|error| failed("taking the old one's place")(error.error))?;
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("writing the folder"))
}

/// The folder of a file; that of a bare name is the working directory.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// The kind of an error alone: its text may hold the path.
fn reason(doing: &str, error: &io::Error) -> FileError {
    FileError(format!("{doing}: {}", error.kind()))
}

fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> FileError {
    move |error| reason(doing, &error)
}
