//! Assembles messages from fragments.

use actix_http::ws::Item;
use actix_web::web::Bytes;

/// Buffer of the fragments of one message.
#[derive(Debug)]
pub(super) struct Assembler {
    bytes_max: usize,
    frames_max: usize,
    gathering: Option<Gathering>,
}

#[derive(Debug)]
struct Gathering {
    is_text: bool,
    bytes: Vec<u8>,
    /// Frames of the message, including control frames between them.
    frames: usize,
}

/// Complete message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) is_text: bool,
    pub(super) bytes: Vec<u8>,
}

/// Error in a sequence of fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FragmentError {
    TooLarge,
    /// Too many frames, regardless of their size.
    TooMany,
    /// First fragment inside a message, or a later one outside.
    OutOfPlace,
}

impl Assembler {
    pub(super) fn new(bytes_max: usize, frames_max: usize) -> Self {
        Self { bytes_max, frames_max, gathering: None }
    }

    /// Counts a control frame, which may arrive between fragments.
    pub(super) fn count_control(&mut self) -> Result<(), FragmentError> {
        match &mut self.gathering {
            Some(gathering) => gathering.count(self.frames_max),
            None => Ok(()),
        }
    }

    /// True inside a fragmented message, where a whole one is an error.
    pub(super) fn is_gathering(&self) -> bool {
        self.gathering.is_some()
    }

    /// Adds a fragment; returns the message if it is complete.
    pub(super) fn take(&mut self, fragment: Item) -> Result<Option<Whole>, FragmentError> {
        match fragment {
            Item::FirstText(bytes) => self.begin(true, &bytes),
            Item::FirstBinary(bytes) => self.begin(false, &bytes),
            Item::Continue(bytes) => self.extend(&bytes).map(|()| None),
            Item::Last(bytes) => {
                self.extend(&bytes)?;
                let whole = |Gathering { is_text, bytes, frames: _ }| Whole { is_text, bytes };
                Ok(self.gathering.take().map(whole))
            }
        }
    }

    fn begin(&mut self, is_text: bool, bytes: &Bytes) -> Result<Option<Whole>, FragmentError> {
        if self.gathering.is_some() {
            return Err(FragmentError::OutOfPlace);
        }
        self.gathering = Some(Gathering { is_text, bytes: Vec::new(), frames: 0 });
        self.extend(bytes).map(|()| None)
    }

    fn extend(&mut self, bytes: &Bytes) -> Result<(), FragmentError> {
        let gathering = self.gathering.as_mut().ok_or(FragmentError::OutOfPlace)?;
        gathering.count(self.frames_max)?;
        if gathering.bytes.len() + bytes.len() > self.bytes_max {
            return Err(FragmentError::TooLarge);
        }
        gathering.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Gathering {
    fn count(&mut self, frames_max: usize) -> Result<(), FragmentError> {
        self.frames += 1;
        if self.frames > frames_max { Err(FragmentError::TooMany) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn fragments_become_a_message() {
        let mut assembler = Assembler::new(6, 3);
        assert_eq!(assembler.take(Item::FirstText(bytes("ab"))), Ok(None));
        assert_eq!(assembler.take(Item::Continue(bytes("cd"))), Ok(None));
        let whole = Whole { is_text: true, bytes: b"abcdef".to_vec() };
        assert_eq!(assembler.take(Item::Last(bytes("ef"))), Ok(Some(whole)));
        assert!(!assembler.is_gathering());
    }

    #[test]
    fn empty_fragments_and_control_frames_count_toward_the_limit() {
        let mut assembler = Assembler::new(6, 3);
        assert_eq!(assembler.count_control(), Ok(()), "no message is under way");
        assert_eq!(assembler.take(Item::FirstText(bytes(""))), Ok(None));
        assert_eq!(assembler.count_control(), Ok(()));
        assert_eq!(assembler.take(Item::Continue(bytes(""))), Ok(None));
        assert_eq!(assembler.take(Item::Continue(bytes(""))), Err(FragmentError::TooMany));
        assert_eq!(assembler.count_control(), Err(FragmentError::TooMany));
    }

    #[test]
    fn misplaced_and_too_large_fragments_are_refused() {
        let mut assembler = Assembler::new(3, 100);
        assert_eq!(assembler.take(Item::Last(bytes("a"))), Err(FragmentError::OutOfPlace));
        assert_eq!(assembler.take(Item::FirstText(bytes("ab"))), Ok(None));
        assert_eq!(assembler.take(Item::FirstText(bytes("ab"))), Err(FragmentError::OutOfPlace));
        assert_eq!(assembler.take(Item::Continue(bytes("cd"))), Err(FragmentError::TooLarge));
    }
}
