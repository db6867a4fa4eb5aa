//! Headers of exports: texts with names of secrets.

use greenroom_actors::domain::call::secrets_of;
use http::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};

use crate::config::calls::NOT_FOR_HEADERS;
use crate::config::entry::Entry;
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::secret::value_of;

/// Headers that the client sets itself.
const OWN_HEADERS: [HeaderName; 6] =
    [HOST, CONTENT_LENGTH, CONTENT_TYPE, CONTENT_ENCODING, TRANSFER_ENCODING, CONNECTION];

/// A header with the names of its secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfiguredHeader {
    pub name: HeaderName,
    /// Parts of the text, each with the variable whose value follows it.
    pieces: Vec<(String, String)>,
    rest: String,
    spot: Spot,
}

impl ConfiguredHeader {
    pub(super) fn read(name: &str, entry: &Entry<'_>) -> Option<Self> {
        let Ok(name) = HeaderName::try_from(name) else {
            return entry.refuse("is not a valid header name");
        };
        if OWN_HEADERS.contains(&name) {
            entry.place.refuse("is set by the server itself");
        }
        let text = entry.text_with_secrets("a string, e.g. \"secret:COLLECTOR_KEY\"")?;
        let (secrets, rest) = secrets_of(&text);
        let pieces = secrets.iter().map(|(before, name)| ((*before).into(), (*name).into()));
        Some(Self { name, pieces: pieces.collect(), rest: rest.into(), spot: entry.place.spot() })
    }

    /// Returns the value with its secrets, or an error that names the variable.
    pub(super) fn value(
        &self,
        variables: impl Fn(&str) -> Option<String>,
    ) -> Result<HeaderValue, ConfigProblem> {
        let mut text = String::new();
        for (before, name) in &self.pieces {
            let value = value_of(name, &variables).map_err(|problem| self.spot.error(problem))?;
            text.push_str(before);
            text.push_str(value.trim());
        }
        text.push_str(&self.rest);
        secret_value(&text).ok_or_else(|| self.spot.error(NOT_FOR_HEADERS))
    }

    /// Returns the names of its environment variables.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().map(|(_, name)| name.as_str())
    }
}

/// Returns a header value that is not shown in logs.
pub(super) fn secret_value(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
