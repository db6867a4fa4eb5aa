//! Pages of lists, by their place in the order of time and row, and ranges of the log.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Cursor, ExecutionFilter, LogFilter, Projection, Row};
use greenroom_actors::visibility::Visibility;

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

/// Returns the end of the range of texts that begin with a text, in the order of bytes.
pub fn after_prefix(begin: &str) -> String {
    format!("{begin}{}", char::MAX)
}

/// Returns a page of executions that were found by their ids, newest first, and the cursor of the
/// next one.
pub fn page_of_ids(
    mut found: Vec<(Row, Projection)>,
    filter: &ExecutionFilter,
    after: Option<Cursor>,
    limit: usize,
) -> (Vec<Projection>, Option<Cursor>) {
    let place = |row: Row, execution: &Projection| (execution.header.created_at, row);
    let is_behind = |at| after.is_none_or(|after| at < (after.at, after.row));
    found.retain(|(row, it)| filter.admits(it) && is_behind(place(*row, it)));
    found.sort_by_key(|(row, it)| std::cmp::Reverse(place(*row, it)));
    let has_more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| has_more);
    let next = last.map(|(row, it)| Cursor { at: it.header.created_at, row: *row });
    (found.into_iter().map(|(_, execution)| execution).collect(), next)
}

/// The log records that an index leads to; the other conditions of a filter are checked on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRange {
    OfExecution,
    OfTrace,
    OfUser,
    All,
}

impl LogRange {
    /// Returns the narrowest range that has all records that a filter admits.
    pub fn of(filter: &LogFilter) -> Self {
        let LogFilter { trace_id, execution_id, visibility, .. } = filter;
        match (execution_id, trace_id, visibility) {
            (Some(_), _, _) => Self::OfExecution,
            (None, Some(_), _) => Self::OfTrace,
            (None, None, Visibility::Of(_)) => Self::OfUser,
            (None, None, Visibility::Everything | Visibility::Nothing) => Self::All,
        }
    }
}
