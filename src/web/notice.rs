//! Lines of the log about refusals: a server that is full says so, and not for each request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// At most one line of the log in this time.
const NOTICE_EVERY: Duration = Duration::from_secs(60);

/// Says at most once in a while how much of one kind was refused.
#[derive(Debug)]
pub(crate) struct Notice {
    began: Instant,
    /// When the last line was written, in milliseconds from the beginning, plus one; 0: never.
    told_at: AtomicU64,
    untold: AtomicU64,
}

impl Notice {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), told_at: AtomicU64::new(0), untold: AtomicU64::new(0) }
    }

    /// Counts a refusal, and logs it with those before it where it is time.
    pub(crate) fn refused(&self, why: impl FnOnce() -> String) {
        if let Some(untold) = self.due() {
            log::warn!("{}; {untold} were refused since the last line about this", why());
        }
    }

    /// How many refusals are to be told now; none while it is too soon.
    fn due(&self) -> Option<u64> {
        let untold = self.untold.fetch_add(1, Ordering::Relaxed) + 1;
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1;
        let told_at = self.told_at.load(Ordering::Relaxed);
        let pause = u64::try_from(NOTICE_EVERY.as_millis()).unwrap_or(u64::MAX);
        if told_at != 0 && now - told_at < pause {
            return None;
        }
        let won = self.told_at.compare_exchange(told_at, now, Ordering::Relaxed, Ordering::Relaxed);
        won.is_ok().then(|| {
            self.untold.fetch_sub(untold, Ordering::Relaxed);
            untold
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_refusal_is_told_and_then_one_a_minute() {
        let notice = Notice::new();
        assert_eq!(notice.due(), Some(1));
        assert_eq!((notice.due(), notice.due()), (None, None));
        tokio::time::advance(NOTICE_EVERY).await;
        assert_eq!(notice.due(), Some(3));
        assert_eq!(notice.due(), None);
    }
}
