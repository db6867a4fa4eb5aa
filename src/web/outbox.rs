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

use actix_web::web::Bytes;
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

/// Bytes that go to the connection as one: it copies what it is given, and holds it uncounted.
const PIECE_BYTES: usize = 32 * 1024;

/// What becomes of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    Taken,
    /// Beyond the bounds of the queue; counted, and told when there is room again.
    Missed,
    /// Within them, but more than one may hold of what all hold. Not counted.
    BeyondShare,
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

    /// Queues an item, or counts it as missed. Something always fits into an empty queue. What all
    /// queues hold together is not looked at: the caller asks [`Self::is_filling`].
    pub(crate) fn push(&self, item: T, weight: Weight) -> bool {
        let mut queue = self.queue.borrow_mut();
        let has_room = queue.items.is_empty() || queue.fits(weight, self.limits);
        if has_room {
            queue.push_missed();
            queue.push(Out::Item(item), weight);
        } else {
            self.miss(&mut queue, weight);
        }
        has_room
    }

    fn miss(&self, queue: &mut Queue<T>, weight: Weight) {
        queue.missed += weight.events as u64;
        if let Some(dropped) = &self.dropped {
            dropped.inc_by(weight.events as u64);
        }
        queue.full_since.get_or_insert_with(Instant::now);
    }

    /// Queues an item that nobody misses, while it leaves half of the room free.
    pub(crate) fn push_if_roomy(&self, item: T, weight: Weight) {
        let mut queue = self.queue.borrow_mut();
        if queue.fits(weight, self.limits.half()) && queue.held.try_grow(weight.bytes) {
            queue.push_missed();
            queue.push_counted(Out::Item(item), weight);
        }
    }

    /// Queues an item whatever the limits say: for one that was made room for.
    pub(crate) fn push_anyway(&self, item: T, weight: Weight) {
        self.queue.borrow_mut().push(Out::Item(item), weight);
    }

    /// Resolves when the queue is less than half full and holds no more of what all hold than it
    /// may, when it is empty, or when its reader has gone. Waits for nobody but its own reader.
    pub(crate) async fn room(&self) {
        std::future::poll_fn(|cx| {
            let mut queue = self.queue.borrow_mut();
            let has_room = queue.items.is_empty()
                || (queue.fits(Weight::NONE, self.limits.half()) && queue.held.is_within_share());
            if has_room || !queue.has_reader {
                return Poll::Ready(());
            }
            queue.wait(cx);
            Poll::Pending
        })
        .await;
    }

    /// Resolves when everything was taken and the connection took it in, or when the reader has
    /// gone. For what can be had at any time: as long as the reader is behind, nothing more is
    /// fetched for it.
    pub(crate) async fn drained(&self, room: &Room) {
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
    }

    /// What this queue may hold now of what all hold.
    pub(crate) fn share(&self) -> usize {
        self.queue.borrow().held.share()
    }

    /// Resolves when all queues together have room for so many bytes; they are counted from then
    /// on. Its reader is not behind meanwhile.
    pub(crate) async fn room_of_all(&self, bytes: usize) -> Held {
        let backlog = self.queue.borrow().held.backlog();
        backlog.room(bytes).await
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

    /// Whether more than a quarter of the room is taken, or more than one may hold of what all
    /// queues hold together.
    pub(crate) fn is_filling(&self) -> bool {
        let queue = self.queue.borrow();
        queue.events > self.limits.events / 4
            || queue.bytes > self.limits.bytes / 4
            || !queue.held.is_within_share()
    }

    pub(crate) fn has_reader(&self) -> bool {
        self.queue.borrow().has_reader
    }

    /// How long nothing was taken although there was no room; `None` while there is room.
    pub(crate) fn stalled_for(&self) -> Option<Duration> {
        self.queue.borrow().full_since.map(|since| since.elapsed())
    }
}

impl Outbox<Bytes> {
    /// Queues events that can be read again from elsewhere. Something always fits into an empty
    /// queue.
    pub(crate) fn offer(&self, bytes: Bytes, events: usize) -> Offered {
        let mut queue = self.queue.borrow_mut();
        let weight = Weight { events, bytes: bytes.len() };
        if queue.items.is_empty() {
            queue.held.grow(weight.bytes);
        } else if !queue.fits(weight, self.limits) {
            self.miss(&mut queue, weight);
            return Offered::Missed;
        } else if !queue.held.try_grow(weight.bytes) {
            return Offered::BeyondShare;
        }
        queue.push_missed();
        queue.push_pieces(bytes, events);
        Offered::Taken
    }

    /// Queues events that were fetched for a reader that has taken everything, if that is no more
    /// than one may hold, or if `room` was made for them.
    pub(crate) fn pass_on(&self, bytes: Bytes, events: usize, room: Option<Held>) -> Offered {
        let mut queue = self.queue.borrow_mut();
        match room.filter(|room| room.bytes() >= bytes.len()) {
            Some(mut room) => {
                room.shrink(room.bytes() - bytes.len());
                queue.held.absorb(room);
            }
            None if queue.held.try_grow(bytes.len()) => {}
            None => return Offered::BeyondShare,
        }
        queue.push_missed();
        queue.push_pieces(bytes, events);
        Offered::Taken
    }
}

impl Limits {
    fn half(self) -> Self {
        Self { events: self.events / 2, bytes: self.bytes / 2 }
    }
}

impl Queue<Bytes> {
    /// Queues what has been counted, in pieces; the events are with the first.
    fn push_pieces(&mut self, bytes: Bytes, events: usize) {
        let (mut rest, mut events) = (bytes, events);
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            let weight = Weight { events: std::mem::take(&mut events), bytes: piece.len() };
            self.push_counted(Out::Item(piece), weight);
        }
    }
}

impl<T> Queue<T> {
    fn fits(&self, weight: Weight, limits: Limits) -> bool {
        self.events + weight.events <= limits.events && self.bytes + weight.bytes <= limits.bytes
    }

    /// Has a writer woken when something was taken.
    fn wait(&mut self, cx: &Context<'_>) {
        self.full_since.get_or_insert_with(Instant::now);
        if !self.writers.iter().any(|writer| writer.will_wake(cx.waker())) {
            self.writers.push(cx.waker().clone());
        }
    }

    fn push(&mut self, item: Out<T>, weight: Weight) {
        self.held.grow(weight.bytes);
        self.push_counted(item, weight);
    }

    /// Queues what `held` has counted already.
    fn push_counted(&mut self, item: Out<T>, weight: Weight) {
        if !self.has_reader {
            self.held.shrink(weight.bytes);
            return;
        }
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
mod tests;
