//! The bounded queue between a subscriber actor and the connection it writes to.
//!
//! Both ends live on one worker thread; no lock. The connection's end is polled only while the
//! client reads, so the limits, the count of what was missed and the clock of a stall are kept
//! at the actor's end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::Stream;
use prometheus::IntCounter;
use tokio::time::Instant;

use crate::web::backlog::{Backlog, Held};
use crate::web::peer::Room;

/// Bounds of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// What the connection's end gets.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Out<T> {
    Item(T),
    /// So many events found no room here.
    Missed(u64),
}

/// How much room an item takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

impl Weight {
    const NONE: Self = Self { events: 0, bytes: 0 };
}

struct Queue<T> {
    items: VecDeque<(Out<T>, Weight)>,
    events: usize,
    bytes: usize,
    /// What of all queues together this one takes.
    held: Held,
    /// Events refused since the queue was last told of it.
    missed: u64,
    /// Since when nothing was taken although there was no room.
    full_since: Option<Instant>,
    is_finished: bool,
    has_reader: bool,
    reader: Option<Waker>,
    writers: Vec<Waker>,
}

/// The actor's end.
pub(crate) struct Outbox<T> {
    queue: Rc<RefCell<Queue<T>>>,
    limits: Limits,
    /// Counts what was refused, of all queues.
    dropped: Option<IntCounter>,
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Self {
        Self { queue: Rc::clone(&self.queue), limits: self.limits, dropped: self.dropped.clone() }
    }
}

/// The connection's end. Ends after everything queued once the outbox is finished.
pub(crate) struct OutboxReader<T> {
    queue: Rc<RefCell<Queue<T>>>,
    on_drop: Option<Box<dyn FnOnce()>>,
}

impl<T> Outbox<T> {
    /// An empty queue, which takes a part of what may wait in all.
    pub(crate) fn new(limits: Limits, backlog: &Backlog) -> Self {
        let queue = Queue {
            items: VecDeque::new(),
            events: 0,
            bytes: 0,
            held: backlog.hold(0),
            missed: 0,
            full_since: None,
            is_finished: false,
            has_reader: true,
            reader: None,
            writers: Vec::new(),
        };
        Self { queue: Rc::new(RefCell::new(queue)), limits, dropped: None }
    }

    /// Counts what the queue refuses there as well.
    pub(crate) fn counting(self, dropped: Option<IntCounter>) -> Self {
        Self { dropped, ..self }
    }

    /// The connection's end; calls `on_drop` when it goes.
    pub(crate) fn reader(&self, on_drop: impl FnOnce() + 'static) -> OutboxReader<T> {
        OutboxReader { queue: Rc::clone(&self.queue), on_drop: Some(Box::new(on_drop)) }
    }

    /// Queues an item, or counts it as missed. Something always fits into an empty queue.
    pub(crate) fn push(&self, item: T, weight: Weight) -> bool {
        let mut queue = self.queue.borrow_mut();
        let has_room = queue.items.is_empty()
            || (queue.events + weight.events <= self.limits.events
                && queue.bytes + weight.bytes <= self.limits.bytes
                && queue.held.has_room(weight.bytes));
        if has_room {
            queue.push_missed();
            queue.push(Out::Item(item), weight);
        } else {
            queue.missed += weight.events as u64;
            if let Some(dropped) = &self.dropped {
                dropped.inc_by(weight.events as u64);
            }
            queue.full_since.get_or_insert_with(Instant::now);
        }
        has_room
    }

    /// Queues an item that nobody misses, while it leaves half of the room free.
    pub(crate) fn push_if_roomy(&self, item: T, weight: Weight) {
        let mut queue = self.queue.borrow_mut();
        let fits = queue.events + weight.events <= self.limits.events / 2
            && queue.bytes + weight.bytes <= self.limits.bytes / 2
            && queue.held.has_room(weight.bytes);
        if fits {
            queue.push_missed();
            queue.push(Out::Item(item), weight);
        }
    }

    /// Queues an item whatever the limits say: for one that was made room for.
    pub(crate) fn push_anyway(&self, item: T, weight: Weight) {
        self.queue.borrow_mut().push(Out::Item(item), weight);
    }

    /// Resolves when the queue is less than half full, or its reader has gone.
    pub(crate) async fn room(&self) {
        std::future::poll_fn(|cx| {
            let mut queue = self.queue.borrow_mut();
            let has_room =
                queue.events <= self.limits.events / 2 && queue.bytes <= self.limits.bytes / 2;
            if has_room || !queue.has_reader {
                return Poll::Ready(());
            }
            queue.wait(cx);
            Poll::Pending
        })
        .await;
    }

    /// Resolves when everything was taken, the connection took it in, and all queues together have
    /// room for so many bytes; or when the reader has gone. For what can be had at any time: as
    /// long as the reader is behind, nothing more is fetched for it.
    pub(crate) async fn drained(&self, room: &Room, bytes: usize) {
        std::future::poll_fn(|cx| {
            let mut queue = self.queue.borrow_mut();
            if queue.items.is_empty() || !queue.has_reader {
                return Poll::Ready(());
            }
            queue.wait(cx);
            Poll::Pending
        })
        .await;
        self.queue.borrow_mut().full_since.get_or_insert_with(Instant::now);
        room.wait().await;
        self.queue.borrow_mut().full_since = None;
        let backlog = self.queue.borrow().held.backlog();
        backlog.room(bytes).await;
    }

    /// Nothing more will come.
    pub(crate) fn finish(&self) {
        let mut queue = self.queue.borrow_mut();
        queue.is_finished = true;
        queue.wake_reader();
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.queue.borrow().is_finished
    }

    pub(crate) fn is_empty(&self) -> bool {
        let queue = self.queue.borrow();
        queue.items.is_empty() && queue.missed == 0
    }

    /// Items that wait.
    pub(crate) fn len(&self) -> usize {
        self.queue.borrow().items.len()
    }

    /// Whether more than a quarter of the room is taken.
    pub(crate) fn is_filling(&self) -> bool {
        let queue = self.queue.borrow();
        queue.events > self.limits.events / 4 || queue.bytes > self.limits.bytes / 4
    }

    pub(crate) fn has_reader(&self) -> bool {
        self.queue.borrow().has_reader
    }

    /// How long nothing was taken although there was no room; `None` while there is room.
    pub(crate) fn stalled_for(&self) -> Option<Duration> {
        self.queue.borrow().full_since.map(|since| since.elapsed())
    }
}

impl<T> Queue<T> {
    /// Has a writer woken when something was taken.
    fn wait(&mut self, cx: &Context<'_>) {
        self.full_since.get_or_insert_with(Instant::now);
        if !self.writers.iter().any(|writer| writer.will_wake(cx.waker())) {
            self.writers.push(cx.waker().clone());
        }
    }

    fn push(&mut self, item: Out<T>, weight: Weight) {
        if !self.has_reader {
            return;
        }
        self.held.grow(weight.bytes);
        self.events += weight.events;
        self.bytes += weight.bytes;
        self.items.push_back((item, weight));
        self.wake_reader();
    }

    /// Says what is missing at the place where it is missing.
    fn push_missed(&mut self) {
        if self.missed > 0 {
            let missed = std::mem::take(&mut self.missed);
            self.push(Out::Missed(missed), Weight::NONE);
        }
    }

    fn pop(&mut self) -> Option<Out<T>> {
        if self.items.is_empty() {
            self.push_missed();
        }
        let (item, weight) = self.items.pop_front()?;
        self.events -= weight.events;
        self.bytes -= weight.bytes;
        self.held.shrink(weight.bytes);
        self.full_since = None;
        self.writers.drain(..).for_each(Waker::wake);
        Some(item)
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl<T> Stream for OutboxReader<T> {
    type Item = Out<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Out<T>>> {
        let mut queue = self.queue.borrow_mut();
        if let Some(item) = queue.pop() {
            return Poll::Ready(Some(item));
        }
        if queue.is_finished {
            return Poll::Ready(None);
        }
        queue.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for OutboxReader<T> {
    fn drop(&mut self) {
        {
            let mut queue = self.queue.borrow_mut();
            queue.has_reader = false;
            queue.items.clear();
            queue.held.shrink(usize::MAX);
            queue.writers.drain(..).for_each(Waker::wake);
        }
        if let Some(on_drop) = self.on_drop.take() {
            on_drop();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;

    const LIMITS: Limits = Limits { events: 2, bytes: 10 };
    const ONE: Weight = Weight { events: 1, bytes: 1 };

    fn outbox<T>(limits: Limits) -> Outbox<T> {
        Outbox::new(limits, &Backlog::new(1000))
    }

    fn next<T>(reader: &mut OutboxReader<T>) -> Option<Option<Out<T>>> {
        reader.next().now_or_never()
    }

    #[actix_web::test]
    async fn what_finds_no_room_is_counted_at_its_place() {
        let outbox = outbox(LIMITS);
        let mut reader = outbox.reader(|| ());
        assert!(outbox.push('a', ONE) && outbox.push('b', ONE));
        assert!(!outbox.push('c', ONE) && !outbox.push('d', ONE));
        assert!(outbox.stalled_for().is_some());
        assert_eq!(next(&mut reader), Some(Some(Out::Item('a'))));
        assert!(outbox.stalled_for().is_none());
        assert!(outbox.push('e', ONE));
        let rest: Vec<_> = std::iter::from_fn(|| next(&mut reader).flatten()).collect();
        assert_eq!(rest, [Out::Item('b'), Out::Missed(2), Out::Item('e')]);
        outbox.finish();
        assert_eq!(next(&mut reader), Some(None));
    }

    #[actix_web::test]
    async fn bytes_are_limited_too_but_something_always_fits() {
        let outbox = outbox(LIMITS);
        let mut reader = outbox.reader(|| ());
        assert!(outbox.push("large", Weight { events: 1, bytes: 50 }));
        assert!(!outbox.push("small", ONE));
        outbox.finish();
        assert_eq!(next(&mut reader), Some(Some(Out::Item("large"))));
        assert_eq!(next(&mut reader), Some(Some(Out::Missed(1))));
        assert_eq!(next(&mut reader), Some(None));
    }

    #[actix_web::test]
    async fn what_nobody_misses_leaves_room_and_is_not_counted() {
        let outbox = outbox(Limits { events: 4, bytes: 10 });
        let mut reader = outbox.reader(|| ());
        for letter in ['a', 'b', 'c'] {
            outbox.push_if_roomy(letter, ONE);
        }
        outbox.push_if_roomy('x', Weight { events: 1, bytes: 9 });
        assert!(outbox.stalled_for().is_none());
        assert!(outbox.push('d', ONE) && outbox.push('e', ONE));
        let all: Vec<_> = std::iter::from_fn(|| next(&mut reader).flatten()).collect();
        assert_eq!(all, ['a', 'b', 'd', 'e'].map(Out::Item));
    }

    #[actix_web::test]
    async fn a_writer_can_wait_for_room() {
        let outbox = outbox(LIMITS);
        let mut reader = outbox.reader(|| ());
        outbox.push_anyway('a', ONE);
        assert!(outbox.room().now_or_never().is_some());
        outbox.push_anyway('b', ONE);
        assert!(outbox.room().now_or_never().is_none());
        assert!(outbox.stalled_for().is_some());
        assert_eq!(next(&mut reader), Some(Some(Out::Item('a'))));
        assert!(outbox.room().now_or_never().is_some());
    }

    #[actix_web::test]
    async fn all_queues_together_are_limited_but_who_reads_loses_nothing() {
        let backlog = Backlog::new(10);
        let limits = Limits { events: 100, bytes: 100 };
        let (slow, other) = (Outbox::new(limits, &backlog), Outbox::new(limits, &backlog));
        let (slow_end, mut other_end) = (slow.reader(|| ()), other.reader(|| ()));
        let six = Weight { events: 1, bytes: 6 };
        assert!(slow.push('a', six) && !slow.push('b', six), "the second finds no room");
        assert!(other.push('a', six), "something fits into an empty queue");
        assert_eq!(next(&mut other_end), Some(Some(Out::Item('a'))));
        assert!(other.push('b', six));
        drop(slow_end);
        assert!(other.push('c', Weight { events: 1, bytes: 4 }), "what is gone takes no room");
        slow.push_anyway('x', six);
        drop((other, other_end));
        assert!(backlog.has_room(10), "nor does what nobody will read");
    }

    #[actix_web::test]
    async fn nothing_is_fetched_for_a_reader_that_is_behind() {
        let backlog = Backlog::new(10);
        let outbox = Outbox::new(Limits { events: 100, bytes: 100 }, &backlog);
        let mut reader = outbox.reader(|| ());
        outbox.push_anyway('a', Weight { events: 1, bytes: 8 });
        let room = Room::plenty();
        assert!(outbox.drained(&room, 4).now_or_never().is_none());
        assert!(outbox.stalled_for().is_some());
        assert_eq!(next(&mut reader), Some(Some(Out::Item('a'))));
        outbox.drained(&room, 4).await;
        assert!(outbox.stalled_for().is_none());
        let others = backlog.hold(8);
        let mut waiting = std::pin::pin!(outbox.drained(&room, 4));
        tokio::select! {
            biased;
            () = &mut waiting => panic!("there is no room for it"),
            () = tokio::task::yield_now() => {}
        }
        drop(others);
        waiting.await;
    }

    #[actix_web::test]
    async fn a_reader_that_goes_is_heard_of() {
        let outbox = outbox::<char>(LIMITS);
        let heard = Rc::new(std::cell::Cell::new(false));
        let told = Rc::clone(&heard);
        drop(outbox.reader(move || told.set(true)));
        assert!(heard.get() && !outbox.has_reader());
    }
}
