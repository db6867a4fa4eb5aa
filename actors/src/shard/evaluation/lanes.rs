//! What waits, in lanes that have their turns.

use std::collections::{HashMap, VecDeque};

use crate::ports::workers::Lane;

/// What waits: each lane in its order, and of each lane one after the other, so that many of one
/// lane do not hold up the one of another.
#[derive(Debug)]
pub(crate) struct Lanes<T> {
    /// None of them is empty.
    waiting: HashMap<Lane, VecDeque<T>>,
    /// The lanes that have something waiting, each once; the next one first.
    turns: VecDeque<Lane>,
}

impl<T> Default for Lanes<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), turns: VecDeque::new() }
    }
}

impl<T> Lanes<T> {
    /// Adds one behind those of its lane; a lane that is new is the last to have its turn.
    pub(crate) fn push(&mut self, lane: Lane, item: T) {
        let waiting = self.waiting.entry(lane).or_default();
        if waiting.is_empty() {
            self.turns.push_back(lane);
        }
        waiting.push_back(item);
    }

    /// Takes the first of the lane whose turn it is.
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

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.values().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which these are taken, each put into the lane of its user.
    fn taken(lanes: &mut Lanes<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| lanes.pop()).collect()
    }

    fn lane(user: &str) -> Lane {
        Lane::of("workflow", Some(user))
    }

    #[test]
    fn many_of_one_lane_do_not_hold_up_another() {
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
    fn a_lane_that_had_its_turn_is_the_last() {
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
    fn a_lane_is_of_what_is_run_and_of_a_user() {
        let of = Lane::of;
        assert_eq!(of("w", Some("u")), of("w", Some("u")));
        for other in [of("w", Some("v")), of("x", Some("u")), of("w", None)] {
            assert_ne!(of("w", Some("u")), other);
        }
    }
}
