//! The address of a store.

use std::fmt;
use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
use greenroom_store_postgres::Address;
use toml::de::DeValue;

use crate::config::entry::Entry;
use crate::config::keys::{Takes, Value};

/// A store by its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// `sqlite://PATH`; a relative path starts at the working directory.
    Sqlite(PathBuf),
    /// `postgres://USER@HOST/DATABASE`.
    #[cfg(feature = "postgres")]
    Postgres(Address),
    /// `memory:`; loses everything when the process ends.
    Memory,
}

impl Default for StoreUrl {
    fn default() -> Self {
        Self::Sqlite(PathBuf::from("greenroom.db"))
    }
}

impl StoreUrl {
    /// Returns the name of the technology, and true if the data outlives the process.
    pub(crate) fn technology(&self) -> (&'static str, bool) {
        match self {
            Self::Sqlite(_) => ("sqlite", true),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => ("postgres", true),
            Self::Memory => ("memory", false),
        }
    }

    /// Returns the database file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => None,
            Self::Memory => None,
        }
    }

    /// Returns true if the store is a database of another server.
    pub(crate) fn is_of_database(&self) -> bool {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => true,
            Self::Sqlite(_) | Self::Memory => false,
        }
    }

    /// Returns the password in the address.
    pub(crate) fn password(&self) -> Option<&str> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(address) => address.password.as_ref().map(|password| &*password.0),
            Self::Sqlite(_) | Self::Memory => None,
        }
    }
}

/// Shows the address without a password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            #[cfg(feature = "postgres")]
            Self::Postgres(address) => address.fmt(f),
            Self::Memory => f.write_str("memory:"),
        }
    }
}

impl Value for StoreUrl {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        if let DeValue::String(text) = entry.value
            && ["postgres:", "postgresql:"].iter().any(|scheme| text.starts_with(scheme))
        {
            return postgres(entry, text);
        }
        let text = entry.text()?;
        if text == "memory:" {
            return Some(Self::Memory);
        }
        match text.strip_prefix("sqlite://") {
            Some(path) if !path.is_empty() => return Some(Self::Sqlite(PathBuf::from(path))),
            Some(_) => entry.place.refuse("must name a file, e.g. \"sqlite://greenroom.db\""),
            None => entry.place.refuse(
                "must be \"sqlite://PATH\", \"postgres://USER@HOST/DATABASE\" or \"memory:\"",
            ),
        }
        None
    }
}

#[cfg(feature = "postgres")]
fn postgres(entry: &Entry<'_>, text: &str) -> Option<StoreUrl> {
    use crate::config::secret::names_secret;

    if names_secret(text).is_some() {
        return entry.refuse(
            "cannot name a secret; leave the password out, and set `password = \"secret:NAME\"` \
             below it",
        );
    }
    match text.parse::<Address>() {
        Ok(address) => {
            if address.password.is_some() {
                entry.place.warn(
                    "has a password, which everyone who can read this file knows; leave it out, \
                     and set `password = \"secret:NAME\"` below it, or the environment variable \
                     PGPASSWORD",
                );
            }
            Some(StoreUrl::Postgres(address))
        }
        Err(error) => {
            entry.place.inside(text, error.at).refuse(error.message);
            None
        }
    }
}

#[cfg(not(feature = "postgres"))]
fn postgres(entry: &Entry<'_>, _: &str) -> Option<StoreUrl> {
    entry.refuse("this build has no PostgreSQL; build with the feature `postgres`")
}
