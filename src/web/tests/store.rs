//! A store in memory, acknowledging on the caller's thread: what the tests of the front end need.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use futures_util::future::{BoxFuture, ready};
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Acknowledgement, Append, AppendError, CommitSink, Cursor, Definitions, ExecutionFilter,
    Executions, GenerationRecord, Generations, IdempotencyRecord, Journal, Projection, Read, Row,
    Status, StoredExecution, Timer, TimerChange,
};
use serde_json::Value;

#[derive(Default)]
pub(super) struct MemoryStore {
    sink: OnceLock<Arc<dyn CommitSink>>,
    next_row: AtomicI64,
    rows: Mutex<BTreeMap<Row, StoredExecution>>,
    keys: Mutex<Vec<IdempotencyRecord>>,
}

fn ok<'a, T: Send + 'a>(value: T) -> Read<'a, T> {
    Box::pin(ready(Ok(value)))
}

impl MemoryStore {
    fn find(&self, id: &ExecutionId) -> Option<StoredExecution> {
        let rows = self.rows.lock().unwrap();
        rows.values().find(|stored| stored.projection.header.id == *id).cloned()
    }

    fn write(&self, append: &Append) -> Result<(), AppendError> {
        if append.expected.is_none() && self.find(&append.projection.header.id).is_some() {
            return Err(AppendError::Exists);
        }
        let mut rows = self.rows.lock().unwrap();
        let stored = rows.entry(append.row).or_insert_with(|| StoredExecution {
            row: append.row,
            projection: append.projection.clone(),
            snapshot: None,
            facts: Vec::new(),
        });
        stored.projection = append.projection.clone();
        stored.facts.extend(append.facts.iter().cloned());
        self.keys.lock().unwrap().extend(append.idempotency.clone());
        Ok(())
    }
}

impl Journal for MemoryStore {
    fn attach(&self, sink: Arc<dyn CommitSink>) {
        assert!(self.sink.set(sink).is_ok());
    }

    fn next_row(&self) -> Row {
        self.next_row.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn append(&self, append: Append) {
        let sink = self.sink.get().unwrap();
        let result = self.write(&append);
        if result.is_ok() && sink.wants_facts() {
            sink.publish(vec![(Arc::clone(&append.projection.header), Arc::clone(&append.facts))]);
        }
        let (ticket, upto) = (append.ticket, append.projection.last_seq);
        sink.committed(ticket.shard, vec![Acknowledgement { ticket, upto, result }]);
    }

    fn is_writable(&self) -> bool {
        true
    }

    fn change_timers(&self, _: Vec<TimerChange>) {}
}

impl Executions for MemoryStore {
    fn load<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<StoredExecution>> {
        ok(self.find(id))
    }

    fn describe<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<Projection>> {
        ok(self.find(id).map(|stored| stored.projection))
    }

    fn facts<'a>(
        &'a self,
        id: &'a ExecutionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<Recorded>> {
        let facts = self.find(id).map(|stored| stored.facts).unwrap_or_default();
        ok(facts.into_iter().filter(|fact| fact.seq > after).take(limit).collect())
    }

    fn list<'a>(
        &'a self,
        filter: &'a ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Read<'a, (Vec<Projection>, Option<Cursor>)> {
        let rows = self.rows.lock().unwrap();
        let mut page: Vec<(Row, Projection)> = rows
            .iter()
            .rev()
            .filter(|(row, _)| after.is_none_or(|after| **row < after.row))
            .map(|(row, stored)| (*row, stored.projection.clone()))
            .filter(|(_, row)| filter.status.is_none_or(|status| status == row.status))
            .filter(|(_, row)| {
                filter.workflow_id.as_deref().is_none_or(|id| *id == *row.header.workflow_id)
            })
            .collect();
        let more = page.len() > limit;
        page.truncate(limit);
        let next = page.last().filter(|_| more).map(|(row, projection)| Cursor {
            created_at: projection.header.created_at,
            row: *row,
        });
        ok((page.into_iter().map(|(_, projection)| projection).collect(), next))
    }

    fn running<'a>(&'a self, after: Row, limit: usize) -> Read<'a, Vec<(Row, ExecutionId)>> {
        let rows = self.rows.lock().unwrap();
        let running = rows
            .iter()
            .filter(|(row, stored)| **row > after && stored.projection.status == Status::Running)
            .map(|(row, stored)| (*row, stored.projection.header.id.clone()))
            .take(limit);
        ok(running.collect())
    }

    fn timers_due<'a>(&'a self, _: Timestamp, _: usize) -> Read<'a, Vec<Timer>> {
        ok(Vec::new())
    }

    fn idempotency<'a>(
        &'a self,
        scope: &'a str,
        _: Timestamp,
    ) -> Read<'a, Option<IdempotencyRecord>> {
        let keys = self.keys.lock().unwrap();
        ok(keys.iter().find(|key| *key.scope == *scope).cloned())
    }
}

impl Definitions for MemoryStore {
    fn put_definition<'a>(&'a self, _: &'a str, _: &'a Value) -> Read<'a, ()> {
        ok(())
    }

    fn definition<'a>(&'a self, _: &'a str) -> Read<'a, Option<Value>> {
        ok(None)
    }
}

impl Generations for MemoryStore {
    fn record_generation(
        &self,
        _: GenerationRecord,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        Box::pin(ready(Ok(())))
    }

    fn generations<'a>(
        &'a self,
        _: &'a str,
        _: usize,
        _: usize,
    ) -> Read<'a, Vec<GenerationRecord>> {
        ok(Vec::new())
    }

    fn interrupt_working(&self, _: Timestamp) -> BoxFuture<'static, Result<(), AppendError>> {
        Box::pin(ready(Ok(())))
    }
}
