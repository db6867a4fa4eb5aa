//! Parts of an execution's facts, for readers that take them at their own pace.

use crate::domain::fact::Recorded;

/// Where a reader of an execution's facts goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// The facts that follow have numbers above this one.
    pub above: u64,
    /// Where the store left off; none: it has to seek.
    pub mark: Option<Mark>,
}

/// Where a store left off, in its own terms. Spares it seeking, and means nothing to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The piece of the record; none: the first.
    pub piece: Option<(i64, i64)>,
    /// Bytes of the piece that were read.
    pub offset: u64,
}

/// A part of an execution's facts, oldest first. Those at its end that give no event may come again.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Portion {
    pub facts: Vec<Recorded>,
    /// Where the next one begins.
    pub next: Place,
}

impl Place {
    /// Behind an event, wherever that is.
    pub fn above(above: u64) -> Self {
        Self { above, mark: None }
    }
}
