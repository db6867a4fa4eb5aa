//! Parts of an execution's facts, for readers at their own pace.

use crate::domain::fact::Recorded;

/// Position of a reader in an execution's facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FactCursor {
    /// The next facts have numbers above this one.
    pub above: u64,
    /// Position in the store; `None`: the store has to seek.
    pub mark: Option<Mark>,
}

/// Position in the store's own terms, which spares it seeking. Opaque to readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Chunk of facts; `None`: the first.
    pub piece: Option<(i64, i64)>,
    /// Bytes of the chunk already read.
    pub offset: u64,
}

/// A part of an execution's facts, oldest first. Facts at its end without events may be returned
/// again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Portion {
    pub facts: Vec<Recorded>,
    /// Position of the next portion.
    pub next: FactCursor,
}

impl FactCursor {
    /// Returns the position after an event.
    pub fn above(above: u64) -> Self {
        Self { above, mark: None }
    }
}
