//! Lists of executions, in memory.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Entry, State};
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Cursor, EndRange, ExecutionEnd, ExecutionFilter, ExecutionStart, Projection, Row, StartRange,
};

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

    /// Returns starts of a range, the newest first.
    pub(super) fn starts(&self, range: &StartRange, limit: usize) -> Vec<ExecutionStart> {
        let StartRange { workflow_id, status } = range.clone();
        let (workflow_id, status) = (Some(workflow_id), Some(status));
        let filter = ExecutionFilter { workflow_id, status, ..ExecutionFilter::default() };
        let (rows, _) = self.list_by_creation(&filter, None, limit);
        let start = |row: Projection| ExecutionStart {
            user_id: row.header.user_id.clone(),
            definition_hash: Arc::clone(&row.header.definition_hash),
            created_at: row.header.created_at,
        };
        rows.into_iter().map(start).collect()
    }

    /// Returns ends of a range, last ended first.
    pub(super) fn ends(&self, range: &EndRange, limit: usize) -> Vec<ExecutionEnd> {
        let of_range = |entry: &&Entry| {
            let ended = entry.projection.ended_at;
            entry.projection.status == range.status
                && ended.is_some_and(|at| range.period.contains(&at))
        };
        let mut found: Vec<&Entry> = self.executions.values().filter(of_range).collect();
        found.sort_by_key(|entry| Reverse((entry.projection.ended_at, entry.row)));
        let ended = |entry: &Entry| {
            let Projection { header, ended_at, error, .. } = &entry.projection;
            let failed_step = error.as_ref().and_then(|error| error.step_id.clone());
            Some(ExecutionEnd {
                workflow_id: Arc::clone(&header.workflow_id),
                user_id: header.user_id.clone(),
                created_at: header.created_at,
                ended_at: (*ended_at)?,
                failed_step,
            })
        };
        found.into_iter().take(limit).filter_map(ended).collect()
    }
}
