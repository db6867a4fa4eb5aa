//! Tests over a real PostgreSQL.

mod defects;
mod dump;
mod forgetting;
mod generations;
mod idle;
mod keys;
mod members;
mod migration;
mod nodes;
mod plans;
mod reads;
pub(crate) mod replication;
mod versions;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom_actors::ports::meter::JournalMeter;
use support::postgres::Server;
use tokio_postgres::{Client, NoTls};

use crate::{PostgresSettings, PostgresStore};

/// Counts damaged reads.
#[derive(Default)]
struct Tally(AtomicU64);

impl JournalMeter for Tally {
    fn committed(&self, _: usize, _: Duration) {}

    fn failed(&self) {}

    fn met_defect(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A store in a new schema.
pub(crate) struct Fresh {
    pub(crate) store: Arc<PostgresStore>,
    tally: Arc<Tally>,
    server: &'static Server,
    url: String,
}

impl Fresh {
    /// Opens a store; `None` where PostgreSQL is not installed.
    pub(crate) fn open() -> Option<Self> {
        let server = Server::shared()?;
        let url = server.fresh_url();
        let settings = PostgresSettings::new(url.parse().unwrap(), "test");
        let tally = Arc::new(Tally::default());
        let store = Arc::new(PostgresStore::open(settings, Arc::clone(&tally) as _).unwrap());
        Some(Self { store, tally, server, url })
    }

    /// Opens a connection beside the store.
    pub(crate) async fn client(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.url, NoTls).await.unwrap();
        tokio::spawn(async move { drop(connection.await) });
        client
    }

    /// Runs SQL beside the store; returns the rows as lines, the columns separated by `|`.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.server.answer(&self.url, sql).unwrap()
    }
}
