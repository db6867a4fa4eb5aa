//! Refuses frames by the size in their header: actix-web-actors buffers a whole frame before it
//! checks its size.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures_util::Stream;

/// Bytes of a client, up to the header of a frame that is too large.
pub(super) struct Bounded<S> {
    bytes: S,
    heads: Heads,
    /// Set if a frame is too large: the session does not see the error of this stream.
    is_oversized: Rc<Cell<bool>>,
}

impl<S> Bounded<S> {
    pub(super) fn new(bytes: S, frame_bytes_max: usize, is_oversized: Rc<Cell<bool>>) -> Self {
        let payload_max = u64::try_from(frame_bytes_max).unwrap_or(u64::MAX);
        let heads = Heads { payload_max, head: Vec::new(), payload_left: 0 };
        Self { bytes, heads, is_oversized }
    }
}

impl<S> Stream for Bounded<S>
where
    S: Stream<Item = Result<Bytes, PayloadError>> + Unpin,
{
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = std::task::ready!(Pin::new(&mut self.bytes).poll_next(cx));
        Poll::Ready(next.map(|bytes| match bytes {
            Ok(bytes) if !self.heads.admit(&bytes) => {
                self.is_oversized.set(true);
                Err(PayloadError::Overflow)
            }
            other => other,
        }))
    }
}

/// Finds the headers of frames in bytes that arrive in pieces.
#[derive(Debug)]
struct Heads {
    payload_max: u64,
    /// Beginning of the next header.
    head: Vec<u8>,
    payload_left: u64,
}

impl Heads {
    fn admit(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((first, rest)) = bytes.split_first() {
            if self.payload_left > 0 {
                let left = usize::try_from(self.payload_left).unwrap_or(usize::MAX);
                let passed = left.min(bytes.len());
                self.payload_left -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            self.head.push(*first);
            bytes = rest;
            if let Some(length) = payload_length(&self.head) {
                if length > self.payload_max {
                    return false;
                }
                self.payload_left = length;
                self.head.clear();
            }
        }
        true
    }
}

/// Returns the length of the payload; `None` while the header is incomplete.
fn payload_length(head: &[u8]) -> Option<u64> {
    let second = *head.get(1)?;
    let extended = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let mask = if second & 0x80 == 0 { 0 } else { 4 };
    if head.len() < 2 + extended + mask {
        return None;
    }
    Some(match extended {
        0 => u64::from(second & 0x7f),
        _ => head[2..2 + extended].iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the bytes are admitted in pieces of this size.
    fn passes(bytes: &[u8], piece: usize) -> bool {
        let mut heads = Heads { payload_max: 300, head: Vec::new(), payload_left: 0 };
        bytes.chunks(piece).all(|piece| heads.admit(piece))
    }

    fn frame(head: &[u8], payload: usize) -> Vec<u8> {
        [head, &vec![0xff; payload]].concat()
    }

    #[test]
    fn large_frames_are_refused_by_their_header_in_pieces_of_any_size() {
        let small = frame(&[0x81, 0x83, 1, 2, 3, 4], 3);
        let full = frame(&[0x81, 0xfe, 1, 44, 1, 2, 3, 4], 300);
        let over = frame(&[0x81, 0xfe, 1, 45, 1, 2, 3, 4], 0);
        let vast = frame(&[0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4], 0);
        let empty = frame(&[0x89, 0x80, 1, 2, 3, 4], 0);
        let unmasked = frame(&[0x81, 2], 2);
        let good = [small, full, empty, unmasked].concat();
        for piece in [1, 2, 3, 7, 64, 10_000] {
            assert!(passes(&good, piece), "in pieces of {piece}");
            for bad in [&over, &vast] {
                assert!(!passes(&[&good[..], bad].concat(), piece), "in pieces of {piece}");
            }
        }
    }
}
