//! The configured store: opened, backed up, and its figures read.

use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

use greenroom_actors::ports::crash_marks::{CrashMarks, NoCrashMarks};
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::meter::{JournalMeter, NoMeter};
use greenroom_actors::ports::store::Store;
use greenroom_store_sqlite::{Backup, CrashFile, Durability, SqliteStore, back_up as copy, beside};

use super::signals::outlive_file_size_limit;
use crate::config::{StoreConfig, StoreUrl};
use crate::telemetry::metrics::{Metrics, ReadStore, StoreReading};

/// An open store.
pub(super) struct Opened {
    pub(super) store: Arc<dyn Store>,
    pub(super) crash_marks: Arc<dyn CrashMarks>,
    /// `None` for a store without files.
    pub(super) read: Option<ReadStore>,
}

/// Copies the configured store to a new file, also while a server uses it.
pub(crate) fn back_up(config: &StoreConfig, target: &Path) -> Result<Backup, Box<dyn Error>> {
    match &config.url {
        StoreUrl::Sqlite(path) => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
            let _within = runtime.enter();
            outlive_file_size_limit()?;
            Ok(copy(path, target)?)
        }
        StoreUrl::Memory => {
            Err("the configured store is \"memory:\", which cannot be backed up".into())
        }
    }
}

/// Opens the store, whose writes are measured if there are metrics.
pub(super) fn open(config: &StoreConfig, metrics: Option<&Metrics>) -> io::Result<Opened> {
    match &config.url {
        StoreUrl::Sqlite(path) => open_sqlite(path, config.durability, metrics),
        StoreUrl::Memory => {
            let store = Arc::new(MemoryStore::default());
            Ok(Opened { store, crash_marks: Arc::new(NoCrashMarks), read: None })
        }
    }
}

fn open_sqlite(
    path: &Path,
    durability: Durability,
    metrics: Option<&Metrics>,
) -> io::Result<Opened> {
    let meter: Arc<dyn JournalMeter> =
        metrics.map_or_else(|| Arc::new(NoMeter) as _, Metrics::journal);
    let store = SqliteStore::open_measured(path, durability, meter);
    let store = Arc::new(store.map_err(io::Error::other)?);
    let figures = Arc::clone(&store);
    let read = move || {
        let sizes = figures.file_sizes();
        StoreReading {
            queued: figures.queued(),
            database_bytes: sizes.database,
            wal_bytes: sizes.log,
        }
    };
    Ok(Opened { store, crash_marks: crash_marks(path), read: Some(Box::new(read)) })
}

/// Opens the file of crash marks next to the store. If that fails, the server runs without it.
fn crash_marks(store: &Path) -> Arc<dyn CrashMarks> {
    let path = beside(store, ".crashes");
    match CrashFile::open(&path) {
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
