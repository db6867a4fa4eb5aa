//! Several processes over one store: which of them are alive, and which slots each owns.

pub mod lease;
pub mod owned;
pub mod plan;

use std::collections::BTreeMap;
use std::fmt;

use crate::slot::{SLOTS, Slot, SlotSet};

/// A process of the cluster. A process that starts again is another node: no number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub i64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The owner of each slot.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotMap(Vec<Option<NodeId>>);

impl SlotMap {
    /// Returns the map in which no slot has an owner.
    pub fn unowned() -> Self {
        Self(vec![None; SLOTS])
    }

    /// Returns the owner of a slot, if it has one.
    pub fn owner(&self, slot: Slot) -> Option<NodeId> {
        self.0.get(usize::from(slot.number())).copied().flatten()
    }

    /// Sets the owner of a slot.
    pub fn set(&mut self, slot: Slot, owner: Option<NodeId>) {
        if let Some(entry) = self.0.get_mut(usize::from(slot.number())) {
            *entry = owner;
        }
    }

    /// Returns the slots of an owner; `None` for those without one.
    pub fn slots_of(&self, owner: Option<NodeId>) -> SlotSet {
        self.iter().filter(|(_, of)| *of == owner).map(|(slot, _)| slot).collect()
    }

    /// Returns the number of slots of each owner.
    pub fn counts(&self) -> BTreeMap<NodeId, usize> {
        let mut counts = BTreeMap::new();
        for owner in self.0.iter().flatten() {
            *counts.entry(*owner).or_default() += 1;
        }
        counts
    }

    /// Returns each slot with its owner, in the order of slots.
    pub fn iter(&self) -> impl Iterator<Item = (Slot, Option<NodeId>)> + '_ {
        Slot::all().zip(self.0.iter().copied())
    }
}

/// Writes the number of slots by owner, not each of them.
impl fmt::Debug for SlotMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SlotMap").field(&self.counts()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_has_the_owners_that_were_set() {
        let slot = |number| Slot::new(number).unwrap();
        let mut map = SlotMap::unowned();
        assert_eq!(map.slots_of(None), SlotSet::all());
        map.set(slot(0), Some(NodeId(7)));
        map.set(slot(4095), Some(NodeId(8)));
        map.set(slot(100), Some(NodeId(7)));
        assert_eq!(map.owner(slot(0)), Some(NodeId(7)));
        assert_eq!(map.owner(slot(1)), None);
        assert_eq!(map.counts(), BTreeMap::from([(NodeId(7), 2), (NodeId(8), 1)]));
        assert_eq!(map.slots_of(Some(NodeId(7))), [slot(0), slot(100)].into_iter().collect());
        assert_eq!(map.slots_of(None).len(), SLOTS - 3);
        map.set(slot(0), None);
        assert_eq!(map.owner(slot(0)), None);
    }
}
