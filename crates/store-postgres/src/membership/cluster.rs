//! A process among the members that share the database, and the slots that it owns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use greenroom_actors::domain::cluster::owned::Owned;
use greenroom_actors::domain::cluster::{NodeId, SlotMap};
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
    /// Number of the map that was read last, and of the connection on which it was. Changed while
    /// `owned` is.
    map: Mutex<Option<(i64, u64)>>,
    /// Members that this process has no connection to; the beats write them down.
    unreachable: Mutex<Vec<i64>>,
    /// Held while the owners of slots are changed: one change at a time.
    pub(super) changing: tokio::sync::Mutex<()>,
}

impl Cluster {
    pub(super) fn new(node: i64, lease: Duration) -> Self {
        let (shown, views) = watch::channel(None);
        let node = NodeId(node);
        Self {
            node,
            lease: Lease::new(lease),
            views,
            shown: Mutex::new(Some(shown)),
            owned: RwLock::new(Owned::new(node)),
            map: Mutex::default(),
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

    /// Returns the slots of this process, for a change of them.
    pub(super) fn owned_mut(&self) -> RwLockWriteGuard<'_, Owned> {
        self.owned.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn map(&self) -> MutexGuard<'_, Option<(i64, u64)>> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if this process does what one of the members has to do.
    pub(crate) fn has_housework(&self) -> bool {
        Slot::new(0).is_some_and(|slot| self.owned().has_slot(slot))
    }

    /// Notes which of the slots whose giving failed are those of this process. The next beat reads
    /// whose the others are.
    pub(super) fn settle(&self, open: &SlotSet, own: &SlotSet) {
        let mut owned = self.owned_mut();
        owned.settle(open, own);
        *self.map() = None;
    }

    /// Returns true if the map of this number was read on the connection of that number.
    pub(super) fn is_known(&self, map: (i64, u64)) -> bool {
        *self.map() == Some(map)
    }

    /// Takes a map over, with its number and that of its connection, which was read after so many
    /// changes. Returns false if it may be older than a change.
    pub(super) fn learn(&self, map: (i64, u64), owners: SlotMap, changes: u64) -> bool {
        let mut owned = self.owned_mut();
        let is_learned = owned.learn(Arc::new(owners), changes);
        if is_learned {
            *self.map() = Some(map);
        }
        is_learned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_known_until_it_may_have_changed() {
        let cluster = Cluster::new(7, Duration::from_secs(6));
        let housework: SlotSet = Slot::new(0).into_iter().collect();
        let mut map = SlotMap::unowned();
        map.set(Slot::new(0).unwrap(), Some(NodeId(7)));
        assert!(!cluster.is_known((3, 1)) && !cluster.has_housework());
        assert!(cluster.learn((3, 1), map.clone(), 0));
        assert!(cluster.is_known((3, 1)) && cluster.has_housework());
        assert!(!cluster.is_known((3, 2)), "a failover may have undone a change");
        cluster.owned_mut().gain(&housework);
        assert!(!cluster.learn((4, 1), map, 0), "it may be older");
        assert!(cluster.is_known((3, 1)));
        let begun = cluster.owned_mut().begin_giving(&housework);
        cluster.owned_mut().leave_open(&begun);
        cluster.settle(&begun, &SlotSet::new());
        assert!(!cluster.is_known((3, 1)), "the next beat reads to which member");
    }
}
