//! Clocks that follow virtual time and can be set, and sequential ids.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::Clock;
use greenroom_actors::testkit::{EPOCH_MS, uuid_of};
use tokio::time::Instant;

pub(crate) struct SimClock {
    start: Instant,
    offset_ms: AtomicI64,
    /// Largest offset so far.
    furthest_ms: AtomicI64,
    /// Speed in percent.
    speed: AtomicI64,
    ids: AtomicU64,
    /// The process whose ids are UUIDs, so that children are in the slots of their parents.
    process: Option<u64>,
}

impl SimClock {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            offset_ms: AtomicI64::new(0),
            furthest_ms: AtomicI64::new(0),
            speed: AtomicI64::new(100),
            ids: AtomicU64::new(0),
            process: None,
        }
    }

    /// Returns the clock of one process among several, with its speed in percent.
    pub(crate) fn of_process(process: u64, speed: i64) -> Self {
        Self { process: Some(process), speed: AtomicI64::new(speed), ..Self::new() }
    }

    /// Sets the clock to a time from which on it is right.
    pub(crate) fn set(&self, now: Timestamp) {
        self.speed.store(100, Ordering::SeqCst);
        let passed = i64::try_from(self.elapsed_ms()).unwrap_or(i64::MAX);
        self.offset_ms.store(now.0 - EPOCH_MS - passed, Ordering::SeqCst);
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
        let passed = passed * self.speed.load(Ordering::SeqCst) / 100;
        Timestamp(EPOCH_MS + passed + self.offset_ms.load(Ordering::SeqCst))
    }

    fn new_id(&self) -> Arc<str> {
        let number = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        match self.process {
            Some(process) => uuid_of(process, number),
            None => Arc::from(format!("id-{number:05}")),
        }
    }
}
