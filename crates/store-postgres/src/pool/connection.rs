//! A connection of the pool.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{GenericClient, Object, Transaction};
use futures_util::TryStreamExt as _;
use greenroom_actors::ports::store::{PageSize, PageTooLarge};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::{Failure, Values};
use crate::connector::losses;
use crate::lane::outage::Outages;

/// A connection, which goes back to the pool when this is dropped, unless it did not answer.
pub(crate) struct Connection {
    object: Object,
    questions: Questions,
}

/// An open transaction. Dropping it undoes it.
pub(crate) struct Opened<'c> {
    transaction: Transaction<'c>,
    questions: &'c Questions,
}

/// Questions to the database on one connection, and whether one was left without its answer.
///
/// The database gives a statement up before. But a host that hangs, or a proxy before it, can keep
/// the connection open without answering.
struct Questions {
    answer_max: Duration,
    outages: Arc<Outages>,
    /// True while a question has no answer; stays so if it is given up.
    is_open: AtomicBool,
    /// True if an answer, or the rest of one, is not awaited.
    is_given_up: AtomicBool,
}

impl Questions {
    async fn answered<T>(
        &self,
        asking: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failure> {
        self.is_open.store(true, Ordering::Relaxed);
        let Ok(answer) = timeout(self.answer_max, asking).await else {
            losses::report(&format!("no answer within {:?}", self.answer_max));
            self.is_given_up.store(true, Ordering::Relaxed);
            return Err(Error::__private_api_timeout().into());
        };
        self.is_open.store(false, Ordering::Relaxed);
        Ok(answer?)
    }

    /// Returns true if the connection may never answer. Without an outage, the answer to a question
    /// that was given up is only not awaited.
    fn are_in_vain(&self) -> bool {
        let is_open = self.is_open.load(Ordering::Relaxed);
        self.is_given_up.load(Ordering::Relaxed) || is_open && !self.outages.is_writable()
    }

    // Statements are prepared once per connection.

    async fn query(
        &self,
        client: &impl GenericClient,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let asking = async { client.query(&client.prepare_cached(sql).await?, values).await };
        self.answered(asking).await
    }

    async fn page(
        &self,
        client: &impl GenericClient,
        sql: &str,
        values: Values<'_>,
        size: PageSize,
    ) -> Result<Result<Vec<Row>, PageTooLarge>, Failure> {
        let asking = async {
            let statement = client.prepare_cached(sql).await?;
            let values = values.iter().map(|value| *value as &dyn ToSql);
            let mut rows = pin!(client.query_raw(&statement, values).await?);
            let (mut page, mut room) = (Vec::new(), size.room());
            while let Some(row) = rows.try_next().await? {
                if let Err(refusal) = room.take(row.raw_size_bytes()) {
                    // the next question would wait for the rest of this answer
                    self.is_given_up.store(true, Ordering::Relaxed);
                    return Ok(Err(refusal));
                }
                page.push(row);
            }
            Ok(Ok(page))
        };
        self.answered(asking).await
    }

    async fn query_opt(
        &self,
        client: &impl GenericClient,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, Failure> {
        let asking = async { client.query_opt(&client.prepare_cached(sql).await?, values).await };
        self.answered(asking).await
    }

    async fn execute(
        &self,
        client: &impl GenericClient,
        sql: &str,
        values: Values<'_>,
    ) -> Result<u64, Failure> {
        let asking = async { client.execute(&client.prepare_cached(sql).await?, values).await };
        self.answered(asking).await
    }
}

impl Connection {
    pub(super) fn new(object: Object, answer_max: Duration, outages: Arc<Outages>) -> Self {
        let (is_open, is_given_up) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { object, questions: Questions { answer_max, outages, is_open, is_given_up } }
    }

    /// Returns all rows of a query.
    pub(crate) async fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        self.questions.query(&self.object, sql, values).await
    }

    /// Returns the rows of a page. If they have too many bytes, the rest is not awaited, and the
    /// connection is closed after use.
    pub(super) async fn page(
        &self,
        sql: &str,
        values: Values<'_>,
        size: PageSize,
    ) -> Result<Result<Vec<Row>, PageTooLarge>, Failure> {
        self.questions.page(&self.object, sql, values, size).await
    }

    /// Returns the only row of a query, or none.
    pub(crate) async fn query_opt(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, Failure> {
        self.questions.query_opt(&self.object, sql, values).await
    }

    /// Runs a statement; returns the number of rows that it changed.
    pub(crate) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Failure> {
        self.questions.execute(&self.object, sql, values).await
    }

    /// Begins a transaction.
    pub(crate) async fn begin(&mut self) -> Result<Opened<'_>, Failure> {
        let Self { object, questions } = self;
        let transaction = questions.answered(object.transaction()).await?;
        Ok(Opened { transaction, questions })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.questions.are_in_vain() {
            // the pool discards it
            self.object.__private_api_close();
        }
    }
}

impl Opened<'_> {
    /// Returns all rows of a query.
    pub(crate) async fn query(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Failure> {
        self.questions.query(&self.transaction, sql, values).await
    }

    /// Returns the only row of a query, or none.
    pub(crate) async fn query_opt(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Row>, Failure> {
        self.questions.query_opt(&self.transaction, sql, values).await
    }

    /// Runs a statement; returns the number of rows that it changed.
    pub(crate) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Failure> {
        self.questions.execute(&self.transaction, sql, values).await
    }

    /// Makes what was done durable.
    pub(crate) async fn commit(self) -> Result<(), Failure> {
        self.questions.answered(self.transaction.commit()).await
    }
}
