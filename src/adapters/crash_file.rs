//! Crash marks in a small file.
//!
//! One line per slot, overwritten in place and cleared by its first byte, followed by one line per
//! remembered crash. Writes go to the system's cache, which outlives the process, and never wait
//! for the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom_actors::ports::crash_marks::{
    CRASH_MARK_SLOTS, Crash, CrashMark, CrashMarks, count_crashes,
};
use serde::Serialize;

/// Bytes of a line: an id has 128 at most, the rest of a mark about 70.
const LINE: usize = 256;
/// Maximum number of remembered crashes.
const CRASHES_MAX: usize = 256;
const BLANK: u8 = b' ';

/// The open file.
#[derive(Debug)]
pub(crate) struct CrashFile {
    file: File,
    crashes: Vec<Crash>,
    is_closed: AtomicBool,
    /// True after the first failed write, which alone is logged.
    has_failed: AtomicBool,
}

impl CrashFile {
    /// Opens or creates the file, and counts the crashes of the last process. Damaged lines are
    /// skipped.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut bytes = Vec::new();
        let bytes_max = LINE * (CRASH_MARK_SLOTS + CRASHES_MAX);
        (&mut file).take(u64::try_from(bytes_max).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
        let crashes = crashes_of(&bytes);
        let opened = Self {
            file,
            crashes,
            is_closed: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        };
        opened.file.write_all_at(&[BLANK; LINE * CRASH_MARK_SLOTS], 0)?;
        opened.write_crashes(&opened.crashes)?;
        Ok(opened)
    }

    fn write_crashes(&self, crashes: &[Crash]) -> io::Result<()> {
        let begin = offset_of(CRASH_MARK_SLOTS);
        let newest = crashes.len().saturating_sub(CRASHES_MAX);
        let lines: Vec<u8> = crashes[newest..].iter().filter_map(line_of).flatten().collect();
        self.file.set_len(begin)?;
        self.file.write_all_at(&lines, begin)
    }

    fn log_failure(&self, outcome: io::Result<()>) {
        if let Err(error) = outcome
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            log::warn!(
                "cannot write crash marks; an execution that repeatedly ends the process is not \
                 detected: {error}"
            );
        }
    }
}

impl CrashMarks for CrashFile {
    fn crashes(&self) -> Vec<Crash> {
        self.crashes.clone()
    }

    fn keep(&self, crashes: &[Crash]) {
        self.log_failure(self.write_crashes(crashes));
    }

    fn set(&self, slot: usize, mark: &CrashMark) {
        let line = line_of(mark).filter(|_| !self.is_closed.load(Ordering::Acquire));
        if let Some(line) = line {
            self.log_failure(self.file.write_all_at(&line, offset_of(slot)));
        }
    }

    fn clear(&self, slot: usize) {
        if !self.is_closed.load(Ordering::Acquire) {
            self.log_failure(self.file.write_all_at(&[BLANK], offset_of(slot)));
        }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.log_failure(self.file.write_all_at(&[BLANK; LINE * CRASH_MARK_SLOTS], 0));
    }
}

fn offset_of(slot: usize) -> u64 {
    u64::try_from(slot * LINE).unwrap_or(u64::MAX)
}

/// Serializes a value as a line; `None` if it does not fit.
fn line_of(value: &impl Serialize) -> Option<[u8; LINE]> {
    let text = serde_json::to_vec(value).ok().filter(|text| text.len() < LINE)?;
    let mut line = [BLANK; LINE];
    line[..text.len()].copy_from_slice(&text);
    line[LINE - 1] = b'\n';
    Some(line)
}

fn crashes_of(bytes: &[u8]) -> Vec<Crash> {
    let (slots, crashes) = bytes.split_at(bytes.len().min(LINE * CRASH_MARK_SLOTS));
    let left = slots.chunks_exact(LINE).filter_map(|line| serde_json::from_slice(line).ok());
    let known = crashes.chunks_exact(LINE).filter_map(|line| serde_json::from_slice(line).ok());
    count_crashes(known.collect(), left.collect())
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::ports::crash_marks::MarkedWork;

    use super::*;

    fn mark(execution: &str) -> CrashMark {
        let execution = ExecutionId::trusted(execution);
        CrashMark { execution, last_seq: u64::MAX, work: MarkedWork::Decide }
    }

    fn crashes(file: &CrashFile) -> Vec<(String, u32)> {
        let crashes = file.crashes().into_iter();
        crashes.map(|it| (it.mark.execution.to_string(), it.count)).collect()
    }

    #[test]
    fn the_next_process_counts_the_marks_that_the_last_one_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crashes");
        let long = "x".repeat(128);
        let first = CrashFile::open(&path).unwrap();
        assert_eq!(crashes(&first), []);
        first.set(0, &mark("done"));
        first.clear(0);
        first.set(0, &mark(&long));
        first.set(CRASH_MARK_SLOTS - 1, &mark("e"));
        let second = CrashFile::open(&path).unwrap();
        assert_eq!(crashes(&second), [(long.clone(), 1), ("e".to_owned(), 1)]);
        second.set(3, &mark("e"));
        let third = CrashFile::open(&path).unwrap();
        assert_eq!(crashes(&third), [(long, 1), ("e".to_owned(), 2)]);
        third.keep(&third.crashes()[1..]);
        third.set(0, &mark("f"));
        third.close();
        third.set(1, &mark("g"));
        let fourth = CrashFile::open(&path).unwrap();
        assert_eq!(crashes(&fourth), [("e".to_owned(), 2)], "an orderly end is no crash");
        fourth.keep(&[]);
        assert_eq!(crashes(&CrashFile::open(&path).unwrap()), []);
    }

    #[test]
    fn a_damaged_file_is_ignored_and_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crashes");
        for bytes in [vec![], vec![b'{'; 10 * LINE], vec![0xff; 1_000_000]] {
            std::fs::write(&path, bytes).unwrap();
            let file = CrashFile::open(&path).unwrap();
            assert_eq!(crashes(&file), []);
            let many: Vec<Crash> = (0..2 * CRASHES_MAX)
                .map(|n| Crash { mark: mark(&format!("e{n}")), count: 1 })
                .collect();
            file.keep(&many);
            let again = CrashFile::open(&path).unwrap();
            assert_eq!(crashes(&again).len(), CRASHES_MAX);
            assert_eq!(crashes(&again)[0].0, format!("e{CRASHES_MAX}"), "the newest stay");
        }
    }
}
