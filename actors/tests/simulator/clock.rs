//! A clock that follows virtual time and can be set, and sequential ids.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::Clock;
use greenroom_actors::testkit::EPOCH_MS;
use tokio::time::Instant;

pub(crate) struct SimClock {
    start: Instant,
    offset_ms: AtomicI64,
    /// Largest offset so far.
    furthest_ms: AtomicI64,
    ids: AtomicU64,
}

impl SimClock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            offset_ms: AtomicI64::new(0),
            furthest_ms: AtomicI64::new(0),
            ids: AtomicU64::new(0),
        }
    }

    /// Sets the clock forward or back.
    pub(crate) fn step(&self, ms: i64) {
        let offset = self.offset_ms.fetch_add(ms, Ordering::SeqCst) + ms;
        self.furthest_ms.fetch_max(offset, Ordering::SeqCst);
    }

    /// Returns how far it is behind its largest offset: some timers are due that much later.
    pub(crate) fn behind_ms(&self) -> u64 {
        let behind =
            self.furthest_ms.load(Ordering::SeqCst) - self.offset_ms.load(Ordering::SeqCst);
        u64::try_from(behind).unwrap_or(0)
    }

    /// Returns virtual milliseconds since the start, unaffected by clock changes.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.elapsed_ms()).unwrap_or(i64::MAX);
        Timestamp(EPOCH_MS + passed + self.offset_ms.load(Ordering::SeqCst))
    }

    fn new_id(&self) -> Arc<str> {
        Arc::from(format!("id-{:05}", self.ids.fetch_add(1, Ordering::Relaxed) + 1))
    }
}
