//! The bounded queue between a subscriber actor and the connection it writes to.
//!
//! Both ends live on one worker thread, so there is no lock. The connection's end is polled only
//! while the client reads, so the limits, the count of missed events and the time of a stall are
//! kept at the actor's end.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use actix_web::web::Bytes;
use futures_util::Stream;
use tokio::time::Instant;

use crate::telemetry::metrics::Count;
use crate::web::backlog::{Backlog, Held};
use crate::web::peer::SendBuffer;

/// Limits of a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// Element of the connection's end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Delivery<T> {
    Item(T),
    /// Number of events that did not fit at this place.
    Missed(u64),
}

impl Delivery<Bytes> {
    /// Returns the bytes of an event stream, which reports missed events in a comment.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Self::Item(bytes) => bytes,
            Self::Missed(count) => comment(&format!("dropped {count}")),
        }
    }
}

fn comment(text: &str) -> Bytes {
    Bytes::from(format!(": {text}\n\n"))
}

/// Room that an item takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weight {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

impl Weight {
    /// Weight of what is not limited, as comments are.
    pub(crate) const NONE: Self = Self { events: 0, bytes: 0 };
}

/// Size of the pieces given to the connection, which copies them and holds them uncounted.
const PIECE_BYTES: usize = 32 * 1024;

/// Outcome of offering an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    Taken,
    /// Beyond the limits of the queue; counted, and reported once there is room again.
    Missed,
    /// Within its limits, but beyond the queue's share of the backlog. Not counted.
    BeyondShare,
}

struct Queue<T> {
    items: VecDeque<(Delivery<T>, Weight)>,
    events: usize,
    bytes: usize,
    /// This queue's part of the backlog.
    held: Held,
    /// Events refused since the last `Missed` was queued.
    missed: u64,
    /// Start of the current stall: there is no room, and nothing has been taken since.
    full_since: Option<Instant>,
    is_finished: bool,
    has_receiver: bool,
    receiver: Option<Waker>,
    writers: Vec<Waker>,
}

/// Actor's end of the queue.
pub(crate) struct SubscriberQueue<T> {
    queue: Rc<RefCell<Queue<T>>>,
    limits: Limits,
    /// Metric of refused events, of all queues.
    dropped: Option<Count>,
}

impl<T> Clone for SubscriberQueue<T> {
    fn clone(&self) -> Self {
        Self { queue: Rc::clone(&self.queue), limits: self.limits, dropped: self.dropped.clone() }
    }
}

/// Connection's end of the queue. Ends after the queued items once the queue is finished.
pub(crate) struct QueueReceiver<T> {
    queue: Rc<RefCell<Queue<T>>>,
    on_drop: Option<Box<dyn FnOnce()>>,
}

impl<T> SubscriberQueue<T> {
    /// Returns an empty queue that counts in the backlog.
    pub(crate) fn new(limits: Limits, backlog: &Backlog) -> Self {
        let queue = Queue {
            items: VecDeque::new(),
            events: 0,
            bytes: 0,
            held: backlog.hold(0),
            missed: 0,
            full_since: None,
            is_finished: false,
            has_receiver: true,
            receiver: None,
            writers: Vec::new(),
        };
        Self { queue: Rc::new(RefCell::new(queue)), limits, dropped: None }
    }

    /// Also counts refused events in a metric.
    pub(crate) fn counting(self, dropped: Option<Count>) -> Self {
        Self { dropped, ..self }
    }

    /// Returns the connection's end, which calls `on_drop` when it is dropped.
    pub(crate) fn receiver(&self, on_drop: impl FnOnce() + 'static) -> QueueReceiver<T> {
        QueueReceiver { queue: Rc::clone(&self.queue), on_drop: Some(Box::new(on_drop)) }
    }

    /// Queues an item, or counts it as missed. Anything fits into an empty queue. The share of the
    /// backlog is not checked: the caller uses [`Self::is_filling`].
    pub(crate) fn push(&self, item: T, weight: Weight) -> bool {
        let mut queue = self.queue.borrow_mut();
        let has_room = queue.items.is_empty() || queue.fits(weight, self.limits);
        if has_room {
            queue.push_missed();
            queue.push(Delivery::Item(item), weight);
        } else {
            self.count_missed(&mut queue, weight);
        }
        has_room
    }

    fn count_missed(&self, queue: &mut Queue<T>, weight: Weight) {
        queue.missed += weight.events as u64;
        if let Some(dropped) = &self.dropped {
            dropped.inc_by(weight.events as u64);
        }
        queue.full_since.get_or_insert_with(Instant::now);
    }

    /// Queues an optional item if that leaves half of the room free; drops it otherwise.
    pub(crate) fn push_if_roomy(&self, item: T, weight: Weight) {
        let mut queue = self.queue.borrow_mut();
        if queue.fits(weight, self.limits.half()) && queue.held.try_grow(weight.bytes) {
            queue.push_missed();
            queue.push_counted(Delivery::Item(item), weight);
        }
    }

    /// Queues an item regardless of the limits.
    pub(crate) fn push_anyway(&self, item: T, weight: Weight) {
        self.queue.borrow_mut().push(Delivery::Item(item), weight);
    }

    /// Resolves when the queue is less than half full and within its share, when it is empty, or
    /// when the receiver is gone. Waits for its own client only, not for other queues.
    pub(crate) async fn room(&self) {
        std::future::poll_fn(|cx| {
            let mut queue = self.queue.borrow_mut();
            let has_room = queue.items.is_empty()
                || (queue.fits(Weight::NONE, self.limits.half()) && queue.held.is_within_share());
            if has_room || !queue.has_receiver {
                return Poll::Ready(());
            }
            queue.wait(cx);
            Poll::Pending
        })
        .await;
    }

    /// Resolves when all items were taken and the connection has accepted them, or when the
    /// receiver is gone. For events that can be read at any time: nothing is fetched for a client
    /// that is behind.
    pub(crate) async fn drained(&self, send_buffer: &SendBuffer) {
        std::future::poll_fn(|cx| {
            let mut queue = self.queue.borrow_mut();
            if queue.items.is_empty() || !queue.has_receiver {
                return Poll::Ready(());
            }
            queue.wait(cx);
            Poll::Pending
        })
        .await;
        self.queue.borrow_mut().full_since.get_or_insert_with(Instant::now);
        send_buffer.writable().await;
        self.queue.borrow_mut().full_since = None;
    }

    /// Returns the bytes that this queue may hold now.
    pub(crate) fn share(&self) -> usize {
        self.queue.borrow().held.share()
    }

    /// Waits until the backlog has room for the bytes, and counts them. This wait is not a stall of
    /// the client.
    pub(crate) async fn reserve_shared(&self, bytes: usize) -> Held {
        let backlog = self.queue.borrow().held.backlog();
        backlog.room(bytes).await
    }

    /// Ends the queue after the queued items.
    pub(crate) fn finish(&self) {
        let mut queue = self.queue.borrow_mut();
        queue.is_finished = true;
        queue.wake_receiver();
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.queue.borrow().is_finished
    }

    pub(crate) fn is_empty(&self) -> bool {
        let queue = self.queue.borrow();
        queue.items.is_empty() && queue.missed == 0
    }

    /// Number of queued items.
    pub(crate) fn len(&self) -> usize {
        self.queue.borrow().items.len()
    }

    /// Returns true if more than a quarter of the room is used, or more than the share of the
    /// backlog.
    pub(crate) fn is_filling(&self) -> bool {
        let queue = self.queue.borrow();
        queue.events > self.limits.events / 4
            || queue.bytes > self.limits.bytes / 4
            || !queue.held.is_within_share()
    }

    pub(crate) fn has_receiver(&self) -> bool {
        self.queue.borrow().has_receiver
    }

    /// Returns the duration of the current stall; `None` if there is room.
    pub(crate) fn stalled_for(&self) -> Option<Duration> {
        self.queue.borrow().full_since.map(|since| since.elapsed())
    }
}

impl SubscriberQueue<Bytes> {
    /// Queues a comment of an event stream regardless of the limits.
    pub(crate) fn push_comment(&self, text: &str) {
        self.push_anyway(comment(text), Weight::NONE);
    }

    /// Queues events that can be read again from the journal. Anything fits into an empty queue.
    pub(crate) fn offer(&self, bytes: Bytes, events: usize) -> Offered {
        let mut queue = self.queue.borrow_mut();
        let weight = Weight { events, bytes: bytes.len() };
        if queue.items.is_empty() {
            queue.held.grow(weight.bytes);
        } else if !queue.fits(weight, self.limits) {
            self.count_missed(&mut queue, weight);
            return Offered::Missed;
        } else if !queue.held.try_grow(weight.bytes) {
            return Offered::BeyondShare;
        }
        queue.push_missed();
        queue.push_pieces(bytes, events);
        Offered::Taken
    }

    /// Queues events that were fetched for a drained queue, if they are within its share or fit
    /// into the reserved `room`.
    pub(crate) fn push_fetched(&self, bytes: Bytes, events: usize, room: Option<Held>) -> Offered {
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
    /// Queues bytes that are counted already, in pieces; the first one carries the events.
    fn push_pieces(&mut self, bytes: Bytes, events: usize) {
        let (mut rest, mut events) = (bytes, events);
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE_BYTES));
            let weight = Weight { events: std::mem::take(&mut events), bytes: piece.len() };
            self.push_counted(Delivery::Item(piece), weight);
        }
    }
}

impl<T> Queue<T> {
    fn fits(&self, weight: Weight, limits: Limits) -> bool {
        self.events + weight.events <= limits.events && self.bytes + weight.bytes <= limits.bytes
    }

    /// Registers a writer to be woken when an item was taken.
    fn wait(&mut self, cx: &Context<'_>) {
        self.full_since.get_or_insert_with(Instant::now);
        if !self.writers.iter().any(|writer| writer.will_wake(cx.waker())) {
            self.writers.push(cx.waker().clone());
        }
    }

    fn push(&mut self, item: Delivery<T>, weight: Weight) {
        self.held.grow(weight.bytes);
        self.push_counted(item, weight);
    }

    /// Queues an item that is counted already.
    fn push_counted(&mut self, item: Delivery<T>, weight: Weight) {
        if !self.has_receiver {
            self.held.shrink(weight.bytes);
            return;
        }
        self.events += weight.events;
        self.bytes += weight.bytes;
        self.items.push_back((item, weight));
        self.wake_receiver();
    }

    /// Queues the number of missed events at their place.
    fn push_missed(&mut self) {
        if self.missed > 0 {
            let missed = std::mem::take(&mut self.missed);
            self.push(Delivery::Missed(missed), Weight::NONE);
        }
    }

    fn pop(&mut self) -> Option<Delivery<T>> {
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

    fn wake_receiver(&mut self) {
        if let Some(receiver) = self.receiver.take() {
            receiver.wake();
        }
    }
}

impl<T> Stream for QueueReceiver<T> {
    type Item = Delivery<T>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Delivery<T>>> {
        let mut queue = self.queue.borrow_mut();
        if let Some(item) = queue.pop() {
            return Poll::Ready(Some(item));
        }
        if queue.is_finished {
            return Poll::Ready(None);
        }
        queue.receiver = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for QueueReceiver<T> {
    fn drop(&mut self) {
        {
            let mut queue = self.queue.borrow_mut();
            queue.has_receiver = false;
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
