//! The connection of a copy, which holds the database like a server.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures_util::{FutureExt as _, TryStreamExt as _};
use greenroom_actors::ports::meter::NoMeter;
use greenroom_actors::threads::Driver;
use greenroom_store_codec::dump::{Batches, Failed, Kind, Receive, Record};
use tokio::sync::mpsc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use super::rows::{Column, record_of};
use super::tables::{self, DERIVED, Table};
use crate::columns::Stored;
use crate::connector::{Connector, Purpose};
use crate::lane::register::GENERATIONS;
use crate::membership::Membership;
use crate::migration::{self, Schema};
use crate::open::{OpenError, Use, checks, prepare, start_driver};
use crate::pool::Failure;
use crate::settings::PostgresSettings;

/// Settings of the session: tables are read along their indexes. Nothing counts until the last
/// commit, which makes all others durable.
const SETTINGS: &str = "SET enable_seqscan = off; SET enable_sort = off; SET jit = off;
    SET synchronous_commit = off";

/// Makes the database usable.
const COMPLETE: &str = "UPDATE meta SET incomplete = false";

/// Reason for the end of a copy that was paused.
const TAKEN: &str = "another process has taken the database over";

/// Returns a statement that fails unless this process still has the database. A takeover waits until
/// the transaction of the statement ends, because it deletes the row.
fn hold(node: i64) -> String {
    format!(
        "DO $$ BEGIN
            PERFORM FROM lanes WHERE node = {node} AND lane = {GENERATIONS} FOR KEY SHARE;
            IF NOT FOUND THEN RAISE EXCEPTION '{TAKEN}'; END IF;
        END $$;"
    )
}

/// A database that a copy holds. Dropping it gives the database up.
pub(super) struct Session {
    driver: Driver,
    client: Arc<Client>,
    membership: Arc<Membership>,
    /// Address of the database, for errors.
    address: String,
}

impl Session {
    pub(super) fn open(mut settings: PostgresSettings, of: Use) -> Result<Self, OpenError> {
        // others must not write meanwhile
        settings.cluster = None;
        // a server of the same name would lose the database
        settings.name = format!("{}, copy by process {}", settings.name, std::process::id());
        let address = settings.address.to_string();
        let driver = start_driver()?;
        let connector = Connector::new(&settings, driver.handle().clone())
            .map_err(|problem| OpenError::Authorities(problem.to_string()))?;
        let opening = async move {
            let (membership, _) =
                prepare(connector.clone(), settings, of, Schema::OWN, Arc::new(NoMeter)).await?;
            match begin(&connector, membership.node, of).await {
                Ok(client) => Ok((membership, client)),
                Err(error) => {
                    membership.leave().await;
                    Err(error)
                }
            }
        };
        let opened = driver.run(opening, None);
        let (membership, client) =
            opened.ok_or_else(|| OpenError::Failed("it panicked".to_owned()))??;
        Ok(Self { driver, client: Arc::new(client), membership, address })
    }

    pub(super) fn count(&self, kind: Kind) -> Result<u64, Failed> {
        let count = format!("SELECT count(*) FROM ({}) AS records", Table::of(kind).select());
        let client = Arc::clone(&self.client);
        let counting = async move { client.query_one(&count, &[]).await?.try_get::<_, i64>(0) };
        let count = self.ask(&format!("count the {kind} of"), counting)?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    pub(super) fn read(&self, kind: Kind, receive: &mut Receive<'_>) -> Result<(), Failed> {
        // a few batches wait at most: some are large
        let (batches, mut received) = mpsc::channel(1);
        let reading = self.driver.handle().spawn(stream(Arc::clone(&self.client), kind, batches));
        while let Some(batch) = received.blocking_recv() {
            // an error ends the stream as well, because its receiver is dropped
            receive(batch)?;
        }
        let read = async {
            reading.await.unwrap_or_else(|_| Err(Failure::Stopped("it panicked".to_owned())))
        };
        self.ask(&format!("read the {kind} of"), read)
    }

    pub(super) fn prepare(&self, kind: Kind, statement: String) -> Result<Statement, Failed> {
        let client = Arc::clone(&self.client);
        let preparing = async move { client.prepare(&statement).await };
        self.ask(&format!("write the {kind} to"), preparing)
    }

    pub(super) fn write(
        &self,
        kind: Kind,
        statement: Statement,
        columns: Vec<Column>,
    ) -> Result<(), Failed> {
        let (client, node) = (Arc::clone(&self.client), self.membership.node);
        let does = format!("write the {kind} to");
        let length = columns.first().map_or(0, Column::len);
        let writing = async move {
            let mut values: Vec<_> = columns.iter().map(Column::value).collect();
            values.push(&node);
            client.execute(&statement, &values).await
        };
        match self.ask(&does, writing)? {
            0 if length > 0 => Err(Failed(format!("cannot {does} {}: {TAKEN}", self.address))),
            _ => Ok(()),
        }
    }

    /// Derives what is not in the records.
    pub(super) fn derive(&self) -> Result<(), Failed> {
        let client = Arc::clone(&self.client);
        // several statements at once are one transaction
        let statements = hold(self.membership.node) + &tables::derive();
        self.ask("complete the copy in", async move { client.batch_execute(&statements).await })
    }

    /// Makes what was written durable, and the database usable.
    pub(super) fn complete(&self) -> Result<(), Failed> {
        let client = Arc::clone(&self.client);
        let statements = hold(self.membership.node) + COMPLETE;
        let completing = async move {
            // this commit makes all earlier ones durable
            client.batch_execute("SET synchronous_commit = on").await?;
            client.batch_execute(&statements).await
        };
        self.ask("complete the copy in", completing)
    }

    /// Runs a query, which does something with the database.
    fn ask<T: Send + 'static, E: Into<Failure> + Send + 'static>(
        &self,
        does: &str,
        query: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Failed> {
        let result = self.driver.run(query, None);
        let lost = Arc::clone(&self.membership).lost().now_or_never();
        let reason = match (result, lost) {
            // what was read from, or written to, the database of another server does not count
            (_, Some(lost)) => lost.to_string(),
            (Some(Ok(result)), None) => return Ok(result),
            (Some(Err(failure)), None) => failure.into().to_string(),
            (None, None) => "it panicked".to_owned(),
        };
        Err(Failed(format!("cannot {does} {}: {reason}", self.address)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.membership.leave_within(&self.driver);
    }
}

/// Opens the connection.
async fn begin(connector: &Connector, node: i64, of: Use) -> Result<Client, OpenError> {
    let name = format!("greenroom/{node}/copy");
    let connecting = connector.connect(name, Purpose::Opening).await;
    let (mut client, _) = connecting.map_err(|error| OpenError::Interrupted(error.to_string()))?;
    client.batch_execute(SETTINGS).await?;
    if of == Use::Filling {
        begin_filling(&mut client, node).await?;
    }
    Ok(client)
}

/// Empties the tables, and marks them as incomplete.
async fn begin_filling(client: &mut Client, node: i64) -> Result<(), OpenError> {
    let transaction = client.transaction().await?;
    migration::lock(&transaction).await?;
    transaction.batch_execute(&hold(node)).await?;
    checks::allow(&transaction, Use::Filling).await?;
    let tables = Kind::ALL.iter().map(|kind| Table::of(*kind).name).chain(DERIVED);
    let tables: Vec<_> = tables.collect();
    transaction.batch_execute(&format!("TRUNCATE {}", tables.join(", "))).await?;
    transaction.batch_execute("UPDATE meta SET incomplete = true").await?;
    Ok(transaction.commit().await?)
}

/// Reads all records of a kind, and sends them in batches as long as they are received.
async fn stream(
    client: Arc<Client>,
    kind: Kind,
    batches: mpsc::Sender<Vec<Record>>,
) -> Result<(), Failure> {
    let table = Table::of(kind);
    let no_values: [&(dyn ToSql + Sync); 0] = [];
    let mut rows = pin!(client.query_raw(&table.select(), no_values).await?);
    let mut filling = Batches::new(kind);
    while let Some(row) = rows.try_next().await? {
        let record = record_of(&Stored(row), kind.types())?;
        if let Some(batch) = filling.add(record)
            && batches.send(batch).await.is_err()
        {
            return Ok(());
        }
    }
    if let Some(batch) = filling.rest() {
        // an error: it is no longer received, and the receiver knows why
        let _ = batches.send(batch).await;
    }
    Ok(())
}
