//! Opens the store: connects, checks the database, migrates it, and registers this process.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use greenroom_actors::ports::meter::JournalMeter;

use crate::connector::{Connector, Purpose};
use crate::driver::Driver;
use crate::fault::reason_of;
use crate::pool::Pool;
use crate::schema;
use crate::settings::PostgresSettings;
use crate::store::{PostgresStore, Shared};

/// Failure to open a store.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot open the store in PostgreSQL: {0}")]
    Failed(String),
}

impl From<tokio_postgres::Error> for OpenError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Failed(reason_of(&error))
    }
}

impl PostgresStore {
    /// Opens the store, creates its tables if there are none, and reports commits to a meter;
    /// blocks.
    pub fn open(
        settings: PostgresSettings,
        meter: Arc<dyn JournalMeter>,
    ) -> Result<Self, OpenError> {
        let failed = |what: String| OpenError::Failed(what);
        let driver = Driver::start().map_err(|error| failed(error.to_string()))?;
        let connector = Connector::new(settings.config.clone(), driver.handle().clone())
            .map_err(|error| failed(error.to_string()))?;
        let (told, opened) = std::sync::mpsc::channel();
        let joining = join(connector.clone(), settings.name.clone());
        driver.handle().spawn(async move {
            // an error: nobody waits any more
            let _ = told.send(joining.await);
        });
        let node = opened
            .recv()
            .map_err(|_| failed("the thread of the connections ended".to_owned()))??;
        let name = format!("greenroom/{node}/pool");
        let pool = Pool::new(
            connector.clone(),
            name,
            settings.connections,
            settings.patience,
            Arc::clone(&meter),
        )
        .map_err(|error| failed(error.to_string()))?;
        let shared = Arc::new(Shared {
            settings,
            connector,
            pool,
            meter,
            sink: OnceLock::new(),
            writable: AtomicBool::new(true),
            node,
        });
        Ok(Self { shared, driver })
    }
}

/// Migrates the tables and registers this process; returns its number.
async fn join(connector: Connector, name: String) -> Result<i64, OpenError> {
    let (mut client, _driving) =
        connector.connect("greenroom/open".to_owned(), Purpose::Pooled).await?;
    schema::migrate(&mut client).await?;
    let add = "INSERT INTO nodes (node, name, version, state, beat)
        VALUES (nextval('node_seq'), $1, $2, 0, 0) RETURNING node";
    let version = env!("CARGO_PKG_VERSION");
    Ok(client.query_one(add, &[&name, &version]).await?.get(0))
}
