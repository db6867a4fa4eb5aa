//! What is over and dropped, in memory.

use std::collections::BTreeSet;
use std::future::ready;
use std::sync::Arc;

use super::{MemoryStore, State};
use crate::domain::ids::ExecutionId;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Cursor, Ended, EndedExecutions, EndedGenerations, GenerationStatus, Projection, Read,
    Retention, Row, TimerKey, Written,
};

impl State {
    fn is_wanted(&self, projection: &Projection) -> bool {
        let parent = projection.header.parent.as_ref();
        let parent = parent.and_then(|parent| self.executions.get(&parent.execution));
        parent.is_some_and(|parent| !parent.projection.status.is_terminal())
    }

    fn ended(&self, sought: &EndedExecutions, limit: usize) -> Ended<Cursor> {
        let EndedExecutions { workflow_id, status, before, after } = sought;
        let after = after.map_or((Timestamp(i64::MIN), Row::MIN), |at| (at.at, at.row));
        let mut found = Ended::default();
        let mut looked_at = 0;
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
            if looked_at == limit {
                return found;
            }
            looked_at += 1;
            found.next = Some(Cursor { at: place.0, row: place.1 });
            let is_over = projection.ended_at.is_some_and(|ended| ended < *before);
            if is_over && !self.is_wanted(projection) {
                found.rows.push(entry.row);
            }
        }
        found.next = None;
        found
    }

    fn drop_executions(&mut self, rows: &[Row]) -> u64 {
        let rows: BTreeSet<Row> = rows.iter().copied().collect();
        let over = self
            .executions
            .values()
            .filter(|entry| rows.contains(&entry.row) && entry.projection.status.is_terminal());
        let over: Vec<(Timestamp, Row, ExecutionId)> = over
            .map(|entry| {
                let header = &entry.projection.header;
                (header.created_at, entry.row, header.id.clone())
            })
            .collect();
        for (created_at, row, id) in &over {
            self.executions.remove(id);
            self.by_creation.remove(&(*created_at, *row));
            let first = (id.clone(), TimerKey::Node(Arc::from("")));
            let own = self.timers.range(first..).take_while(|((execution, _), _)| execution == id);
            let keys: Vec<TimerKey> = own.map(|((_, key), _)| key.clone()).collect();
            keys.into_iter().for_each(|key| self.disarm(id.clone(), key));
        }
        over.len() as u64
    }
}

impl Retention for MemoryStore {
    fn workflow_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        let state = self.state();
        let names = state.executions.values().map(|entry| &entry.projection.header.workflow_id);
        let next = names.filter(|workflow| &***workflow > name).min().cloned();
        Box::pin(ready(Ok(next)))
    }

    fn ended_executions<'a>(
        &'a self,
        sought: &'a EndedExecutions,
        limit: usize,
    ) -> Read<'a, Ended<Cursor>> {
        Box::pin(ready(Ok(self.state().ended(sought, limit))))
    }

    fn drop_executions(&self, rows: Vec<Row>) -> Written<u64> {
        Box::pin(ready(self.write(|state| state.drop_executions(&rows))))
    }

    fn agent_after<'a>(&'a self, name: &'a str) -> Read<'a, Option<Arc<str>>> {
        let state = self.state();
        let names = state.agents.placed().map(|(_, entry)| entry.record.agent_id.as_str());
        let next = names.filter(|agent| *agent > name).min().map(Arc::from);
        Box::pin(ready(Ok(next)))
    }

    fn ended_generations<'a>(
        &'a self,
        sought: &'a EndedGenerations,
        limit: usize,
    ) -> Read<'a, Ended<u64>> {
        let EndedGenerations { agent_id, before, after } = sought;
        let state = self.state();
        let mut found = Ended::default();
        // The rows stand for the numbers, which grow with them.
        let mut own: Vec<_> = state.agents.placed().collect();
        own.retain(|(row, entry)| {
            entry.record.agent_id == **agent_id && row.unsigned_abs() > *after
        });
        for (looked_at, (row, entry)) in own.into_iter().rev().enumerate() {
            if entry.record.start_time >= *before {
                found.next = None;
                return Box::pin(ready(Ok(found)));
            }
            if looked_at == limit {
                return Box::pin(ready(Ok(found)));
            }
            found.next = Some(row.unsigned_abs());
            let is_over = entry.record.status != GenerationStatus::Working;
            if is_over && entry.record.end_time.is_some_and(|ended| ended < *before) {
                found.rows.push(row);
            }
        }
        found.next = None;
        Box::pin(ready(Ok(found)))
    }

    fn drop_generations(&self, rows: Vec<Row>) -> Written<u64> {
        Box::pin(ready(self.write(|state| state.agents.drop_ended(&rows))))
    }
}
