//! The configured store: opened, backed up, and its figures read.

mod copying;
#[cfg(feature = "postgres")]
mod postgres;

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use greenroom_actors::ports::crash_marks::{CrashMarks, NoCrashMarks};
use greenroom_actors::ports::links::Links;
use greenroom_actors::ports::members::Members;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::meter::{JournalMeter, NoMeter};
use greenroom_actors::ports::store::Store;
#[cfg(feature = "postgres")]
use greenroom_store_postgres::NodeReader;
use greenroom_store_sqlite::{
    self as sqlite, Backup, Restored, SqliteStore, back_up as back_up_file, beside,
    restore as restore_file,
};

pub(crate) use self::copying::copy as copy_store;
use super::Parts;
use super::signals::outlive_file_size_limit;
use crate::adapters::crash_file::CrashFile;
use crate::config::{Config, Durability, NO_REPLICAS, StoreConfig, StoreUrl};
use crate::telemetry::metrics::{Metrics, ReadLinks, ReadStore, StoreReading};

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

/// Copies the configured store to a new file, also while a server uses it.
pub(crate) fn back_up(config: &StoreConfig, target: &Path) -> Result<Backup, Box<dyn Error>> {
    match &config.url {
        StoreUrl::Sqlite(path) => writing(|| Ok(back_up_file(path, target)?)),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => Err(postgres::backup_elsewhere(address).into()),
        StoreUrl::Memory => {
            Err("the configured store is \"memory:\", which cannot be backed up".into())
        }
    }
}

/// Makes the configured store out of a backup, while no server uses it.
pub(crate) fn restore(
    config: &StoreConfig,
    backup: &Path,
    replaces: bool,
) -> Result<Restored, Box<dyn Error>> {
    match &config.url {
        StoreUrl::Sqlite(path) => writing(|| Ok(restore_file(backup, path, replaces)?)),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => Err(postgres::restore_elsewhere(address).into()),
        StoreUrl::Memory => {
            Err("the configured store is \"memory:\", which ends with its process".into())
        }
    }
}

/// Writes large files: a limit of their size is an error, and not the end of the process.
fn writing<T>(write: impl FnOnce() -> Result<T, Box<dyn Error>>) -> Result<T, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _within = runtime.enter();
    outlive_file_size_limit()?;
    write()
}

/// Returns what a start would do with a store in another server's database.
pub(crate) fn outline(config: &StoreConfig) -> Option<String> {
    match &config.url {
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => Some(postgres::outline(address, config)),
        StoreUrl::Sqlite(_) | StoreUrl::Memory => None,
    }
}

/// Opens the configured database to look at its servers.
#[cfg(feature = "postgres")]
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

fn open_configured(config: &Config, metrics: Option<&Metrics>) -> io::Result<Opened> {
    let meter: Arc<dyn JournalMeter> =
        metrics.map_or_else(|| Arc::new(NoMeter) as _, Metrics::journal);
    let store = &config.store;
    if store.lacks_replicas() {
        return Err(io::Error::other(format!("store.durability: {NO_REPLICAS}")));
    }
    let opened = match &store.url {
        StoreUrl::Sqlite(path) => open_sqlite(path, store.durability, meter)?,
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => postgres::open(address, config, meter)?,
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

fn open_sqlite(
    path: &Path,
    durability: Durability,
    meter: Arc<dyn JournalMeter>,
) -> io::Result<Opened> {
    let durability = match durability {
        Durability::Full | Durability::Replicated => sqlite::Durability::Full,
        Durability::Normal => sqlite::Durability::Normal,
    };
    let store = SqliteStore::open_measured(path, durability, meter);
    let store = Arc::new(store.map_err(io::Error::other)?);
    let figures = Arc::clone(&store);
    let read = move || {
        let sizes = figures.file_sizes();
        StoreReading {
            queued: figures.queued(),
            database_bytes: sizes.database,
            wal_bytes: Some(sizes.log),
        }
    };
    let crash_marks = crash_marks(&beside(path, ".crashes"));
    Ok(Opened { read: Some(Box::new(read)), ..Opened::alone(store, crash_marks) })
}

/// Opens the file of crash marks, with its folder. If that fails, the server runs without it.
fn crash_marks(path: &Path) -> Arc<dyn CrashMarks> {
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    match folder.and_then(|()| CrashFile::open(path)) {
        Ok(file) => Arc::new(file),
        Err(error) => {
            log::warn!(
                "{}: {error}: an execution that repeatedly ends the process is not detected",
                path.display()
            );
            Arc::new(NoCrashMarks)
        }
    }
}
