//! Times and numbers of faults and errors.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Faults and errors so far.
#[derive(Debug)]
pub(super) struct Weather(Mutex<Sky>);

#[derive(Debug)]
struct Sky {
    /// Number of faults of each kind.
    faults: BTreeMap<&'static str, u64>,
    under_way: usize,
    /// Since when no fault is under way.
    cleared: Instant,
    /// Errors of each kind.
    errors: BTreeMap<String, u64>,
    /// Longest time from the end of all faults to an error, and that error.
    latest: (Duration, String),
}

/// A fault under way.
#[must_use]
pub(super) struct Fault<'w>(&'w Weather);

impl Drop for Fault<'_> {
    fn drop(&mut self) {
        let mut sky = self.0.sky();
        sky.under_way -= 1;
        sky.cleared = Instant::now();
    }
}

impl Weather {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Sky {
            faults: BTreeMap::new(),
            under_way: 0,
            cleared: Instant::now(),
            errors: BTreeMap::new(),
            latest: (Duration::ZERO, String::new()),
        }))
    }

    fn sky(&self) -> MutexGuard<'_, Sky> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a fault, which lasts until the result goes out of scope.
    pub(super) fn fault(&self, kind: &'static str) -> Fault<'_> {
        let mut sky = self.sky();
        *sky.faults.entry(kind).or_default() += 1;
        sky.under_way += 1;
        Fault(self)
    }

    /// Counts what is no fault but follows from one.
    pub(super) fn note(&self, kind: &'static str) {
        *self.sky().faults.entry(kind).or_default() += 1;
    }

    /// Counts an error that a caller got.
    pub(super) fn error(&self, kind: &str) {
        let mut sky = self.sky();
        *sky.errors.entry(kind.to_owned()).or_default() += 1;
        let since = sky.cleared.elapsed();
        if sky.under_way == 0 && since > sky.latest.0 {
            sky.latest = (since, kind.to_owned());
        }
    }

    /// Returns the longest time from the end of all faults to an error, and that error.
    pub(super) fn latest_error(&self) -> (Duration, String) {
        self.sky().latest.clone()
    }

    /// Returns the numbers of faults and of errors, for people.
    pub(super) fn report(&self) -> (String, String) {
        let sky = self.sky();
        let faults = sky.faults.iter().map(|(kind, count)| format!("{kind} {count}"));
        let errors = sky.errors.iter().map(|(kind, count)| format!("{kind} {count}"));
        (faults.collect::<Vec<_>>().join(", "), errors.collect::<Vec<_>>().join(", "))
    }
}
