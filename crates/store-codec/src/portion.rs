//! Portions of an execution's facts, cut from stored arrays that are read in windows: of a large
//! array, only the requested part is read and parsed.

use greenroom_actors::domain::event::events_of;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::ports::store::{FactCursor, Mark, Portion};
use serde::Deserialize;

use super::Damaged;
use super::json::parse;
use super::numbers::signed;

/// Maximum number of portions of a chunk, because stores read it whole for each of them.
pub const CHUNK_PORTIONS: u64 = 64;
/// Minimum number of bytes to read at once, and bytes read beyond a portion to detect its end.
const WINDOW_MIN: usize = 4096;

/// Range of bytes of a stored array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub at: usize,
    pub length: usize,
}

impl Window {
    /// Returns position and length for SQL's `substr`, which counts from 1.
    pub fn as_substr(self) -> (i64, i64) {
        (signed(self.at as u64 + 1), signed(self.length as u64))
    }
}

/// A portion that is being filled.
#[derive(Debug)]
pub struct Filling {
    above: u64,
    /// Number of bytes that still fit.
    left: usize,
    facts: Vec<Recorded>,
    is_full: bool,
}

/// Number of a fact, parsed without the rest.
#[derive(Deserialize)]
struct Numbered {
    n: u64,
}

impl Filling {
    /// Starts a portion of facts with numbers above one, of about `bytes` in their stored size. It
    /// takes at least one fact with an event, if there is one.
    pub fn new(above: u64, bytes: usize) -> Self {
        Self { above, left: bytes, facts: Vec::new(), is_full: false }
    }

    /// Returns true if nothing more fits.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the first window of an array, from an offset on: the facts that fit, and the start
    /// of the next one.
    pub fn window(&self, offset: u64) -> Window {
        Window { at: first_of(offset), length: self.left.saturating_add(WINDOW_MIN) }
    }

    /// Returns the portion. The next one continues in the array `piece`, the execution's own if
    /// `None`, at an offset.
    pub fn into_portion(self, piece: Option<(i64, i64)>, offset: u64) -> Portion {
        let last = self.facts.last().map(|fact| fact.next_seq().saturating_sub(1));
        let next =
            FactCursor { above: last.unwrap_or(self.above), mark: Some(Mark { piece, offset }) };
        Portion { facts: self.facts, next }
    }

    /// Takes complete facts; returns the number of bytes up to the first one not taken.
    fn take_from(&mut self, bytes: &[u8]) -> Result<usize, Damaged> {
        let mut at = 0;
        while !self.is_full {
            at += bytes[at..].iter().take_while(|byte| matches!(byte, b',' | b']')).count();
            let mut facts = serde_json::Deserializer::from_slice(&bytes[at..]).into_iter();
            let number = match facts.next() {
                Some(Ok(Numbered { n })) => n,
                Some(Err(error)) if !error.is_eof() => return Err(Damaged::new(error)),
                Some(Err(_)) | None => {
                    // the part read is too large already, without the rest
                    self.is_full = bytes.len() - at > self.left && self.has_event();
                    break;
                }
            };
            let length = facts.byte_offset();
            if number > self.above {
                if length > self.left && self.has_event() {
                    self.is_full = true;
                    break;
                }
                self.left = self.left.saturating_sub(length);
                self.facts.push(parse(&bytes[at..at + length])?);
            }
            at += length;
        }
        Ok(at)
    }

    fn has_event(&self) -> bool {
        self.facts.iter().any(|fact| !events_of(&fact.fact).is_empty())
    }
}

/// Returns the position of the first fact at an offset, after the opening bracket.
fn first_of(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX).max(1)
}

/// A pass over one stored array, window by window. The caller reads the bytes:
/// [`Walk::next_window`] names them, [`Walk::take`] takes facts from them.
#[derive(Debug)]
pub struct Walk {
    length: usize,
    at: usize,
    window_min: usize,
    window: usize,
}

impl Walk {
    /// Starts in the array of the execution's own row, of which parts can be read.
    pub fn of_row(filling: &Filling, length: u64, offset: u64) -> Self {
        Self::new(length, offset, filling.window(offset).length)
    }

    /// Starts in a chunk, which is read whole: the portion takes a larger part of a large one.
    pub fn of_chunk(filling: &mut Filling, length: u64, offset: u64) -> Self {
        let window = filling.window(offset).length;
        let share = usize::try_from(length / CHUNK_PORTIONS).unwrap_or(usize::MAX);
        filling.left = filling.left.max(share);
        Self::new(length, offset, window.max(share))
    }

    fn new(length: u64, offset: u64, window_min: usize) -> Self {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        Self { length, at: first_of(offset), window_min, window: window_min }
    }

    /// Returns the window to read next; `None` at the end of the array or of the portion.
    pub fn next_window(&self, filling: &Filling) -> Option<Window> {
        if filling.is_full || self.at >= self.length {
            return None;
        }
        Some(Window { at: self.at, length: self.window.min(self.length - self.at) })
    }

    /// Takes facts from the window that was read, which may be shorter.
    pub fn take(&mut self, filling: &mut Filling, bytes: &[u8]) -> Result<(), Damaged> {
        let used = filling.take_from(bytes)?;
        if used == 0 && !filling.is_full {
            if self.at + bytes.len() >= self.length {
                return Err(Damaged::new("ends inside a fact"));
            }
            self.window = self.window.saturating_mul(2);
        } else {
            self.window = self.window_min;
        }
        self.at += used;
        Ok(())
    }

    /// Returns the offset after the last fact taken.
    pub fn offset(&self) -> u64 {
        self.at as u64
    }
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::fact::Fact;
    use greenroom_actors::domain::time::Timestamp;

    use super::*;

    /// Returns the number of windows and the offset at the end.
    fn walked(filling: &mut Filling, walk: Walk, bytes: &[u8]) -> Result<(usize, u64), Damaged> {
        let (mut walk, mut reads) = (walk, 0);
        while let Some(Window { at, length }) = walk.next_window(filling) {
            reads += 1;
            walk.take(filling, &bytes[at..at + length])?;
        }
        Ok((reads, walk.offset()))
    }

    fn filled(
        above: u64,
        left: usize,
        json: &str,
        window: usize,
    ) -> Result<(Vec<u64>, u64), Damaged> {
        let mut filling = Filling::new(above, left);
        let walk = Walk::new(json.len() as u64, 0, window);
        let (_, end) = walked(&mut filling, walk, json.as_bytes())?;
        Ok((filling.facts.iter().map(|fact| fact.seq).collect(), end))
    }

    fn fact(n: u64) -> String {
        let fact = Fact::StepStarted {
            path: "a,]}\"ü".into(),
            attempt: 1,
            interrupted: false,
            opening: None,
        };
        let at = Timestamp(1);
        serde_json::to_string(&Recorded { seq: n, at, fact, by: None }).unwrap()
    }

    #[test]
    fn a_portion_is_read_in_one_window() {
        let facts: Vec<_> = (1..=1000).map(fact).collect();
        let bytes = format!("[{}]", facts.join(",")).into_bytes();
        for left in [1, 1000, 5000, 20_000] {
            let mut filling = Filling::new(0, left);
            let walk = Walk::of_row(&filling, bytes.len() as u64, 0);
            let (reads, _) = walked(&mut filling, walk, &bytes).unwrap();
            assert!(filling.is_full && !filling.facts.is_empty());
            assert_eq!(reads, 1, "{left} bytes");
        }
    }

    #[test]
    fn a_piece_can_be_read_in_windows_of_any_size() {
        let facts: Vec<_> = (1..=5).map(fact).collect();
        let json = format!("[{}]", facts.join(","));
        let length = facts[0].len();
        for window in [1, 7, length, 10 * length] {
            let end = json.len() as u64;
            assert_eq!(filled(0, 1000, &json, window).unwrap(), (vec![1, 2, 3, 4, 5], end));
            assert_eq!(filled(3, 1000, &json, window).unwrap(), (vec![4, 5], end));
            assert_eq!(filled(9, 1000, &json, window).unwrap(), (vec![], end));
            let second = 1 + 2 * (length as u64 + 1);
            assert_eq!(filled(0, 2 * length, &json, window).unwrap(), (vec![1, 2], second));
            assert_eq!(filled(0, 1, &json, window).unwrap().0, [1], "one at least");
        }
        for broken in [&json[..json.len() - 3], "[{\"n\":1},", "[{\"n\":\"x\"}]"] {
            assert!(filled(0, 1000, broken, 16).is_err(), "{broken}");
        }
    }
}
