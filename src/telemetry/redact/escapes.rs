//! Escape sequences of terminals, such as colours, which are not there where secrets are looked for.

use std::ops::Range;

/// The byte with which a sequence begins.
const ESCAPE: char = '\u{1b}';

/// A text without its escape sequences.
#[derive(Debug)]
pub(super) struct Plain {
    pub(super) text: String,
    /// Begins of what is between the sequences: here, and in the original.
    parts: Vec<(usize, usize)>,
}

impl Plain {
    /// Puts `between` in the place of each sequence; `None` for a text without any.
    pub(super) fn of(text: &str, between: &str) -> Option<Self> {
        let mut sequences = text.match_indices(ESCAPE).filter_map(|(at, _)| {
            let length = sequence(&text.as_bytes()[at..])?;
            Some(at..at + length)
        });
        let sequences = [sequences.next()?].into_iter().chain(sequences);
        let mut plain = Self { text: String::with_capacity(text.len()), parts: vec![(0, 0)] };
        let mut read = 0;
        for Range { start, end } in sequences {
            plain.text.push_str(&text[read..start]);
            plain.text.push_str(between);
            plain.parts.push((plain.text.len(), end));
            read = end;
        }
        plain.text.push_str(&text[read..]);
        Some(plain)
    }

    /// Returns a range of the original, without the sequences before and behind it.
    pub(super) fn original(&self, Range { start, end }: Range<usize>) -> Range<usize> {
        let original = |at: usize, parts: usize| {
            let (here, there) = parts.checked_sub(1).map_or((0, 0), |last| self.parts[last]);
            there + (at - here)
        };
        let before_start = self.parts.partition_point(|(here, _)| *here <= start);
        let before_end = self.parts.partition_point(|(here, _)| *here < end);
        original(start, before_start)..original(end, before_end)
    }
}

/// Returns the length of the sequence at the beginning of a text: `ESC [`, parameters and a letter, or
/// the choice of a set of characters (ECMA-48 and ECMA-35).
fn sequence(bytes: &[u8]) -> Option<usize> {
    let run = |from: usize, range: std::ops::RangeInclusive<u8>| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| range.contains(*byte)).count()
    };
    let ends = |at: usize, range: std::ops::RangeInclusive<u8>| {
        bytes.get(at).is_some_and(|byte| range.contains(byte)).then_some(at + 1)
    };
    match bytes.get(1)? {
        b'[' => ends(run(run(2, 0x30..=0x3f), 0x20..=0x2f), 0x40..=0x7e),
        0x20..=0x2f => ends(run(1, 0x20..=0x2f), 0x30..=0x7e),
        _ => None,
    }
}
