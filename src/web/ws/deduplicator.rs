//! Removes live events that were already read from the store.

use std::collections::HashMap;

use greenroom_actors::domain::time::Timestamp;

use crate::web::ws::frames::Frame;

/// Time by which live events may be out of order, since they come from several threads. After an
/// event that is this much later than the last one read, no repeats are expected.
const DISORDER_MS: u64 = 60_000;

/// Events that were read from the store and may arrive live as well, because the subscription began
/// before the read.
#[derive(Debug, Default)]
pub(super) struct Deduplicator {
    /// Number of reads per event.
    read: HashMap<u64, u32>,
    newest: Timestamp,
}

impl Deduplicator {
    /// Adds an event that was read.
    pub(super) fn add(&mut self, key: u64, at: Timestamp) {
        *self.read.entry(key).or_default() += 1;
        self.newest = self.newest.max(at);
    }

    /// Returns true if a live frame repeats an event that was read. Each read event is removed
    /// once.
    pub(super) fn is_repeat(&mut self, frame: &Frame) -> bool {
        if frame.at.ms_since(self.newest) > DISORDER_MS {
            self.read.clear();
        }
        match self.read.get_mut(&frame.key) {
            Some(1) => self.read.remove(&frame.key).is_some(),
            Some(count) => {
                *count -= 1;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(key: u64, at: i64) -> Frame {
        Frame { text: "".into(), key, at: Timestamp(at) }
    }

    #[test]
    fn equal_events_are_removed_as_often_as_they_were_read() {
        let mut deduplicator = Deduplicator::default();
        for (key, at) in [(1, 10), (2, 20), (2, 20)] {
            deduplicator.add(key, Timestamp(at));
        }
        let live = [1, 1, 2, 3, 2, 2].map(|key| deduplicator.is_repeat(&frame(key, 20)));
        assert_eq!(live, [true, false, true, false, true, false]);
    }

    #[test]
    fn read_events_are_forgotten_once_no_repeats_are_possible() {
        let mut deduplicator = Deduplicator::default();
        deduplicator.add(1, Timestamp(10));
        assert!(!deduplicator.is_repeat(&frame(9, 60_011)));
        assert!(!deduplicator.is_repeat(&frame(1, 10)));
    }
}
