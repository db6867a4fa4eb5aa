//! `[system]`: the files of the installation.

use std::path::PathBuf;
use std::time::Duration;

use super::entry::Entry;
use super::keys::{Takes, Value, section};

section! {
    /// The files of the installation.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SystemConfig {
        /// File into which `POST /setup-observability` writes its keys. A relative path starts at
        /// the working directory.
        env_file: PathBuf = PathBuf::from(".env"), Takes::Own("a path");
        /// Interval between checks for changed configuration files; `"0s"`: only on SIGHUP.
        reload_every: Duration = Duration::from_secs(2), Takes::DurationOrZero;
    }
}

impl Value for PathBuf {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        without_zero(entry, entry.filled_text()?).map(Self::from)
    }
}

/// Refuses NUL, which neither paths nor arguments of programs can contain.
pub(super) fn without_zero(entry: &Entry<'_>, text: String) -> Option<String> {
    if text.contains('\0') {
        return entry.refuse("must not contain a NUL character");
    }
    Some(text)
}
