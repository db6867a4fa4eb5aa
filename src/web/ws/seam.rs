//! Where what was read from the record meets what comes live: nothing twice.

use std::collections::HashMap;

use greenroom_actors::domain::time::Timestamp;

use crate::web::ws::frames::Frame;

/// How much later than the last one read an event may be and yet come before one that was read:
/// they come from several threads.
const DISORDER_MS: u64 = 60_000;

/// What was read from the record and may come live as well, because the listener was registered
/// before the record was read.
#[derive(Debug, Default)]
pub(super) struct Seam {
    /// How often each event was read.
    read: HashMap<u64, u32>,
    newest: Timestamp,
}

impl Seam {
    /// Takes note of an event that was read.
    pub(super) fn add(&mut self, key: u64, at: Timestamp) {
        *self.read.entry(key).or_default() += 1;
        self.newest = self.newest.max(at);
    }

    /// Whether a frame that comes live tells of an event that was read.
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
    fn what_was_read_is_told_as_often_as_it_happened() {
        let mut seam = Seam::default();
        for (key, at) in [(1, 10), (2, 20), (2, 20)] {
            seam.add(key, Timestamp(at));
        }
        let live = [1, 1, 2, 3, 2, 2].map(|key| seam.is_repeat(&frame(key, 20)));
        assert_eq!(live, [true, false, true, false, true, false]);
    }

    #[test]
    fn it_is_forgotten_when_nothing_of_then_can_come() {
        let mut seam = Seam::default();
        seam.add(1, Timestamp(10));
        assert!(!seam.is_repeat(&frame(9, 60_011)));
        assert!(!seam.is_repeat(&frame(1, 10)));
    }
}
