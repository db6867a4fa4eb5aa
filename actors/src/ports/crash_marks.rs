//! What was being done for executions when a process ended, as the next process finds it.
//!
//! No part of the record: a mark is written without a commit, since it has to outlive the process
//! and not the machine.

use serde::{Deserialize, Serialize};

use crate::domain::ids::ExecutionId;

/// Marks that may be set at once.
pub const CRASH_MARK_SLOTS: usize = 64;

/// Says what is being done for an execution just now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrashMark {
    pub execution: ExecutionId,
    /// Number of its last event: what is done again at the same point has the same.
    pub last_seq: u64,
    pub work: MarkedWork,
}

/// Work that may be the end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkedWork {
    /// The execution is rebuilt from its rows.
    Load,
    /// It is decided how it goes on.
    Decide,
}

/// An execution that was worked on when processes ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    #[serde(flatten)]
    pub mark: CrashMark,
    /// Processes that ended there, one after the other.
    pub count: u32,
}

/// Where marks are kept. Failures to write are told of by the adapter: nothing else depends on it.
pub trait CrashMarks: Send + Sync {
    /// What processes ended in the middle of, the last one included, as it was at the start.
    fn crashes(&self) -> Vec<Crash>;

    /// Remembers these and forgets all others.
    fn keep(&self, crashes: &[Crash]);

    /// Sets the mark of a slot, below [`CRASH_MARK_SLOTS`]. Never waits for a disk.
    fn set(&self, slot: usize, mark: &CrashMark);

    fn clear(&self, slot: usize);

    /// The process ends in order: what it is in the middle of is no crash.
    fn close(&self);
}

/// Remembers nothing: for stores that do not outlive the process either.
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

/// Counts what the last process left behind into what is known. An execution that has got further
/// since begins anew.
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
            let told = counted.iter().map(|Crash { mark, count }| {
                let CrashMark { execution, last_seq, .. } = mark;
                (execution.as_str(), *last_seq, *count)
            });
            assert_eq!(told.collect::<Vec<_>>(), expected, "{name}");
            assert_eq!(counted.last().unwrap().mark.work, work, "{name}");
        }
    }
}
