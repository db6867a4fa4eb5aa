//! Backups and copies of whole stores, by commands.

use std::error::Error;
use std::path::Path;

use greenroom_store_codec::dump::{self, Copied, Progress, Source, Target};
use greenroom_store_sqlite::{Backup, Restored};

use super::chosen;
use crate::app::signals::outlive_file_size_limit;
use crate::config::{Config, StoreConfig, StoreUrl};

/// Backups and copies of one store. Errors say why there is none, or what failed.
pub(super) trait Copies {
    /// Copies the store to a new file, also while a server uses it.
    fn back_up(&self, target: &Path) -> Result<Backup, Box<dyn Error>>;

    /// Makes the store out of a backup, while no server uses it.
    fn restore(&self, backup: &Path, replaces: bool) -> Result<Restored, Box<dyn Error>>;

    /// Opens the store to copy it.
    fn source(&self, config: &Config) -> Result<Box<dyn Source>, Box<dyn Error>>;

    /// Makes the store, which is filled by a copy.
    fn target(&self, config: &Config) -> Result<Box<dyn Target>, Box<dyn Error>>;
}

/// Copies the configured store to a new file, also while a server uses it.
pub(crate) fn back_up(config: &StoreConfig, target: &Path) -> Result<Backup, Box<dyn Error>> {
    writing(|| chosen(&config.url)?.copies().back_up(target))
}

/// Makes the configured store out of a backup, while no server uses it.
pub(crate) fn restore(
    config: &StoreConfig,
    backup: &Path,
    replaces: bool,
) -> Result<Restored, Box<dyn Error>> {
    writing(|| chosen(&config.url)?.copies().restore(backup, replaces))
}

/// Copies a store that no server uses to an empty one. Passwords and certificates of databases are
/// those of the configuration.
pub(crate) fn copy(
    config: &Config,
    from: &StoreUrl,
    to: &StoreUrl,
    report: &mut dyn FnMut(Progress),
) -> Result<Copied, Box<dyn Error>> {
    writing(|| {
        let mut source = chosen(from)?.copies().source(config)?;
        let mut target = chosen(to)?.copies().target(config)?;
        Ok(dump::copy(&mut *source, &mut *target, report)?)
    })
}

/// Writes large files: a limit of their size is an error, and not the end of the process.
fn writing<T>(write: impl FnOnce() -> Result<T, Box<dyn Error>>) -> Result<T, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _within = runtime.enter();
    outlive_file_size_limit()?;
    write()
}
