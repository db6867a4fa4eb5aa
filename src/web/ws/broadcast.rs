//! A broadcast queue: events are kept once, and each subscriber reads them at its own pace.
//!
//! Every subscriber has a position in one ring buffer. A subscriber that falls behind by more than
//! its length loses the oldest events and learns how many. So a stalled subscriber costs a position
//! and no copies, and publishing does not iterate over the subscribers.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use greenroom_actors::observe::disconnect::Disconnect;
use tokio::time::Instant;

use crate::web::backlog::{Backlog, Held};
use crate::web::subscriber_queue::Limits;

pub(super) struct Broadcast<T> {
    limits: Limits,
    items: VecDeque<Item<T>>,
    bytes: usize,
    /// Part of the backlog used by the items.
    held: Held,
    /// Number of the next event to be published.
    end: u64,
    subscribers: BTreeMap<u64, Subscriber>,
    next_subscriber: u64,
    /// Subscribers with a waker.
    waiting: Vec<u64>,
}

struct Item<T> {
    number: u64,
    bytes: usize,
    /// Number of subscribers that have not taken it.
    unread: usize,
    value: T,
}

struct Subscriber {
    /// Number of the next event to take.
    next: u64,
    waker: Option<Waker>,
    disconnect: Disconnect,
    /// Position at which it was first seen to lose events, and the time.
    behind: Option<(u64, Instant)>,
}

/// Events taken at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Portion<T> {
    /// Number of events lost before these.
    pub(super) missed: u64,
    pub(super) items: Vec<T>,
}

impl<T> Portion<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.missed == 0 && self.items.is_empty()
    }
}

impl<T: Clone> Broadcast<T> {
    pub(super) fn new(limits: Limits, backlog: &Backlog) -> Self {
        Self {
            limits,
            held: backlog.hold(0),
            items: VecDeque::new(),
            bytes: 0,
            end: 0,
            subscribers: BTreeMap::new(),
            next_subscriber: 0,
            waiting: Vec::new(),
        }
    }

    /// Adds a subscriber for events published from now on.
    pub(super) fn subscribe(&mut self, disconnect: Disconnect) -> u64 {
        let id = self.next_subscriber;
        self.next_subscriber += 1;
        self.subscribers
            .insert(id, Subscriber { next: self.end, waker: None, disconnect, behind: None });
        id
    }

    pub(super) fn unsubscribe(&mut self, id: u64) {
        let Some(subscriber) = self.subscribers.remove(&id) else { return };
        let from = self.place_of(subscriber.next);
        self.items.range_mut(from..).for_each(|item| item.unread -= 1);
        self.drop_read();
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Publishes an event of `bytes` bytes. Drops the oldest events if there are too many.
    pub(super) fn publish(&mut self, value: T, bytes: usize) {
        let (number, unread) = (self.end, self.subscribers.len());
        self.end += 1;
        if unread == 0 {
            return;
        }
        self.bytes += bytes;
        self.held.grow(bytes);
        self.items.push_back(Item { number, bytes, unread, value });
        // The newest event always fits.
        while self.items.len() > 1
            && (self.items.len() > self.limits.events
                || self.bytes > self.limits.bytes
                || !self.held.is_within_share())
        {
            self.drop_oldest();
        }
    }

    /// Counts events that were lost before they could be published.
    pub(super) fn mark_lost(&mut self, count: u64) {
        self.end += count;
    }

    /// Takes the wakers of waiting subscribers, to be woken after the lock is released.
    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        let waiting = std::mem::take(&mut self.waiting);
        let wakers =
            waiting.into_iter().filter_map(|id| self.subscribers.get_mut(&id)?.waker.take());
        wakers.collect()
    }

    /// Takes the next events of a subscriber, numbers below `upto`, about `bytes` bytes. Empty if
    /// there are none.
    pub(super) fn take(&mut self, id: u64, upto: u64, bytes: usize) -> Portion<T> {
        let mut portion = Portion { missed: 0, items: Vec::new() };
        let Some(mut next) = self.subscribers.get(&id).map(|subscriber| subscriber.next) else {
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
            // The next event, if there is one, follows events that were lost.
            let upto = self.items.get(from).map_or(self.end, |item| item.number).min(upto);
            portion.missed = upto.saturating_sub(next);
            next = next.max(upto);
        }
        if let Some(subscriber) = self.subscribers.get_mut(&id) {
            subscriber.next = next;
        }
        self.drop_read();
        portion
    }

    /// Like [`Self::take`] without an upper bound; registers the task to be woken if there is
    /// nothing.
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
        if let Some(subscriber) = self.subscribers.get_mut(&id)
            && subscriber.waker.replace(cx.waker().clone()).is_none()
        {
            self.waiting.push(id);
        }
        Poll::Pending
    }

    /// Returns true if a subscriber has taken all events before a number.
    pub(super) fn has_taken(&self, id: u64, upto: u64) -> bool {
        self.subscribers.get(&id).is_none_or(|subscriber| subscriber.next >= upto)
    }

    /// Returns the disconnects of subscribers that have lost events and taken none for so long.
    /// Call it several times during that time.
    pub(super) fn stalled(&mut self, stall_max: Duration) -> Vec<Disconnect> {
        let first = self.items.front().map_or(self.end, |item| item.number);
        let now = Instant::now();
        let mut stalled = Vec::new();
        for subscriber in self.subscribers.values_mut() {
            match subscriber.behind {
                _ if subscriber.next >= first => subscriber.behind = None,
                Some((place, since)) if place == subscriber.next => {
                    if now - since >= stall_max {
                        stalled.push(Disconnect::clone(&subscriber.disconnect));
                    }
                }
                Some(_) | None => subscriber.behind = Some((subscriber.next, now)),
            }
        }
        stalled
    }

    /// Returns the disconnects of all subscribers.
    pub(super) fn disconnects(&self) -> Vec<Disconnect> {
        self.subscribers
            .values()
            .map(|subscriber| Disconnect::clone(&subscriber.disconnect))
            .collect()
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

    fn broadcast<T: Clone>(limits: Limits) -> Broadcast<T> {
        Broadcast::new(limits, &Backlog::alone(10_000))
    }

    fn no_disconnect() -> Disconnect {
        Arc::new(|| ())
    }

    fn portion(missed: u64, items: &[char]) -> Portion<char> {
        Portion { missed, items: items.to_vec() }
    }

    fn publish(broadcast: &mut Broadcast<char>, letters: &str) {
        letters.chars().for_each(|letter| broadcast.publish(letter, 10));
    }

    fn take(broadcast: &mut Broadcast<char>, id: u64) -> Portion<char> {
        broadcast.take(id, u64::MAX, 1000)
    }

    #[test]
    fn each_subscriber_takes_all_events_since_it_subscribed() {
        let mut broadcast = broadcast(LIMITS);
        publish(&mut broadcast, "x");
        let first = broadcast.subscribe(no_disconnect());
        publish(&mut broadcast, "a");
        let second = broadcast.subscribe(no_disconnect());
        publish(&mut broadcast, "b");
        assert_eq!(take(&mut broadcast, first), portion(0, &['a', 'b']));
        assert_eq!(take(&mut broadcast, second), portion(0, &['b']));
        assert!(take(&mut broadcast, first).is_empty());
        assert!(
            broadcast.items.is_empty() && broadcast.bytes == 0,
            "events taken by all are dropped"
        );
    }

    #[test]
    fn a_slow_subscriber_gets_the_number_of_lost_events() {
        let mut broadcast = broadcast(LIMITS);
        let (slow, quick) =
            (broadcast.subscribe(no_disconnect()), broadcast.subscribe(no_disconnect()));
        for letter in ["a", "b", "c", "d", "e"] {
            publish(&mut broadcast, letter);
            assert_eq!(take(&mut broadcast, quick).items.len(), 1);
        }
        assert_eq!(take(&mut broadcast, slow), portion(2, &['c', 'd', 'e']));
        broadcast.mark_lost(4);
        assert_eq!(take(&mut broadcast, quick), portion(4, &[]));
        publish(&mut broadcast, "f");
        assert_eq!(take(&mut broadcast, quick), portion(0, &['f']));
        publish(&mut broadcast, "g");
        assert_eq!(take(&mut broadcast, slow), portion(4, &['f', 'g']));
    }

    #[test]
    fn lost_events_are_reported_at_their_place() {
        let mut broadcast = broadcast(LIMITS);
        let subscriber = broadcast.subscribe(no_disconnect());
        publish(&mut broadcast, "a");
        broadcast.mark_lost(2);
        publish(&mut broadcast, "b");
        assert_eq!(take(&mut broadcast, subscriber), portion(0, &['a']));
        assert_eq!(take(&mut broadcast, subscriber), portion(2, &['b']));
    }

    #[test]
    fn a_portion_has_a_size_and_an_end() {
        let mut broadcast = broadcast(Limits { events: 10, bytes: 100 });
        let subscriber = broadcast.subscribe(no_disconnect());
        publish(&mut broadcast, "abcd");
        assert_eq!(broadcast.take(subscriber, u64::MAX, 15), portion(0, &['a', 'b']));
        assert_eq!(broadcast.take(subscriber, 3, 1000), portion(0, &['c']));
        assert!(broadcast.has_taken(subscriber, 3) && !broadcast.has_taken(subscriber, 4));
        assert!(broadcast.take(subscriber, 3, 1000).is_empty());
        assert_eq!(take(&mut broadcast, subscriber), portion(0, &['d']));
    }

    #[test]
    fn bytes_are_limited_too_but_one_item_always_fits() {
        let mut broadcast = broadcast(LIMITS);
        let subscriber = broadcast.subscribe(no_disconnect());
        broadcast.publish('a', 60);
        broadcast.publish('b', 60);
        broadcast.publish('c', 5000);
        assert_eq!(take(&mut broadcast, subscriber), portion(2, &['c']));
    }

    #[test]
    fn the_oldest_events_are_dropped_at_the_shared_limit() {
        let backlog = Backlog::alone(1 << 20);
        let limits = Limits { events: 10, bytes: 1 << 20 };
        let (mut broadcast, others) = (Broadcast::new(limits, &backlog), backlog.hold(2 << 20));
        let subscriber = broadcast.subscribe(no_disconnect());
        for letter in ['a', 'b', 'c'] {
            broadcast.publish(letter, SHARE_MIN / 2);
        }
        let kept = portion(1, &['b', 'c']);
        assert_eq!(
            broadcast.take(subscriber, u64::MAX, usize::MAX),
            kept,
            "the minimum, whatever others do"
        );
        drop(others);
        for letter in ['d', 'e', 'f'] {
            broadcast.publish(letter, SHARE_MIN);
        }
        let kept = portion(0, &['d', 'e', 'f']);
        assert_eq!(broadcast.take(subscriber, u64::MAX, usize::MAX), kept);
        assert_eq!(backlog.bounds().1, 0, "taken events use no backlog");
    }

    #[test]
    fn events_are_not_kept_for_a_subscriber_that_left() {
        let mut broadcast = broadcast(LIMITS);
        let (stays, leaves) =
            (broadcast.subscribe(no_disconnect()), broadcast.subscribe(no_disconnect()));
        publish(&mut broadcast, "ab");
        take(&mut broadcast, stays);
        assert_eq!(broadcast.items.len(), 2);
        broadcast.unsubscribe(leaves);
        assert!(broadcast.items.is_empty());
    }

    #[test]
    fn a_waiting_subscriber_is_woken_once() {
        let mut broadcast = broadcast::<char>(LIMITS);
        let subscriber = broadcast.subscribe(no_disconnect());
        let cx = Context::from_waker(Waker::noop());
        assert!(broadcast.poll_take(subscriber, 1, &cx).is_pending());
        assert!(broadcast.poll_take(subscriber, 1, &cx).is_pending());
        publish(&mut broadcast, "ab");
        assert_eq!(broadcast.take_wakers().len(), 1);
        assert_eq!(broadcast.poll_take(subscriber, 1, &cx), Poll::Ready(portion(0, &['a'])));
        assert_eq!(broadcast.take_wakers().len(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_subscriber_that_loses_and_takes_nothing_is_stalled() {
        let mut broadcast = broadcast(LIMITS);
        let ids = [(); 3].map(|()| broadcast.subscribe(no_disconnect()));
        let [reading, _stalled, slow] = ids;
        let second = Duration::from_secs(1);
        for round in 0..3 {
            publish(&mut broadcast, "abcd");
            take(&mut broadcast, reading);
            broadcast.take(slow, u64::MAX, 1);
            let expected = usize::from(round == 2);
            assert_eq!(broadcast.stalled(2 * second).len(), expected, "round {round}");
            tokio::time::advance(second).await;
        }
    }
}
