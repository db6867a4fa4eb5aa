//! The store in a SQLite file.

#[cfg(feature = "cli")]
mod copies;
#[cfg(feature = "cli")]
mod disk;
#[cfg(feature = "cli")]
mod look;

use std::io;
use std::path::Path;
use std::sync::Arc;

use greenroom_store_sqlite::{self as sqlite, SqliteStore, beside};

#[cfg(feature = "cli")]
use super::copying::Copies;
use super::durable::{crash_marks, meter};
use super::{ConfiguredStore, Opened};
#[cfg(feature = "cli")]
use crate::app::finding::Finding;
use crate::config::{Config, Durability};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::sources::StoreReading;

/// A file that `store.url` names.
pub(super) struct File<'a>(pub(super) &'a Path);

impl ConfiguredStore for File<'_> {
    fn open(&self, config: &Config, metrics: Option<&Metrics>) -> io::Result<Opened> {
        let durability = match config.store.durability {
            Durability::Full | Durability::Replicated => sqlite::Durability::Full,
            Durability::Normal => sqlite::Durability::Normal,
        };
        let store = SqliteStore::open_measured(self.0, durability, meter(metrics));
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
        let crash_marks = crash_marks(&beside(self.0, ".crashes"));
        Ok(Opened { read: Some(Box::new(read)), ..Opened::alone(store, crash_marks) })
    }

    #[cfg(feature = "cli")]
    fn look(&self, _: &Config) -> Vec<Finding> {
        look::look(self.0)
    }

    #[cfg(feature = "cli")]
    fn copies(&self) -> &dyn Copies {
        self
    }
}
