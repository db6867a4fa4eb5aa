//! Crash marks in a small file beside the store.
//!
//! A line for each slot, overwritten in place and cleared by its first byte, and behind them a line
//! for each crash that is remembered. A write goes to the system's cache, which outlives the
//! process: nothing waits for the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom_actors::ports::crash_marks::{
    CRASH_MARK_SLOTS, Crash, CrashMark, CrashMarks, count_crashes,
};
use serde::Serialize;

/// Bytes of a line: an id has 128 at most, a mark some 70 beside it.
const LINE: usize = 256;
/// Crashes that are remembered.
const CRASHES_MAX: usize = 256;
const BLANK: u8 = b' ';

/// The file, held open.
#[derive(Debug)]
pub struct CrashFile {
    file: File,
    crashes: Vec<Crash>,
    is_closed: AtomicBool,
    /// A failure to write is told of once.
    has_failed: AtomicBool,
}

impl CrashFile {
    /// Opens the file or makes it, and counts what the last process left behind. What makes no
    /// sense in it is passed over.
    pub fn open(path: &Path) -> io::Result<Self> {
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

    fn tell(&self, outcome: io::Result<()>) {
        if let Err(error) = outcome
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            log::warn!(
                "it cannot be noted what is being evaluated, so that an execution that ends the \
                 process again and again is not found out: {error}"
            );
        }
    }
}

impl CrashMarks for CrashFile {
    fn crashes(&self) -> Vec<Crash> {
        self.crashes.clone()
    }

    fn keep(&self, crashes: &[Crash]) {
        self.tell(self.write_crashes(crashes));
    }

    fn set(&self, slot: usize, mark: &CrashMark) {
        let line = line_of(mark).filter(|_| !self.is_closed.load(Ordering::Acquire));
        if let Some(line) = line {
            self.tell(self.file.write_all_at(&line, offset_of(slot)));
        }
    }

    fn clear(&self, slot: usize) {
        if !self.is_closed.load(Ordering::Acquire) {
            self.tell(self.file.write_all_at(&[BLANK], offset_of(slot)));
        }
    }

    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.tell(self.file.write_all_at(&[BLANK; LINE * CRASH_MARK_SLOTS], 0));
    }
}

fn offset_of(slot: usize) -> u64 {
    u64::try_from(slot * LINE).unwrap_or(u64::MAX)
}

/// A value as a line of the file; none where it does not fit.
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

    fn told(file: &CrashFile) -> Vec<(String, u32)> {
        let crashes = file.crashes().into_iter();
        crashes.map(|it| (it.mark.execution.to_string(), it.count)).collect()
    }

    #[test]
    fn the_next_process_finds_what_the_last_one_was_in_the_middle_of() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crashes");
        let long = "x".repeat(128);
        let first = CrashFile::open(&path).unwrap();
        assert_eq!(told(&first), []);
        first.set(0, &mark("done"));
        first.clear(0);
        first.set(0, &mark(&long));
        first.set(CRASH_MARK_SLOTS - 1, &mark("e"));
        let second = CrashFile::open(&path).unwrap();
        assert_eq!(told(&second), [(long.clone(), 1), ("e".to_owned(), 1)]);
        second.set(3, &mark("e"));
        let third = CrashFile::open(&path).unwrap();
        assert_eq!(told(&third), [(long, 1), ("e".to_owned(), 2)]);
        third.keep(&third.crashes()[1..]);
        third.set(0, &mark("f"));
        third.close();
        third.set(1, &mark("g"));
        let fourth = CrashFile::open(&path).unwrap();
        assert_eq!(told(&fourth), [("e".to_owned(), 2)], "an end in order is no crash");
        fourth.keep(&[]);
        assert_eq!(told(&CrashFile::open(&path).unwrap()), []);
    }

    #[test]
    fn a_file_that_makes_no_sense_is_passed_over_and_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crashes");
        for bytes in [vec![], vec![b'{'; 10 * LINE], vec![0xff; 1_000_000]] {
            std::fs::write(&path, bytes).unwrap();
            let file = CrashFile::open(&path).unwrap();
            assert_eq!(told(&file), []);
            let many: Vec<Crash> = (0..2 * CRASHES_MAX)
                .map(|n| Crash { mark: mark(&format!("e{n}")), count: 1 })
                .collect();
            file.keep(&many);
            let again = CrashFile::open(&path).unwrap();
            assert_eq!(told(&again).len(), CRASHES_MAX);
            assert_eq!(told(&again)[0].0, format!("e{CRASHES_MAX}"), "the newest stay");
        }
    }
}
