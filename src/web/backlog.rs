//! The bytes that wait for slow clients, of all of them together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Between two looks for room; rarely needed, and then others have to read first.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Counts what waits. Cheap to clone; all clones are one count.
#[derive(Debug, Clone)]
pub(crate) struct Backlog(Arc<Count>);

#[derive(Debug)]
struct Count {
    bytes: AtomicUsize,
    max: usize,
}

/// Bytes that count while it lives.
#[derive(Debug)]
pub(crate) struct Held {
    backlog: Backlog,
    bytes: usize,
}

impl Backlog {
    pub(crate) fn new(max: usize) -> Self {
        Self(Arc::new(Count { bytes: AtomicUsize::new(0), max }))
    }

    /// Whether so many more bytes may wait. Something always may when nothing does.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let waiting = self.bytes();
        waiting == 0 || waiting.saturating_add(bytes) <= self.0.max
    }

    /// Resolves when so many more bytes may wait.
    pub(crate) async fn room(&self, bytes: usize) {
        while !self.has_room(bytes) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Counts bytes, room or not.
    pub(crate) fn hold(&self, bytes: usize) -> Held {
        let mut held = Held { backlog: self.clone(), bytes: 0 };
        held.grow(bytes);
        held
    }

    /// Counts bytes if there is room for them.
    pub(crate) fn try_hold(&self, bytes: usize) -> Option<Held> {
        let held = self.hold(bytes);
        let waiting = self.bytes();
        (waiting <= self.0.max || waiting == bytes).then_some(held)
    }

    fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }
}

impl Held {
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.backlog.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.backlog.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether so many more bytes may wait, of all that are counted.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.backlog.has_room(bytes)
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog.clone()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_held_counts_until_it_is_dropped() {
        let backlog = Backlog::new(10);
        let mut first = backlog.try_hold(6).unwrap();
        assert!(backlog.try_hold(5).is_none(), "a refusal counts nothing");
        let second = backlog.try_hold(4).unwrap();
        assert!(!backlog.has_room(1) && backlog.room(1).now_or_never().is_none());
        first.shrink(100);
        backlog.room(6).await;
        first.grow(20);
        assert!(!second.has_room(0), "what was counted anyway leaves no room");
        drop((first, second));
        assert_eq!(backlog.bytes(), 0);
        let alone = backlog.try_hold(50).unwrap();
        assert!(backlog.try_hold(1).is_none(), "something fits, and then nothing more");
        drop(alone);
    }
}
