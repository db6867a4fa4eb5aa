//! Whole stores as records, and the copy of one store to another.
//!
//! A record has the values that every store keeps, in one order, without what a store derives from
//! them (slots, search indexes, counters). Numbers of rows are values: spans and cursors are named
//! after them. A store that is read returns the records of each [`Kind`] in batches; a store that is
//! filled takes them.

mod batches;
mod copy;
mod digest;
mod kind;

pub use self::batches::Batches;
pub use self::copy::{Copied, Progress, copy};
pub use self::kind::{EXECUTION_ID, Kind, MESSAGE_PARTS, MESSAGE_PLACE, TIMER_EXECUTION, Type};

/// A value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Integer(i64),
    /// A text as callers wrote it, not as a store encodes it.
    Text(String),
    Bytes(Vec<u8>),
}

/// The values of a record, as [`Kind::types`] describes them.
pub type Record = Vec<Value>;

/// Receiver of the records of a kind, in batches of limited size, none of them empty.
pub type Receive<'r> = dyn FnMut(Vec<Record>) -> Result<(), Failed> + 'r;

/// Failure of a copy. The text says which store failed, and in what way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failed(pub String);

/// A store that is read as a whole, and that no server uses meanwhile. All methods block.
pub trait Source {
    /// Returns the number of records of a kind.
    fn count(&mut self, kind: Kind) -> Result<u64, Failed>;

    /// Passes all records of a kind to `receive`, and returns its first failure. Messages of a
    /// memory are in the order in which they were recorded; others are in no order.
    fn read(&mut self, kind: Kind, receive: &mut Receive<'_>) -> Result<(), Failed>;
}

/// An empty store that is filled, in the order of [`Kind::ALL`]. No server can use it until
/// [`Target::complete`] returns. All methods block.
pub trait Target: Source {
    /// Adds records of a kind.
    fn write(&mut self, kind: Kind, records: Vec<Record>) -> Result<(), Failed>;

    /// Derives what is not in the records. Called after the last record.
    fn derive(&mut self) -> Result<(), Failed>;

    /// Makes the store durable and usable. Called after its records were read back.
    fn complete(&mut self) -> Result<(), Failed>;
}

impl Value {
    /// Returns the approximate number of bytes in memory.
    fn size(&self) -> usize {
        match self {
            Self::Null | Self::Integer(_) => 8,
            Self::Text(text) => 24 + text.len(),
            Self::Bytes(bytes) => 24 + bytes.len(),
        }
    }

    /// Returns the integer; `None` for another value.
    pub fn as_integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            Self::Null | Self::Text(_) | Self::Bytes(_) => None,
        }
    }

    /// Returns the text; `None` for another value.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Null | Self::Integer(_) | Self::Bytes(_) => None,
        }
    }

    /// Returns the bytes; `None` for another value.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Null | Self::Integer(_) | Self::Text(_) => None,
        }
    }
}
