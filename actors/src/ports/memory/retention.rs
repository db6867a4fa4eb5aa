//! Retention in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::asks::Owner;
use super::{MemoryStore, State};
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Cursor, Ended, EndedExecutions, EndedGenerations, Projection, Read, Retention, Row, Written,
};

impl State {
    fn has_live_parent(&self, projection: &Projection) -> bool {
        let parent = projection.header.parent.as_ref();
        let parent = parent.and_then(|parent| self.executions.get(&parent.execution));
        parent.is_some_and(|parent| !parent.projection.status.is_terminal())
    }

    fn ended(&self, sought: &EndedExecutions, limit: usize) -> Ended<Cursor> {
        let EndedExecutions { workflow_id, status, before, after } = sought;
        let after = after.map_or((Timestamp(i64::MIN), Row::MIN), |at| (at.at, at.row));
        let mut found = Ended::default();
        let mut read = 0;
        let end = (*before, Row::MIN);
        if after >= end {
            return found;
        }
        for (place, id) in self.by_creation.range(after..end) {
            let Some(entry) = self.executions.get(id).filter(|_| *place != after) else { continue };
            let projection = &entry.projection;
            if projection.header.workflow_id != *workflow_id || projection.status != *status {
                continue;
            }
            if read == limit {
                return found;
            }
            read += 1;
            found.next = Some(Cursor { at: place.0, row: place.1 });
            let has_ended = projection.ended_at.is_some_and(|ended| ended < *before);
            if has_ended && !self.has_live_parent(projection) {
                found.rows.push(entry.row);
            }
        }
        found.next = None;
        found
    }

    fn ended_generations(&self, sought: &EndedGenerations, limit: usize) -> Ended<u64> {
        let EndedGenerations { agent_id, before, after } = sought;
        let (mut found, mut is_any_old) = (Ended::default(), false);
        // rows serve as positions: both have the same order
        let mut own: Vec<_> = self.agents.placed().collect();
        own.retain(|(row, entry)| {
            entry.record.agent_id == **agent_id && row.unsigned_abs() > *after
        });
        for (read, (row, entry)) in own.into_iter().rev().enumerate() {
            if read == limit {
                // old ones may follow one that began under a clock that was ahead, but hardly so many
                found.next = found.next.filter(|_| is_any_old);
                return found;
            }
            found.next = Some(row.unsigned_abs());
            let end = entry.record.end_time.filter(|_| entry.record.status.is_final());
            let has_ended = end.is_some_and(|ended| ended < *before);
            if has_ended {
                found.rows.push(row);
            }
            is_any_old |= has_ended || entry.record.start_time < *before;
        }
        found.next = None;
        found
    }

    fn drop_executions(&mut self, rows: &[Row]) -> u64 {
        let rows: BTreeSet<Row> = rows.iter().copied().collect();
        let ended = self
            .executions
            .values()
            .filter(|entry| rows.contains(&entry.row) && entry.projection.status.is_terminal());
        let ended: Vec<(Timestamp, Row, ExecutionId)> = ended
            .map(|entry| {
                let header = &entry.projection.header;
                (header.created_at, entry.row, header.id.clone())
            })
            .collect();
        for (created_at, row, id) in &ended {
            self.executions.remove(id);
            self.by_creation.remove(&(*created_at, *row));
            self.timers.drop_all(id);
            self.asks.drop_of(&Owner::Execution(*row));
        }
        ended.len() as u64
    }
}

impl Retention for MemoryStore {
    fn workflow_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        self.read(|state| {
            let names = state.executions.values().map(|entry| &entry.projection.header.workflow_id);
            names.filter(|workflow| &***workflow > name).min().cloned()
        })
    }

    fn ended_executions<'a>(
        &'a self,
        sought: &'a EndedExecutions,
        limit: usize,
    ) -> Read<'a, Ended<Cursor>> {
        self.read(|state| state.ended(sought, limit))
    }

    fn drop_executions(&self, rows: Vec<Row>) -> Written<u64> {
        self.written(|state| state.drop_executions(&rows))
    }

    fn agent_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        self.read(|state| {
            let names = state.agents.placed().map(|(_, entry)| entry.record.agent_id.as_str());
            names.filter(|agent| *agent > name).min().map(Arc::from)
        })
    }

    fn ended_generations<'a>(
        &'a self,
        sought: &'a EndedGenerations,
        limit: usize,
    ) -> Read<'a, Ended<u64>> {
        self.read(|state| state.ended_generations(sought, limit))
    }

    fn drop_generations(&self, rows: Vec<Row>) -> Written<u64> {
        self.written(|state| {
            let dropped = state.agents.drop_ended(&rows);
            state.drop_asks_of(&dropped);
            dropped.len() as u64
        })
    }
}
