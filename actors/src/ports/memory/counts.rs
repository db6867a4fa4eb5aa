//! Counts of executions in memory, made on request.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::State;
use crate::ports::store::{CountsOfUser, ExecutionCount, Projection};

impl State {
    pub(super) fn counts(&self) -> Vec<ExecutionCount> {
        counted(self.executions.values().map(|entry| &entry.projection))
    }

    pub(super) fn counts_of_user(&self, user_id: &str, limit: usize) -> CountsOfUser {
        let newest = self.by_creation.values().rev().filter_map(|id| self.executions.get(id));
        let rows = newest.map(|entry| &entry.projection);
        let mut own = rows.filter(|row| row.header.user_id.as_deref() == Some(user_id));
        let counts = counted(own.by_ref().take(limit));
        CountsOfUser { counts, is_complete: own.next().is_none() }
    }
}

fn counted<'a>(rows: impl Iterator<Item = &'a Projection>) -> Vec<ExecutionCount> {
    let mut counted: BTreeMap<_, ExecutionCount> = BTreeMap::new();
    for Projection { header, status, .. } in rows {
        let (workflow_id, status) = (Arc::clone(&header.workflow_id), *status);
        let entry = counted.entry((Arc::clone(&workflow_id), status.as_str()));
        entry.or_insert(ExecutionCount { workflow_id, status, count: 0 }).count += 1;
    }
    counted.into_values().collect()
}
