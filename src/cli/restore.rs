//! `greenroom restore`: the configured store out of a backup.

use std::path::PathBuf;

use greenroom_store_sqlite::Restored;

use super::{Arguments, content, read};
use crate::app;

/// Options of `restore`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub(super) struct Options {
    /// The backup, which stays as it is.
    file: PathBuf,
    /// Replace a store that is there already; it is kept under another name.
    #[arg(long)]
    replace: bool,
}

/// Restores the store and returns a summary. Secrets, ports and hosts of the configuration are not
/// checked, because they do not matter here.
pub(super) fn restore(
    arguments: &Arguments,
    options: &Options,
) -> Result<Vec<String>, Vec<String>> {
    let config = read(arguments)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let restored = app::restore(&config.store, &options.file, options.replace);
    let Restored { content: found, kept, left } =
        restored.map_err(|refusal| vec![format!("greenroom: {refusal}")])?;
    let mut lines = vec![format!("{}: ok, {}", config.store.url, content(found))];
    if let Some(kept) = kept {
        lines.push(format!("the store that was there is now {}", kept.display()));
    }
    for left in left {
        lines.push(format!("of a store that was gone there is now {}", left.display()));
    }
    lines.push(
        "what was open when the backup was made continues from there at the next start of the \
         server: steps that have ended since run again"
            .to_owned(),
    );
    Ok(lines)
}
