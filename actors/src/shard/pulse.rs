//! Detects threads of executions that do not respond, and the step that blocks them.
//!
//! Each thread beats twice a second, in its supervisor's sweep. The pulse is read on another
//! thread, so a step that blocks its own is seen while it does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::domain::ids::StepPath;
use crate::ports::store::Header;

/// Time without a beat after which a thread counts as stalled.
const STALLED_AFTER_MS: u64 = 2_000;

/// A thread of executions that does not respond.
#[derive(Debug, Clone, PartialEq)]
pub struct StalledThread {
    pub thread: usize,
    pub silent_for: Duration,
    /// The step whose body is being polled there, if there is one.
    pub held_by: Option<HeldBy>,
}

/// A step that is being polled on a thread.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldBy {
    pub header: Arc<Header>,
    pub path: StepPath,
}

/// The last beats of the threads.
pub(crate) struct Pulse {
    begun: Instant,
    threads: Vec<Beats>,
}

#[derive(Default)]
struct Beats {
    /// Milliseconds since the start.
    last: AtomicU64,
    polled: Mutex<Option<HeldBy>>,
}

impl Pulse {
    pub(crate) fn of(threads: usize) -> Self {
        let threads = (0..threads.max(1)).map(|_| Beats::default()).collect();
        Self { begun: Instant::now(), threads }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    pub(crate) fn beat(&self, thread: usize) {
        if let Some(beats) = self.threads.get(thread) {
            beats.last.store(self.now_ms(), Ordering::Relaxed);
        }
    }

    /// Notes the step that is polled on a thread, until the guard is dropped.
    pub(crate) fn hold(&self, thread: usize, by: &HeldBy) -> Option<HoldGuard<'_>> {
        let beats = self.threads.get(thread)?;
        beats.note(Some(by.clone()));
        Some(HoldGuard(beats))
    }

    pub(crate) fn stalled(&self) -> Vec<StalledThread> {
        self.stalled_at(self.now_ms())
    }

    fn stalled_at(&self, now_ms: u64) -> Vec<StalledThread> {
        let silent = self.threads.iter().enumerate().filter_map(|(thread, beats)| {
            let silent_ms = now_ms.saturating_sub(beats.last.load(Ordering::Relaxed));
            let held_by = || beats.polled.lock().unwrap_or_else(PoisonError::into_inner).clone();
            (silent_ms >= STALLED_AFTER_MS).then(|| StalledThread {
                thread,
                silent_for: Duration::from_millis(silent_ms),
                held_by: held_by(),
            })
        });
        silent.collect()
    }
}

impl Beats {
    fn note(&self, by: Option<HeldBy>) {
        *self.polled.lock().unwrap_or_else(PoisonError::into_inner) = by;
    }
}

/// Clears the note of a polled step when dropped.
pub(crate) struct HoldGuard<'a>(&'a Beats);

impl Drop for HoldGuard<'_> {
    fn drop(&mut self) {
        self.0.note(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::conformance::Bench;
    use crate::ports::memory::MemoryStore;

    #[tokio::test]
    async fn a_thread_without_beats_is_stalled_and_names_the_step_that_blocks_it() {
        let pulse = Pulse::of(2);
        let header = Bench::new(Arc::new(MemoryStore::new())).creation("e").header;
        let by = HeldBy { header: Arc::new(header), path: Arc::from("a") };
        pulse.threads[1].last.store(5_000, Ordering::Relaxed);
        assert_eq!(pulse.stalled_at(1_999), []);
        let held = pulse.hold(0, &by);
        let expected = |held_by| {
            [StalledThread { thread: 0, silent_for: Duration::from_millis(2_500), held_by }]
        };
        assert_eq!(pulse.stalled_at(2_500), expected(Some(by)));
        drop(held);
        assert_eq!(pulse.stalled_at(2_500), expected(None));
        assert_eq!(pulse.stalled_at(7_000).len(), 2);
    }
}
