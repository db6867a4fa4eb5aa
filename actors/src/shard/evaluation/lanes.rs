//! A queue of lanes that take turns.

use std::collections::{HashMap, VecDeque};

use crate::ports::workers::Lane;

/// A queue of lanes. Items of one lane keep their order, and the lanes take turns, so that a long
/// lane does not delay the others.
#[derive(Debug)]
pub(crate) struct Lanes<T> {
    /// The items of each lane; never an empty queue.
    waiting: HashMap<Lane, VecDeque<T>>,
    /// The lanes that have items, each once, in the order of their turns.
    turns: VecDeque<Lane>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), turns: VecDeque::new() }
    }
}

impl<T> Lanes<T> {
    /// Appends an item to its lane; a new lane is the last to have its turn.
    pub(crate) fn push(&mut self, lane: Lane, item: T) {
        let waiting = self.waiting.entry(lane).or_default();
        if waiting.is_empty() {
            self.turns.push_back(lane);
        }
        waiting.push_back(item);
    }

    /// Removes the first item of the lane whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let lane = self.turns.pop_front()?;
        let waiting = self.waiting.get_mut(&lane)?;
        let item = waiting.pop_front();
        if waiting.is_empty() {
            self.waiting.remove(&lane);
        } else {
            self.turns.push_back(lane);
        }
        item
    }

    /// Returns the number of waiting items.
    pub(crate) fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all items in the order in which they are taken.
    fn taken(lanes: &mut Lanes<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| lanes.pop()).collect()
    }

    fn lane(user: &str) -> Lane {
        Lane::of("workflow", Some(user))
    }

    #[test]
    fn a_long_lane_does_not_delay_the_others() {
        let mut lanes = Lanes::default();
        for item in ["a1", "a2", "a3", "a4"] {
            lanes.push(lane("a"), item);
        }
        lanes.push(lane("b"), "b1");
        lanes.push(lane("b"), "b2");
        lanes.push(lane("c"), "c1");
        assert_eq!(lanes.len(), 7);
        assert_eq!(taken(&mut lanes), ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]);
        assert_eq!((lanes.len(), lanes.waiting.len()), (0, 0), "an empty lane is forgotten");
    }

    #[test]
    fn a_lane_goes_last_after_its_turn() {
        let mut lanes = Lanes::default();
        lanes.push(lane("a"), "a1");
        lanes.push(lane("a"), "a2");
        lanes.push(lane("b"), "b1");
        assert_eq!(lanes.pop(), Some("a1"));
        lanes.push(lane("c"), "c1");
        lanes.push(lane("a"), "a3");
        assert_eq!(taken(&mut lanes), ["b1", "a2", "c1", "a3"]);
        lanes.push(lane("b"), "b2");
        lanes.push(lane("a"), "a4");
        assert_eq!(taken(&mut lanes), ["b2", "a4"]);
    }

    #[test]
    fn a_lane_belongs_to_a_workflow_and_a_user() {
        let of = Lane::of;
        assert_eq!(of("w", Some("u")), of("w", Some("u")));
        for other in [of("w", Some("v")), of("x", Some("u")), of("w", None)] {
            assert_ne!(of("w", Some("u")), other);
        }
    }
}
