//! The ability to write: an outage of the database, which the lanes and the beats notice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Connections that cannot write at present, and the end of the ownership.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// Number of lanes in an outage, and the beats if they fail.
    failing: AtomicUsize,
    /// Time when the first of them noticed it.
    since: Mutex<Option<Instant>>,
    /// True once this process may no longer write.
    is_lost: AtomicBool,
}

/// Part of one connection in outages.
#[derive(Debug, Default)]
pub(crate) struct OutageOfOne {
    is_out: bool,
}

impl Outages {
    /// Returns true if writes are expected to succeed.
    pub(crate) fn is_writable(&self) -> bool {
        self.failing.load(Ordering::SeqCst) == 0 && !self.is_lost()
    }

    /// Returns true once this process may no longer write.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Notes that this process may no longer write.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }

    fn begin(&self, reason: &str) {
        if self.failing.fetch_add(1, Ordering::SeqCst) == 0 {
            *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            log::error!("writes wait for the database: {reason}");
        }
    }

    fn end(&self) {
        if self.failing.fetch_sub(1, Ordering::SeqCst) == 1 {
            let since = self.since.lock().unwrap_or_else(PoisonError::into_inner).take();
            let length = since.map(|since| since.elapsed()).unwrap_or_default();
            log::info!("the database accepts writes again, after {length:.1?}");
        }
    }
}

impl OutageOfOne {
    /// Notes that this connection cannot write; logs the reason of the first of an outage. Returns
    /// true if it could write before.
    pub(crate) fn begin(&mut self, all: &Outages, reason: &str) -> bool {
        let is_first = !std::mem::replace(&mut self.is_out, true);
        if is_first {
            all.begin(reason);
        }
        is_first
    }

    /// Notes that this connection can write; logs the last of an outage.
    pub(crate) fn end(&mut self, all: &Outages) {
        if std::mem::take(&mut self.is_out) {
            all.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_lasts_until_all_that_noticed_it_can_write() {
        let all = Outages::default();
        let [mut lane, mut beats] = [OutageOfOne::default(), OutageOfOne::default()];
        lane.end(&all);
        assert!(all.is_writable());
        assert!(beats.begin(&all, "refused"));
        assert!(lane.begin(&all, "refused"));
        assert!(!lane.begin(&all, "refused"), "it is in the outage already");
        beats.end(&all);
        beats.end(&all);
        assert!(!all.is_writable(), "the lane cannot write yet");
        lane.end(&all);
        assert!(all.is_writable());
        assert!(lane.begin(&all, "another one"));
        assert!(!all.is_writable());
    }
}
