//! The configured store: opened, and its figures read.

#[cfg(all(feature = "cli", feature = "sqlite"))]
mod copying;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod durable;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use greenroom_actors::ports::crash_marks::{CrashMarks, NoCrashMarks};
use greenroom_actors::ports::links::Links;
use greenroom_actors::ports::members::Members;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::Store;
#[cfg(all(feature = "cli", feature = "postgres"))]
use greenroom_store_postgres::NodeReader;

#[cfg(all(feature = "cli", feature = "sqlite"))]
pub(crate) use self::copying::{back_up, copy as copy_store, restore};
use super::Parts;
#[cfg(feature = "cli")]
use crate::config::StoreConfig;
use crate::config::{Config, NO_REPLICAS, StoreUrl};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::sources::{ReadLinks, ReadStore};

/// An open store.
pub(super) struct Opened {
    pub(super) store: Arc<dyn Store>,
    pub(super) crash_marks: Arc<dyn CrashMarks>,
    /// `None` for a store in memory.
    pub(super) read: Option<ReadStore>,
    /// Resolves with the reason when another server has taken the store over.
    pub(super) lost: BoxFuture<'static, String>,
    /// The servers that share the store; `None`: this one has it for itself.
    pub(super) members: Option<Arc<dyn Members>>,
    /// Connections to these servers.
    pub(super) links: Option<Arc<dyn Links>>,
    /// Figures of these connections.
    pub(super) read_links: Option<ReadLinks>,
}

impl Opened {
    /// Returns a store that this server has for itself.
    fn alone(store: Arc<dyn Store>, crash_marks: Arc<dyn CrashMarks>) -> Self {
        let lost = Box::pin(std::future::pending());
        Self { store, crash_marks, read: None, lost, members: None, links: None, read_links: None }
    }
}

/// Returns what a start would do with a store in another server's database.
#[cfg(feature = "cli")]
pub(crate) fn outline(config: &StoreConfig) -> Option<String> {
    match &config.url {
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => Some(postgres::outline(address, config)),
        StoreUrl::Sqlite(_) | StoreUrl::Memory => None,
    }
}

/// Opens the configured database to look at its servers.
#[cfg(all(feature = "cli", feature = "postgres"))]
pub(crate) fn open_nodes(config: &Config) -> Result<NodeReader, String> {
    match &config.store.url {
        StoreUrl::Postgres(address) => postgres::nodes(address, config),
        url @ (StoreUrl::Sqlite(_) | StoreUrl::Memory) => Err(format!(
            "the configured store ({url}) is not in PostgreSQL: one server has it for itself"
        )),
    }
}

/// Opens the store, unless the program brings one. Writes of a configured one are measured if there
/// are metrics.
pub(super) fn open(
    config: &Config,
    parts: &Parts,
    metrics: Option<&Metrics>,
) -> io::Result<Opened> {
    let mut opened = match &parts.store {
        Some(store) => {
            log::info!("store: {} of the program, in place of store.url", store.technology());
            Opened::alone(Arc::clone(store), Arc::new(NoCrashMarks))
        }
        None => open_configured(config, metrics)?,
    };
    if let Some(crash_marks) = &parts.crash_marks {
        opened.crash_marks = Arc::clone(crash_marks);
    }
    Ok(opened)
}

#[cfg_attr(
    not(any(feature = "postgres", feature = "sqlite")),
    expect(unused_variables, reason = "memory has no commits")
)]
fn open_configured(config: &Config, metrics: Option<&Metrics>) -> io::Result<Opened> {
    let store = &config.store;
    if store.lacks_replicas() {
        return Err(io::Error::other(format!("store.durability: {NO_REPLICAS}")));
    }
    let opened = match &store.url {
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite(path) => sqlite::open(path, store.durability, durable::meter(metrics))?,
        #[cfg(not(feature = "sqlite"))]
        StoreUrl::Sqlite(_) => return Err(io::Error::other(crate::config::NO_SQLITE)),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => postgres::open(address, config, durable::meter(metrics))?,
        StoreUrl::Memory => Opened::alone(Arc::new(MemoryStore::default()), Arc::new(NoCrashMarks)),
    };
    log::info!("store: {}", described(&store.url));
    Ok(opened)
}

/// Describes a store for the log, which would redact the user in an address.
fn described(url: &StoreUrl) -> String {
    match url {
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => postgres::described(address),
        StoreUrl::Sqlite(_) | StoreUrl::Memory => url.to_string(),
    }
}
