//! `[store]`: the store of executions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use greenroom_actors::RuntimeLimits;
use greenroom_store_sqlite::Durability;

use super::entry::Entry;
use super::keys::{Takes, Value, section};
use super::section::NOT_SUPPORTED;

section! {
    /// The store of executions.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoreConfig {
        /// Address of the store. A relative path starts at the working directory; `memory:` loses
        /// everything when the process ends.
        url: StoreUrl = StoreUrl::Sqlite(PathBuf::from("greenroom.db")),
            Takes::Own("`\"sqlite://PATH\"` or `\"memory:\"`");
        /// Durability of acknowledged writes. `"full"`: they survive a power failure. `"normal"`:
        /// they survive the end of the process; a power failure may lose the newest ones.
        durability: Durability = Durability::Full, Takes::Own("`\"full\"` or `\"normal\"`");
        /// Time after which a waiting execution without subscribers leaves memory.
        passivate_after: Duration = RuntimeLimits::default().passivate_after, Takes::Duration;
    }
}

/// A store by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `sqlite://PATH`; a relative path starts at the working directory.
    Sqlite(PathBuf),
    /// `memory:`; loses everything when the process ends.
    Memory,
}

impl StoreUrl {
    /// Returns the name of the technology, and true if the data outlives the process.
    pub(crate) fn technology(&self) -> (&'static str, bool) {
        match self {
            Self::Sqlite(_) => ("sqlite", true),
            Self::Memory => ("memory", false),
        }
    }

    /// Returns the database file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Memory => None,
        }
    }
}

impl Value for StoreUrl {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        let text = entry.text()?;
        if text == "memory:" {
            return Some(StoreUrl::Memory);
        }
        let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
        match text.strip_prefix("sqlite://") {
            Some(path) if !path.is_empty() => return Some(StoreUrl::Sqlite(PathBuf::from(path))),
            Some(_) => entry.place.refuse("must name a file, e.g. \"sqlite://greenroom.db\""),
            None if matches!(scheme, "postgres" | "postgresql") => {
                entry.place.refuse(NOT_SUPPORTED)
            }
            None => entry.place.refuse("must be \"sqlite://PATH\" or \"memory:\""),
        }
        None
    }
}

impl Value for Durability {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        match entry.text()?.as_str() {
            "full" => Some(Durability::Full),
            "normal" => Some(Durability::Normal),
            _ => entry.refuse("must be \"full\" or \"normal\""),
        }
    }
}
