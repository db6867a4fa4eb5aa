//! `[system]`: the files of the installation.

use std::path::PathBuf;
use std::time::Duration;

use super::entry::Entry;
use super::keys::{Takes, Value, section};

section! {
    /// The files of the installation.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SystemConfig {
        /// The file into which `POST /setup-observability` writes its keys. A relative path counts
        /// from the working directory.
        env_file: PathBuf = PathBuf::from(".env"), Takes::Own("a path");
        /// How often the files of the configuration are checked for changes; `"0s"`: only on SIGHUP.
        reload_every: Duration = Duration::from_secs(2), Takes::DurationOrZero;
    }
}

impl Value for PathBuf {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        without_zero(entry, entry.filled_text()?).map(Self::from)
    }
}

/// Refuses the character zero, which no path and no argument of a program can hold.
pub(super) fn without_zero(entry: &Entry<'_>, text: String) -> Option<String> {
    if text.contains('\0') {
        entry.place.refuse("must not hold the character zero");
        return None;
    }
    Some(text)
}
