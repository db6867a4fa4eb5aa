//! Pool of connections for reads, and for changes outside the lanes.

mod complaints;
mod connection;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::{
    Connect, Manager, ManagerConfig, Pool as Connections, PoolError, RecyclingMethod, Runtime,
    TimeoutType,
};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use greenroom_actors::ports::meter::JournalMeter;
use greenroom_actors::ports::store::{PageSize, PageTooLarge, Read, ReadError};
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Error};

pub(crate) use self::connection::{Connection, Opened};

use self::complaints::Complaints;

use crate::columns::{Stored, bytes_of, stored};
use crate::connector::{Connector, Purpose};
use crate::decoders::Decoders;
use crate::defects::Defects;
use crate::fault::{Fault, fault_of, reason_of};
use crate::lane::outage::Outages;
use crate::replication::CanceledWaits;
use crate::settings::PostgresSettings;

/// Maximum wait for a free connection.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// Maximum wait for a new connection. A host that does not answer is given up before, so that its
/// reason is known; the next one is still tried for those who ask later.
const CREATE_MAX: Duration = Duration::from_secs(6);

/// Maximum wait for an answer, which the database has given up before.
const ANSWER_MAX: Duration = Duration::from_secs(35);

/// Pause before a failed read is repeated; doubled up to the maximum.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Values of a statement's parameters.
pub(crate) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Failure of a query.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{}", reason_of(.0))]
    Database(#[from] Error),
    #[error("{0}")]
    NoConnection(String),
    /// The patience is over in an outage, whose reason this is.
    #[error("the database has not answered in time: {0}")]
    Outage(Arc<str>),
    #[error("the store is closed")]
    Closed,
    #[error("earlier writes still wait for the database")]
    Behind,
    /// The server of this number cannot be fenced.
    #[error("server {0} hangs inside a transaction that cannot be ended")]
    Hangs(i64),
    /// A stored value that cannot be decoded, which no repetition changes.
    #[error("{0}")]
    Damaged(String),
    #[error("a query stopped unexpectedly: {0}")]
    Stopped(String),
    #[error(transparent)]
    TooLarge(#[from] PageTooLarge),
}

impl Failure {
    /// Returns true if the same query may succeed on another connection.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::Database(error) => fault_of(error) != Fault::Request,
            Self::NoConnection(_) => true,
            Self::Outage(_)
            | Self::Closed
            | Self::Behind
            | Self::Hangs(_)
            | Self::Damaged(_)
            | Self::Stopped(_)
            | Self::TooLarge(_) => false,
        }
    }

    /// Returns true if the database is the reason, and not a stored value or the end of the store.
    fn is_of_database(&self) -> bool {
        matches!(self, Self::Database(_) | Self::NoConnection(_))
    }
}

/// The pool. Clones share it.
#[derive(Clone)]
pub(crate) struct Pool {
    connections: Connections,
    connector: Connector,
    defects: Arc<Defects>,
    decoders: Arc<Decoders>,
    /// Commits that may be on no replica.
    pub(crate) waits: CanceledWaits,
    outages: Arc<Outages>,
    complaints: Arc<Complaints>,
    /// Time for which a read is repeated during an outage.
    patience: Duration,
    answer_max: Duration,
}

/// Opens the pool's connections under one name.
struct Opening {
    connector: Connector,
    name: String,
    waits: CanceledWaits,
}

impl Connect for Opening {
    fn connect(&self, _: &Config) -> BoxFuture<'_, Result<(Client, JoinHandle<()>), Error>> {
        let (name, waits) = (self.name.clone(), self.waits.clone());
        let connecting = self.connector.connect_to_any(name, Purpose::Pooled, waits);
        // the pool carries only this type; the reasons are asked from the connector
        connecting.map_err(|_| Error::__private_api_timeout()).boxed()
    }
}

impl Pool {
    pub(crate) fn new(
        connector: Connector,
        name: String,
        settings: &PostgresSettings,
        outages: Arc<Outages>,
        meter: Arc<dyn JournalMeter>,
    ) -> io::Result<Self> {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let waits = CanceledWaits::default();
        let opening = Opening { connector: connector.clone(), name, waits: waits.clone() };
        let manager = Manager::from_connect(Config::new(), opening, recycling);
        let connections = Connections::builder(manager)
            .max_size(settings.connections)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAIT_MAX))
            .create_timeout(Some(CREATE_MAX))
            .build()
            .map_err(io::Error::other)?;
        let (defects, decoders) = (Arc::new(Defects::new(meter)), Arc::new(Decoders::start()?));
        Ok(Self {
            connections,
            connector,
            defects,
            decoders,
            waits,
            outages,
            complaints: Arc::default(),
            patience: settings.patience,
            answer_max: ANSWER_MAX,
        })
    }

    /// Returns a connection, as soon as one is free.
    pub(crate) async fn connection(&self) -> Result<Reading, Failure> {
        let object = self.connections.get().await.map_err(|error| self.failure_of(&error))?;
        let outages = Arc::clone(&self.outages);
        let client = Connection::new(object, self.answer_max, outages);
        let (defects, decoders) = (Arc::clone(&self.defects), Arc::clone(&self.decoders));
        Ok(Reading { client, defects, decoders })
    }

    /// Describes why there is no connection, with the reason of each host.
    fn failure_of(&self, error: &PoolError) -> Failure {
        let reason = match error {
            PoolError::Closed => return Failure::Closed,
            PoolError::Timeout(TimeoutType::Wait) => {
                format!("all `connections` of [store] have been in use for {WAIT_MAX:?}")
            }
            PoolError::Timeout(TimeoutType::Create) => match self.connector.failures() {
                Some(failures) => format!("cannot connect to the database: {failures}"),
                None => {
                    format!("no connection to the database could be opened within {CREATE_MAX:?}")
                }
            },
            PoolError::Backend(_) => match self.connector.failures() {
                Some(failures) => format!("cannot connect to the database: {failures}"),
                None => "cannot connect to the database".to_owned(),
            },
            other => other.to_string(),
        };
        Failure::NoConnection(reason)
    }

    /// Returns the reporter of damaged rows.
    pub(crate) fn defects(&self) -> &Defects {
        &self.defects
    }

    /// Returns the threads that decode large results.
    pub(crate) fn decoders(&self) -> &Decoders {
        &self.decoders
    }

    /// Runs a query, as a future of the ports: repeats it during an outage, and reports a damaged
    /// record under the name that `record` returns.
    pub(crate) fn read<'a, T, F>(
        &'a self,
        record: impl FnOnce() -> String + Send + 'a,
        query: impl Fn(Reading) -> F + Send + Sync + 'a,
    ) -> Read<'a, T>
    where
        T: Send + 'a,
        F: Future<Output = Result<T, Failure>> + Send + 'a,
    {
        async move {
            self.repeated(|| async { query(self.connection().await?).await }).await.map_err(
                |failure| match failure {
                    Failure::Damaged(what) => {
                        let record = record();
                        self.defects.report(&record, &what);
                        ReadError::Corrupt(Arc::from(record))
                    }
                    Failure::TooLarge(refusal) => ReadError::TooLarge(refusal),
                    other => ReadError::Unavailable(Arc::from(other.to_string())),
                },
            )
        }
        .boxed()
    }

    /// Runs `work` until it succeeds, fails for good, or the patience is over.
    pub(crate) async fn repeated<T, F>(&self, work: impl Fn() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let until = Instant::now() + self.patience;
        let mut pause = PAUSE_MIN;
        loop {
            let attempt = tokio::select! {
                biased;
                attempt = work() => attempt,
                reason = self.outage_at(until) => return Err(Failure::Outage(reason)),
            };
            match attempt {
                Err(failure) if failure.is_passing() && Instant::now() + pause < until => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                done => return done.map_err(|failure| self.explained(failure)),
            }
        }
    }

    /// Resolves in an outage, with its reason, but not before this time.
    async fn outage_at(&self, until: Instant) -> Arc<str> {
        tokio::time::sleep_until(until.into()).await;
        loop {
            if let Some(reason) = self.outages.reason() {
                return reason;
            }
            tokio::time::sleep(PAUSE_MAX).await;
        }
    }

    /// Returns the reason of a known outage in place of a failure that may be its effect; without
    /// one, logs it.
    fn explained(&self, failure: Failure) -> Failure {
        match self.outages.reason() {
            Some(reason) if failure.is_passing() => Failure::Outage(reason),
            None if failure.is_of_database() => {
                self.complaints.report(&failure);
                failure
            }
            _ => failure,
        }
    }

    /// Closes the connections that are not in use.
    pub(crate) fn close_idle(&self) {
        self.connections.retain(|_, _| false);
    }

    /// Closes all connections; later queries fail.
    pub(crate) fn close(&self) {
        self.connections.close();
    }
}

/// A connection of the pool, which goes back when this is dropped, with the reporter of damaged
/// rows and the threads that decode large results.
pub(crate) struct Reading {
    pub(crate) client: Connection,
    pub(crate) defects: Arc<Defects>,
    pub(crate) decoders: Arc<Decoders>,
}

impl Reading {
    /// Returns all rows of a query, whose statement is prepared once per connection.
    pub(crate) async fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<Stored>, Failure> {
        Ok(stored(self.client.query(sql, values).await?))
    }

    /// Returns the rows of a page, whose statement is prepared once per connection.
    pub(crate) async fn page(
        &self,
        sql: &str,
        values: Values<'_>,
        size: PageSize,
    ) -> Result<Vec<Stored>, Failure> {
        Ok(stored(self.client.page(sql, values, size).await??))
    }

    /// Returns the only row of a query, or none.
    pub(crate) async fn row(
        &self,
        sql: &str,
        values: Values<'_>,
    ) -> Result<Option<Stored>, Failure> {
        Ok(self.client.query_opt(sql, values).await?.map(Stored))
    }

    /// Gives the connection back, then decodes rows.
    pub(crate) async fn decoded<T: Send + 'static>(
        self,
        rows: Vec<Stored>,
        decode: impl FnOnce(&[Stored], &Defects) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let Self { client, defects, decoders } = self;
        drop(client);
        let bytes = bytes_of(&rows);
        decoders.decode(bytes, move || decode(&rows, &defects)).await
    }
}
