//! Findings of `greenroom doctor` about a store in a file.

use std::path::Path;

use greenroom_store_sqlite::{Look, look as look_at};
use rustix::process::{Resource, getrlimit};

use super::disk;
use crate::app::finding::{Finding, STORE, State};

/// Bytes by which a store grows soon.
const ROOM_MIN: u64 = 16 << 20;

/// Looks at the file, and at the disk that it is on.
pub(super) fn look(path: &Path) -> Vec<Finding> {
    // a link leads to the disk that matters
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut findings = disk::look(folder.unwrap_or_else(|| Path::new(".")));
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        let text = format!("{} is not a file", path.display());
        findings.push(Finding::new(State::Failed, STORE, text));
        return findings;
    }
    match look_at(path) {
        Ok(looked) => {
            findings.push(of_look(path, &looked));
            findings.extend(of_limit(getrlimit(Resource::Fsize).current, looked.bytes));
        }
        Err(error) => findings.push(Finding::new(State::Failed, STORE, error.to_string())),
    }
    findings
}

/// Judges the largest size that a file of the server may have (`ulimit -f`); `None` without a limit.
/// The write-ahead log is bound by it as well, and stays far below the store.
fn of_limit(limit: Option<u64>, bytes: u64) -> Option<Finding> {
    let limit = limit?;
    let (state, more) = match limit {
        limit if limit < bytes.saturating_add(ROOM_MIN) => {
            (State::Failed, "nothing more is stored")
        }
        _ => (State::Warned, "what would make the store larger is refused"),
    };
    let text = format!(
        "files may have {} MB (ulimit -f), and the store has {} MB: {more}; lift the limit, as with \
         LimitFSIZE=infinity of systemd",
        limit / 1_000_000,
        bytes / 1_000_000
    );
    Some(Finding::new(state, "file size", text))
}

fn of_look(path: &Path, look: &Look) -> Finding {
    let Look { bytes, version, newest, is_in_use, is_displaced } = *look;
    let shown = path.display();
    if is_displaced {
        let text = format!(
            "{shown} was removed, renamed or replaced while a server has it open: nothing more is \
             stored; docs/troubleshooting.md says how to rescue it before that server is stopped"
        );
        return Finding::new(State::Failed, STORE, text);
    }
    let used = if is_in_use { ", in use by a server" } else { "" };
    let text = match version {
        None => format!("{shown} is made at the first start"),
        Some(version) if version < newest => format!(
            "{shown}: version {version}, {bytes} bytes{used}; the next start makes it version \
             {newest}: a backup before lets you go back"
        ),
        Some(version) => format!("{shown}: version {version}, {bytes} bytes{used}"),
    };
    Finding::new(State::Good, STORE, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_described() {
        let look =
            Look { bytes: 4096, version: Some(3), newest: 4, is_in_use: true, is_displaced: false };
        for (look, says) in [
            (Look { version: None, ..look }, "is made at the first start"),
            (Look { is_displaced: true, ..look }, "a.db was removed, renamed or replaced while"),
            (look, "version 3, 4096 bytes, in use by a server; the next start makes it version 4"),
            (Look { version: Some(4), is_in_use: false, ..look }, "a.db: version 4, 4096 bytes"),
        ] {
            let finding = of_look(Path::new("a.db"), &look);
            assert!(finding.text.contains(says), "{finding}");
        }
    }

    #[test]
    fn a_limit_of_files_is_judged_by_the_store() {
        let mb = 1_000_000;
        assert_eq!(of_limit(None, mb), None);
        for (limit, bytes, state) in [
            (500 * mb, 100 * mb, State::Warned),
            (110 * mb, 100 * mb, State::Failed),
            (0, 0, State::Failed),
            (u64::MAX - 1, u64::MAX, State::Failed),
        ] {
            let finding = of_limit(Some(limit), bytes).unwrap();
            assert_eq!(finding.state, state, "{finding}");
        }
    }

    #[test]
    fn a_file_of_another_program_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.db");
        std::fs::write(&path, "a text").unwrap();
        let findings = look(&path);
        let last = findings.last().unwrap();
        assert_eq!(last.state, State::Failed);
        assert!(last.text.contains("is not a SQLite database"), "{last}");
    }
}
