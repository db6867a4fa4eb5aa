//! The slots of a member, as it knows them while it takes some and gives others away.
//!
//! The store decides whose a slot is. A member learns it from maps that it reads, and from the answers
//! to its own changes; it stops to write in a slot before it asks to give the slot away.

use std::sync::Arc;

use super::{NodeId, SlotMap};
use crate::ids::ExecutionId;
use crate::slot::{Slot, SlotSet};

/// The slots of a member, and the owners of the others.
#[derive(Debug)]
pub struct Owned {
    own: NodeId,
    /// Slots in which it may write.
    slots: SlotSet,
    /// Slots that are being given away.
    giving: SlotSet,
    /// Slots whose giving failed: it is not known whose they are.
    open: SlotSet,
    /// Owners as of the last map and the answers since.
    owners: Arc<SlotMap>,
    /// Number of answered changes.
    changes: u64,
}

impl Owned {
    /// Returns the slots of a member that has read no map: none.
    pub fn new(own: NodeId) -> Self {
        Self {
            own,
            slots: SlotSet::new(),
            giving: SlotSet::new(),
            open: SlotSet::new(),
            owners: Arc::new(SlotMap::unowned()),
            changes: 0,
        }
    }

    /// Returns true if the member may write to an execution.
    pub fn has(&self, id: &ExecutionId) -> bool {
        self.slots.has(id)
    }

    /// Returns true if the member may write in a slot.
    pub fn has_slot(&self, slot: Slot) -> bool {
        self.slots.contains(slot)
    }

    /// Returns those slots that the member can claim: it has none of them, nor gives them away.
    pub fn claimable(&self, slots: &SlotSet) -> SlotSet {
        slots.without(&self.slots).without(&self.giving)
    }

    /// Takes slots that a claim has answered with.
    pub fn gain(&mut self, slots: &SlotSet) {
        self.set(slots, Some(self.own));
        self.slots.extend(slots.iter());
        self.open = self.open.without(slots);
    }

    /// Stops to write in slots that are to be given away; returns those of the member.
    pub fn begin_giving(&mut self, slots: &SlotSet) -> SlotSet {
        let own: SlotSet = slots.iter().filter(|slot| self.slots.contains(*slot)).collect();
        self.slots = self.slots.without(&own);
        self.giving.extend(own.iter());
        own
    }

    /// Notes which of the slots that were to be given away have another owner now; the others are
    /// those of the member again.
    pub fn end_giving(&mut self, begun: &SlotSet, given: &SlotSet, to: NodeId) {
        self.set(given, Some(to));
        self.giving = self.giving.without(begun);
        self.slots.extend(begun.without(given).iter());
    }

    /// Notes that a giving failed, so that its outcome is unknown.
    pub fn leave_open(&mut self, begun: &SlotSet) {
        self.giving = self.giving.without(begun);
        self.open.extend(begun.iter());
    }

    /// Returns those of the slots whose giving failed, without a claim since.
    pub fn open_among(&self, slots: &SlotSet) -> SlotSet {
        slots.iter().filter(|slot| self.open.contains(*slot)).collect()
    }

    /// Notes which of the slots whose giving failed are those of the member. The next map shows whose
    /// the others are.
    pub fn settle(&mut self, open: &SlotSet, own: &SlotSet) {
        self.set(open, None);
        self.set(own, Some(self.own));
        self.open = self.open.without(open);
        self.slots.extend(own.iter());
    }

    /// Returns the number of answered changes, for [`Self::learn`].
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Takes a map over that was read after so many changes. Returns false, and changes nothing, if
    /// there was another change since: the map may be older.
    pub fn learn(&mut self, owners: Arc<SlotMap>, changes: u64) -> bool {
        if self.changes != changes {
            return false;
        }
        let own = owners.slots_of(Some(self.own));
        self.slots = own.without(&self.giving).without(&self.open);
        self.owners = owners;
        true
    }

    /// Returns the owners, as far as the member knows; none for slots whose giving failed.
    pub fn owners(&self) -> Arc<SlotMap> {
        let mut owners = Arc::clone(&self.owners);
        if !self.open.is_empty() {
            let shown = Arc::make_mut(&mut owners);
            self.open.iter().for_each(|slot| shown.set(slot, None));
        }
        owners
    }

    fn set(&mut self, slots: &SlotSet, owner: Option<NodeId>) {
        let owners = Arc::make_mut(&mut self.owners);
        slots.iter().for_each(|slot| owners.set(slot, owner));
        self.changes += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: NodeId = NodeId(7);
    const OTHER: NodeId = NodeId(8);

    fn set(numbers: &[u16]) -> SlotSet {
        numbers.iter().filter_map(|number| Slot::new(*number)).collect()
    }

    fn map(own: &[u16]) -> Arc<SlotMap> {
        let mut map = SlotMap::unowned();
        set(own).iter().for_each(|slot| map.set(slot, Some(OWN)));
        Arc::new(map)
    }

    fn owned() -> Owned {
        Owned::new(OWN)
    }

    #[test]
    fn a_map_decides_what_is_owned() {
        let mut owned = owned();
        assert!(owned.slots.is_empty());
        assert!(owned.learn(map(&[0, 1]), 0));
        assert!(Slot::new(0).is_some_and(|slot| owned.has_slot(slot)));
        assert_eq!(owned.claimable(&set(&[0, 1, 2])), set(&[2]));
        assert!(owned.learn(map(&[1]), 0));
        assert_eq!(owned.claimable(&set(&[0, 1, 2])), set(&[0, 2]), "0 was taken away");
    }

    #[test]
    fn a_map_that_is_older_than_a_change_is_ignored() {
        let mut owned = owned();
        let changes = owned.changes();
        owned.gain(&set(&[1]));
        assert!(!owned.learn(map(&[]), changes), "it lacks the claim");
        assert_eq!(owned.slots, set(&[1]));
        assert_eq!(owned.owners().slots_of(Some(OWN)), set(&[1]));
        let changes = owned.changes();
        let begun = owned.begin_giving(&set(&[1, 2]));
        assert_eq!(begun, set(&[1]), "2 is another's");
        assert_eq!(owned.claimable(&set(&[1, 2])), set(&[2]), "1 is being given away");
        owned.end_giving(&begun, &begun, OTHER);
        assert!(!owned.learn(map(&[1]), changes), "it is older than the gift");
        assert_eq!(owned.owners().slots_of(Some(OTHER)), set(&[1]));
        assert!(owned.learn(map(&[]), owned.changes()));
    }

    #[test]
    fn a_slot_whose_giving_failed_is_shown_without_an_owner_until_that_is_known() {
        let mut owned = owned();
        assert!(owned.learn(map(&[1, 2, 3]), 0));
        let begun = owned.begin_giving(&set(&[1, 2]));
        assert!(owned.learn(map(&[1, 2, 3]), 0));
        assert_eq!(owned.slots, set(&[3]), "the map does not bring them back");
        assert_eq!(owned.owners().slots_of(Some(OWN)), set(&[1, 2, 3]));
        owned.leave_open(&begun);
        assert!(owned.learn(map(&[1, 2, 3]), 0));
        assert_eq!(owned.slots, set(&[3]));
        assert_eq!(owned.owners().slots_of(Some(OWN)), set(&[3]));
        assert_eq!(owned.claimable(&set(&[1, 2, 3])), begun, "a claim finds out");
        owned.gain(&set(&[1]));
        assert_eq!(owned.open_among(&begun), set(&[2]));
        owned.settle(&set(&[2]), &set(&[]));
        assert_eq!(owned.slots, set(&[1, 3]), "2 was given away");
        assert_eq!(owned.owners().slots_of(Some(OWN)), set(&[1, 3]));
        let begun = owned.begin_giving(&set(&[3]));
        owned.leave_open(&begun);
        owned.settle(&begun, &begun);
        assert_eq!(owned.slots, set(&[1, 3]), "3 was not given away");
        let begun = owned.begin_giving(&set(&[3]));
        owned.end_giving(&begun, &set(&[]), OTHER);
        assert_eq!(owned.slots, set(&[1, 3]), "it was not taken");
    }
}
