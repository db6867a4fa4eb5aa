//! Changes outside the lanes: of conversations, and deletions.
//!
//! A change that has started runs on the store's thread, and so to its end even if the caller
//! leaves. There are as many at once as connections. It is repeated
//! over outages and after conflicts. If an outage hides the outcome of a commit, the repetition may
//! meet its own effects: a change must recognize them, for example by a row number that it took
//! before its first attempt. Once the patience is over, the caller gets an error although the last
//! attempt may have succeeded.

use std::future::Future;

use greenroom_actors::ports::store::AppendError;

use crate::columns::{Stored, stored};
use crate::pool::{Failure, Opened, Pool, Reading, Values};

/// Maximum number of rows that a transaction deletes for one request, so that others wait for a
/// few milliseconds at most.
pub(crate) const PART: usize = 500;

/// Commits a mark that changes nothing, and so waits for replicas.
pub(crate) const MARK: &str = "SELECT pg_logical_emit_message(true, 'greenroom', '')";

/// Outcome of a change: made, or refused by a rule of the port.
pub(crate) type Verdict<T> = Result<T, AppendError>;

/// Result of one part of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Number of changed conversations, or of deleted or written rows.
    pub(crate) changed: u64,
    pub(crate) is_last: bool,
}

/// A connection of the pool that changes something. One statement is one transaction unless
/// [`Changing::begin`] begins a longer one.
pub(crate) struct Changing(Reading);

impl Changing {
    /// Begins a transaction, in which each statement sees what is committed when it begins.
    /// Dropping it undoes it.
    pub(crate) async fn begin(&mut self) -> Result<Change<'_>, Failure> {
        self.0.client.begin().await.map(Change)
    }

    /// Returns all rows that a statement returns.
    pub(crate) async fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<Stored>, Failure> {
        self.0.rows(sql, values).await
    }

    /// Returns the only row that a statement returns, or none.
    pub(crate) async fn row(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Stored>, Failure> {
        self.0.row(sql, values).await
    }

    /// Runs a statement; returns the number of rows that it changed.
    pub(crate) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Failure> {
        self.0.client.execute(sql, values).await
    }
}

/// An open transaction.
pub(crate) struct Change<'c>(Opened<'c>);

impl Change<'_> {
    /// Returns all rows that a statement returns.
    pub(crate) async fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<Stored>, Failure> {
        Ok(stored(self.0.query(sql, values).await?))
    }

    /// Returns the only row that a statement returns, or none.
    pub(crate) async fn row(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Stored>, Failure> {
        Ok(self.0.query_opt(sql, values).await?.map(Stored))
    }

    /// Runs a statement; returns the number of rows that it changed.
    pub(crate) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Failure> {
        self.0.execute(sql, values).await
    }

    /// Makes the change durable. All statements must have been awaited.
    pub(crate) async fn commit(self) -> Result<(), Failure> {
        self.0.commit().await
    }
}

impl Pool {
    /// Makes a change, which `change` commits; repeats it until it succeeds, fails for good, or the
    /// patience is over. If the wait of a commit for replicas is canceled, waits until they have a
    /// later one.
    pub(crate) async fn change<T, F>(&self, change: impl Fn(Changing) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut canceled = self.waits.count();
        let changed =
            self.repeated(|| async { change(Changing(self.connection().await?)).await }).await?;
        // also if the commit was that of another change
        while self.waits.count() != canceled {
            canceled = self.waits.count();
            let marking = || async { self.connection().await?.client.execute(MARK, &[]).await };
            self.repeated(marking).await?;
        }
        Ok(changed)
    }

    /// Makes a long change in parts, one per transaction; returns the sum of their results. A part
    /// whose outcome an outage hid may be missing in the sum.
    pub(crate) async fn change_in_parts<F>(
        &self,
        part: impl Fn(Changing) -> F,
    ) -> Result<u64, Failure>
    where
        F: Future<Output = Result<Part, Failure>>,
    {
        let mut sum = 0;
        loop {
            let Part { changed, is_last } = self.change(&part).await?;
            sum += changed;
            if is_last {
                return Ok(sum);
            }
        }
    }
}
