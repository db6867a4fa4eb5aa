//! A connection of the pool.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use tokio::time::timeout;
use tokio_postgres::{Error, Row};

use super::{Failure, Values};

/// A connection, which goes back to the pool when this is dropped, unless it did not answer.
pub(crate) struct Connection {
    object: Object,
    silence: Silence,
}

/// An open transaction. Dropping it undoes it.
pub(crate) struct Opened<'c> {
    transaction: Transaction<'c>,
    silence: &'c Silence,
}

/// The limit of waits for answers, and whether one has passed it.
///
/// The database gives a statement up before. But a host that hangs, or a proxy before it, can keep
/// the connection open without answering.
struct Silence {
    answer_max: Duration,
    is_broken: AtomicBool,
}

impl Silence {
    async fn answered<T>(
        &self,
        asking: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        match timeout(self.answer_max, asking).await {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                self.is_broken.store(true, Ordering::Relaxed);
                Err(Error::__private_api_timeout().into())
            }
        }
    }
}

impl Connection {
    pub(super) fn new(object: Object, answer_max: Duration) -> Self {
        Self { object, silence: Silence { answer_max, is_broken: AtomicBool::new(false) } }
    }

    /// Returns all rows of a query, whose statement is prepared once per connection.
    pub(crate) async fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        let asking = async {
            let statement = self.object.prepare_cached(sql).await?;
            self.object.query(&statement, values).await
        };
        self.silence.answered(asking).await
    }

    /// Returns the only row of a query, or none.
    pub(crate) async fn query_opt(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, Failure> {
        let asking = async {
            let statement = self.object.prepare_cached(sql).await?;
            self.object.query_opt(&statement, values).await
        };
        self.silence.answered(asking).await
    }

    /// Runs a statement; returns the number of rows that it changed.
    pub(crate) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Failure> {
        let asking = async {
            let statement = self.object.prepare_cached(sql).await?;
            self.object.execute(&statement, values).await
        };
        self.silence.answered(asking).await
    }

    /// Begins a transaction.
    pub(crate) async fn begin(&mut self) -> Result<Opened<'_>, Failure> {
        let Self { object, silence } = self;
        let transaction = silence.answered(object.transaction()).await?;
        Ok(Opened { transaction, silence })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.silence.is_broken.load(Ordering::Relaxed) {
            // the pool discards it
            self.object.__private_api_close();
        }
    }
}

impl Opened<'_> {
    /// Returns all rows of a query, whose statement is prepared once per connection.
    pub(crate) async fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        let asking = async {
            let statement = self.transaction.prepare_cached(sql).await?;
            self.transaction.query(&statement, values).await
        };
        self.silence.answered(asking).await
    }

    /// Returns the only row of a query, or none.
    pub(crate) async fn query_opt(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, Failure> {
        let asking = async {
            let statement = self.transaction.prepare_cached(sql).await?;
            self.transaction.query_opt(&statement, values).await
        };
        self.silence.answered(asking).await
    }

    /// Runs a statement; returns the number of rows that it changed.
    pub(crate) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Failure> {
        let asking = async {
            let statement = self.transaction.prepare_cached(sql).await?;
            self.transaction.execute(&statement, values).await
        };
        self.silence.answered(asking).await
    }

    /// Makes what was done durable.
    pub(crate) async fn commit(self) -> Result<(), Failure> {
        self.silence.answered(self.transaction.commit()).await
    }
}
