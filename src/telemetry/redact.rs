//! Redacts known secrets, and texts shaped like secrets, from log records and errors of programs.
//!
//! The only place that decides this: console, store and export get their records from here.

mod escapes;
mod named;
mod shapes;
mod values;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::escapes::Plain;
use self::shapes::Shapes;

/// Replacement for a secret.
pub const REDACTED: &str = "[redacted]";

/// Minimum length of a secret; shorter ones would match in ordinary words.
const SECRET_BYTES_MIN: usize = 6;
/// Bytes read beyond the end of a text, so that a shape that starts before it is seen whole.
const SHAPE_BYTES: usize = 1024;

static UNKNOWN: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(&Secrets::default()));

/// Redacts texts shaped like secrets from what a program prints, which becomes an
/// error that is stored and shown.
pub fn redact_unknown(mut text: String) -> String {
    UNKNOWN.redact(&mut text, usize::MAX);
    text
}

/// Secrets that this process knows. Its `Debug` output contains none of them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Adds the value of a variable, as [`Secrets::add`] does. One that only repeats the name of its
    /// variable is none.
    pub fn add_value(&mut self, variable: &str, value: &str) {
        if !value.trim().eq_ignore_ascii_case(variable) {
            self.add(value);
        }
    }

    /// Adds a secret in every encoding in which it may be written. A word that names secrets, such as
    /// `password`, is none: it is in many texts, and would be missing there.
    pub fn add(&mut self, secret: &str) {
        if Redactor::is_secret_name(secret.trim()) {
            return;
        }
        // files and shells add white space, and clients trim it
        for secret in [secret, secret.trim()] {
            let json = serde_json::Value::from(secret).to_string();
            let encoded = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
            let form = url::Url::parse("http://x/").map(|mut url| {
                url.query_pairs_mut().append_key_only(secret);
                url.query().unwrap_or_default().to_owned()
            });
            let forms = [secret, json.trim_matches('"'), &encoded].map(str::to_owned);
            let forms = forms.into_iter().chain(form.ok());
            self.0.extend(forms.filter(|form| form.len() >= SECRET_BYTES_MIN));
        }
    }

    /// Adds all secrets of another set.
    pub fn join(&mut self, others: &Self) {
        self.0.extend(others.0.iter().cloned());
    }
}

impl<'a> Extend<&'a str> for Secrets {
    fn extend<T: IntoIterator<Item = &'a str>>(&mut self, secrets: T) {
        secrets.into_iter().for_each(|secret| self.add(secret));
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets(..)")
    }
}

/// Finds secrets in texts.
#[derive(Debug)]
pub struct Redactor {
    known: Option<AhoCorasick>,
    known_bytes_max: usize,
    shapes: Shapes,
}

impl Redactor {
    /// Creates a redactor for these secrets and for texts shaped like secrets.
    pub fn new(secrets: &Secrets) -> Self {
        let known = (!secrets.0.is_empty()).then(|| {
            let mut builder = AhoCorasick::builder();
            builder.match_kind(MatchKind::LeftmostLongest).build(&secrets.0)
        });
        Self {
            known: known.and_then(Result::ok),
            known_bytes_max: secrets.0.iter().map(String::len).max().unwrap_or_default(),
            shapes: Shapes::new(),
        }
    }

    /// Returns the bytes of a text needed to show its first `bytes_max` bytes: a secret that
    /// begins in them may end after them.
    pub fn bytes_needed(&self, bytes_max: usize) -> usize {
        bytes_max.saturating_add(self.known_bytes_max.max(SHAPE_BYTES))
    }

    /// Redacts secrets and truncates the text after its first `bytes_max` bytes. Returns true if
    /// it was truncated.
    pub fn redact(&self, text: &mut String, bytes_max: usize) -> bool {
        let end = text.floor_char_boundary(bytes_max);
        let is_cut = end < text.len();
        let secrets = self.secrets_in(text);
        if secrets.is_empty() {
            text.truncate(end);
            return is_cut;
        }
        let mut clean = String::with_capacity(end);
        let mut shown = 0;
        for Range { start, end: behind } in secrets {
            if start >= end {
                break;
            }
            clean.push_str(&text[shown..start]);
            clean.push_str(REDACTED);
            shown = behind;
        }
        clean.push_str(text.get(shown..end).unwrap_or_default());
        *text = clean;
        is_cut
    }

    /// Returns true for the key of a secret beside its value: a name whose values are always secret,
    /// or one that ends with a word for secrets, such as `db_password`.
    pub fn is_secret_key(key: &str) -> bool {
        shapes::is_secret_name(key) || named::is_secret(key)
    }

    /// Returns true if values of this name are always secret.
    pub fn is_secret_name(name: &str) -> bool {
        shapes::is_secret_name(name)
    }

    /// Returns the ranges of secrets, sorted and merged.
    fn secrets_in(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = self.seen_in(text);
        // a colour is within a secret, or is its border
        for between in ["", "\0"] {
            if let Some(plain) = Plain::of(text, between) {
                let seen = self.seen_in(&plain.text).into_iter();
                found.extend(seen.map(|range| plain.original(range)));
            }
        }
        found.sort_by_key(|range| range.start);
        found.dedup_by(|next, kept| {
            let meets = next.start <= kept.end;
            if meets {
                kept.end = kept.end.max(next.end);
            }
            meets
        });
        found
    }

    /// Returns the ranges of secrets.
    fn seen_in(&self, text: &str) -> Vec<Range<usize>> {
        let known = self.known.iter().flat_map(|known| known.find_iter(text));
        let mut found: Vec<_> = known.map(|hit| hit.range()).collect();
        self.shapes.find(text, &mut found);
        found
    }
}

#[cfg(test)]
mod tests;
