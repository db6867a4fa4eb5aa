//! Lists of executions, in memory.

use std::cmp::Reverse;

use super::{Entry, State};
use crate::domain::time::Timestamp;
use crate::ports::store::{Cursor, ExecutionFilter, Projection, Row};

impl State {
    /// Lists executions, newest first.
    pub(super) fn list_by_creation(
        &self,
        filter: &ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> (Vec<Projection>, Option<Cursor>) {
        let older_than =
            after.map_or((Timestamp(i64::MAX), Row::MAX), |cursor| (cursor.at, cursor.row));
        let mut matching = self
            .by_creation
            .range(..older_than)
            .rev()
            .filter_map(|(_, id)| self.executions.get(id))
            .filter(|entry| filter.admits(&entry.projection));
        let page: Vec<&Entry> = matching.by_ref().take(limit).collect();
        let next = page
            .last()
            .filter(|_| matching.next().is_some())
            .map(|last| Cursor { at: last.projection.header.created_at, row: last.row });
        (page.into_iter().map(|entry| entry.projection.clone()).collect(), next)
    }

    /// Lists ended executions, last ended first.
    pub(super) fn list_by_end(
        &self,
        filter: &ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> (Vec<Projection>, Option<Cursor>) {
        let place_of = |entry: &Entry| {
            let at = entry.projection.ended_at?;
            Some(Cursor { at, row: entry.row })
        };
        let mut found: Vec<(Cursor, &Entry)> = self
            .executions
            .values()
            .filter(|entry| filter.admits(&entry.projection))
            .filter_map(|entry| Some((place_of(entry)?, entry)))
            .filter(|(at, _)| after.is_none_or(|after| (at.at, at.row) < (after.at, after.row)))
            .collect();
        found.sort_by_key(|(place, _)| Reverse((place.at, place.row)));
        let has_more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| has_more).map(|(place, _)| *place);
        (found.into_iter().map(|(_, entry)| entry.projection.clone()).collect(), next)
    }
}
