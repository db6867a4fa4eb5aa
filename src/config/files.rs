//! The files that a configuration was read from, so that a change of one is seen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Largest file that is looked at; a larger one counts as one that cannot be read, so that a change
/// of it alone is not seen.
const SEEN_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What was read, by what it was like. Two looks are equal when nothing has changed between them:
/// neither a file's bytes nor which files a pattern matches. Times and sizes are not asked: a
/// file system may be coarse with the one, and an edit need not change the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    /// Digests of bytes; none of a file that could not be read.
    files: BTreeMap<PathBuf, Option<[u8; 32]>>,
    /// Names of the files that a pattern in a folder matched.
    patterns: BTreeMap<(PathBuf, String), Vec<String>>,
}

impl Files {
    /// Reads a file and notes what it was.
    pub(super) fn read(&mut self, path: &Path) -> std::io::Result<Vec<u8>> {
        let bytes = std::fs::read(path);
        self.files.insert(path.to_owned(), is_seen(&bytes).map(digest));
        bytes
    }

    /// Notes a file that was looked for.
    pub(super) fn note(&mut self, path: &Path) {
        let is_small = std::fs::metadata(path).is_ok_and(|file| file.len() <= SEEN_BYTES_MAX);
        let bytes = is_small.then(|| std::fs::read(path).ok()).flatten();
        self.files.insert(path.to_owned(), bytes.as_deref().map(digest));
    }

    /// The names in a folder that a pattern matches, in their order.
    pub(super) fn matching(&mut self, folder: &Path, pattern: &str) -> Vec<String> {
        let names = super::include::names_like(pattern, folder);
        self.patterns.insert((folder.to_owned(), pattern.to_owned()), names.clone());
        names
    }

    /// The same files and patterns as they are now.
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

fn is_seen(bytes: &std::io::Result<Vec<u8>>) -> Option<&[u8]> {
    let small = |bytes: &&[u8]| u64::try_from(bytes.len()).is_ok_and(|len| len <= SEEN_BYTES_MAX);
    bytes.as_deref().ok().filter(small)
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_seen_and_nothing_else() {
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
            ("no folder any more", true, &|| std::fs::remove_dir_all(&folder).unwrap()),
        ];
        for (name, is_seen, change) in changes {
            change();
            let now = seen.look();
            assert_eq!(now != seen, is_seen, "{name}");
            seen = now;
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_elsewhere_is_a_change() {
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
