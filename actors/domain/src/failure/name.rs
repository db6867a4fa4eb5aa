//! Names that code gives to its failures.

use std::num::NonZeroU8;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::message::shortened;

/// Maximum length of a name, in bytes.
pub const ERROR_NAME_BYTES_MAX: usize = 31;

/// Name of a failure, as given by the function that failed. Kept in place, so that a class stays
/// `Copy`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorName {
    length: NonZeroU8,
    bytes: [u8; ERROR_NAME_BYTES_MAX],
}

impl ErrorName {
    /// Creates a name; a longer one is shortened to [`ERROR_NAME_BYTES_MAX`], an empty one is none.
    pub fn new(name: &str) -> Option<Self> {
        let name = shortened(name, ERROR_NAME_BYTES_MAX);
        let length = u8::try_from(name.len()).ok().and_then(NonZeroU8::new)?;
        let mut bytes = [0; ERROR_NAME_BYTES_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self { length, bytes })
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        let bytes = &self.bytes[..usize::from(self.length.get())];
        // made of a whole text in `new`
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl std::fmt::Debug for ErrorName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl Serialize for ErrorName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::new(&name).ok_or_else(|| de::Error::custom("the name of a failure is empty"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_up_to_its_limit() {
        let long = "x".repeat(ERROR_NAME_BYTES_MAX - 1) + "é";
        for (given, kept) in [("declined", "declined"), (&long, &long[..30])] {
            assert_eq!(ErrorName::new(given).unwrap().as_str(), kept);
        }
        assert_eq!(ErrorName::new(""), None);
    }
}
