//! Numbers about a server since the start of the process.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};

/// Numbers about a server.
#[derive(Debug)]
pub(super) struct Counts {
    /// Time since which it is connected, or not.
    since: AtomicI64,
    lost: AtomicU64,
    calls: AtomicU64,
    failures: AtomicU64,
}

impl Counts {
    pub(super) fn new() -> Self {
        Self {
            since: AtomicI64::new(SystemClock.now().0),
            lost: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Notes that it is connected now, or no longer.
    pub(super) fn change(&self) {
        self.since.store(SystemClock.now().0, Ordering::Relaxed);
    }

    /// Counts a lost connection.
    pub(super) fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a call that has ended.
    pub(super) fn call(&self, has_failed: bool) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.failures.fetch_add(u64::from(has_failed), Ordering::Relaxed);
    }

    /// Returns the time since which it is connected, or not.
    pub(super) fn since(&self) -> Timestamp {
        Timestamp(self.since.load(Ordering::Relaxed))
    }

    /// Returns the number of connections that were lost.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns the numbers of calls and of failed ones.
    pub(super) fn calls(&self) -> (u64, u64) {
        (self.calls.load(Ordering::Relaxed), self.failures.load(Ordering::Relaxed))
    }
}
