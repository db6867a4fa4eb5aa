//! The configured store: what a kind of store does, and where one is chosen.

#[cfg(all(feature = "cli", feature = "sqlite"))]
mod copying;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod durable;
mod memory;
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
use greenroom_actors::ports::store::Store;
#[cfg(all(feature = "cli", feature = "postgres"))]
use greenroom_store_postgres::NodeReader;

#[cfg(all(feature = "cli", feature = "sqlite"))]
use self::copying::Copies;
#[cfg(all(feature = "cli", feature = "sqlite"))]
pub(crate) use self::copying::{back_up, copy as copy_store, restore};
use super::Parts;
#[cfg(feature = "cli")]
use super::finding::{Finding, STORE, State};
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

/// A store that `store.url` can name.
trait ConfiguredStore {
    /// Opens the store, which is made if it is missing. Its writes are measured if there are metrics.
    fn open(&self, config: &Config, metrics: Option<&Metrics>) -> io::Result<Opened>;

    /// Describes the store for the log, if its address does not.
    fn described(&self) -> Option<String> {
        None
    }

    /// Returns what `greenroom check` says of a store that it does not connect to.
    #[cfg(feature = "cli")]
    fn outline(&self, _config: &StoreConfig) -> Option<String> {
        None
    }

    /// Returns what `greenroom doctor` finds.
    #[cfg(feature = "cli")]
    fn look(&self, config: &Config) -> Vec<Finding>;

    /// Returns backups and copies of the store, or their refusals.
    #[cfg(all(feature = "cli", feature = "sqlite"))]
    fn copies(&self) -> &dyn Copies;
}

/// Refusal of a file, which is also the default.
#[cfg(not(feature = "sqlite"))]
const NO_SQLITE: &str = "store.url: this program was built without the feature `sqlite`: it cannot \
                         open a file; set store.url to \"memory:\" or a database of PostgreSQL (with \
                         the feature `postgres`), or register a store in Rust with `store`";

/// Returns the store at an address, or why this build has none.
fn chosen(url: &StoreUrl) -> Result<Box<dyn ConfiguredStore + '_>, &'static str> {
    Ok(match url {
        #[cfg(feature = "sqlite")]
        StoreUrl::Sqlite(path) => Box::new(sqlite::File(path)),
        #[cfg(not(feature = "sqlite"))]
        StoreUrl::Sqlite(_) => return Err(NO_SQLITE),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => Box::new(postgres::Database(address)),
        StoreUrl::Memory => Box::new(memory::Memory),
    })
}

/// Returns what a start would do with a store in another server's database.
#[cfg(feature = "cli")]
pub(crate) fn outline(config: &StoreConfig) -> Option<String> {
    chosen(&config.url).ok()?.outline(config)
}

/// Looks at the configured store, and at the disk that it is on.
#[cfg(feature = "cli")]
pub(crate) fn look(config: &Config) -> Vec<Finding> {
    match chosen(&config.store.url) {
        Ok(store) => store.look(config),
        Err(why) => vec![Finding::new(State::Failed, STORE, why)],
    }
}

/// Opens the configured database to look at its servers.
#[cfg(all(feature = "cli", feature = "postgres"))]
pub(crate) fn open_nodes(config: &Config) -> Result<NodeReader, String> {
    let url = &config.store.url;
    let StoreUrl::Postgres(address) = url else {
        return Err(format!(
            "the configured store ({url}) is not in PostgreSQL: one server has it for itself"
        ));
    };
    postgres::nodes(address, config)
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

fn open_configured(config: &Config, metrics: Option<&Metrics>) -> io::Result<Opened> {
    let url = &config.store.url;
    if config.store.lacks_replicas() {
        return Err(io::Error::other(format!("store.durability: {NO_REPLICAS}")));
    }
    let store = chosen(url).map_err(io::Error::other)?;
    let opened = store.open(config, metrics)?;
    log::info!("store: {}", store.described().unwrap_or_else(|| url.to_string()));
    Ok(opened)
}
