//! Crash marks in memory, for tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ports::crash_marks::{Crash, CrashMark, CrashMarks, count_crashes};

/// Crash marks in memory.
#[derive(Debug, Default)]
pub struct MemoryCrashMarks {
    state: Mutex<Marks>,
}

#[derive(Debug, Default)]
struct Marks {
    crashes: Vec<Crash>,
    slots: BTreeMap<usize, CrashMark>,
    /// All marks ever set, in order.
    seen: Vec<CrashMark>,
}

impl MemoryCrashMarks {
    /// Returns the marks as the next process finds them.
    #[must_use]
    pub fn reopened(&self) -> Self {
        let state = self.state();
        let crashes = count_crashes(state.crashes.clone(), state.slots.values().cloned().collect());
        Self { state: Mutex::new(Marks { crashes, ..Marks::default() }) }
    }

    /// Returns all marks that this process set.
    pub fn seen(&self) -> Vec<CrashMark> {
        self.state().seen.clone()
    }

    /// Returns true if no mark is set.
    pub fn is_clear(&self) -> bool {
        self.state().slots.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, Marks> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CrashMarks for MemoryCrashMarks {
    fn crashes(&self) -> Vec<Crash> {
        self.state().crashes.clone()
    }

    fn keep(&self, crashes: &[Crash]) {
        self.state().crashes = crashes.to_vec();
    }

    fn set(&self, slot: usize, mark: &CrashMark) {
        let mut state = self.state();
        state.seen.push(mark.clone());
        state.slots.insert(slot, mark.clone());
    }

    fn clear(&self, slot: usize) {
        self.state().slots.remove(&slot);
    }

    fn close(&self) {
        self.state().slots.clear();
    }
}
