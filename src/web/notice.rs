//! Rate-limited log lines about refusals of a full server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Minimum time between two log lines.
const NOTICE_EVERY: Duration = Duration::from_secs(60);

/// Logs refusals of one kind, with the number since the last log line.
#[derive(Debug)]
pub(crate) struct Notice {
    began: Instant,
    /// Time of the last log line: milliseconds since `began`, plus one; 0: never.
    logged_at: AtomicU64,
    unlogged: AtomicU64,
}

impl Notice {
    pub(crate) fn new() -> Self {
        let (logged_at, unlogged) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { began: Instant::now(), logged_at, unlogged }
    }

    /// Counts a refusal; logs all unlogged ones if the last log line is old enough.
    pub(crate) fn refused(&self, why: impl FnOnce() -> String) {
        if let Some(count) = self.due() {
            log::warn!("{}; {count} refused since the last such message", why());
        }
    }

    /// Returns the number of refusals to log now; `None` if it is too soon.
    fn due(&self) -> Option<u64> {
        let unlogged = self.unlogged.fetch_add(1, Ordering::Relaxed) + 1;
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let logged_at = self.logged_at.load(Ordering::Relaxed);
        let pause = u64::try_from(NOTICE_EVERY.as_millis()).unwrap_or(u64::MAX);
        if logged_at != 0 && now - logged_at < pause {
            return None;
        }
        let won =
            self.logged_at.compare_exchange(logged_at, now, Ordering::Relaxed, Ordering::Relaxed);
        won.is_ok().then(|| {
            self.unlogged.fetch_sub(unlogged, Ordering::Relaxed);
            unlogged
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_refusal_is_logged_and_then_one_line_a_minute() {
        let notice = Notice::new();
        assert_eq!(notice.due(), Some(1));
        assert_eq!((notice.due(), notice.due()), (None, None));
        tokio::time::advance(NOTICE_EVERY).await;
        assert_eq!(notice.due(), Some(3));
        assert_eq!(notice.due(), None);
    }
}
