//! `[updates]`: where newer versions are heard of, and what installs them.

use std::time::Duration;

use crate::adapters::updates::RegistryAddress;

use super::entry::Entry;
use super::section::Section;
use super::system::without_zero;

/// Where newer versions are heard of, and what installs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpdatesConfig {
    /// The index of a registry. Without it nothing is looked for.
    pub registry: Option<RegistryAddress>,
    /// A program and its arguments, where `{package}` is the package; no shell reads them. Empty:
    /// nothing is installed.
    pub install: Vec<String>,
    /// How long the program may take.
    pub install_timeout: Duration,
}

impl Default for UpdatesConfig {
    fn default() -> Self {
        Self { registry: None, install: Vec::new(), install_timeout: Duration::from_secs(10 * 60) }
    }
}

impl UpdatesConfig {
    pub(crate) fn read(section: Section<'_>) -> Self {
        let default = Self::default();
        let updates = Self {
            registry: section.get("registry").and_then(|entry| registry(&entry)),
            install: section.get("install").and_then(|entry| argv(&entry)).unwrap_or_default(),
            install_timeout: section.duration("install_timeout", default.install_timeout),
        };
        section.close();
        updates
    }
}

fn registry(entry: &Entry<'_>) -> Option<RegistryAddress> {
    match entry.filled_text()?.parse::<RegistryAddress>() {
        Ok(address) => Some(address),
        Err(refusal) => {
            entry.place.refuse(refusal.to_string());
            None
        }
    }
}

fn argv(entry: &Entry<'_>) -> Option<Vec<String>> {
    let items = entry.items()?;
    if items.is_empty() {
        entry.place.refuse("needs a program, as in [\"cargo\", \"install\", \"{package}\"]");
        return None;
    }
    let word = |(index, item): (usize, &Entry<'_>)| {
        let text = if index == 0 { item.filled_text() } else { item.text() };
        without_zero(item, text?)
    };
    let words: Vec<_> = items.iter().enumerate().map(word).collect();
    words.into_iter().collect()
}
