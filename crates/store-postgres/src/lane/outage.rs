//! The ability to write: an outage of the database, which the lanes and the beats notice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use log::Level;

/// Connections that cannot write at present, and the end of the ownership.
#[derive(Debug, Default)]
pub(crate) struct Outages {
    /// Number of lanes in an outage, and the beats if they fail.
    failing: AtomicUsize,
    /// The outage, as the first of them noticed it.
    noticed: Mutex<Option<Noticed>>,
    /// True while the beats fail, which are small and so never at fault themselves.
    is_silent: AtomicBool,
    /// True once this process may no longer write.
    is_lost: AtomicBool,
}

#[derive(Debug)]
struct Noticed {
    since: Instant,
    reason: Arc<str>,
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

    /// Returns true if the last beat succeeded.
    pub(crate) fn is_beating(&self) -> bool {
        !self.is_silent.load(Ordering::SeqCst)
    }

    pub(crate) fn set_beating(&self, is_beating: bool) {
        self.is_silent.store(!is_beating, Ordering::SeqCst);
    }

    /// Returns true once this process may no longer write.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Notes that this process may no longer write.
    pub(crate) fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }

    /// Returns the reason of an outage, which has been logged.
    pub(crate) fn reason(&self) -> Option<Arc<str>> {
        self.noticed().as_ref().map(|noticed| Arc::clone(&noticed.reason))
    }

    /// Returns the level of a record about a failed request: that of others, but low during an
    /// outage.
    pub(crate) fn level_of_failure(&self, usual: Level) -> Level {
        if self.is_writable() { usual } else { Level::Debug }
    }

    fn begin(&self, reason: &str) {
        if self.failing.fetch_add(1, Ordering::SeqCst) == 0 {
            let noticed = Noticed { since: Instant::now(), reason: Arc::from(reason) };
            *self.noticed() = Some(noticed);
            log::error!("writes wait for the database: {reason}");
        }
    }

    fn end(&self) {
        if self.failing.fetch_sub(1, Ordering::SeqCst) == 1 {
            let noticed = self.noticed().take();
            let length = noticed.map(|noticed| noticed.since.elapsed()).unwrap_or_default();
            log::info!("the database accepts writes again, after {length:.1?}");
        }
    }

    fn noticed(&self) -> MutexGuard<'_, Option<Noticed>> {
        self.noticed.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!((all.reason(), all.level_of_failure(Level::Warn)), (None, Level::Warn));
        assert!(beats.begin(&all, "refused"));
        assert!(lane.begin(&all, "reset"));
        assert_eq!(all.reason().as_deref(), Some("refused"));
        assert_eq!(all.level_of_failure(Level::Warn), Level::Debug, "the outage is logged");
        assert!(!lane.begin(&all, "refused"), "it is in the outage already");
        beats.end(&all);
        beats.end(&all);
        assert!(!all.is_writable(), "the lane cannot write yet");
        lane.end(&all);
        assert!(all.is_writable());
        assert_eq!(all.reason(), None);
        assert!(lane.begin(&all, "another one"));
        assert!(!all.is_writable());
    }
}
