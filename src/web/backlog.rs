//! The bytes that wait for slow clients, of all of them together.
//!
//! What is free is never given to one alone: whoever wants to hold more than a little may hold a
//! part of what is left. So those who read nothing leave room for those who read, however many
//! they are, and nobody has to know who is who.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::api::ApiError;
use crate::api::error::Shortage;
use crate::telemetry::metrics::RequestMeter;
use crate::web::notice::Notice;

/// What each queue may hold whatever the others do: less than the buffers of its connection take.
pub(crate) const SHARE_MIN: usize = 32 * 1024;
/// The part of what is left that one queue may hold.
const SHARE_PART: usize = 16;

/// Counts what waits. Cheap to clone; all clones are one count.
#[derive(Debug, Clone)]
pub(crate) struct Backlog(Arc<Count>);

#[derive(Debug)]
struct Count {
    what: &'static str,
    /// Shown among the metrics.
    bytes: Arc<AtomicUsize>,
    max: usize,
    /// Those who wait for room look again when something was taken.
    waiting: AtomicUsize,
    taken: Notify,
    notice: Notice,
}

/// Bytes that count while it lives.
#[derive(Debug)]
pub(crate) struct Held {
    backlog: Backlog,
    bytes: usize,
}

impl Backlog {
    /// Of `what`, at most so many bytes. Counts in `bytes`, which others may look at.
    pub(crate) fn new(what: &'static str, max: usize, bytes: Arc<AtomicUsize>) -> Self {
        let (waiting, taken, notice) = (AtomicUsize::new(0), Notify::new(), Notice::new());
        Self(Arc::new(Count { what, bytes, max, waiting, taken, notice }))
    }

    /// Refuses one more, where it is seen: in the log and in the metrics.
    pub(crate) fn refusal(&self, meter: Option<&RequestMeter>) -> ApiError {
        let Count { what, max, notice, .. } = &*self.0;
        if let Some(meter) = meter {
            meter.refused_bytes();
        }
        notice.refused(|| {
            let bytes = self.bytes();
            format!("{what} are refused: {bytes} bytes of them wait for clients (at most {max})")
        });
        ApiError::AtCapacity(Shortage::UnreadBytes)
    }

    /// Whether more waits than may.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() > self.0.max
    }

    /// Counts bytes, room or not.
    pub(crate) fn hold(&self, bytes: usize) -> Held {
        let mut held = self.nothing();
        held.grow(bytes);
        held
    }

    /// Counts bytes if there is room for them. Something always fits when nothing else waits.
    pub(crate) fn try_hold(&self, bytes: usize) -> Option<Held> {
        let mut held = self.nothing();
        let max = self.0.max;
        held.grow_if(bytes, |waiting| waiting == 0 || waiting.saturating_add(bytes) <= max)
            .then_some(held)
    }

    /// Counts bytes if they are no more than one may hold.
    pub(crate) fn try_hold_share(&self, bytes: usize) -> Option<Held> {
        let mut held = self.nothing();
        held.try_grow(bytes).then_some(held)
    }

    /// Counts bytes when there is room for them: others have to read first, or are ended. Of what
    /// is larger than half of all, that half has to be free.
    pub(crate) async fn room(&self, bytes: usize) -> Held {
        let needed = bytes.min(self.0.max / 2);
        let mut held = self.nothing();
        let mut is_held =
            || held.grow_if(bytes, |waiting| waiting.saturating_add(needed) <= self.0.max);
        let _waiting = Waiting::new(&self.0.waiting);
        loop {
            let taken = self.0.taken.notified();
            if is_held() {
                return held;
            }
            taken.await;
        }
    }

    fn nothing(&self) -> Held {
        Held { backlog: self.clone(), bytes: 0 }
    }

    fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::SeqCst)
    }
}

impl Held {
    pub(crate) fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.backlog.0.bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Counts so many more bytes if one may hold as much.
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
            count.taken.notify_waiters();
        }
    }

    /// Takes over what another one counts.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether it is no more than one may hold.
    pub(crate) fn is_within_share(&self) -> bool {
        may_hold(self.bytes, 0, self.backlog.bytes(), self.backlog.0.max)
    }

    /// What one may hold now.
    pub(crate) fn share(&self) -> usize {
        share_of(self.backlog.bytes(), self.backlog.0.max)
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog.clone()
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

/// Whether one that holds `own` bytes of what waits may hold so many more.
fn may_hold(own: usize, more: usize, waiting: usize, max: usize) -> bool {
    waiting <= own || own + more <= share_of(waiting, max)
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

/// Counts as waiting while it lives.
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
    /// Counts for itself.
    pub(crate) fn alone(max: usize) -> Self {
        Self::new("streams", max, Arc::default())
    }

    /// What may wait, and what does.
    pub(crate) fn bounds(&self) -> (usize, usize) {
        (self.0.max, self.bytes())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn what_is_held_counts_until_it_is_dropped() {
        let backlog = Backlog::alone(10);
        let mut first = backlog.try_hold(6).unwrap();
        assert!(backlog.try_hold(5).is_none(), "a refusal counts nothing");
        let second = backlog.try_hold(4).unwrap();
        assert!(backlog.try_hold(1).is_none() && !backlog.is_full());
        first.shrink(100);
        first.grow(20);
        assert!(backlog.is_full(), "what was counted anyway leaves no room");
        drop((first, second));
        assert_eq!(backlog.bounds(), (10, 0));
        let alone = backlog.try_hold(50).unwrap();
        assert!(backlog.try_hold(1).is_none(), "something fits, and then nothing more");
        drop(alone);
    }

    #[test]
    fn those_who_take_nothing_leave_room_for_the_next() {
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
        assert_eq!(largest, Some(1 << 23), "the first has all that it may have");
        let mut last = backlog.hold(MAX);
        assert!(!last.is_within_share());
        let mut next = backlog.hold(0);
        assert!(next.try_grow(SHARE_MIN) && !next.try_grow(1), "a little, whatever others do");
        drop((held, next));
        assert!(last.try_grow(MAX) && last.is_within_share(), "alone, all of it");
    }

    #[test]
    fn room_is_waited_for_and_given_once() {
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
