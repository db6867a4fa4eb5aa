//! Copies of whole stores, each in place of a server.

use std::error::Error;

use greenroom_store_codec::dump::{self, Copied, Progress, Source, Target};
use greenroom_store_sqlite::{FileSource, FileTarget};

#[cfg(feature = "postgres")]
use super::postgres;
use crate::app::signals::outlive_file_size_limit;
use crate::config::{Config, StoreUrl};

const NOT_KEPT: &str = "\"memory:\" ends with its process, so it cannot be copied";

/// Copies a store that no server uses to an empty one. Passwords and certificates of databases are
/// those of the configuration.
pub(crate) fn copy(
    config: &Config,
    from: &StoreUrl,
    to: &StoreUrl,
    report: &mut dyn FnMut(Progress),
) -> Result<Copied, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _within = runtime.enter();
    outlive_file_size_limit()?;
    let mut source = source(config, from)?;
    let mut target = target(config, to)?;
    Ok(dump::copy(&mut *source, &mut *target, report)?)
}

fn source(_config: &Config, url: &StoreUrl) -> Result<Box<dyn Source>, Box<dyn Error>> {
    Ok(match url {
        StoreUrl::Sqlite(path) => Box::new(FileSource::open(path)?),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => Box::new(postgres::source(address, _config)?),
        StoreUrl::Memory => return Err(NOT_KEPT.into()),
    })
}

fn target(_config: &Config, url: &StoreUrl) -> Result<Box<dyn Target>, Box<dyn Error>> {
    Ok(match url {
        StoreUrl::Sqlite(path) => Box::new(FileTarget::create(path)?),
        #[cfg(feature = "postgres")]
        StoreUrl::Postgres(address) => Box::new(postgres::target(address, _config)?),
        StoreUrl::Memory => return Err(NOT_KEPT.into()),
    })
}
