//! A store that lives as long as the process: for tests and for `url = "memory:"`.
//!
//! Every append is decided and acknowledged inside [`Journal::append`], on the caller's thread,
//! so that a test with paused time never waits for another thread. It obeys all rules of the port,
//! except that the cost of filtered lists is unbounded.

mod agents;
mod asks;
mod conversations;
mod crash_marks;
mod faults;
mod keys;
mod known_tools;
mod lists;
mod members;
mod retention;
mod timers;
mod traces;

use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;

use crate::domain::cluster::NodeId;
use crate::domain::event::events_of;
use crate::domain::fact::Recorded;
use crate::domain::ids::ExecutionId;
use crate::domain::slot::SlotSet;
use crate::domain::time::Timestamp;
use crate::ports::store::{
    Acknowledgement, Append, AppendError, CommitSink, Cursor, Definitions, ExecutionFilter,
    Executions, IdempotencyRecord, Journal, PageTooLarge, Projection, Read, ReadError, Row,
    Snapshot, Status, StoredExecution, Timer, TimerChange, Written,
};

use self::faults::Faults;
use self::members::{Beats, MemoryMember};

pub use crash_marks::MemoryCrashMarks;
use timers::Timers;

/// A store of everything in memory: a handle of one process over a disk that several can share.
#[derive(Default)]
pub struct MemoryStore {
    disk: Arc<Disk>,
    sink: OnceLock<Arc<dyn CommitSink>>,
    faults: Arc<Faults>,
    /// This process among those that share the disk, and its beats; `None` if it did not join.
    membership: Option<(Arc<MemoryMember>, Beats)>,
}

/// Everything that is stored.
#[derive(Default)]
struct Disk {
    state: Mutex<State>,
    last_row: AtomicI64,
    last_generation: AtomicI64,
}

impl Disk {
    fn state(&self) -> MutexGuard<'_, State> {
        // nothing panics while it holds the lock; after a defect that does, continue
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("writable", &self.is_writable()).finish_non_exhaustive()
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a copy of the disk for another process, without members and without a receiver of
    /// commits.
    #[must_use]
    pub fn reopened(&self) -> Self {
        let mut state = self.disk.state().clone();
        state.cluster = state.cluster.left();
        let disk = Disk {
            state: Mutex::new(state),
            last_row: AtomicI64::new(self.disk.last_row.load(Ordering::SeqCst)),
            last_generation: AtomicI64::new(self.disk.last_generation.load(Ordering::SeqCst)),
        };
        Self { disk: Arc::new(disk), ..Self::default() }
    }

    fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> Result<T, AppendError> {
        if !self.faults.admits_change() {
            return Err(AppendError::Unavailable(Arc::from("writes are switched off")));
        }
        let mut state = self.disk.state();
        match self.own() {
            Some(own) if !state.cluster.has(own) => Err(AppendError::Lost),
            Some(_) | None => Ok(change(&mut state)),
        }
    }

    fn written<T: Send + 'static>(&self, change: impl FnOnce(&mut State) -> T) -> Written<T> {
        Box::pin(ready(self.write(change)))
    }

    /// Reads a page, which is refused if it has too many bytes.
    fn read_page<'a, T: Send + 'a>(
        &'a self,
        read: impl FnOnce(&State) -> Result<T, PageTooLarge>,
    ) -> Read<'a, T> {
        let page = self.read(read);
        Box::pin(async { Ok(page.await??) })
    }

    fn read<'a, T: Send + 'a>(&'a self, read: impl FnOnce(&State) -> T) -> Read<'a, T> {
        let result = match self.faults.refuses_reads() {
            true => Err(ReadError::Unavailable(Arc::from("reads are switched off"))),
            false => Ok(read(&self.disk.state())),
        };
        Box::pin(ready(result))
    }
}

#[derive(Clone, Default)]
struct State {
    executions: HashMap<ExecutionId, Entry>,
    /// Executions in the order of lists, oldest first.
    by_creation: BTreeMap<(Timestamp, Row), ExecutionId>,
    running: BTreeMap<Row, ExecutionId>,
    timers: Timers,
    asks: asks::StoredAsks,
    keys: keys::StoredKeys,
    definitions: HashMap<String, Value>,
    known_tools: known_tools::StoredTools,
    agents: agents::Agents,
    logs: traces::LogRecords,
    cluster: members::Cluster,
}

#[derive(Clone)]
struct Entry {
    row: Row,
    revision: u64,
    projection: Projection,
    facts: Vec<Recorded>,
    snapshot: Option<StoredSnapshot>,
}

#[derive(Clone)]
struct StoredSnapshot {
    last_seq: u64,
    state: Vec<u8>,
    /// Number of facts included.
    facts: usize,
}

impl State {
    /// Erases a user from executions.
    fn forget_user(&mut self, user: &str) {
        for entry in self.executions.values_mut() {
            let has_changed = entry.facts.iter_mut().fold(false, |any, it| it.forget(user) | any);
            if has_changed {
                entry.projection.forget(user);
                // it will be rebuilt from the erased facts
                entry.snapshot = None;
            }
        }
    }

    /// Appends for a member, or for a process that did not join.
    fn append(&mut self, of: Option<NodeId>, append: Append) -> Result<(), AppendError> {
        self.admit(of, &append)?;
        let Append {
            row, revision, projection, facts, timers, asks, idempotency, snapshot, ..
        } = append;
        let id = projection.header.id.clone();
        let status = projection.status;
        if status == Status::Running {
            self.running.insert(row, id.clone());
        } else {
            self.running.remove(&row);
        }
        let (last_seq, now) = (projection.last_seq, projection.updated_at);
        let place = (projection.header.created_at, row);
        self.by_creation.entry(place).or_insert_with(|| id.clone());
        let entry = self.executions.entry(id.clone()).or_insert_with(|| Entry {
            row,
            revision,
            projection: projection.clone(),
            facts: Vec::new(),
            snapshot: None,
        });
        entry.revision = revision;
        entry.projection = projection;
        entry.facts.extend_from_slice(&facts);
        if let Some(state) = snapshot {
            entry.snapshot = Some(StoredSnapshot { last_seq, state, facts: entry.facts.len() });
        }
        self.timers.change(timers);
        if let Some(entry) = self.executions.get(&id) {
            self.asks.change_of(&entry.projection.header, row, asks);
        }
        if status.is_terminal() {
            self.timers.drop_nodes(&id);
        }
        if let Some(record) = idempotency {
            self.keys.keep(record, now);
        }
        Ok(())
    }

    /// Returns true if the execution is in a slot of the process, or if that did not join.
    fn may_write(&self, of: Option<NodeId>, id: &ExecutionId) -> bool {
        of.is_none_or(|own| self.cluster.owns(own, id))
    }

    fn admit(&self, of: Option<NodeId>, append: &Append) -> Result<(), AppendError> {
        if !self.may_write(of, &append.projection.header.id) {
            return Err(AppendError::Lost);
        }
        let now = append.projection.updated_at;
        if let Some(record) = &append.idempotency
            && self.keys.get(&record.scope, now).is_some()
        {
            return Err(AppendError::KeyTaken);
        }
        let stored = self.executions.get(&append.projection.header.id);
        match (append.revision.checked_sub(1), stored) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(AppendError::Exists),
            (Some(before), Some(entry)) if entry.row == append.row && entry.revision == before => {
                Ok(())
            }
            (Some(_), _) => Err(AppendError::Stale),
        }
    }

    fn store_snapshot(&mut self, of: Option<NodeId>, snapshot: Snapshot) {
        if !self.may_write(of, &snapshot.execution) {
            return;
        }
        let Snapshot { execution, row, revision, state } = snapshot;
        let entry = self.executions.get_mut(&execution);
        let is_newest = |it: &&mut Entry| it.row == row && it.revision == revision;
        if let Some(entry) = entry.filter(is_newest) {
            let last_seq = entry.projection.last_seq;
            entry.snapshot = Some(StoredSnapshot { last_seq, state, facts: entry.facts.len() });
        }
    }

    fn facts_above(&self, id: &ExecutionId, seq: u64) -> &[Recorded] {
        let facts = self.executions.get(id).map_or(&[][..], |entry| &entry.facts);
        &facts[facts.partition_point(|fact| fact.seq <= seq)..]
    }
}

impl Journal for MemoryStore {
    fn technology(&self) -> &'static str {
        "memory"
    }

    fn is_persistent(&self) -> bool {
        false
    }

    fn attach(&self, sink: Arc<dyn CommitSink>) {
        if self.sink.set(sink).is_err() {
            log::error!("ignored a second commit sink");
        }
    }

    /// Leaves the members; does nothing for a process that did not join.
    fn close(&self) {
        if let Some(own) = self.own() {
            self.disk.state().cluster.remove(own);
        }
    }

    fn next_row(&self) -> Option<Row> {
        self.faults.new_row(&self.disk.last_row)
    }

    fn append(&self, append: Append) {
        let Some(append) = self.faults.admit(append) else { return };
        let (ticket, upto) = (append.ticket, append.projection.last_seq);
        let header = append.projection.header.clone();
        let facts = append.facts.clone();
        let result = match self.faults.has_lost(&header.id) {
            true => Err(AppendError::Lost),
            false => self.write(|state| state.append(self.own(), append)).flatten(),
        };
        // the lock is released: the sink may append in `committed`
        let Some(sink) = self.sink.get() else { return };
        if result.is_ok() && sink.wants_facts() {
            sink.publish(vec![(header, facts)]);
        }
        sink.committed(ticket.shard, vec![Acknowledgement { ticket, upto, result }]);
    }

    fn store_snapshot(&self, _: usize, snapshot: Snapshot) {
        // without it, a rebuild applies more facts
        let _ = self.write(|state| state.store_snapshot(self.own(), snapshot));
    }

    fn is_writable(&self) -> bool {
        !self.faults.refuses_writes() && !self.faults.delays_appends()
    }

    fn settled(&self) -> Written<()> {
        self.faults.after_outage(Box::pin(ready(Ok(()))))
    }

    fn change_timers(&self, _: usize, changes: Vec<TimerChange>) {
        let changed = self.write(|state| {
            let changes = match self.own() {
                Some(own) => state.cluster.own_changes(own, changes),
                None => changes,
            };
            state.timers.change(changes);
        });
        if let Err(error) = changed {
            log::warn!("lost a change of timers: {error}");
        }
    }
}

impl Executions for MemoryStore {
    fn load<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<StoredExecution>> {
        self.read(|state| {
            let entry = state.executions.get(id)?;
            let snapshot = entry.snapshot.as_ref();
            let included = snapshot.map_or(0, |snapshot| snapshot.facts);
            Some(StoredExecution {
                row: entry.row,
                revision: entry.revision,
                projection: entry.projection.clone(),
                snapshot: snapshot.map(|snapshot| (snapshot.last_seq, snapshot.state.clone())),
                facts: entry.facts[included..].to_vec(),
            })
        })
    }

    fn describe<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<Projection>> {
        self.read(|state| state.executions.get(id).map(|entry| entry.projection.clone()))
    }

    fn facts<'a>(
        &'a self,
        id: &'a ExecutionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<Recorded>> {
        self.read(|state| {
            let mut page = Vec::new();
            let mut left = limit;
            for fact in state.facts_above(id, after) {
                if left == 0 {
                    break;
                }
                left -= usize::from(!events_of(&fact.fact).is_empty());
                page.push(fact.clone());
            }
            page
        })
    }

    fn list<'a>(
        &'a self,
        filter: &'a ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Read<'a, (Vec<Projection>, Option<Cursor>)> {
        self.read(|state| match filter.is_of_ends() {
            true => state.list_by_end(filter, after, limit),
            false => state.list_by_creation(filter, after, limit),
        })
    }

    fn running<'a>(
        &'a self,
        slots: &'a SlotSet,
        after: Row,
        limit: usize,
    ) -> Read<'a, Vec<(Row, ExecutionId)>> {
        self.read(|state| {
            let later = state.running.range(after.saturating_add(1)..);
            let later = later.filter(|(_, id)| slots.has(id));
            later.take(limit).map(|(row, id)| (*row, id.clone())).collect()
        })
    }

    fn timers_due<'a>(
        &'a self,
        slots: &'a SlotSet,
        until: Timestamp,
        limit: usize,
    ) -> Read<'a, Vec<Timer>> {
        self.read(|state| {
            let due = state.timers.due(until).filter(|timer| slots.has(&timer.execution));
            due.take(limit).collect()
        })
    }

    fn timers_of<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Vec<Timer>> {
        self.read(|state| state.timers.of(id).collect())
    }

    fn idempotency<'a>(
        &'a self,
        scope: &'a str,
        now: Timestamp,
    ) -> Read<'a, Option<IdempotencyRecord>> {
        self.read(|state| state.keys.get(scope, now).cloned())
    }
}

impl Definitions for MemoryStore {
    fn put_definition<'a>(&'a self, hash: &'a str, definition: &'a Value) -> Read<'a, ()> {
        let put = self.write(|state| {
            state.definitions.entry(hash.to_owned()).or_insert_with(|| definition.clone());
        });
        Box::pin(ready(put.map_err(|error| ReadError::Unavailable(Arc::from(error.to_string())))))
    }

    fn definition<'a>(&'a self, hash: &'a str) -> Read<'a, Option<Value>> {
        self.read(|state| state.definitions.get(hash).cloned())
    }
}

#[cfg(test)]
mod tests;
