//! What is said to many, kept once, for listeners that take it at their own pace.
//!
//! Every listener has a place in one ring. One that is slower than the ring is long has lost what
//! it did not take, and learns how much. So a listener that takes nothing costs a place and no
//! copy, and whoever speaks never looks at the listeners one by one.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use greenroom_actors::observe::disconnect::Disconnect;
use tokio::time::Instant;

use crate::web::backlog::{Backlog, Held};
use crate::web::outbox::Limits;

pub(super) struct Ring<T> {
    limits: Limits,
    items: VecDeque<Item<T>>,
    bytes: usize,
    /// What of all that waits for clients this takes.
    held: Held,
    /// Number of the next event. Those before it were said, kept or not.
    end: u64,
    listeners: BTreeMap<u64, Listener>,
    next_listener: u64,
    /// Listeners with a waker.
    waiting: Vec<u64>,
}

struct Item<T> {
    number: u64,
    bytes: usize,
    /// Listeners that have not taken it.
    unread: usize,
    value: T,
}

struct Listener {
    /// Number of the event that it takes next.
    next: u64,
    waker: Option<Waker>,
    disconnect: Disconnect,
    /// Where it was seen to lose events, and when.
    behind: Option<(u64, Instant)>,
}

/// What a listener takes at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Portion<T> {
    /// Events that it has lost; they come before the others.
    pub(super) missed: u64,
    pub(super) items: Vec<T>,
}

impl<T> Portion<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.missed == 0 && self.items.is_empty()
    }
}

impl<T: Clone> Ring<T> {
    pub(super) fn new(limits: Limits, backlog: &Backlog) -> Self {
        Self {
            limits,
            held: backlog.hold(0),
            items: VecDeque::new(),
            bytes: 0,
            end: 0,
            listeners: BTreeMap::new(),
            next_listener: 0,
            waiting: Vec::new(),
        }
    }

    /// Adds a listener, who hears what is said from now on.
    pub(super) fn join(&mut self, disconnect: Disconnect) -> u64 {
        let id = self.next_listener;
        self.next_listener += 1;
        self.listeners
            .insert(id, Listener { next: self.end, waker: None, disconnect, behind: None });
        id
    }

    pub(super) fn leave(&mut self, id: u64) {
        let Some(listener) = self.listeners.remove(&id) else { return };
        let from = self.place_of(listener.next);
        self.items.range_mut(from..).for_each(|item| item.unread -= 1);
        self.drop_read();
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Says an event of so many bytes. The oldest go when there are too many.
    pub(super) fn say(&mut self, value: T, bytes: usize) {
        let (number, unread) = (self.end, self.listeners.len());
        self.end += 1;
        if unread == 0 {
            return;
        }
        self.bytes += bytes;
        self.held.grow(bytes);
        self.items.push_back(Item { number, bytes, unread, value });
        // something always fits
        while self.items.len() > 1
            && (self.items.len() > self.limits.events
                || self.bytes > self.limits.bytes
                || !self.held.is_within_share())
        {
            self.drop_oldest();
        }
    }

    /// Counts events that were lost before they came here.
    pub(super) fn miss(&mut self, count: u64) {
        self.end += count;
    }

    /// Those who wait for something to be said: to be woken when the ring is not locked.
    pub(super) fn take_waiting(&mut self) -> Vec<Waker> {
        let waiting = std::mem::take(&mut self.waiting);
        let wakers = waiting.into_iter().filter_map(|id| self.listeners.get_mut(&id)?.waker.take());
        wakers.collect()
    }

    /// What comes next for a listener, before the number `upto`, about `bytes` of it. Empty when
    /// it has everything.
    pub(super) fn take(&mut self, id: u64, upto: u64, bytes: usize) -> Portion<T> {
        let mut portion = Portion { missed: 0, items: Vec::new() };
        let Some(mut next) = self.listeners.get(&id).map(|listener| listener.next) else {
            return portion;
        };
        let from = self.place_of(next);
        let mut taken = 0;
        for item in self.items.range_mut(from..) {
            let is_full = taken >= bytes || item.number >= upto;
            if is_full || (item.number > next && !portion.items.is_empty()) {
                break;
            }
            portion.missed += item.number - next;
            portion.items.push(item.value.clone());
            item.unread -= 1;
            taken += item.bytes;
            next = item.number + 1;
        }
        if portion.items.is_empty() {
            // what comes next, if anything does, lies behind events that were lost
            let upto = self.items.get(from).map_or(self.end, |item| item.number).min(upto);
            portion.missed = upto.saturating_sub(next);
            next = next.max(upto);
        }
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.next = next;
        }
        self.drop_read();
        portion
    }

    /// As [`Self::take`] without an end; wakes the task when there is something.
    pub(super) fn poll_take(
        &mut self,
        id: u64,
        bytes: usize,
        cx: &Context<'_>,
    ) -> Poll<Portion<T>> {
        let portion = self.take(id, u64::MAX, bytes);
        if !portion.is_empty() {
            return Poll::Ready(portion);
        }
        if let Some(listener) = self.listeners.get_mut(&id)
            && listener.waker.replace(cx.waker().clone()).is_none()
        {
            self.waiting.push(id);
        }
        Poll::Pending
    }

    /// Whether a listener has taken everything before a number.
    pub(super) fn has_taken(&self, id: u64, upto: u64) -> bool {
        self.listeners.get(&id).is_none_or(|listener| listener.next >= upto)
    }

    /// The ways to end those who have lost events and taken none for so long. To be asked
    /// several times meanwhile.
    pub(super) fn stalled(&mut self, stall_max: Duration) -> Vec<Disconnect> {
        let first = self.items.front().map_or(self.end, |item| item.number);
        let now = Instant::now();
        let mut stalled = Vec::new();
        for listener in self.listeners.values_mut() {
            match listener.behind {
                _ if listener.next >= first => listener.behind = None,
                Some((place, since)) if place == listener.next => {
                    if now - since >= stall_max {
                        stalled.push(Disconnect::clone(&listener.disconnect));
                    }
                }
                Some(_) | None => listener.behind = Some((listener.next, now)),
            }
        }
        stalled
    }

    /// The ways to end everybody.
    pub(super) fn disconnects(&self) -> Vec<Disconnect> {
        self.listeners.values().map(|listener| Disconnect::clone(&listener.disconnect)).collect()
    }

    fn place_of(&self, number: u64) -> usize {
        self.items.partition_point(|item| item.number < number)
    }

    fn drop_read(&mut self) {
        while self.items.front().is_some_and(|item| item.unread == 0) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(item) = self.items.pop_front() {
            self.bytes -= item.bytes;
            self.held.shrink(item.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::web::backlog::SHARE_MIN;

    const LIMITS: Limits = Limits { events: 3, bytes: 100 };

    fn ring<T: Clone>(limits: Limits) -> Ring<T> {
        Ring::new(limits, &Backlog::alone(10_000))
    }

    fn nobody() -> Disconnect {
        Arc::new(|| ())
    }

    fn portion(missed: u64, items: &[char]) -> Portion<char> {
        Portion { missed, items: items.to_vec() }
    }

    fn say(ring: &mut Ring<char>, letters: &str) {
        letters.chars().for_each(|letter| ring.say(letter, 10));
    }

    fn take(ring: &mut Ring<char>, id: u64) -> Portion<char> {
        ring.take(id, u64::MAX, 1000)
    }

    #[test]
    fn each_listener_takes_everything_from_where_it_joined() {
        let mut ring = ring(LIMITS);
        say(&mut ring, "x");
        let first = ring.join(nobody());
        say(&mut ring, "a");
        let second = ring.join(nobody());
        say(&mut ring, "b");
        assert_eq!(take(&mut ring, first), portion(0, &['a', 'b']));
        assert_eq!(take(&mut ring, second), portion(0, &['b']));
        assert!(take(&mut ring, first).is_empty());
        assert!(ring.items.is_empty() && ring.bytes == 0, "what all have taken is not kept");
    }

    #[test]
    fn who_is_too_slow_learns_how_much_it_has_lost() {
        let mut ring = ring(LIMITS);
        let (slow, quick) = (ring.join(nobody()), ring.join(nobody()));
        for letter in ["a", "b", "c", "d", "e"] {
            say(&mut ring, letter);
            assert_eq!(take(&mut ring, quick).items.len(), 1);
        }
        assert_eq!(take(&mut ring, slow), portion(2, &['c', 'd', 'e']));
        ring.miss(4);
        assert_eq!(take(&mut ring, quick), portion(4, &[]));
        say(&mut ring, "f");
        assert_eq!(take(&mut ring, quick), portion(0, &['f']));
        say(&mut ring, "g");
        assert_eq!(take(&mut ring, slow), portion(4, &['f', 'g']));
    }

    #[test]
    fn what_was_lost_is_told_where_it_is_missing() {
        let mut ring = ring(LIMITS);
        let listener = ring.join(nobody());
        say(&mut ring, "a");
        ring.miss(2);
        say(&mut ring, "b");
        assert_eq!(take(&mut ring, listener), portion(0, &['a']));
        assert_eq!(take(&mut ring, listener), portion(2, &['b']));
    }

    #[test]
    fn a_portion_has_a_size_and_an_end() {
        let mut ring = ring(Limits { events: 10, bytes: 100 });
        let listener = ring.join(nobody());
        say(&mut ring, "abcd");
        assert_eq!(ring.take(listener, u64::MAX, 15), portion(0, &['a', 'b']));
        assert_eq!(ring.take(listener, 3, 1000), portion(0, &['c']));
        assert!(ring.has_taken(listener, 3) && !ring.has_taken(listener, 4));
        assert!(ring.take(listener, 3, 1000).is_empty());
        assert_eq!(take(&mut ring, listener), portion(0, &['d']));
    }

    #[test]
    fn bytes_are_limited_too_but_something_always_fits() {
        let mut ring = ring(LIMITS);
        let listener = ring.join(nobody());
        ring.say('a', 60);
        ring.say('b', 60);
        ring.say('c', 5000);
        assert_eq!(take(&mut ring, listener), portion(2, &['c']));
    }

    #[test]
    fn the_oldest_go_when_all_rings_together_hold_too_much() {
        let backlog = Backlog::alone(1 << 20);
        let limits = Limits { events: 10, bytes: 1 << 20 };
        let (mut ring, others) = (Ring::new(limits, &backlog), backlog.hold(2 << 20));
        let listener = ring.join(nobody());
        for letter in ['a', 'b', 'c'] {
            ring.say(letter, SHARE_MIN / 2);
        }
        let kept = portion(1, &['b', 'c']);
        assert_eq!(ring.take(listener, u64::MAX, usize::MAX), kept, "a little, whatever others do");
        drop(others);
        for letter in ['d', 'e', 'f'] {
            ring.say(letter, SHARE_MIN);
        }
        let kept = portion(0, &['d', 'e', 'f']);
        assert_eq!(ring.take(listener, u64::MAX, usize::MAX), kept);
        assert_eq!(backlog.bounds().1, 0, "what was taken takes no room");
    }

    #[test]
    fn who_leaves_is_not_waited_for() {
        let mut ring = ring(LIMITS);
        let (stays, leaves) = (ring.join(nobody()), ring.join(nobody()));
        say(&mut ring, "ab");
        take(&mut ring, stays);
        assert_eq!(ring.items.len(), 2);
        ring.leave(leaves);
        assert!(ring.items.is_empty());
    }

    #[test]
    fn who_waits_is_woken_once() {
        let mut ring = ring::<char>(LIMITS);
        let listener = ring.join(nobody());
        let cx = Context::from_waker(Waker::noop());
        assert!(ring.poll_take(listener, 1, &cx).is_pending());
        assert!(ring.poll_take(listener, 1, &cx).is_pending());
        say(&mut ring, "ab");
        assert_eq!(ring.take_waiting().len(), 1);
        assert_eq!(ring.poll_take(listener, 1, &cx), Poll::Ready(portion(0, &['a'])));
        assert_eq!(ring.take_waiting().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_loses_and_takes_nothing_is_stalled() {
        let mut ring = ring(LIMITS);
        let ids = [(); 3].map(|()| ring.join(nobody()));
        let [reading, _stalled, slow] = ids;
        let second = Duration::from_secs(1);
        for round in 0..3 {
            say(&mut ring, "abcd");
            take(&mut ring, reading);
            ring.take(slow, u64::MAX, 1);
            let expected = usize::from(round == 2);
            assert_eq!(ring.stalled(2 * second).len(), expected, "round {round}");
            tokio::time::advance(second).await;
        }
    }
}
