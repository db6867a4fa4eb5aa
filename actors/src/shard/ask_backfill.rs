//! Asks of executions that were written by versions without asks.
//!
//! They follow from the state of the execution. One process looks for such executions: those that
//! were stored before the update, and those that servers of the version before write during it.

use std::sync::Weak;
use std::time::Duration;

use crate::domain::ids::ExecutionId;
use crate::execution::{asks_of, restore};
use crate::ports::store::{MissingAsks, Row};
use crate::requests::Unavailable;
use crate::shared::Shared;

/// Interval between looks for executions without asks, which cost one read.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Executions that are listed at once.
const PAGE: usize = 100;

/// Stores missing asks until the runtime drains or is dropped.
pub(crate) async fn fill_in_asks(shared: Weak<Shared>) {
    loop {
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_draining()) else { return };
        if shared.ownership.does_housework() {
            match fill_in(&shared).await {
                Ok(0) => {}
                Ok(count) => log::info!("asks of {count} older executions are in the inbox now"),
                Err(why) => {
                    let level = shared.level_of_failure(log::Level::Warn);
                    log::log!(level, "cannot find asks of older executions, trying again: {why}");
                }
            }
        }
        drop(shared);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Returns the number of executions whose asks were stored.
async fn fill_in(shared: &Shared) -> Result<u64, Unavailable> {
    let (mut after, mut count) = (Row::MIN, 0);
    loop {
        let page = shared.store.executions_without_asks(after, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(count) };
        after = *last;
        for (_, id) in page {
            if shared.is_draining() {
                return Ok(count);
            }
            count += u64::from(fill_in_of(shared, &id).await?);
        }
    }
}

/// Returns false if the execution cannot be read, or has changed meanwhile: the next look may find
/// it again.
async fn fill_in_of(shared: &Shared, id: &ExecutionId) -> Result<bool, Unavailable> {
    match restore(shared, id).await {
        Ok(Some(restored)) => {
            let missing = MissingAsks {
                asks: asks_of(&restored.machine),
                header: restored.header,
                row: restored.row,
                revision: restored.revision,
                at: shared.clock.now(),
            };
            Ok(shared.store.put_asks(missing).await?)
        }
        // A damaged one is already logged.
        Ok(None) | Err(Unavailable::Corrupt(_)) => Ok(false),
        Err(why) => Err(why),
    }
}
