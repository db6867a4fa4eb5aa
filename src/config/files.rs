//! Files that a configuration was read from, to detect changes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Largest file of a configuration, in bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Digests of the files that were read. Two values are equal if neither the bytes of a file nor the
/// matches of a pattern have changed. Modification times are not used because file systems may
/// store them coarsely, sizes because an edit may keep them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// Digests of contents; `None` for files that could not be read.
    files: BTreeMap<PathBuf, Option<[u8; 32]>>,
    /// Names that matched, by folder and pattern.
    patterns: BTreeMap<(PathBuf, String), Vec<String>>,
}

impl Files {
    /// Reads a file and records its digest. Pipes such as a shell's `<(...)` can be read, too; they
    /// cannot be read twice and therefore never count as changed. Named pipes are refused: to open one
    /// waits for a writer, without a limit.
    pub(super) fn read(&mut self, path: &Path) -> std::io::Result<Vec<u8>> {
        let bytes = if is_named_pipe(path) {
            Err(std::io::Error::other(
                "it is a named pipe, which may never be written to; name a file, or a pipe of the \
                 shell as in <(...)",
            ))
        } else {
            bounded(path)
        };
        let seen = bytes.as_deref().ok().filter(|_| path.is_file());
        self.files.insert(path.to_owned(), seen.map(digest));
        bytes
    }

    /// Records the digest of a path. Only regular files are opened: a pipe would block, and a
    /// device may never end.
    pub(super) fn note(&mut self, path: &Path) {
        let bytes = path.is_file().then(|| bounded(path).ok()).flatten();
        self.files.insert(path.to_owned(), bytes.as_deref().map(digest));
    }

    /// Returns and records the sorted names in a folder that match a pattern.
    pub(super) fn matching(&mut self, folder: &Path, pattern: &str) -> Vec<String> {
        let names = super::include::names_like(pattern, folder);
        self.patterns.insert((folder.to_owned(), pattern.to_owned()), names.clone());
        names
    }

    /// Returns the current state of the same files and patterns.
    pub(crate) fn look(&self) -> Self {
        let mut now = Self::default();
        for path in self.files.keys() {
            now.note(path);
        }
        for (folder, pattern) in self.patterns.keys() {
            now.matching(folder, pattern);
        }
        now
    }
}

/// Returns true for a pipe that has a path. Those of a shell have none, only links in `/dev/fd`, and
/// have their writers already.
fn is_named_pipe(path: &Path) -> bool {
    let is_pipe = path.metadata().is_ok_and(|it| it.file_type().is_fifo());
    is_pipe && path.canonicalize().is_ok()
}

/// Reads a file of at most [`BYTES_MAX`] bytes.
fn bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(read).is_ok_and(|read| read <= BYTES_MAX) {
        return Ok(bytes);
    }
    Err(std::io::Error::other(format!("it is larger than {BYTES_MAX} bytes")))
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_of_content_are_detected() {
        let directory = tempfile::tempdir().unwrap();
        let (file, folder) = (directory.path().join("a.toml"), directory.path().join("more"));
        let write = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
        write(&file, "one");
        std::fs::create_dir(&folder).unwrap();
        let mut seen = Files::default();
        assert_eq!(seen.read(&file).unwrap(), b"one");
        assert!(seen.read(&directory.path().join("later")).is_err());
        assert!(seen.matching(&folder, "*.toml").is_empty());
        type Change<'a> = &'a dyn Fn();
        let changes: [(&str, bool, Change<'_>); 8] = [
            ("nothing", false, &|| {}),
            ("the same bytes again", false, &|| write(&file, "one")),
            ("other bytes of the same length", true, &|| write(&file, "two")),
            ("by another name, renamed", true, &|| {
                write(&directory.path().join(".a.swp"), "three");
                std::fs::rename(directory.path().join(".a.swp"), &file).unwrap();
            }),
            ("a file that was missing", true, &|| write(&directory.path().join("later"), "")),
            ("a file that the pattern does not match", false, &|| write(&folder.join("b"), "")),
            ("a file that it matches", true, &|| write(&folder.join("b.toml"), "")),
            ("a removed folder", true, &|| std::fs::remove_dir_all(&folder).unwrap()),
        ];
        for (name, is_seen, change) in changes {
            change();
            let now = seen.look();
            assert_eq!(now != seen, is_seen, "{name}");
            seen = now;
        }
    }

    #[test]
    fn files_that_are_too_large_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.toml");
        let file = File::create(&path).unwrap();
        let mut files = Files::default();
        for (len, is_read) in [(BYTES_MAX, true), (BYTES_MAX + 1, false)] {
            file.set_len(len).unwrap();
            assert_eq!(files.read(&path).is_ok(), is_read, "{len} bytes");
            assert_eq!(files.files[&path].is_some(), is_read, "{len} bytes");
            assert_eq!(files.look(), files, "{len} bytes");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_opened_to_detect_changes() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let mut files = Files::default();
        for path in [&pipe, Path::new("/dev/zero"), directory.path()] {
            files.note(path);
            assert_eq!(files.files[path], None, "{path:?}");
        }
        let refused = files.read(&pipe).unwrap_err().to_string();
        assert!(refused.starts_with("it is a named pipe"), "{refused}");
        let (reader, writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut { writer }, b"a").unwrap();
        let own = std::os::fd::AsRawFd::as_raw_fd(&reader);
        assert_eq!(files.read(Path::new(&format!("/dev/fd/{own}"))).unwrap(), b"a");
        let endless = files.read(Path::new("/dev/zero"));
        assert_eq!(endless.unwrap_err().to_string(), "it is larger than 16777216 bytes");
    }

    #[cfg(unix)]
    #[test]
    fn a_retargeted_link_is_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for (folder, text) in [("one", "1"), ("two", "2")] {
            std::fs::create_dir(at(folder)).unwrap();
            std::fs::write(at(folder).join("c.toml"), text).unwrap();
        }
        let lead_to = |folder: &str| {
            std::os::unix::fs::symlink(at(folder), at("next")).unwrap();
            std::fs::rename(at("next"), at("data")).unwrap();
        };
        lead_to("one");
        let mut seen = Files::default();
        seen.read(&at("data/c.toml")).unwrap();
        lead_to("two");
        assert_ne!(seen.look(), seen);
    }
}
