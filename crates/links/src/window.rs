//! Answers that may be under way in one exchange: sent, and not yet read by the asker.

use crate::frame::Credit;

/// Number of answers.
const MESSAGES: u32 = 16;
/// Size of the answers. One answer may exceed it: its size is known when it is there.
const BYTES: u64 = 256 * 1024;

impl Credit {
    /// Returns what a message needs.
    pub(crate) fn of_message(bytes: usize) -> Self {
        Self { messages: 1, bytes: u64::try_from(bytes).unwrap_or(u64::MAX) }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    pub(crate) fn subtract(&mut self, other: Self) {
        self.messages = self.messages.saturating_sub(other.messages);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }

    /// Returns true if another answer may be sent while these are under way.
    pub(crate) fn leaves_room(self) -> bool {
        self.messages < MESSAGES && self.bytes < BYTES
    }

    /// Returns true if so much was read that the answerer is to know. Less leaves it room, so it
    /// never waits in vain.
    pub(crate) fn is_worth_a_frame(self) -> bool {
        self.messages >= MESSAGES / 2 || self.bytes >= BYTES / 2
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// An answerer that waits for room is given some as soon as everything has been read.
        #[test]
        fn readers_that_keep_up_leave_room(
            sizes in prop::collection::vec(0usize..400_000, 1..100),
        ) {
            let (mut under_way, mut read) = (Credit::default(), Credit::default());
            for size in sizes {
                prop_assert!(under_way.leaves_room());
                let message = Credit::of_message(size);
                under_way.add(message);
                read.add(message);
                if read.is_worth_a_frame() {
                    under_way.subtract(std::mem::take(&mut read));
                }
            }
        }
    }
}
