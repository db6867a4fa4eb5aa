//! Members and owners of slots, as the simulator itself notes them: the laws compare what the
//! processes do with this book, not with what the processes believe.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::{Slot, SlotSet, slot_of};
use greenroom_actors::ports::store::Status;
use tokio::time::Instant;

#[derive(Default)]
pub(crate) struct Book(Mutex<Notes>);

#[derive(Default)]
struct Notes {
    members: BTreeSet<NodeId>,
    owned: BTreeMap<NodeId, SlotSet>,
    /// Times until which processes may believe that they are members.
    believed: BTreeMap<NodeId, Instant>,
    /// Time since when some slots have no owner.
    unowned_since: Option<Instant>,
    /// Last event of each execution that its process knows to be durable.
    acknowledged: BTreeMap<ExecutionId, u64>,
    /// Durable statuses, with the times of their commits.
    statuses: BTreeMap<ExecutionId, Vec<(Instant, Status)>>,
}

impl Notes {
    fn has(&self, node: NodeId, slot: Slot) -> bool {
        self.owned.get(&node).is_some_and(|slots| slots.contains(slot))
    }

    fn owned_by(&mut self, node: NodeId) -> &mut SlotSet {
        self.owned.entry(node).or_default()
    }

    fn look_for_unowned(&mut self) {
        let owned: usize = self.owned.values().map(SlotSet::len).sum();
        self.unowned_since = match owned == SlotSet::all().len() {
            true => None,
            false => self.unowned_since.or_else(|| Some(Instant::now())),
        };
    }
}

impl Book {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap()
    }

    pub(crate) fn joined(&self, node: NodeId) {
        let mut notes = self.notes();
        notes.members.insert(node);
        notes.look_for_unowned();
    }

    /// Notes that a process left or was declared gone: its slots have no owner.
    pub(crate) fn gone(&self, node: NodeId) {
        let mut notes = self.notes();
        notes.members.remove(&node);
        notes.owned.remove(&node);
        notes.look_for_unowned();
    }

    pub(crate) fn claimed(&self, by: NodeId, slots: &SlotSet) {
        let mut notes = self.notes();
        notes.owned_by(by).extend(slots.iter());
        notes.look_for_unowned();
    }

    pub(crate) fn given(&self, from: NodeId, to: NodeId, slots: &SlotSet) {
        let mut notes = self.notes();
        let left = notes.owned_by(from).without(slots);
        *notes.owned_by(from) = left;
        notes.owned_by(to).extend(slots.iter());
    }

    pub(crate) fn owns(&self, node: NodeId, slot: Slot) -> bool {
        self.notes().has(node, slot)
    }

    /// Returns true if the process with this number is a member.
    pub(crate) fn is_member(&self, process: u64) -> bool {
        i64::try_from(process).is_ok_and(|node| self.notes().members.contains(&NodeId(node)))
    }

    pub(crate) fn slots_of(&self, node: NodeId) -> SlotSet {
        self.notes().owned.get(&node).cloned().unwrap_or_default()
    }

    /// Returns the time for which some slots have had no owner, at most since a time.
    pub(crate) fn unowned_for(&self, since: Instant) -> Duration {
        self.notes().unowned_since.map_or(Duration::ZERO, |from| from.max(since).elapsed())
    }

    pub(crate) fn believes(&self, node: NodeId, until: Instant) {
        let mut notes = self.notes();
        let believed = notes.believed.entry(node).or_insert(until);
        *believed = until.max(*believed);
    }

    /// Returns true if the process with this number may believe that it is a member.
    pub(crate) fn is_believed(&self, process: u64) -> bool {
        let node = NodeId(i64::try_from(process).unwrap());
        self.notes().believed.get(&node).is_some_and(|until| Instant::now() < *until)
    }

    /// Notes a commit of a process; returns false if it may not write there.
    pub(crate) fn committed(&self, node: NodeId, id: &ExecutionId, status: Status) -> bool {
        let mut notes = self.notes();
        notes.statuses.entry(id.clone()).or_default().push((Instant::now(), status));
        notes.members.contains(&node) && notes.has(node, slot_of(id))
    }

    pub(crate) fn acknowledged(&self, id: &ExecutionId, upto: u64) {
        let mut notes = self.notes();
        let known = notes.acknowledged.entry(id.clone()).or_default();
        *known = upto.max(*known);
    }

    /// Returns the last event of an execution that its process knows to be durable; `None` if it
    /// may not exist.
    pub(crate) fn known(&self, id: &ExecutionId) -> Option<u64> {
        self.notes().acknowledged.get(id).copied()
    }

    /// Returns true if the execution had such a status at any time from then on.
    pub(crate) fn was(
        &self,
        id: &ExecutionId,
        since: Instant,
        is_it: impl Fn(Status) -> bool,
    ) -> bool {
        let notes = self.notes();
        let Some(statuses) = notes.statuses.get(id) else { return false };
        let before = statuses.partition_point(|(at, _)| *at < since).saturating_sub(1);
        statuses[before..].iter().any(|(_, status)| is_it(*status))
    }
}
