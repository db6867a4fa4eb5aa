//! A process among the members that share the database, and the slots that it owns.

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use greenroom_actors::domain::cluster::{NodeId, SlotMap};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::{Slot, SlotSet};
use greenroom_actors::ports::members::{Lease, View};
use tokio::sync::watch;

pub(crate) type Views = watch::Sender<Option<Arc<View>>>;

/// A member, as it knows itself.
pub(crate) struct Cluster {
    pub(crate) node: NodeId,
    pub(crate) lease: Lease,
    pub(crate) views: watch::Receiver<Option<Arc<View>>>,
    /// The other end, until the beats take it.
    shown: Mutex<Option<Views>>,
    owned: RwLock<Owned>,
    /// Members that this process has no connection to; the beats write them down.
    unreachable: Mutex<Vec<i64>>,
    /// Held while the owners of slots are changed: one change at a time.
    pub(super) changing: tokio::sync::Mutex<()>,
}

/// Slots of a member.
pub(crate) struct Owned {
    /// Slots in which this process may write.
    slots: SlotSet,
    /// Slots that are being given away.
    giving: SlotSet,
    /// Slots whose giving failed: they may have another owner, or get one.
    open: SlotSet,
    owners: Arc<SlotMap>,
    /// Number of the map that was read last, and of the connection on which it was.
    map: Option<(i64, u64)>,
    /// Number of answered claims and givings.
    changes: u64,
}

impl Owned {
    /// Returns true if this process may write to an execution.
    pub(crate) fn has(&self, id: &ExecutionId) -> bool {
        self.slots.has(id)
    }

    fn set(&mut self, slots: &SlotSet, owner: Option<NodeId>) {
        let owners = Arc::make_mut(&mut self.owners);
        slots.iter().for_each(|slot| owners.set(slot, owner));
        self.changes += 1;
    }
}

impl Cluster {
    pub(super) fn new(node: i64, lease: Duration) -> Self {
        let (shown, views) = watch::channel(None);
        let owned = Owned {
            slots: SlotSet::new(),
            giving: SlotSet::new(),
            open: SlotSet::new(),
            owners: Arc::new(SlotMap::unowned()),
            map: None,
            changes: 0,
        };
        Self {
            node: NodeId(node),
            lease: Lease::new(lease),
            views,
            shown: Mutex::new(Some(shown)),
            owned: RwLock::new(owned),
            unreachable: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the sender of views, once. They are closed when it is dropped.
    pub(super) fn take_views(&self) -> Option<Views> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn note_unreachable(&self, nodes: Vec<i64>) {
        *self.unreachable.lock().unwrap_or_else(PoisonError::into_inner) = nodes;
    }

    pub(super) fn unreachable(&self) -> Vec<i64> {
        self.unreachable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the slots of this process, which stay its own as long as the guard is held.
    pub(crate) fn owned(&self) -> RwLockReadGuard<'_, Owned> {
        self.owned.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Owned> {
        self.owned.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if this process does what one of the members has to do.
    pub(crate) fn has_housework(&self) -> bool {
        Slot::new(0).is_some_and(|slot| self.owned().slots.contains(slot))
    }

    /// Returns those slots that this process can claim: it has none of them, nor gives them away.
    pub(super) fn claimable(&self, slots: &SlotSet) -> SlotSet {
        let owned = self.owned();
        let is_own = |slot| owned.slots.contains(slot) || owned.giving.contains(slot);
        slots.iter().filter(|slot| !is_own(*slot)).collect()
    }

    /// Takes slots that a claim has answered with.
    pub(super) fn gain(&self, slots: &SlotSet) {
        let mut owned = self.change();
        owned.set(slots, Some(self.node));
        for slot in slots.iter() {
            owned.slots.insert(slot);
            owned.open.remove(slot);
        }
    }

    /// Stops to write in slots that are to be given away; returns those of this process.
    pub(super) fn begin_giving(&self, slots: &SlotSet) -> SlotSet {
        let mut owned = self.change();
        let own: SlotSet = slots.iter().filter(|slot| owned.slots.contains(*slot)).collect();
        for slot in own.iter() {
            owned.slots.remove(slot);
            owned.giving.insert(slot);
        }
        own
    }

    /// Notes which of the slots that were to be given away have another owner now; the others are
    /// those of this process again.
    pub(super) fn end_giving(&self, begun: &SlotSet, given: &SlotSet, to: NodeId) {
        let mut owned = self.change();
        owned.set(given, Some(to));
        for slot in begun.iter() {
            owned.giving.remove(slot);
            if !given.contains(slot) {
                owned.slots.insert(slot);
            }
        }
    }

    /// Notes that a giving failed, so that its outcome is unknown.
    pub(super) fn leave_open(&self, begun: &SlotSet) {
        let mut owned = self.change();
        for slot in begun.iter() {
            owned.giving.remove(slot);
            owned.open.insert(slot);
        }
    }

    /// Returns those of the slots whose giving failed, without a claim since.
    pub(super) fn open_among(&self, slots: &SlotSet) -> SlotSet {
        let owned = self.owned();
        slots.iter().filter(|slot| owned.open.contains(*slot)).collect()
    }

    /// Notes which of the slots whose giving failed are those of this process. The next beat reads
    /// whose the others are.
    pub(super) fn settle(&self, open: &SlotSet, own: &SlotSet) {
        let mut owned = self.change();
        owned.set(open, None);
        owned.set(own, Some(self.node));
        for slot in open.iter() {
            owned.open.remove(slot);
            if own.contains(slot) {
                owned.slots.insert(slot);
            }
        }
        owned.map = None;
    }

    /// Returns true if the map of this number was read on the connection of that number.
    pub(super) fn is_known(&self, map: i64, connection: u64) -> bool {
        self.owned().map == Some((map, connection))
    }

    /// Returns the number of answered changes, for [`Cluster::learn`].
    pub(super) fn changes(&self) -> u64 {
        self.owned().changes
    }

    /// Takes a map over that was read after so many changes. Returns false, and changes nothing, if
    /// there was another change since: the map may be older.
    pub(super) fn learn(&self, map: (i64, u64), owners: SlotMap, changes: u64) -> bool {
        let mut owned = self.change();
        if owned.changes != changes {
            return false;
        }
        let own = owners.slots_of(Some(self.node));
        let is_left = |slot| owned.giving.contains(slot) || owned.open.contains(slot);
        owned.slots = own.iter().filter(|slot| !is_left(*slot)).collect();
        owned.owners = Arc::new(owners);
        owned.map = Some(map);
        true
    }

    /// Returns the owners, as far as this process knows; none for slots whose giving failed.
    pub(super) fn owners(&self) -> Arc<SlotMap> {
        let owned = self.owned();
        let mut owners = Arc::clone(&owned.owners);
        if !owned.open.is_empty() {
            let shown = Arc::make_mut(&mut owners);
            owned.open.iter().for_each(|slot| shown.set(slot, None));
        }
        owners
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[u16]) -> SlotSet {
        numbers.iter().filter_map(|number| Slot::new(*number)).collect()
    }

    fn map(own: &[u16]) -> SlotMap {
        let mut map = SlotMap::unowned();
        set(own).iter().for_each(|slot| map.set(slot, Some(NodeId(7))));
        map
    }

    fn cluster() -> Cluster {
        Cluster::new(7, Duration::from_secs(6))
    }

    #[test]
    fn a_map_decides_what_is_owned() {
        let cluster = cluster();
        assert!(!cluster.is_known(0, 1) && !cluster.has_housework());
        assert!(cluster.learn((3, 1), map(&[0, 1]), 0));
        assert!(cluster.is_known(3, 1) && cluster.has_housework());
        assert!(!cluster.is_known(3, 2), "a failover may have undone a change");
        assert_eq!(cluster.claimable(&set(&[0, 1, 2])), set(&[2]));
        assert!(cluster.learn((4, 1), map(&[1]), 0));
        assert_eq!(cluster.claimable(&set(&[0, 1, 2])), set(&[0, 2]), "0 was taken away");
        assert!(!cluster.has_housework());
    }

    #[test]
    fn a_map_that_is_older_than_a_change_is_ignored() {
        let cluster = cluster();
        let changes = cluster.changes();
        cluster.gain(&set(&[1]));
        assert!(!cluster.learn((1, 1), map(&[]), changes), "it lacks the claim");
        assert_eq!(cluster.owned().slots, set(&[1]));
        assert_eq!(cluster.owners().slots_of(Some(NodeId(7))), set(&[1]));
        let changes = cluster.changes();
        let begun = cluster.begin_giving(&set(&[1, 2]));
        assert_eq!(begun, set(&[1]), "2 is another's");
        assert_eq!(cluster.claimable(&set(&[1, 2])), set(&[2]), "1 is being given away");
        cluster.end_giving(&begun, &begun, NodeId(8));
        assert!(!cluster.learn((1, 1), map(&[1]), changes), "it is older than the gift");
        assert_eq!(cluster.owners().slots_of(Some(NodeId(8))), set(&[1]));
        assert!(cluster.learn((2, 1), map(&[]), cluster.changes()));
    }

    #[test]
    fn a_slot_whose_giving_failed_is_shown_without_an_owner_until_that_is_known() {
        let cluster = cluster();
        assert!(cluster.learn((1, 1), map(&[1, 2, 3]), 0));
        let begun = cluster.begin_giving(&set(&[1, 2]));
        assert!(cluster.learn((1, 1), map(&[1, 2, 3]), 0));
        assert_eq!(cluster.owned().slots, set(&[3]), "the map does not bring them back");
        assert_eq!(cluster.owners().slots_of(Some(NodeId(7))), set(&[1, 2, 3]));
        cluster.leave_open(&begun);
        assert!(cluster.learn((1, 1), map(&[1, 2, 3]), 0));
        assert_eq!(cluster.owned().slots, set(&[3]));
        assert_eq!(cluster.owners().slots_of(Some(NodeId(7))), set(&[3]));
        assert_eq!(cluster.claimable(&set(&[1, 2, 3])), begun, "a claim finds out");
        cluster.gain(&set(&[1]));
        assert_eq!(cluster.open_among(&begun), set(&[2]));
        cluster.settle(&set(&[2]), &set(&[]));
        assert_eq!(cluster.owned().slots, set(&[1, 3]), "2 was given away");
        assert!(!cluster.is_known(1, 1), "the next beat reads to which member");
        assert_eq!(cluster.owners().slots_of(Some(NodeId(7))), set(&[1, 3]));
        let begun = cluster.begin_giving(&set(&[3]));
        cluster.leave_open(&begun);
        cluster.settle(&begun, &begun);
        assert_eq!(cluster.owned().slots, set(&[1, 3]), "3 was not given away");
        let begun = cluster.begin_giving(&set(&[3]));
        cluster.end_giving(&begun, &set(&[]), NodeId(8));
        assert_eq!(cluster.owned().slots, set(&[1, 3]), "it was not taken");
    }
}
