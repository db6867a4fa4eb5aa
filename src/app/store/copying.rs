//! Backups and copies of whole stores, by commands.

#[cfg(feature = "postgres")]
mod postgres;

use std::error::Error;
use std::path::Path;

use greenroom_store_codec::dump::{self, Copied, Progress, Source, Target};
use greenroom_store_sqlite::{
    Backup, FileSource, FileTarget, Restored, back_up as back_up_file, restore as restore_file,
};

use crate::app::signals::outlive_file_size_limit;
use crate::config::{Config, StoreConfig, StoreUrl};

const NOT_KEPT: &str = "\"memory:\" ends with its process, so it cannot be copied";

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
