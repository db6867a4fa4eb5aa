//! Deletion of expired idempotency keys.

use std::sync::Weak;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use greenroom_actors::domain::time::Timestamp;
use greenroom_store_codec::numbers::limit_of;
use tokio::time::{MissedTickBehavior, interval};

use crate::changes::{Changing, PART, Part};
use crate::pool::Failure;
use crate::shared::Shared;

/// Interval of deletions.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// Deletes up to `$2` expired keys. A key that is taken again meanwhile has not expired then: this is
/// checked on the rows, for which no index is used again.
pub(crate) const PURGE: &str = "DELETE FROM idempotency WHERE coalesce(expires, 0) <= $1
    AND scope = ANY (ARRAY(
        SELECT scope FROM idempotency WHERE expires <= $1 ORDER BY expires LIMIT $2))";

/// Time of the newest append: keys expire at times of appends, and the store has no clock.
#[derive(Debug)]
pub(crate) struct NewestAppend(AtomicI64);

impl NewestAppend {
    /// Starts before all appends.
    pub(crate) fn none() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }

    /// Notes the time of an append.
    pub(crate) fn note(&self, at: Timestamp) {
        self.0.fetch_max(at.0, Ordering::Relaxed);
    }

    fn time(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Deletes expired keys every minute, while the store is open. Of several members, one does.
pub(crate) async fn run(shared: Weak<Shared>) {
    let mut ticks = interval(PURGE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade() else { return };
        if !shared.membership.has_housework() {
            continue;
        }
        if let Err(failure) = purge(&shared).await {
            let level = shared.outages.level_of_failure(log::Level::Warn);
            log::log!(level, "expired idempotency keys stay for another minute: {failure}");
        }
    }
}

/// Deletes the keys that have expired at the time of the newest append.
pub(crate) async fn purge(shared: &Shared) -> Result<u64, Failure> {
    let newest = shared.newest_append.time();
    let purge = async |changing: Changing| {
        let changed = changing.execute(PURGE, &[&newest, &limit_of(PART)]).await?;
        Ok(Part { changed, is_last: changed < PART as u64 })
    };
    shared.pool.change_in_parts(purge).await
}
