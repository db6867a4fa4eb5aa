//! The form of frames on a link that has been established.
//!
//! A frame is its length (4 bytes, without themselves), a kind, the number of its exchange and a
//! payload. Numbers are big-endian. The server that has dialled a connection counts its exchanges;
//! its requests travel one way, the answers the other.

use bytes::{Buf as _, BufMut as _, BytesMut};

/// Maximum size of a part of a message.
pub(crate) const PART_BYTES_MAX: usize = 64 * 1024;
/// Size of the kind and the number of the exchange.
const HEADER_BYTES: usize = 9;
const LENGTH_BYTES: usize = 4;

/// Number of an exchange, used once per connection.
pub(crate) type Number = u64;

/// A message, in the direction in which it travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carried {
    Request,
    Answer,
}

/// Messages and bytes that a side may send in addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Credit {
    pub(crate) messages: u32,
    pub(crate) bytes: u64,
}

/// A frame without content of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// Shows that this side is alive.
    Ping,
    /// No further answers come: all have been sent.
    Ended(Number),
    /// No further answers come: the answerer failed.
    Failed(Number),
    /// The asker no longer waits for answers.
    Gone(Number),
    /// The asker has read answers.
    Room(Number, Credit),
}

/// A frame that was received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Control(Control),
    /// The next part of a message.
    Part {
        carried: Carried,
        number: Number,
        is_last: bool,
        bytes: BytesMut,
    },
}

/// A breach of the protocol, which ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("a frame of {0} bytes is too long or too short")]
    Length(u32),
    #[error("frames of kind {0} are unknown")]
    Kind(u8),
    #[error("a frame of kind {0} has the wrong size")]
    Payload(u8),
    #[error("a frame travels in the wrong direction")]
    Direction,
    #[error("a message exceeds the maximum size")]
    MessageTooLarge,
    #[error("there are too many open exchanges")]
    TooManyExchanges,
    #[error("unfinished requests exceed their maximum size")]
    TooManyBytes,
    #[error("an exchange begins twice")]
    NumberUsed,
    #[error("there was no room for an answer")]
    NoRoom,
}

const PING: u8 = 1;
const REQUEST_PART: u8 = 2;
const REQUEST_END: u8 = 3;
const ANSWER_PART: u8 = 4;
const ANSWER_END: u8 = 5;
const ENDED: u8 = 6;
const FAILED: u8 = 7;
const GONE: u8 = 8;
const ROOM: u8 = 9;

fn put_header(kind: u8, number: Number, payload_bytes: usize, to: &mut Vec<u8>) {
    let length = HEADER_BYTES + payload_bytes;
    to.put_u32(u32::try_from(length).expect("a payload is at most a part of a message"));
    to.put_u8(kind);
    to.put_u64(number);
}

/// Writes a part of a message.
pub(crate) fn put_part(
    carried: Carried,
    number: Number,
    is_last: bool,
    part: &[u8],
    to: &mut Vec<u8>,
) {
    debug_assert!(part.len() <= PART_BYTES_MAX);
    let kind = match (carried, is_last) {
        (Carried::Request, false) => REQUEST_PART,
        (Carried::Request, true) => REQUEST_END,
        (Carried::Answer, false) => ANSWER_PART,
        (Carried::Answer, true) => ANSWER_END,
    };
    put_header(kind, number, part.len(), to);
    to.put_slice(part);
}

/// Writes a frame without content of messages.
pub(crate) fn put_control(control: Control, to: &mut Vec<u8>) {
    match control {
        Control::Ping => put_header(PING, 0, 0, to),
        Control::Ended(number) => put_header(ENDED, number, 0, to),
        Control::Failed(number) => put_header(FAILED, number, 0, to),
        Control::Gone(number) => put_header(GONE, number, 0, to),
        Control::Room(number, Credit { messages, bytes }) => {
            put_header(ROOM, number, 12, to);
            to.put_u32(messages);
            to.put_u64(bytes);
        }
    }
}

/// Takes the next frame out of what has been received; `None`: it is not yet complete.
pub(crate) fn take(received: &mut BytesMut) -> Result<Option<Frame>, Violation> {
    let Some(mut length) = received.get(..LENGTH_BYTES) else { return Ok(None) };
    let length = length.get_u32();
    let is_valid = |length: &usize| (HEADER_BYTES..=HEADER_BYTES + PART_BYTES_MAX).contains(length);
    let size = usize::try_from(length).ok().filter(is_valid).ok_or(Violation::Length(length))?;
    if received.len() < LENGTH_BYTES + size {
        received.reserve(LENGTH_BYTES + size - received.len());
        return Ok(None);
    }
    received.advance(LENGTH_BYTES);
    let mut frame = received.split_to(size);
    let (kind, number) = (frame.get_u8(), frame.get_u64());
    read(kind, number, frame).map(Some)
}

fn read(kind: u8, number: Number, mut payload: BytesMut) -> Result<Frame, Violation> {
    let part = |carried, is_last, bytes| Ok(Frame::Part { carried, number, is_last, bytes });
    let empty = |control| {
        payload.is_empty().then_some(Frame::Control(control)).ok_or(Violation::Payload(kind))
    };
    match kind {
        PING => empty(Control::Ping),
        REQUEST_PART => part(Carried::Request, false, payload),
        REQUEST_END => part(Carried::Request, true, payload),
        ANSWER_PART => part(Carried::Answer, false, payload),
        ANSWER_END => part(Carried::Answer, true, payload),
        ENDED => empty(Control::Ended(number)),
        FAILED => empty(Control::Failed(number)),
        GONE => empty(Control::Gone(number)),
        ROOM if payload.len() == 12 => {
            let credit = Credit { messages: payload.get_u32(), bytes: payload.get_u64() };
            Ok(Frame::Control(Control::Room(number, credit)))
        }
        ROOM => Err(Violation::Payload(ROOM)),
        kind => Err(Violation::Kind(kind)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn control() -> impl Strategy<Value = Control> {
        let credit = (any::<u32>(), any::<u64>());
        prop_oneof![
            Just(Control::Ping),
            any::<u64>().prop_map(Control::Ended),
            any::<u64>().prop_map(Control::Failed),
            any::<u64>().prop_map(Control::Gone),
            (any::<u64>(), credit).prop_map(|(number, (messages, bytes))| Control::Room(
                number,
                Credit { messages, bytes }
            )),
        ]
    }

    fn part() -> impl Strategy<Value = Frame> {
        let bytes = prop::collection::vec(any::<u8>(), 0..200);
        (any::<bool>(), any::<u64>(), any::<bool>(), bytes).prop_map(
            |(is_request, number, is_last, bytes)| Frame::Part {
                carried: if is_request { Carried::Request } else { Carried::Answer },
                number,
                is_last,
                bytes: BytesMut::from(bytes.as_slice()),
            },
        )
    }

    fn put(frame: &Frame, to: &mut Vec<u8>) {
        match frame {
            Frame::Control(control) => put_control(*control, to),
            Frame::Part { carried, number, is_last, bytes } => {
                put_part(*carried, *number, *is_last, bytes, to);
            }
        }
    }

    /// Takes all frames out of bytes that arrive in pieces.
    fn taken(bytes: &[u8], piece_bytes: usize) -> Result<Vec<Frame>, Violation> {
        let (mut received, mut frames) = (BytesMut::new(), Vec::new());
        for piece in bytes.chunks(piece_bytes) {
            received.extend_from_slice(piece);
            while let Some(frame) = take(&mut received)? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written(
            frames in prop::collection::vec(
                prop_oneof![control().prop_map(Frame::Control), part()],
                0..20,
            ),
            piece_bytes in 1usize..300,
        ) {
            let mut bytes = Vec::new();
            frames.iter().for_each(|frame| put(frame, &mut bytes));
            prop_assert_eq!(taken(&bytes, piece_bytes).unwrap(), frames);
        }

        #[test]
        fn rubbish_is_refused_or_incomplete(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            piece_bytes in 1usize..50,
        ) {
            // an error or some frames, and no panic
            let _ = taken(&bytes, piece_bytes);
        }
    }

    #[test]
    fn the_largest_part_fits_and_a_longer_frame_does_not() {
        let mut bytes = Vec::new();
        put_part(Carried::Answer, 1, true, &vec![7; PART_BYTES_MAX], &mut bytes);
        assert_eq!(taken(&bytes, 1000).unwrap().len(), 1);
        let length = u32::try_from(HEADER_BYTES + PART_BYTES_MAX + 1).unwrap();
        let refused = take(&mut BytesMut::from(length.to_be_bytes().as_slice()));
        assert_eq!(refused, Err(Violation::Length(length)), "before its bytes arrive");
        let short = take(&mut BytesMut::from(8u32.to_be_bytes().as_slice()));
        assert_eq!(short, Err(Violation::Length(8)));
    }

    #[test]
    fn unknown_kinds_and_sizes_are_refused() {
        let mut bytes = Vec::new();
        put_header(10, 1, 0, &mut bytes);
        assert_eq!(taken(&bytes, 100), Err(Violation::Kind(10)));
        for kind in [PING, ENDED, FAILED, GONE, ROOM] {
            let mut bytes = Vec::new();
            put_header(kind, 1, 1, &mut bytes);
            bytes.push(0);
            assert_eq!(taken(&bytes, 100), Err(Violation::Payload(kind)));
        }
    }
}
