//! Crash marks in memory: what a process that is gone leaves to the next, in tests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::ports::crash_marks::{Crash, CrashMark, CrashMarks, count_crashes};

/// Keeps marks as long as it lives.
#[derive(Debug, Default)]
pub struct MemoryCrashMarks {
    state: Mutex<Marks>,
}

#[derive(Debug, Default)]
struct Marks {
    crashes: Vec<Crash>,
    slots: BTreeMap<usize, CrashMark>,
    /// All that were ever set, in order.
    seen: Vec<CrashMark>,
}

impl MemoryCrashMarks {
    /// What the next process finds.
    #[must_use]
    pub fn reopened(&self) -> Self {
        let state = self.state();
        let crashes = count_crashes(state.crashes.clone(), state.slots.values().cloned().collect());
        Self { state: Mutex::new(Marks { crashes, ..Marks::default() }) }
    }

    /// All marks that this process set.
    pub fn seen(&self) -> Vec<CrashMark> {
        self.state().seen.clone()
    }

    /// Whether anything is marked just now.
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
