//! The store in a SQLite file.

use std::io;
use std::path::Path;
use std::sync::Arc;

use greenroom_actors::ports::meter::JournalMeter;
use greenroom_store_sqlite::{self as sqlite, SqliteStore, beside};

use super::Opened;
use super::durable::crash_marks;
use crate::config::Durability;
use crate::telemetry::sources::StoreReading;

/// Opens the file, which is made if it is missing.
pub(super) fn open(
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
