//! Pages of lists, by their place in the order of time and row.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Cursor, Row};

/// A range of a list that is ordered by a time and the row, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRange {
    /// Earliest time.
    pub from: i64,
    /// Time and row of the place before which the page begins.
    pub before: (i64, Row),
}

impl PageRange {
    /// Returns the range from a time, up to and without another one, after the place where the
    /// last page ended.
    pub fn of(from: Option<Timestamp>, to: Option<Timestamp>, after: Option<Cursor>) -> Self {
        let cursor = after.map_or((i64::MAX, Row::MAX), |cursor| (cursor.at.0, cursor.row));
        // no row has the smallest number, so this place precedes all rows of that time
        let end = to.map_or((i64::MAX, Row::MAX), |to| (to.0, Row::MIN));
        Self { from: from.map_or(i64::MIN, |from| from.0), before: cursor.min(end) }
    }
}
