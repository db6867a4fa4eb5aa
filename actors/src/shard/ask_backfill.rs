//! Asks of executions that were written by versions without asks.
//!
//! They follow from the state of the execution. One process looks for such executions: those that
//! were stored before the update, and those that servers of the version before write during it.

use std::collections::HashSet;
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
    let mut before = HashSet::new();
    loop {
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_draining()) else { return };
        let filled_in = match shared.ownership.does_housework() {
            true => fill_in(&shared).await,
            false => fill_in_remaining(&shared, &mut before).await,
        };
        match filled_in {
            Ok(0) => {}
            Ok(count) => log::info!("asks of {count} older executions are in the inbox now"),
            Err(why) => {
                let level = shared.level_of_failure(log::Level::Warn);
                log::log!(level, "cannot find asks of older executions, trying again: {why}");
            }
        }
        let pause = shared.limits.every(LOOK_EVERY);
        drop(shared);
        tokio::time::sleep(pause).await;
    }
}

/// Returns the number of executions whose asks were stored.
async fn fill_in(shared: &Shared) -> Result<u64, Unavailable> {
    let (mut after, mut count, mut missing) = (Row::MIN, 0, HashSet::new());
    loop {
        let page = shared.store.executions_without_asks(after, PAGE).await?;
        let Some((last, _)) = page.last() else { break };
        after = *last;
        for (_, id) in page {
            if shared.is_draining() {
                return Ok(count);
            }
            count += u64::from(fill_in_of(shared, &id).await?);
            if shared.unreadable_asks.contains(&id) {
                missing.insert(id);
            }
        }
    }
    shared.unreadable_asks.keep(&missing);
    Ok(count)
}

/// Does the same in a process whose turn it is not, for executions that were listed by its last look
/// as well: another process could not read them, and this one has to find that out for its own inbox.
async fn fill_in_remaining(
    shared: &Shared,
    before: &mut HashSet<ExecutionId>,
) -> Result<u64, Unavailable> {
    let noted = shared.unreadable_asks.count();
    let page = shared.store.executions_without_asks(Row::MIN, noted + PAGE).await?;
    let missing: HashSet<_> = page.into_iter().map(|(_, id)| id).collect();
    let mut count = 0;
    for id in missing.intersection(before) {
        if shared.is_draining() {
            return Ok(count);
        }
        count += u64::from(fill_in_of(shared, id).await?);
    }
    shared.unreadable_asks.keep(&missing);
    *before = missing;
    Ok(count)
}

/// Returns false if the execution cannot be read, or has changed meanwhile: the next look may find
/// the latter again.
async fn fill_in_of(shared: &Shared, id: &ExecutionId) -> Result<bool, Unavailable> {
    if shared.unreadable_asks.contains(id) {
        return Ok(false);
    }
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
        Ok(None) => Ok(false),
        Err(why @ Unavailable::Corrupt(_)) => {
            shared.unreadable_asks.add(id, &why);
            Ok(false)
        }
        Err(why) => Err(why),
    }
}
