//! Folding of a batch: requests in order, as rows for one statement.
//!
//! A statement sees the tables as they were before it, and must not write a row twice. So the
//! appends of one execution become one creation or one move, and of several changes of a timer only
//! the last one stays. A request that cannot be folded with those before it ends the batch; it
//! begins the next one.

#[cfg(test)]
pub(super) mod tests;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Acknowledgement, Append, Header, IdempotencyRecord, Projection, Row, Snapshot, TimerChange,
    TimerKey,
};
use greenroom_store_codec::codes::status_code;
use greenroom_store_codec::prepared::PreparedAppend;
use tokio::sync::oneshot;

use super::asks::{FoldedAsks, Owner};

/// One request to a lane.
pub(crate) enum Job {
    Append(Box<PreparedAppend>),
    /// An append that is refused without the database, in the order of the queue.
    Refuse(Acknowledgement),
    Timers(Vec<TimerChange>),
    /// The snapshot of an execution to unload.
    Snapshot(Snapshot),
    /// Nothing; dropped when the requests before it are answered.
    Mark(oneshot::Sender<()>),
}

impl Job {
    /// Returns the size of its largest parts, in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Append(it) => {
                it.events.len() + it.append.snapshot.as_ref().map_or(0, |state| state.len())
            }
            Self::Snapshot(snapshot) => snapshot.state.len(),
            Self::Refuse(_) | Self::Timers(_) | Self::Mark(_) => 0,
        }
    }
}

/// Rows that a batch writes, each at most once. All lanes write them in the same order.
#[derive(Default)]
pub(crate) struct Folded<'b> {
    pub(super) executions: BTreeMap<Row, Folding<'b>>,
    pub(super) keys: BTreeMap<&'b str, &'b IdempotencyRecord>,
    /// Time of the earliest append with a key. Keys that expire later count as taken, so that a
    /// batch is refused rather than stored by mistake; alone, each append has its own time.
    pub(super) keys_at: Option<Timestamp>,
    /// Times of armed timers; `None` disarms.
    pub(super) timers: BTreeMap<&'b ExecutionId, BTreeMap<&'b TimerKey, Option<Timestamp>>>,
    /// Executions that end, whose stored `Node` timers are deleted.
    pub(super) ended: BTreeSet<&'b ExecutionId>,
    /// Snapshots of executions without appends in the batch.
    pub(super) unloaded: BTreeMap<Row, &'b Snapshot>,
    /// Users named in facts, each with the execution.
    pub(super) users: BTreeSet<(&'b str, Row)>,
    pub(super) asks: FoldedAsks<'b>,
}

/// Content of a batch, which decides the statement for it. The larger statements do all that the
/// smaller ones do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// Creations alone, which most batches are.
    Creations,
    /// Creations and moves, with chunks.
    Progress,
    /// Keys, timers, snapshots, users or asks as well.
    Everything,
}

/// Appends of one execution, in order; never empty.
pub(super) struct Folding<'b> {
    pub(super) appends: Vec<&'b PreparedAppend>,
    /// The newest snapshot, and the append that it follows.
    pub(super) snapshot: Option<(&'b PreparedAppend, &'b [u8])>,
}

impl<'b> Folding<'b> {
    pub(super) fn first(&self) -> &'b PreparedAppend {
        self.appends[0]
    }

    pub(super) fn last(&self) -> &'b PreparedAppend {
        self.appends[self.appends.len() - 1]
    }

    pub(super) fn row(&self) -> Row {
        self.first().append.row
    }

    pub(super) fn header(&self) -> &'b Header {
        &self.first().append.projection.header
    }

    /// Returns the projection after all appends.
    pub(super) fn projection(&self) -> &'b Projection {
        &self.last().append.projection
    }

    /// Returns true if the first append creates the execution.
    pub(super) fn creates(&self) -> bool {
        self.first().append.revision == 0
    }

    /// Returns the facts that go into the row: those of the creation, if they are few or if the row
    /// will not change again.
    pub(super) fn facts_of_row(&self) -> Option<&'b [u8]> {
        let fits = self.creates() && self.first().fits_row(self.projection().status);
        fits.then_some(&self.first().events)
    }

    /// Returns the appends whose facts go into chunks.
    pub(super) fn chunks(&self) -> impl Iterator<Item = &'b PreparedAppend> + '_ {
        self.appends.iter().copied().skip(usize::from(self.facts_of_row().is_some()))
    }
}

impl<'b> Folded<'b> {
    /// Folds requests, from the first on; returns the number of those folded, at least one.
    pub(crate) fn of(jobs: &'b [Job]) -> (Self, usize) {
        let mut folded = Self::default();
        let count = jobs.iter().take_while(|job| folded.add(job)).count();
        (folded, count)
    }

    /// Returns true if there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.executions.is_empty() && self.unloaded.is_empty() && self.timers.is_empty()
    }

    /// Returns the smallest shape that the batch has.
    pub(super) fn shape(&self) -> Shape {
        let mut executions = self.executions.values();
        if !self.keys.is_empty()
            || !self.timers.is_empty()
            || !self.unloaded.is_empty()
            || !self.users.is_empty()
            || !self.asks.is_empty()
            || executions.clone().any(|it| it.snapshot.is_some())
        {
            Shape::Everything
        } else if executions.all(|it| it.creates() && it.chunks().next().is_none()) {
            Shape::Creations
        } else {
            Shape::Progress
        }
    }

    /// Returns the number of executions that the batch adds to each workflow and status; those that
    /// moved are still counted where they were.
    pub(super) fn counted(&self) -> BTreeMap<(&'b str, i64), i32> {
        let mut counted = BTreeMap::new();
        for folding in self.executions.values() {
            let workflow = &*folding.header().workflow_id;
            *counted.entry((workflow, status_code(folding.projection().status))).or_default() += 1;
        }
        counted
    }

    /// Adds a request; returns false, and changes nothing, if it cannot be folded.
    fn add(&mut self, job: &'b Job) -> bool {
        match job {
            Job::Append(prepared) => self.add_append(prepared),
            Job::Refuse(_) | Job::Mark(_) => true,
            Job::Timers(changes) => {
                let fits = self.takes_timers(changes, None);
                if fits {
                    self.change_timers(changes);
                }
                fits
            }
            Job::Snapshot(snapshot) => self.add_snapshot(snapshot),
        }
    }

    fn add_append(&mut self, prepared: &'b PreparedAppend) -> bool {
        let Append { row, revision, projection, timers, idempotency, snapshot, .. } =
            &prepared.append;
        let id = &projection.header.id;
        let is_next = self
            .executions
            .get(row)
            .is_none_or(|known| known.last().append.revision.checked_add(1) == Some(*revision));
        let is_new_key = idempotency.as_ref().is_none_or(|it| !self.keys.contains_key(&*it.scope));
        let own_end = projection.status.is_terminal().then_some(id);
        if !is_next || !is_new_key || !self.takes_timers(timers, own_end) {
            return false;
        }
        let empty = || Folding { appends: Vec::new(), snapshot: None };
        let folding = self.executions.entry(*row).or_insert_with(empty);
        folding.appends.push(prepared);
        if let Some(state) = snapshot {
            folding.snapshot = Some((prepared, state));
            self.unloaded.remove(row);
        }
        let is_stored = !folding.creates();
        self.change_timers(timers);
        if own_end.is_some() {
            if let Entry::Occupied(mut own) = self.timers.entry(id) {
                own.get_mut().retain(|key, _| !is_of_node(key));
                if own.get().is_empty() {
                    own.remove();
                }
            }
            if is_stored {
                self.ended.insert(id);
            }
        }
        if let Some(record) = idempotency {
            self.keys.insert(&record.scope, record);
            let at = projection.updated_at;
            self.keys_at = Some(self.keys_at.map_or(at, |earliest| earliest.min(at)));
        }
        self.users.extend(prepared.users.iter().map(|user| (&**user, *row)));
        let of = Owner::Execution { row: *row, header: &projection.header };
        self.asks.add(of, &prepared.asks);
        true
    }

    /// Adds a snapshot, unless a newer append of the batch makes it outdated.
    fn add_snapshot(&mut self, snapshot: &'b Snapshot) -> bool {
        if let Some(folding) = self.executions.get_mut(&snapshot.row) {
            let last = folding.last();
            if last.append.revision == snapshot.revision {
                folding.snapshot = Some((last, &snapshot.state));
                self.unloaded.remove(&snapshot.row);
            }
            return true;
        }
        // of two different ones the stored revision decides
        let fits = self
            .unloaded
            .get(&snapshot.row)
            .is_none_or(|known| known.revision == snapshot.revision);
        if fits {
            self.unloaded.insert(snapshot.row, snapshot);
        }
        fits
    }

    /// Returns false if a timer is armed that the statement deletes, as one of an execution that
    /// ended before. `own_end` is the execution that ends with these changes, after them.
    fn takes_timers(&self, changes: &[TimerChange], own_end: Option<&ExecutionId>) -> bool {
        changes.iter().all(|change| match change {
            TimerChange::Arm(timer) => {
                own_end == Some(&timer.execution)
                    || !is_of_node(&timer.key)
                    || !self.ended.contains(&timer.execution)
            }
            TimerChange::Disarm { .. } => true,
        })
    }

    fn change_timers(&mut self, changes: &'b [TimerChange]) {
        for change in changes {
            let (execution, key, due) = match change {
                TimerChange::Arm(timer) => (&timer.execution, &timer.key, Some(timer.due)),
                TimerChange::Disarm { execution, key } => (execution, key, None),
            };
            let is_deleted = due.is_none() && is_of_node(key) && self.ended.contains(execution);
            if !is_deleted {
                self.timers.entry(execution).or_default().insert(key, due);
            }
        }
    }
}

fn is_of_node(key: &TimerKey) -> bool {
    matches!(key, TimerKey::Node(_))
}
