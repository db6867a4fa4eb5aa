//! `[updates]`: the registry of newer versions, and the command that installs them.

use std::time::Duration;

use crate::adapters::updates::RegistryAddress;

use super::entry::Entry;
use super::features::PROVIDERS;
use super::keys::{Takes, Value, section};
use super::system::without_zero;

section! {
    /// The registry of newer versions, and the command that installs them.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UpdatesConfig {
        /// Sparse index of the package registry for `GET /updates`, without a password in the
        /// address. Default: none, and no request is made.
        registry: Option<RegistryAddress> = None, Takes::Own("an address");
        /// Program and arguments that `POST /updates` runs, without a shell; `{package}` is replaced
        /// by the package. Default: none, and nothing is installed.
        install: Vec<String> = Vec::new(), Takes::Texts(argv, "an array of strings");
        /// Time limit of the installation; its process group is then killed.
        install_timeout: Duration = Duration::from_secs(10 * 60), Takes::Duration;
    }
}

impl Value for RegistryAddress {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        if let Some(refusal) = PROVIDERS.lacking("ask a registry") {
            return entry.refuse(refusal);
        }
        match entry.filled_text()?.parse::<Self>() {
            Ok(address) => Some(address),
            Err(refusal) => entry.refuse(refusal.to_string()),
        }
    }
}

fn argv(entry: &Entry<'_>) -> Option<Vec<String>> {
    let items = entry.items()?;
    if items.is_empty() {
        return entry.refuse("must name a program, e.g. [\"cargo\", \"install\", \"{package}\"]");
    }
    let word = |(index, item): (usize, &Entry<'_>)| {
        let text = if index == 0 { item.filled_text() } else { item.text() };
        without_zero(item, text?)
    };
    let words: Vec<_> = items.iter().enumerate().map(word).collect();
    words.into_iter().collect()
}
