//! `[updates]`: the registry of newer versions, and the command that installs them.

use std::time::Duration;

use crate::adapters::updates::RegistryAddress;

use super::entry::Entry;
use super::keys::{Takes, Value, section};
use super::system::without_zero;

section! {
    /// The registry of newer versions, and the command that installs them.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UpdatesConfig {
        /// Sparse index of the package registry that `GET /updates` asks, without a password in the
        /// address. Default: none, and no request is made.
        registry: Option<RegistryAddress> = None, Takes::Own("an address");
        /// Program and arguments that `POST /updates` runs, without a shell; `{package}` stands for
        /// the package. Default: none, and nothing is installed.
        install: Vec<String> = Vec::new(), Takes::Texts(argv, "an array of strings");
        /// How long the installation may take before it is ended with its process group.
        install_timeout: Duration = Duration::from_secs(10 * 60), Takes::Duration;
    }
}

impl Value for RegistryAddress {
    fn read(entry: &Entry<'_>, _: &Takes) -> Option<Self> {
        match entry.filled_text()?.parse::<Self>() {
            Ok(address) => Some(address),
            Err(refusal) => {
                entry.place.refuse(refusal.to_string());
                None
            }
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
