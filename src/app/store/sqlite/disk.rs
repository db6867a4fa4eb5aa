//! The disk that a store in a file is on.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::app::finding::{Finding, State};

const NAME: &str = "disk";

/// Commits that are timed.
const COMMITS: usize = 20;

/// Bytes of each: a page of the store.
const PAGE: [u8; 4096] = [0; 4096];

/// Time of a commit above which callers notice it.
const SLOW: Duration = Duration::from_millis(10);

/// Time of a commit below which nothing can have waited for a disk.
const TOO_FAST: Duration = Duration::from_micros(5);

/// Free space below which a server can soon write nothing, in bytes.
const FREE_MIN: u64 = 1 << 30;

/// Measures free space and the time of a commit, with a file that has no name.
pub(super) fn look(folder: &Path) -> Vec<Finding> {
    let shown = folder.display();
    let free = rustix::fs::statvfs(folder).map(|it| it.f_bavail.saturating_mul(it.f_frsize));
    let space = free.ok().map(|free| {
        let state = if free < FREE_MIN { State::Warned } else { State::Good };
        Finding::new(state, NAME, format!("{shown} has {} MB left", free / 1_000_000))
    });
    let commit = match time_of_commit(folder) {
        Ok(time) => of_commit(time),
        Err(error) => {
            let text = format!("{shown} cannot be written to: {error}");
            Finding::new(State::Failed, NAME, text)
        }
    };
    space.into_iter().chain([commit]).collect()
}

/// Returns the median time of a write that reaches the disk.
fn time_of_commit(folder: &Path) -> io::Result<Duration> {
    let mut file = tempfile::tempfile_in(folder)?;
    let mut times = Vec::with_capacity(COMMITS);
    for _ in 0..COMMITS {
        let began = Instant::now();
        file.write_all(&PAGE)?;
        file.sync_data()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times[COMMITS / 2])
}

fn of_commit(time: Duration) -> Finding {
    let ms = time.as_secs_f64() * 1000.0;
    let (state, more) = match time {
        time if time > SLOW => {
            (State::Warned, ": a slow disk, for which each durable answer waits")
        }
        time if time < TOO_FAST => (
            State::Warned,
            ": nothing waits for a disk here (memory, or a cache that a power failure loses)",
        ),
        _ => (State::Good, ""),
    };
    Finding::new(state, NAME, format!("a commit takes {ms:.3} ms{more}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_commits_are_judged() {
        for (micros, state) in
            [(1, State::Warned), (200, State::Good), (9_000, State::Good), (30_000, State::Warned)]
        {
            assert_eq!(of_commit(Duration::from_micros(micros)).state, state, "{micros}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let findings = look(folder.path());
        assert!(findings.iter().all(|finding| finding.state != State::Failed), "{findings:?}");
        assert_eq!(findings.len(), 2);
        let findings = look(&folder.path().join("none"));
        assert_eq!(findings.last().unwrap().state, State::Failed);
    }
}
