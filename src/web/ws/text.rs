//! Whole messages from fragments.

use actix_http::ws::Item;
use actix_web::web::Bytes;

/// Gathers the fragments of one message.
#[derive(Debug)]
pub(super) struct Assembler {
    bytes_max: usize,
    gathering: Option<Gathering>,
}

#[derive(Debug)]
struct Gathering {
    is_text: bool,
    bytes: Vec<u8>,
}

/// A message that has come whole.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) is_text: bool,
    pub(super) bytes: Vec<u8>,
}

/// Why the fragments make no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    TooLarge,
    /// A first fragment inside a message, or another outside of one.
    OutOfPlace,
}

impl Assembler {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, gathering: None }
    }

    /// Whether a message is under way, so that a whole one would be out of place.
    pub(super) fn is_gathering(&self) -> bool {
        self.gathering.is_some()
    }

    /// Takes a fragment; gives the message when it is complete.
    pub(super) fn take(&mut self, fragment: Item) -> Result<Option<Whole>, Broken> {
        match fragment {
            Item::FirstText(bytes) => self.begin(true, &bytes),
            Item::FirstBinary(bytes) => self.begin(false, &bytes),
            Item::Continue(bytes) => self.extend(&bytes).map(|()| None),
            Item::Last(bytes) => {
                self.extend(&bytes)?;
                let whole = |Gathering { is_text, bytes }| Whole { is_text, bytes };
                Ok(self.gathering.take().map(whole))
            }
        }
    }

    fn begin(&mut self, is_text: bool, bytes: &Bytes) -> Result<Option<Whole>, Broken> {
        if self.gathering.is_some() {
            return Err(Broken::OutOfPlace);
        }
        self.gathering = Some(Gathering { is_text, bytes: Vec::new() });
        self.extend(bytes).map(|()| None)
    }

    fn extend(&mut self, bytes: &Bytes) -> Result<(), Broken> {
        let gathering = self.gathering.as_mut().ok_or(Broken::OutOfPlace)?;
        if gathering.bytes.len() + bytes.len() > self.bytes_max {
            return Err(Broken::TooLarge);
        }
        gathering.bytes.extend_from_slice(bytes);
        Ok(())
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
        let mut assembler = Assembler::new(6);
        assert_eq!(assembler.take(Item::FirstText(bytes("ab"))), Ok(None));
        assert_eq!(assembler.take(Item::Continue(bytes("cd"))), Ok(None));
        let whole = Whole { is_text: true, bytes: b"abcdef".to_vec() };
        assert_eq!(assembler.take(Item::Last(bytes("ef"))), Ok(Some(whole)));
        assert!(!assembler.is_gathering());
    }

    #[test]
    fn fragments_out_of_place_and_too_many_are_refused() {
        let mut assembler = Assembler::new(3);
        assert_eq!(assembler.take(Item::Last(bytes("a"))), Err(Broken::OutOfPlace));
        assert_eq!(assembler.take(Item::FirstText(bytes("ab"))), Ok(None));
        assert_eq!(assembler.take(Item::FirstText(bytes("ab"))), Err(Broken::OutOfPlace));
        assert_eq!(assembler.take(Item::Continue(bytes("cd"))), Err(Broken::TooLarge));
    }
}
