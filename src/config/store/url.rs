//! The address of a store.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[cfg(feature = "postgres")]
pub(super) use greenroom_store_postgres::problem_of_authorities;
#[cfg(feature = "postgres")]
use greenroom_store_postgres::{Address, AddressError};
use toml::de::DeValue;

use crate::config::entry::Entry;
use crate::config::keys::{Takes, Value};
use crate::config::secret::names_secret;

/// A store by its address, which is parsed from a text.
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
        self.file().is_none() && *self != Self::Memory
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

/// Refusal of an address, which repeats nothing of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StoreUrlError {
    /// Place in the text, in bytes.
    pub at: usize,
    pub message: &'static str,
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<Self, StoreUrlError> {
        let refuse = |message| Err(StoreUrlError { at: 0, message });
        if text == "memory:" {
            return Ok(Self::Memory);
        }
        if is_of_postgres(text) {
            return postgres(text);
        }
        match text.strip_prefix("sqlite://") {
            Some("") => refuse("must name a file, e.g. \"sqlite://greenroom.db\""),
            Some(path) => Ok(Self::Sqlite(PathBuf::from(path))),
            None => refuse(
                "must be \"sqlite://PATH\", \"postgres://USER@HOST/DATABASE\" or \"memory:\"",
            ),
        }
    }
}

fn is_of_postgres(text: &str) -> bool {
    ["postgres:", "postgresql:"].iter().any(|scheme| text.starts_with(scheme))
}

#[cfg(feature = "postgres")]
fn postgres(text: &str) -> Result<StoreUrl, StoreUrlError> {
    let refused = |error: AddressError| StoreUrlError { at: error.at, message: error.message };
    text.parse().map(StoreUrl::Postgres).map_err(refused)
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<StoreUrl, StoreUrlError> {
    let message = "this build has no PostgreSQL; build with the feature `postgres`";
    Err(StoreUrlError { at: 0, message })
}

/// Finds nothing: without PostgreSQL no address of a database is accepted.
#[cfg(not(feature = "postgres"))]
pub(super) fn problem_of_authorities(_: &Path) -> Option<String> {
    None
}

impl Value for StoreUrl {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        if let DeValue::String(text) = entry.value
            && is_of_postgres(text)
            && names_secret(text).is_some()
        {
            return entry.refuse(
                "cannot name a secret; leave the password out, and set `password = \
                 \"secret:NAME\"` below it",
            );
        }
        let text = entry.text()?;
        let url = match text.parse::<Self>() {
            Ok(url) => url,
            Err(error) => {
                entry.place.inside(&text, error.at).refuse(error.message);
                return None;
            }
        };
        if url.password().is_some() {
            entry.place.warn(
                "has a password, which everyone who can read this file knows; leave it out, and \
                 set `password = \"secret:NAME\"` below it, or the environment variable PGPASSWORD",
            );
        }
        Some(url)
    }
}
