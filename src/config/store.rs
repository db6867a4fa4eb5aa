//! `[store]`: where executions are kept.

use std::path::{Path, PathBuf};
use std::time::Duration;

use greenroom_store_sqlite::Durability;

use super::entry::Entry;
use super::section::{NOT_SUPPORTED, Section};

/// Where executions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// The store itself.
    pub url: StoreUrl,
    /// What an acknowledged write has survived.
    pub durability: Durability,
    /// A waiting execution that nobody reads leaves memory after this.
    pub passivate_after: Duration,
}

/// A store by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `sqlite://PATH`; a relative path counts from the working directory.
    Sqlite(PathBuf),
    /// `memory:`; forgets everything when the process ends.
    Memory,
}

impl StoreUrl {
    /// Returns the name of the technology, and whether what is stored outlives the process.
    pub(crate) fn technology(&self) -> (&'static str, bool) {
        match self {
            Self::Sqlite(_) => ("sqlite", true),
            Self::Memory => ("memory", false),
        }
    }

    /// Returns the file that everything is in, where there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Memory => None,
        }
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: StoreUrl::Sqlite(PathBuf::from("greenroom.db")),
            durability: Durability::Full,
            passivate_after: Duration::from_secs(10),
        }
    }
}

impl StoreConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let default = Self::default();
        let store = Self {
            url: section.get("url").and_then(|entry| url(&entry)).unwrap_or(default.url),
            durability: section
                .get("durability")
                .and_then(|entry| durability(&entry))
                .unwrap_or(default.durability),
            passivate_after: section.duration("passivate_after", default.passivate_after),
        };
        section.close();
        store
    }
}

fn url(entry: &Entry<'_>) -> Option<StoreUrl> {
    let text = entry.text()?;
    if text == "memory:" {
        return Some(StoreUrl::Memory);
    }
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    match text.strip_prefix("sqlite://") {
        Some(path) if !path.is_empty() => return Some(StoreUrl::Sqlite(PathBuf::from(path))),
        Some(_) => entry.place.refuse("names no file; write \"sqlite://greenroom.db\""),
        None if matches!(scheme, "postgres" | "postgresql") => entry.place.refuse(NOT_SUPPORTED),
        None => entry.place.refuse("must be \"sqlite://PATH\" or \"memory:\""),
    }
    None
}

fn durability(entry: &Entry<'_>) -> Option<Durability> {
    match entry.text()?.as_str() {
        "full" => Some(Durability::Full),
        "normal" => Some(Durability::Normal),
        _ => {
            entry.place.refuse("must be \"full\" or \"normal\"");
            None
        }
    }
}
