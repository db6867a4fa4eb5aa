//! Marks of work on executions, left for the next process if this one crashes.
//!
//! Marks are not part of the record. They are written without a commit, because they have to
//! survive the process and not the machine.

use serde::{Deserialize, Serialize};

use crate::domain::ids::ExecutionId;

/// Maximum number of marks set at once.
pub const CRASH_MARK_SLOTS: usize = 64;

/// Work currently done for an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashMark {
    pub execution: ExecutionId,
    /// Number of its last event; equal for repeated work at the same point.
    pub last_seq: u64,
    pub work: MarkedWork,
}

/// Work that could crash the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkedWork {
    /// Rebuilding the execution from its rows.
    Load,
    /// Evaluating its next steps.
    Decide,
}

/// An execution whose work was interrupted by crashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    #[serde(flatten)]
    pub mark: CrashMark,
    /// Number of consecutive crashes at this point.
    pub count: u32,
}

/// Storage of crash marks. The adapter logs failures to write, because nothing else depends on
/// them.
pub trait CrashMarks: Send + Sync {
    /// Returns the work that crashes interrupted, including the last one, as found at the start.
    fn crashes(&self) -> Vec<Crash>;

    /// Stores these and removes all others.
    fn keep(&self, crashes: &[Crash]);

    /// Sets the mark of a slot, below [`CRASH_MARK_SLOTS`]. Never waits for a disk.
    fn set(&self, slot: usize, mark: &CrashMark);

    fn clear(&self, slot: usize);

    /// Marks an orderly shutdown: unfinished work then does not count as a crash.
    fn close(&self);
}

/// Stores nothing: for stores that do not survive the process either.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCrashMarks;

impl CrashMarks for NoCrashMarks {
    fn crashes(&self) -> Vec<Crash> {
        Vec::new()
    }

    fn keep(&self, _: &[Crash]) {}

    fn set(&self, _: usize, _: &CrashMark) {}

    fn clear(&self, _: usize) {}

    fn close(&self) {}
}

/// Adds the marks of the last process to the known crashes. Work at a later event starts a new
/// count.
pub fn count_crashes(known: Vec<Crash>, left: Vec<CrashMark>) -> Vec<Crash> {
    let mut crashes = known;
    for mark in left {
        let at = crashes.iter().position(|crash| crash.mark.execution == mark.execution);
        let before = at.map(|at| crashes.swap_remove(at));
        let before = before.filter(|crash| crash.mark.last_seq == mark.last_seq);
        let count = before.map_or(0, |crash| crash.count).saturating_add(1);
        crashes.push(Crash { mark, count });
    }
    crashes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(execution: &str, last_seq: u64, work: MarkedWork) -> CrashMark {
        CrashMark { execution: ExecutionId::trusted(execution), last_seq, work }
    }

    #[test]
    fn crashes_at_the_same_point_add_up() {
        use MarkedWork::{Decide, Load};
        let known = |count| vec![Crash { mark: mark("e", 7, Load), count }];
        let cases = [
            ("the first", vec![], mark("e", 7, Load), vec![("e", 7, 1)]),
            ("the same point", known(1), mark("e", 7, Decide), vec![("e", 7, 2)]),
            ("further on", known(5), mark("e", 8, Load), vec![("e", 8, 1)]),
            ("another", known(1), mark("f", 7, Load), vec![("e", 7, 1), ("f", 7, 1)]),
            ("without end", known(u32::MAX), mark("e", 7, Load), vec![("e", 7, u32::MAX)]),
        ];
        for (name, known, left, expected) in cases {
            let work = left.work;
            let counted = count_crashes(known, vec![left]);
            let counts = counted.iter().map(|Crash { mark, count }| {
                let CrashMark { execution, last_seq, .. } = mark;
                (execution.as_str(), *last_seq, *count)
            });
            assert_eq!(counts.collect::<Vec<_>>(), expected, "{name}");
            assert_eq!(counted.last().unwrap().mark.work, work, "{name}");
        }
    }
}
