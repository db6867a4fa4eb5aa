//! `[system]`: the files of the installation.

use std::path::PathBuf;
use std::time::Duration;

use super::entry::Entry;
use super::section::Section;

/// The files of the installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemConfig {
    /// Where `POST /setup-observability` keeps its keys; a relative path counts from the working
    /// directory.
    pub env_file: PathBuf,
    /// How often the configuration's files are looked at; none: on SIGHUP only.
    pub reload_every: Option<Duration>,
}

impl Default for SystemConfig {
    fn default() -> Self {
        Self { env_file: PathBuf::from(".env"), reload_every: Some(Duration::from_secs(2)) }
    }
}

impl SystemConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let default = Self::default();
        let path = section.get("env_file").and_then(|entry| {
            let path = entry.filled_text()?;
            without_zero(&entry, path)
        });
        let every = section.get("reload_every").and_then(|entry| entry.pause());
        section.close();
        Self {
            env_file: path.map_or(default.env_file, PathBuf::from),
            reload_every: every
                .map_or(default.reload_every, |every| (!every.is_zero()).then_some(every)),
        }
    }
}

/// Refuses what no path and no argument of a program can hold.
pub(super) fn without_zero(entry: &Entry<'_>, text: String) -> Option<String> {
    if text.contains('\0') {
        entry.place.refuse("must not hold the character zero");
        return None;
    }
    Some(text)
}
