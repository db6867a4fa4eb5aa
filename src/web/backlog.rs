//! Counts and limits the bytes held for clients, over all of them: those queued for slow ones, and
//! those of request bodies.
//!
//! A queue never gets all of the free room: beyond a small minimum it may hold a fraction of what
//! is left. So clients that read nothing leave room for those that read, however many there are,
//! without any code that knows which is which.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::api::ApiError;
use crate::api::error::Shortage;
use crate::telemetry::metrics::RequestMeter;
use crate::web::notice::Notice;

/// Bytes that each queue may hold regardless of the others: less than the buffers of its
/// connection.
pub(crate) const SHARE_MIN: usize = 32 * 1024;
/// Divisor of the free room: one queue may hold 1/16 of it.
const SHARE_PART: usize = 16;

/// Count of queued bytes. Cheap to clone; all clones share the count.
#[derive(Debug, Clone)]
pub(crate) struct Backlog(Arc<Count>);

#[derive(Debug)]
struct Count {
    subject: Subject,
    /// Shared with the metrics.
    bytes: Arc<AtomicUsize>,
    max: usize,
    /// Number of tasks that wait for room. `freed` wakes them.
    waiting: AtomicUsize,
    freed: Notify,
    notice: Notice,
}

/// Subject of a count, for refusals.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subject {
    Streams,
    Answers,
    Bodies,
}

/// Guard of counted bytes.
#[derive(Debug)]
pub(crate) struct Held {
    backlog: Backlog,
    bytes: usize,
}

impl Backlog {
    /// Limits the subject to `max` bytes, counted in `bytes`.
    pub(crate) fn new(subject: Subject, max: usize, bytes: Arc<AtomicUsize>) -> Self {
        let (waiting, freed, notice) = (AtomicUsize::new(0), Notify::new(), Notice::new());
        Self(Arc::new(Count { subject, bytes, max, waiting, freed, notice }))
    }

    /// Returns a refusal, after counting it and logging it, rate-limited.
    pub(crate) fn refusal(&self, meter: Option<&RequestMeter>) -> ApiError {
        let Count { subject, max, notice, .. } = &*self.0;
        if let Some(meter) = meter {
            meter.refused_bytes();
        }
        notice.refused(|| {
            let (bytes, (what, are_held, key)) = (self.bytes(), subject.words());
            format!("refusing new {what}: {bytes} bytes are {are_held} (limit {max}, of {key})")
        });
        ApiError::AtCapacity(match subject {
            Subject::Streams | Subject::Answers => Shortage::UnreadBytes,
            Subject::Bodies => Shortage::BodyBytes,
        })
    }

    /// Returns true if more bytes are queued than allowed.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() > self.0.max
    }

    /// Counts bytes without a limit.
    pub(crate) fn hold(&self, bytes: usize) -> Held {
        let mut held = self.nothing();
        held.grow(bytes);
        held
    }

    /// Counts bytes if there is room for them. Any number fits if nothing else is queued.
    pub(crate) fn try_hold(&self, bytes: usize) -> Option<Held> {
        let mut held = self.nothing();
        let max = self.0.max;
        held.grow_if(bytes, |waiting| waiting == 0 || waiting.saturating_add(bytes) <= max)
            .then_some(held)
    }

    /// Counts bytes if they are within the share of one queue.
    pub(crate) fn try_hold_share(&self, bytes: usize) -> Option<Held> {
        let mut held = self.nothing();
        held.try_grow(bytes).then_some(held)
    }

    /// Waits until there is room for the bytes, then counts them. Room appears as clients read or
    /// are disconnected. For more than half of the limit, half of it has to be free.
    pub(crate) async fn room(&self, bytes: usize) -> Held {
        let needed = bytes.min(self.0.max / 2);
        let mut held = self.nothing();
        let mut is_held =
            || held.grow_if(bytes, |waiting| waiting.saturating_add(needed) <= self.0.max);
        let _waiting = Waiting::new(&self.0.waiting);
        loop {
            let freed = self.0.freed.notified();
            if is_held() {
                return held;
            }
            freed.await;
        }
    }

    /// Returns a guard of no bytes.
    pub(crate) fn nothing(&self) -> Held {
        Held { backlog: self.clone(), bytes: 0 }
    }

    fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::SeqCst)
    }
}

impl Subject {
    /// Returns what is refused, what is done with its bytes, and the key of the limit.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        let unread = ("queued for slow clients", "limits.subscribers_bytes_max");
        match self {
            Self::Streams => ("streams", unread.0, unread.1),
            Self::Answers => ("large answers", unread.0, unread.1),
            Self::Bodies => ("request bodies", "held of others", "limits.requests_bytes_max"),
        }
    }
}

impl Held {
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.backlog.0.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Counts more bytes if the sum is within the share of one queue.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> bool {
        let (own, max) = (self.bytes, self.backlog.0.max);
        self.grow_if(bytes, |waiting| may_hold(own, bytes, waiting, max))
    }

    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let count = &self.backlog.0;
        count.bytes.fetch_sub(bytes, Ordering::SeqCst);
        if bytes > 0 && count.waiting.load(Ordering::SeqCst) > 0 {
            count.freed.notify_waiters();
        }
    }

    /// Takes over the bytes of another guard.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if the bytes are within the share of one queue.
    pub(crate) fn is_within_share(&self) -> bool {
        may_hold(self.bytes, 0, self.backlog.bytes(), self.backlog.0.max)
    }

    /// Returns the bytes that one queue may hold now.
    pub(crate) fn share(&self) -> usize {
        share_of(self.backlog.bytes(), self.backlog.0.max)
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog.clone()
    }

    /// Counts at least this many bytes if there is room for them, or if nothing else is counted.
    pub(crate) fn try_grow_to(&mut self, bytes: usize) -> bool {
        let (own, max) = (self.bytes, self.backlog.0.max);
        let Some(more) = bytes.checked_sub(own).filter(|more| *more > 0) else { return true };
        self.grow_if(more, |held| held <= own || held.saturating_add(more) <= max)
    }

    fn grow_if(&mut self, bytes: usize, has_room: impl Fn(usize) -> bool) -> bool {
        let grown = |waiting| has_room(waiting).then_some(waiting + bytes);
        let count = &self.backlog.0.bytes;
        let is_grown = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, grown).is_ok();
        if is_grown {
            self.bytes += bytes;
        }
        is_grown
    }
}

fn share_of(waiting: usize, max: usize) -> usize {
    SHARE_MIN.max(max.saturating_sub(waiting) / SHARE_PART)
}

/// Returns true if a queue with `own` of the `waiting` bytes may hold `more` in addition.
fn may_hold(own: usize, more: usize, waiting: usize, max: usize) -> bool {
    waiting <= own || own + more <= share_of(waiting, max)
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

/// Guard of a task that waits for room.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
impl Backlog {
    /// Returns a backlog without metrics.
    pub(crate) fn alone(max: usize) -> Self {
        Self::new(Subject::Streams, max, Arc::default())
    }

    /// Returns the limit and the counted bytes.
    pub(crate) fn bounds(&self) -> (usize, usize) {
        (self.0.max, self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn held_bytes_count_until_they_are_dropped() {
        let backlog = Backlog::alone(10);
        let mut first = backlog.try_hold(6).unwrap();
        assert!(backlog.try_hold(5).is_none(), "a refusal counts nothing");
        let second = backlog.try_hold(4).unwrap();
        assert!(backlog.try_hold(1).is_none() && !backlog.is_full());
        first.shrink(100);
        first.grow(20);
        assert!(backlog.is_full(), "bytes counted without a limit leave no room");
        drop((first, second));
        assert_eq!(backlog.bounds(), (10, 0));
        let alone = backlog.try_hold(50).unwrap();
        assert!(backlog.try_hold(1).is_none(), "something fits, and then nothing more");
        drop(alone);
    }

    #[test]
    fn stalled_queues_leave_room_for_new_ones() {
        const MAX: usize = 1 << 28;
        let backlog = Backlog::alone(MAX);
        let mut held: Vec<Held> = Vec::new();
        for number in 0..2000 {
            let mut own = backlog.hold(0);
            while own.try_grow(1 << 10) && own.bytes() < 1 << 23 {}
            assert!(own.bytes() >= SHARE_MIN, "number {number} holds {}", own.bytes());
            held.push(own);
            assert!(number > 100 || !backlog.is_full(), "{number} of them leave something");
        }
        assert!(backlog.bounds().1 <= MAX + 2000 * SHARE_MIN, "{:?}", backlog.bounds());
        let largest = held.iter().map(Held::bytes).max();
        assert_eq!(largest, Some(1 << 23), "the first has its whole share");
        let mut last = backlog.hold(MAX);
        assert!(!last.is_within_share());
        let mut next = backlog.hold(0);
        assert!(next.try_grow(SHARE_MIN) && !next.try_grow(1), "the minimum, whatever others do");
        drop((held, next));
        assert!(last.try_grow(MAX) && last.is_within_share(), "alone, all of it");
    }

    #[test]
    fn room_is_waited_for_and_granted_once() {
        let backlog = Backlog::alone(100);
        let mut others = backlog.hold(90);
        let mut first = Box::pin(backlog.room(30));
        let mut second = Box::pin(backlog.room(30));
        assert!(first.as_mut().now_or_never().is_none());
        assert!(second.as_mut().now_or_never().is_none());
        others.shrink(30);
        let held = first.as_mut().now_or_never().expect("there is room for one");
        assert!(second.as_mut().now_or_never().is_none(), "and not for the other");
        assert_eq!(backlog.bounds(), (100, 90));
        drop(held);
        assert_eq!(second.as_mut().now_or_never().map(|held| held.bytes()), Some(30));
        drop((first, second));
        others.shrink(10);
        let whole = backlog.room(500).now_or_never().expect("half of all is free");
        assert_eq!((whole.bytes(), backlog.bounds()), (500, (100, 550)));
        assert!(backlog.room(1).now_or_never().is_none());
    }
}
