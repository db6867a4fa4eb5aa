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
            .filter(|entry| shows(filter, &entry.projection));
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
            .filter(|entry| shows(filter, &entry.projection))
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

fn shows(filter: &ExecutionFilter, projection: &Projection) -> bool {
    let header = &projection.header;
    let ExecutionFilter { workflow_id, status, user_id, from, to, ended_from, ended_to, replay_of } =
        filter;
    let ended = projection.ended_at;
    let replayed = projection.replayed_from.as_ref().map(|from| from.execution.as_str());
    workflow_id.as_deref().is_none_or(|wanted| wanted == &*header.workflow_id)
        && status.is_none_or(|wanted| wanted == projection.status)
        && user_id.as_deref().is_none_or(|wanted| header.user_id.as_deref() == Some(wanted))
        && from.is_none_or(|from| header.created_at >= from)
        && to.is_none_or(|to| header.created_at < to)
        && ended_from.is_none_or(|from| ended.is_some_and(|at| at >= from))
        && ended_to.is_none_or(|to| ended.is_some_and(|at| at < to))
        && replay_of.as_deref().is_none_or(|wanted| replayed == Some(wanted))
}
