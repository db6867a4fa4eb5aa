//! Numbers of new rows, taken from the database in blocks.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_actors::ports::store::Row;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::pool::{Failure, Pool};
use crate::shared::Shared;

/// Numbers of a block, and increment of the sequences.
const BLOCK: i64 = 4096;
/// Numbers that are kept: those of the block in use, and of two more.
const KEPT: i64 = 3 * BLOCK;

/// Pause after a failure to get blocks.
const RETRY_AFTER: Duration = Duration::from_millis(500);

const TAKE: &str = "SELECT nextval($1::text::regclass) FROM generate_series(1, $2::int)";

/// Takes the first numbers, and starts to take more when they are wanted; blocks.
pub(crate) fn start(shared: &Arc<Shared>, driver: &Handle) -> Result<(), Failure> {
    let (done, filled) = channel();
    let shared = Arc::clone(shared);
    let membership = Arc::clone(&shared.membership);
    let taking = async move {
        let Shared { pool, execution_rows, generation_rows, .. } = &*shared;
        let first = async {
            execution_rows.fill(pool).await?;
            generation_rows.fill(pool).await
        };
        // an error: the store was not opened
        let _ = done.send(first.await);
        tokio::join!(execution_rows.refill(pool), generation_rows.refill(pool));
    };
    driver.spawn(membership.guard("the source of numbers", taking));
    filled.recv().unwrap_or_else(|_| Err(Failure::NoConnection("the thread ended".to_owned())))
}

/// Numbers that this process may use, each once.
pub(crate) struct Numbers {
    sequence: &'static str,
    blocks: Mutex<Blocks>,
    /// Notified when half of a block is used.
    wanted: Notify,
}

#[derive(Default)]
struct Blocks {
    /// Never contains an empty range.
    ranges: VecDeque<Range<i64>>,
    /// Number of numbers in them.
    left: i64,
}

impl Numbers {
    /// Returns the numbers of a sequence, none at first.
    pub(crate) fn of(sequence: &'static str) -> Self {
        Self { sequence, blocks: Mutex::default(), wanted: Notify::new() }
    }

    /// Returns the next number. Never waits; `None` if there is none until the database answers.
    pub(crate) fn next(&self) -> Option<Row> {
        let mut blocks = self.blocks();
        if blocks.left <= KEPT - BLOCK / 2 {
            self.wanted.notify_one();
        }
        let range = blocks.ranges.front_mut()?;
        let number = range.next();
        if range.is_empty() {
            blocks.ranges.pop_front();
        }
        blocks.left -= 1;
        number
    }

    /// Takes the blocks that are missing.
    pub(crate) async fn fill(&self, pool: &Pool) -> Result<(), Failure> {
        let missing = (KEPT - self.blocks().left + BLOCK / 2) / BLOCK;
        let missing = i32::try_from(missing).unwrap_or(1);
        let take = || async {
            let rows = pool.connection().await?.rows(TAKE, &[&self.sequence, &missing]).await?;
            rows.iter().map(|row| Ok(row.0.try_get(0)?)).collect::<Result<Vec<i64>, Failure>>()
        };
        for first in pool.repeated(take).await? {
            self.blocks().add(first);
        }
        Ok(())
    }

    /// Takes blocks whenever they are wanted.
    pub(crate) async fn refill(&self, pool: &Pool) {
        loop {
            self.wanted.notified().await;
            while let Err(failure) = self.fill(pool).await {
                log::debug!("cannot get numbers of rows: {failure}");
                tokio::time::sleep(RETRY_AFTER).await;
            }
        }
    }

    fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blocks {
    fn add(&mut self, first: i64) {
        self.ranges.push_back(first..first + BLOCK);
        self.left += BLOCK;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn numbers_are_given_once_and_wanted_in_time() {
        let numbers = Numbers::of("execution_rows");
        assert_eq!(numbers.next(), None, "none was taken from the database");
        for first in [1, 20_000, 30_000] {
            numbers.blocks().add(first);
        }
        let given: Vec<_> = std::iter::from_fn(|| numbers.next()).collect();
        let blocks = [1, 20_000, 30_000].map(|first| first..first + BLOCK);
        assert_eq!(given, blocks.into_iter().flatten().collect::<Vec<_>>());
        assert_eq!(numbers.blocks().left, 0);
    }

    #[tokio::test]
    async fn a_block_is_wanted_when_half_of_one_is_used() {
        let numbers = Numbers::of("execution_rows");
        for first in [0, BLOCK, 2 * BLOCK] {
            numbers.blocks().add(first);
        }
        for _ in 0..BLOCK / 2 {
            numbers.next();
        }
        let is_wanted = || numbers.wanted.notified().now_or_never().is_some();
        assert!(!is_wanted(), "not before");
        numbers.next();
        assert!(is_wanted());
    }
}
