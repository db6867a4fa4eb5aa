//! Snapshots: states stored beside the facts, so that rebuilding an execution costs the same
//! however long its history is.
//!
//! A snapshot only saves work: one that this build cannot use is ignored, and the facts are
//! applied instead.

use actix::{Context, Handler, Message};
use serde::{Deserialize, Serialize};

use crate::domain::state::State;
use crate::execution::{ExecutionActor, LiveExecution};
use crate::mailbox::report;
use crate::ports::store::{Snapshot, read_stored};
use crate::shard::messages::{ExecutionEvent, ExecutionReport};

/// Events between two snapshots of a running execution, if it has grown enough. A snapshot goes
/// into the commit that reaches the number.
const SNAPSHOT_EVERY: u64 = 500;
/// Events after which an execution that leaves memory takes one. Applying fewer costs less than a
/// snapshot: most suspended executions are rebuilt from the few facts in their own row.
const SNAPSHOT_WHEN_IDLE: u64 = 32;
/// Size of the facts after the newest snapshot, in sizes of that snapshot, at which another is due.
const OUTWEIGHS: u64 = 2;
/// Average size of a fact as JSON, without its values.
const FACT_BYTES: u64 = 100;

/// Version of the snapshot format. Raise it whenever an old snapshot would deserialize but mean
/// something else: a field that it lacks would get its default in place of what the facts say.
///
/// 2: since when a node has its phase, items of andForEach, the chosen block of andBranch.
///
/// 3: failed attempts of a step, and kinds of failures.
///
/// 4: principals that suspended, resumed and cancelled, and ids of suspensions.
///
/// 5: compact nodes, without their input.
///
/// 6: answers of deadlines, principals that answered a child, and attempts interrupted by a stop.
///
/// 7: the deadline of a child's suspension, and the suspension that a resume ended.
///
/// 8: the size of the state in memory.
const FORM: u32 = 8;

/// Format version of the states of executions that compensate, which older processes would misread.
/// Those of all others are as before.
///
/// 10: compensations by reversals of children.
const FORM_COMPENSATING: u32 = 10;

/// Format version of the states of executions whose tools have asked people, or noted where they can
/// continue. Older processes would ask again, or call with other arguments.
///
/// 12: notes, and the answer before the first question.
const FORM_ASKING: u32 = 12;

/// Format version of questions without notes. It is read, and no longer written.
const FORM_WITHOUT_NOTES: u32 = 11;

/// Format version of compensations without reversals. It is read, and no longer written.
const FORM_WITHOUT_REVERSALS: u32 = 9;

/// The newest snapshot: the last event in it, and its size.
///
/// Another is due when the facts since then outweigh it. So each byte of a state is written a
/// bounded number of times, however long the execution becomes, and rebuilding one reads its state
/// and facts of about twice its size at most: about as many facts as it includes, since a node is
/// smaller than its facts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SnapshotMark {
    /// Its `last_seq`; 0 without one.
    last_seq: u64,
    facts: u64,
    value_bytes: u64,
    size: u64,
}

impl SnapshotMark {
    /// Returns the mark of a state that takes `size` bytes.
    pub(crate) fn of(state: &State, size: usize) -> Self {
        Self {
            last_seq: state.last_seq(),
            facts: state.facts_applied,
            value_bytes: state.bytes,
            size: u64::try_from(size).unwrap_or(u64::MAX),
        }
    }

    /// Returns true if another is due: at least `events` after this one, and facts that outweigh
    /// it.
    fn is_outgrown_by(&self, state: &State, events: u64) -> bool {
        let facts = state.facts_applied.saturating_sub(self.facts);
        let values = state.bytes.saturating_sub(self.value_bytes);
        state.end.is_none()
            && state.last_seq() >= self.last_seq + events
            && facts * FACT_BYTES + values >= OUTWEIGHS * self.size
    }
}

#[derive(Serialize)]
struct Written<'a> {
    form: u32,
    state: &'a State,
}

#[derive(Deserialize)]
struct Form {
    form: u32,
}

#[derive(Deserialize)]
struct Read {
    state: State,
}

/// Serializes a snapshot. Returns `None` where that fails: the facts suffice.
pub(crate) fn write_snapshot(state: &State) -> Option<Vec<u8>> {
    let mut is_asking = false;
    state.root.each_live(&mut |node| is_asking |= node.questions.is_some() || node.noted.is_some());
    let form = match state.compensating {
        // steps that compensate do not ask
        Some(_) => FORM_COMPENSATING,
        None if is_asking => FORM_ASKING,
        None => FORM,
    };
    serde_json::to_vec(&Written { form, state }).ok()
}

/// Reads a snapshot of this format version.
pub(crate) fn read_snapshot(bytes: &[u8]) -> Option<State> {
    let Form { form } = read_stored(bytes).ok()?;
    match form {
        FORM | FORM_WITHOUT_REVERSALS | FORM_COMPENSATING | FORM_WITHOUT_NOTES | FORM_ASKING => {
            read_stored(bytes).ok().map(|Read { state }| state)
        }
        _ => None,
    }
}

/// Asks an execution that is about to leave memory for a snapshot.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct TakeSnapshot;

impl LiveExecution {
    /// Returns the snapshot that goes into the append, if one is due.
    pub(super) fn snapshot_if_due(&mut self) -> Option<Vec<u8>> {
        self.is_snapshot_due(SNAPSHOT_EVERY).then(|| self.take_snapshot())?
    }

    /// Returns true if a snapshot is due before the execution leaves memory.
    pub(super) fn needs_snapshot(&self) -> bool {
        self.is_snapshot_due(SNAPSHOT_WHEN_IDLE)
    }

    fn is_snapshot_due(&self, events: u64) -> bool {
        self.snapshot.is_outgrown_by(self.machine.state(), events)
    }

    fn take_snapshot(&mut self) -> Option<Vec<u8>> {
        let state = self.machine.state();
        let bytes = write_snapshot(state)?;
        self.snapshot = SnapshotMark::of(state, bytes.len());
        Some(bytes)
    }
}

impl Handler<TakeSnapshot> for ExecutionActor {
    type Result = ();

    /// The supervisor still has this actor, so the state is the newest one, and later
    /// records are queued behind this.
    fn handle(&mut self, _: TakeSnapshot, _: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        if !life.pending.is_empty() {
            return;
        }
        if let Some(revision) = life.recorded_revision
            && let Some(state) = life.take_snapshot()
        {
            let (execution, row) = (self.id.clone(), life.row);
            let snapshot = Snapshot { execution, row, revision, state };
            self.shared.store.store_snapshot(self.shard, snapshot);
        }
        let event = ExecutionEvent::SnapshotQueued { handled: self.handled };
        report(&self.supervisor, ExecutionReport { key: self.key, event });
    }
}

#[cfg(test)]
mod tests;
