//! Which executions a list shows, in memory, and lists of those that ended.

use std::cmp::Reverse;

use super::{Entry, State};
use crate::ports::store::{Cursor, ExecutionFilter, Projection};

impl State {
    /// Those that ended last first.
    pub(super) fn list_of_ends(
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

pub(super) fn shows(filter: &ExecutionFilter, projection: &Projection) -> bool {
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
