//! Headers of exports: texts, and secrets by their names.

use greenroom_actors::domain::call::secrets_of;
use reqwest::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};
use toml::de::DeValue;

use crate::config::entry::Entry;
use crate::config::problem::{ConfigProblem, Spot};

/// Headers that follow from the request itself.
const OWN_HEADERS: [HeaderName; 6] =
    [HOST, CONTENT_LENGTH, CONTENT_TYPE, CONTENT_ENCODING, TRANSFER_ENCODING, CONNECTION];

/// A header as it is written: its secrets are named.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredHeader {
    pub name: HeaderName,
    /// Pieces of text, each with the variable whose value follows it.
    pieces: Vec<(String, String)>,
    rest: String,
    spot: Spot,
}

impl ConfiguredHeader {
    pub(super) fn read(name: &str, entry: &Entry<'_>) -> Option<Self> {
        let Ok(name) = HeaderName::try_from(name) else {
            entry.place.refuse("is no name of a header");
            return None;
        };
        if OWN_HEADERS.contains(&name) {
            entry.place.refuse("follows from the request; it cannot be chosen");
        }
        let DeValue::String(text) = entry.value else {
            entry.place.refuse("must be a string, e.g. \"secret:COLLECTOR_KEY\"");
            return None;
        };
        let (secrets, rest) = secrets_of(text);
        let pieces = secrets.iter().map(|(before, name)| ((*before).into(), (*name).into()));
        Some(Self { name, pieces: pieces.collect(), rest: rest.into(), spot: entry.place.spot() })
    }

    /// The value with its secrets in it, or the variable that is to blame.
    pub(super) fn value(
        &self,
        variables: impl Fn(&str) -> Option<String>,
    ) -> Result<HeaderValue, ConfigProblem> {
        let mut text = String::new();
        for (before, name) in &self.pieces {
            let value = variables(name).filter(|value| !value.trim().is_empty());
            let missing = || self.spot.error(format!("the environment variable {name} is not set"));
            text.push_str(before);
            text.push_str(value.ok_or_else(missing)?.trim());
        }
        text.push_str(&self.rest);
        secret_value(&text).ok_or_else(|| {
            self.spot.error("holds a line break or another character that no header can hold")
        })
    }

    /// The variables of the environment that it names.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().map(|(_, name)| name.as_str())
    }
}

/// A value that is not shown.
pub(super) fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
