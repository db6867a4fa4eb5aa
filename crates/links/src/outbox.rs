//! Everything that waits to be sent on a connection, and its order.
//!
//! Frames without content go first, then messages that are urgent, then the rest. Messages of one
//! rank take turns, part by part, so that a large one does not hold up small ones.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::frame::{Carried, Control, Number, PART_BYTES_MAX, put_control, put_part};

/// Order of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rank {
    /// Requests and first answers.
    Urgent,
    /// Further answers.
    Later,
}

/// A message that is being sent.
#[derive(Debug)]
struct Outgoing {
    carried: Carried,
    number: Number,
    bytes: Bytes,
    /// Number of bytes that have been taken.
    taken: usize,
}

/// Everything that waits to be sent on a connection.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    controls: VecDeque<Control>,
    urgent: VecDeque<Outgoing>,
    later: VecDeque<Outgoing>,
    queued_bytes: usize,
}

/// Progress of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Control,
    /// A part that is not the last.
    Part,
    /// The last part of a message of this exchange.
    Last(Number),
}

impl Outbox {
    /// Returns the number of bytes of messages that wait.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Returns true if nothing waits, and nothing is counted.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        let messages = self.urgent.len() + self.later.len();
        self.controls.is_empty() && messages == 0 && self.queued_bytes == 0
    }

    /// Returns the number of frames without content that wait.
    pub(crate) fn controls(&self) -> usize {
        self.controls.len()
    }

    pub(crate) fn push_control(&mut self, control: Control) {
        self.controls.push_back(control);
    }

    /// Adds a ping, unless one waits already.
    pub(crate) fn push_ping(&mut self) {
        if !self.controls.contains(&Control::Ping) {
            self.controls.push_front(Control::Ping);
        }
    }

    /// Adds a message. An exchange has at most one message in here.
    pub(crate) fn push(
        &mut self,
        rank: Rank,
        carried: Carried,
        number: Number,
        bytes: impl Into<Bytes>,
    ) {
        let bytes = bytes.into();
        self.queued_bytes += bytes.len();
        let outgoing = Outgoing { carried, number, bytes, taken: 0 };
        match rank {
            Rank::Urgent => self.urgent.push_back(outgoing),
            Rank::Later => self.later.push_back(outgoing),
        }
    }

    /// Removes the message of an exchange. Returns true if a part of it has been taken; `None`:
    /// there is no such message.
    pub(crate) fn remove(&mut self, number: Number) -> Option<bool> {
        for queue in [&mut self.urgent, &mut self.later] {
            if let Some(index) = queue.iter().position(|it| it.number == number) {
                let outgoing = queue.remove(index)?;
                self.queued_bytes -= outgoing.bytes.len() - outgoing.taken;
                return Some(outgoing.taken > 0);
            }
        }
        None
    }

    /// Writes the next frame; `None`: nothing waits.
    pub(crate) fn take(&mut self, to: &mut Vec<u8>) -> Option<Taken> {
        if let Some(control) = self.controls.pop_front() {
            put_control(control, to);
            return Some(Taken::Control);
        }
        let queue = if self.urgent.is_empty() { &mut self.later } else { &mut self.urgent };
        let mut outgoing = queue.pop_front()?;
        let rest = &outgoing.bytes[outgoing.taken..];
        let part = &rest[..rest.len().min(PART_BYTES_MAX)];
        let is_last = part.len() == rest.len();
        put_part(outgoing.carried, outgoing.number, is_last, part, to);
        let part_bytes = part.len();
        self.queued_bytes -= part_bytes;
        outgoing.taken += part_bytes;
        if is_last {
            return Some(Taken::Last(outgoing.number));
        }
        queue.push_back(outgoing);
        Some(Taken::Part)
    }
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::frame::{Frame, take};

    /// Takes everything; returns the exchanges of the frames, controls as 0.
    fn order(outbox: &mut Outbox) -> Vec<Number> {
        let mut bytes = Vec::new();
        while outbox.take(&mut bytes).is_some() {}
        let (mut bytes, mut numbers) = (BytesMut::from(bytes.as_slice()), Vec::new());
        while let Some(frame) = take(&mut bytes).unwrap() {
            numbers.push(match frame {
                Frame::Control(_) => 0,
                Frame::Part { number, .. } => number,
            });
        }
        numbers
    }

    #[test]
    fn a_large_message_and_small_ones_take_turns() {
        let mut outbox = Outbox::default();
        outbox.push(Rank::Urgent, Carried::Request, 1, vec![0; 3 * PART_BYTES_MAX]);
        outbox.push(Rank::Urgent, Carried::Request, 2, vec![0; 5]);
        outbox.push(Rank::Urgent, Carried::Request, 3, vec![0; PART_BYTES_MAX + 1]);
        assert_eq!(order(&mut outbox), [1, 2, 3, 1, 3, 1]);
        assert_eq!(outbox.queued_bytes(), 0);
    }

    #[test]
    fn controls_precede_urgent_messages_which_precede_others() {
        let mut outbox = Outbox::default();
        outbox.push(Rank::Later, Carried::Answer, 1, vec![0; 2 * PART_BYTES_MAX]);
        assert_eq!(outbox.take(&mut Vec::new()), Some(Taken::Part));
        outbox.push(Rank::Urgent, Carried::Answer, 2, vec![0; 2 * PART_BYTES_MAX]);
        outbox.push_control(Control::Ended(3));
        assert_eq!(order(&mut outbox), [0, 2, 2, 1]);
    }

    #[test]
    fn a_message_without_content_has_one_part() {
        let mut outbox = Outbox::default();
        outbox.push(Rank::Urgent, Carried::Request, 4, Vec::new());
        assert_eq!(outbox.take(&mut Vec::new()), Some(Taken::Last(4)));
        assert_eq!(outbox.take(&mut Vec::new()), None);
    }

    #[test]
    fn removed_messages_are_no_longer_counted() {
        let mut outbox = Outbox::default();
        outbox.push(Rank::Urgent, Carried::Request, 1, vec![0; 2 * PART_BYTES_MAX]);
        outbox.push(Rank::Urgent, Carried::Request, 2, vec![0; 10]);
        assert_eq!(outbox.take(&mut Vec::new()), Some(Taken::Part));
        assert_eq!(outbox.queued_bytes(), PART_BYTES_MAX + 10);
        assert_eq!(outbox.remove(2), Some(false));
        assert_eq!(outbox.remove(1), Some(true));
        assert_eq!(outbox.remove(1), None);
        assert_eq!((outbox.queued_bytes(), outbox.take(&mut Vec::new())), (0, None));
    }

    #[test]
    fn one_ping_waits_at_a_time() {
        let mut outbox = Outbox::default();
        outbox.push_ping();
        outbox.push_ping();
        assert_eq!(outbox.controls(), 1);
    }
}
