//! Traces and logs in memory.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{MemoryStore, State};
use crate::domain::time::Timestamp;
use crate::domain::trace::{EntityType, RootRow};
use crate::observe::log_record::LogRecord;
use crate::ports::store::{
    AppendError, Cursor, GenerationRecord, LogFilter, LogNumber, LogPage, Logs, Read, Root,
    RootCursor, RootFilter, RootPage, TraceQuery, TraceRecord, TraceRecordBuilder, Traces,
};

/// Log records with their numbers, in the order of writing.
#[derive(Clone, Default)]
pub(super) struct LogRecords {
    records: VecDeque<(LogNumber, Arc<LogRecord>)>,
    last: LogNumber,
}

impl LogRecords {
    fn add(&mut self, batch: Vec<Arc<LogRecord>>) {
        for record in batch {
            self.last += 1;
            self.records.push_back((self.last, record));
        }
    }

    pub(super) fn forget_user(&mut self, user_id: &str) {
        self.records.retain(|(_, record)| record.scope.user_id.as_deref() != Some(user_id));
    }

    fn prune(&mut self, before: Timestamp, rows_max: u64) -> u64 {
        let rows_max = usize::try_from(rows_max).unwrap_or(usize::MAX);
        let mut dropped = 0;
        while let Some((_, oldest)) = self.records.front()
            && (oldest.at < before || self.records.len() > rows_max)
        {
            self.records.pop_front();
            dropped += 1;
        }
        dropped
    }
}

/// A root and its position in its list.
enum Placed {
    Execution(Cursor, Root),
    Generation(i64, Root),
}

impl Placed {
    fn root(&self) -> &Root {
        match self {
            Self::Execution(_, root) | Self::Generation(_, root) => root,
        }
    }
}

impl State {
    /// Returns matching roots, newest first, each list in its own order.
    fn roots(&self, filter: &RootFilter, after: RootCursor) -> Vec<Placed> {
        let before = after.execution.map(|cursor| (cursor.at, cursor.row));
        let executions = self.by_creation.iter().rev().filter_map(|(place, id)| {
            let entry = self.executions.get(id)?;
            let header = &entry.projection.header;
            let cursor = Cursor { at: place.0, row: place.1 };
            let matches = before.is_none_or(|before| *place < before)
                && header.trace.is_root()
                && admits(filter, EntityType::Workflow, &header.workflow_id)
                && filter.visibility.allows(header.user_id.as_deref())
                && filter.from.is_none_or(|from| header.created_at >= from);
            let root = || Root::Execution(entry.projection.clone());
            matches.then(|| Placed::Execution(cursor, root()))
        });
        let generations = self.agents.placed().filter_map(|(row, entry)| {
            let record = &entry.record;
            let matches = after.generation.is_none_or(|before| row < before)
                && record.trace.is_root()
                && record.origin.is_none()
                && admits(filter, EntityType::Agent, &record.agent_id)
                && filter.visibility.allows(record.user_id.as_deref())
                && filter.from.is_none_or(|from| record.start_time >= from);
            let bare = || GenerationRecord { input: Value::Null, output: None, ..record.clone() };
            matches.then(|| Placed::Generation(row, Root::Generation(Box::new(bare()))))
        });
        merged(executions.collect(), generations.collect())
    }

    fn trace(&self, query: &TraceQuery) -> TraceRecord {
        let mut record = TraceRecordBuilder::new(query.most);
        for entry in self.by_creation.values().filter_map(|id| self.executions.get(id)) {
            let header = &entry.projection.header;
            if query.admits(header.user_id.as_deref(), &header.trace) {
                let mut traced = record.facts();
                traced.add(entry.facts.clone());
                record.add_execution(Arc::clone(header), traced);
            }
        }
        let of_trace: Vec<_> = self.agents.placed().collect();
        for (_, entry) in of_trace.into_iter().rev() {
            if query.admits(entry.record.user_id.as_deref(), &entry.record.trace) {
                record.add_generation(entry.clone());
            }
        }
        record.finish()
    }
}

fn admits(filter: &RootFilter, kind: EntityType, id: &str) -> bool {
    filter.entity_type.is_none_or(|wanted| wanted == kind)
        && filter.entity_id.as_deref().is_none_or(|wanted| wanted == id)
}

/// Merges two lists, taking the newer of the two heads first.
fn merged(one: Vec<Placed>, other: Vec<Placed>) -> Vec<Placed> {
    let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
    let mut all = Vec::new();
    loop {
        let next = match (one.peek(), other.peek()) {
            (Some(a), Some(b)) if a.root().started_at() >= b.root().started_at() => one.next(),
            (Some(_), None) => one.next(),
            (_, Some(_)) => other.next(),
            (None, None) => return all,
        };
        all.extend(next);
    }
}

impl Traces for MemoryStore {
    fn roots<'a>(
        &'a self,
        filter: &'a RootFilter,
        after: Option<RootCursor>,
        limit: usize,
    ) -> Read<'a, RootPage> {
        let mut next = after.unwrap_or_default();
        self.read(|state| {
            let mut roots = Vec::new();
            let mut placed = state.roots(filter, next).into_iter();
            for placed in placed.by_ref().take(limit) {
                match placed {
                    Placed::Execution(cursor, root) => {
                        next.execution = Some(cursor);
                        roots.push(root);
                    }
                    Placed::Generation(row, root) => {
                        next.generation = Some(row);
                        roots.push(root);
                    }
                }
            }
            RootPage { roots, next: placed.next().map(|_| next) }
        })
    }

    fn trace<'a>(&'a self, query: &'a TraceQuery) -> Read<'a, TraceRecord> {
        self.read(|state| state.trace(query))
    }

    fn trace_of(&self, root: RootRow) -> Read<'_, Option<Arc<str>>> {
        self.read(|state| match root {
            RootRow::Execution(row) => {
                let entry = state.executions.values().find(|entry| entry.row == row);
                entry.map(|entry| Arc::clone(&entry.projection.header.trace.id))
            }
            RootRow::Generation(row) => {
                let mut placed = state.agents.placed();
                let record = placed.find(|(number, _)| *number == row);
                record.map(|(_, entry)| Arc::clone(&entry.record.trace.id))
            }
        })
    }
}

impl Logs for MemoryStore {
    fn write_logs(
        &self,
        batch: Vec<Arc<LogRecord>>,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        self.written(|state| state.logs.add(batch))
    }

    fn logs<'a>(
        &'a self,
        filter: &'a LogFilter,
        before: Option<LogNumber>,
        limit: usize,
    ) -> Read<'a, LogPage> {
        self.read(|state| {
            let wanted = state.logs.records.iter().filter(|(number, record)| {
                before.is_none_or(|before| *number < before) && filter.admits(record)
            });
            let wanted: Vec<_> = wanted.collect();
            let from = wanted.len().saturating_sub(limit);
            let older = (from > 0).then(|| wanted.get(from).map(|(number, _)| *number)).flatten();
            let records = wanted[from..].iter().map(|(_, record)| (**record).clone()).collect();
            LogPage { records, older }
        })
    }

    fn prune_logs(
        &self,
        before: Timestamp,
        rows_max: u64,
    ) -> BoxFuture<'static, Result<u64, AppendError>> {
        self.written(|state| state.logs.prune(before, rows_max))
    }

    fn log_count(&self) -> Read<'_, u64> {
        self.read(|state| state.logs.records.len() as u64)
    }
}
