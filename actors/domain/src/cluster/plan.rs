//! The distribution of slots over the members: a pure function, so that all of them come to the
//! same result without a leader, and each carries out its own part.

use std::collections::BTreeMap;

use super::{NodeId, SlotMap};
use crate::slot::{SLOTS, Slot, SlotSet};

/// Slots above its share that a member keeps, so that small differences move nothing.
const SURPLUS_MIN: usize = 8;
/// Divisor of a member's share for the same purpose: 2 %.
const SURPLUS_SHARE: usize = 50;

/// The part of one member in reaching the plan.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// Slots without an owner that it takes.
    pub claim: SlotSet,
    /// Its slots that it hands over, by their next owner.
    pub give: BTreeMap<NodeId, SlotSet>,
}

/// Returns the part of a member in the plan. `active` are the members that take slots; slots of
/// any others are to be given to them, and slots of processes that are no members (`is_member`) are
/// without an owner.
pub fn part_of(
    own: NodeId,
    active: &[NodeId],
    is_member: impl Fn(NodeId) -> bool,
    owners: &SlotMap,
) -> Part {
    let target = plan(active, owners);
    let mut part = Part::default();
    for ((slot, owner), (_, next)) in owners.iter().zip(target.iter()) {
        let Some(next) = next else { continue };
        match owner.filter(|owner| is_member(*owner)) {
            None if next == own => drop(part.claim.insert(slot)),
            Some(owner) if owner == own && next != own => {
                part.give.entry(next).or_default().insert(slot);
            }
            None | Some(_) => {}
        }
    }
    part
}

/// Returns the owners that the slots should have: as many for each active member, with as few moves
/// as that needs. Without active members nothing changes.
pub fn plan(active: &[NodeId], owners: &SlotMap) -> SlotMap {
    let mut target = owners.clone();
    let shares = shares(active, owners);
    let mut pool = Vec::new();
    let mut left = shares.clone();
    for (slot, owner) in owners.iter() {
        match owner.and_then(|owner| left.get_mut(&owner)) {
            Some(left) if left.keeps > 0 => left.keeps -= 1,
            Some(_) | None => pool.push(slot),
        }
    }
    deal(pool, &shares, &mut target);
    target
}

/// The share of one member.
#[derive(Debug, Clone, Copy)]
struct Share {
    /// Slots that it has and keeps.
    keeps: usize,
    /// Slots that it lacks.
    lacks: usize,
}

/// Returns the shares of the active members. Of slots that cannot be divided, those get one more
/// that have most.
fn shares(active: &[NodeId], owners: &SlotMap) -> BTreeMap<NodeId, Share> {
    let counts = owners.counts();
    let mut nodes: Vec<(usize, NodeId)> =
        active.iter().map(|node| (counts.get(node).copied().unwrap_or(0), *node)).collect();
    nodes.sort_by_key(|(count, node)| (std::cmp::Reverse(*count), *node));
    let (share, extra) = match nodes.len() {
        0 => return BTreeMap::new(),
        members => (SLOTS / members, SLOTS % members),
    };
    let slack = SURPLUS_MIN.max(share / SURPLUS_SHARE);
    let is_even = nodes.iter().all(|(count, _)| *count <= share + slack);
    let shares = nodes.into_iter().enumerate().map(|(index, (count, node))| {
        let share = share + usize::from(index < extra);
        let keeps = if is_even { count } else { count.min(share) };
        (node, Share { keeps, lacks: share.saturating_sub(count) })
    });
    shares.collect()
}

/// Deals slots to those that lack some.
fn deal(pool: Vec<Slot>, shares: &BTreeMap<NodeId, Share>, target: &mut SlotMap) {
    let mut slots = pool.into_iter();
    for (node, share) in shares {
        for slot in slots.by_ref().take(share.lacks) {
            target.set(slot, Some(*node));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOVED_MAX: usize = SURPLUS_MIN + SLOTS / SURPLUS_SHARE;

    fn nodes(numbers: &[i64]) -> Vec<NodeId> {
        numbers.iter().copied().map(NodeId).collect()
    }

    fn counts(map: &SlotMap) -> Vec<usize> {
        map.counts().into_values().collect()
    }

    #[test]
    fn the_first_member_takes_everything_and_the_next_ones_their_share() {
        let first = plan(&nodes(&[1]), &SlotMap::unowned());
        assert_eq!(counts(&first), [4096]);
        let second = plan(&nodes(&[1, 2]), &first);
        assert_eq!(counts(&second), [2048, 2048]);
        let third = plan(&nodes(&[1, 2, 3]), &second);
        assert_eq!(counts(&third), [1366, 1365, 1365]);
        let part = part_of(NodeId(1), &nodes(&[1, 2, 3]), |_| true, &second);
        assert!(part.claim.is_empty());
        let given: Vec<_> = part.give.iter().map(|(node, slots)| (*node, slots.len())).collect();
        assert_eq!(given, [(NodeId(3), 2048 - 1366)]);
    }

    #[test]
    fn what_a_member_leaves_is_dealt_to_the_others() {
        let all = plan(&nodes(&[1, 2, 3]), &SlotMap::unowned());
        let rest = plan(&nodes(&[1, 3]), &all);
        assert_eq!(counts(&rest), [2048, 2048]);
        // it is gone: its slots are claimed; it is leaving: it gives them
        let is_other = |node| node != NodeId(2);
        let claimed = part_of(NodeId(3), &nodes(&[1, 3]), is_other, &all);
        assert_eq!((claimed.claim.len(), claimed.give.len()), (2048 - 1365, 0));
        let given = part_of(NodeId(2), &nodes(&[1, 3]), |_| true, &all);
        assert_eq!(given.give.values().map(SlotSet::len).sum::<usize>(), 1365);
        let waiting = part_of(NodeId(3), &nodes(&[1, 3]), |_| true, &all);
        assert_eq!(waiting, Part::default(), "it waits for them");
    }

    #[test]
    fn without_active_members_nothing_changes() {
        let all = plan(&nodes(&[1]), &SlotMap::unowned());
        assert_eq!(plan(&[], &all), all);
    }

    fn maps() -> impl Strategy<Value = SlotMap> {
        let owner = || prop::option::weighted(0.9, (1..6_i64).prop_map(NodeId));
        prop::collection::vec((owner(), 1..800_usize), 1..12).prop_map(|runs| {
            let mut map = SlotMap::unowned();
            let owners = runs.into_iter().flat_map(|(owner, count)| vec![owner; count]);
            Slot::all().zip(owners).for_each(|(slot, owner)| map.set(slot, owner));
            map
        })
    }

    fn members() -> impl Strategy<Value = Vec<NodeId>> {
        prop::collection::btree_set((1..6_i64).prop_map(NodeId), 1..6)
            .prop_map(|nodes| nodes.into_iter().collect())
    }

    proptest! {
        #[test]
        fn every_slot_gets_an_active_owner(active in members(), owners in maps()) {
            let target = plan(&active, &owners);
            prop_assert!(target.iter().all(|(_, owner)| owner.is_some_and(|it| active.contains(&it))));
            let counts = target.counts();
            let count = |node: &NodeId| counts.get(node).copied().unwrap_or(0);
            let (least, most) = (active.iter().map(count).min(), active.iter().map(count).max());
            let apart = most.zip(least).map(|(most, least)| most - least);
            prop_assert!(apart.is_some_and(|apart| apart <= MOVED_MAX * active.len()), "{counts:?}");
        }

        #[test]
        fn a_plan_that_is_reached_moves_nothing(active in members(), owners in maps()) {
            let target = plan(&active, &owners);
            prop_assert_eq!(plan(&active, &target), target);
        }

        #[test]
        fn the_parts_of_all_members_are_the_plan(active in members(), owners in maps()) {
            let is_member = |node: NodeId| node != NodeId(5);
            let active: Vec<_> = active.into_iter().filter(|node| is_member(*node)).collect();
            let mut reached = owners.clone();
            for node in (1..5).map(NodeId) {
                let part = part_of(node, &active, is_member, &owners);
                let own = part.claim.iter().map(|slot| (slot, node));
                let given = part.give.iter().flat_map(|(to, slots)| slots.iter().map(|s| (s, *to)));
                own.chain(given).for_each(|(slot, owner)| reached.set(slot, Some(owner)));
            }
            prop_assert_eq!(reached, plan(&active, &owners));
        }
    }
}
