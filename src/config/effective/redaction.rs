//! Values of a configuration without secrets. References to environment variables stay as they are.
//!
//! What may be a secret is left out: better a harmless value too many than a secret in a report.

use std::cell::RefCell;
use std::collections::BTreeSet;

use greenroom_actors::domain::call::secrets_of;
use toml::Value;

use crate::config::secret::secret_name;
use crate::telemetry::redact::{REDACTED, Redactor, Secrets};

/// Endings of names of secrets, in lower case, beside the names that logs are searched for.
const ENDINGS: [&str; 9] = [
    "password",
    "passwd",
    "secret",
    "apikey",
    "api_key",
    "api-key",
    "access_token",
    "auth_token",
    "private_key",
];

/// Words before a secret in a header.
const SCHEMES: [&str; 3] = ["bearer", "basic", "token"];

/// Parameters of addresses that are no secrets.
const HARMLESS: [&str; 1] = ["sslmode"];

/// Length from which a part of a path with letters and digits counts as a secret.
const RANDOM_CHARS_MIN: usize = 20;

/// The meaning of a text, by the table that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Plain,
    /// A header or an environment variable: everything that is written is left out.
    Sent,
    /// An expression: what is written as a literal is left out.
    Expression,
    /// Arguments of a program.
    Arguments,
}

/// Leaves secrets out of values.
pub(crate) struct Redaction {
    redactor: Redactor,
    /// Variables that the values name.
    pub(super) variables: RefCell<BTreeSet<String>>,
}

impl Redaction {
    /// Creates it with the secrets that are known.
    pub(crate) fn new(secrets: &Secrets) -> Self {
        Self { redactor: Redactor::new(secrets), variables: RefCell::default() }
    }

    /// Returns the value of a key without secrets.
    pub(crate) fn of(&self, key: &str, value: Value) -> Value {
        self.value(key, value, Place::Plain)
    }

    fn value(&self, key: &str, value: Value, place: Place) -> Value {
        match (value, key) {
            (Value::Table(table), _) => {
                let place = match key {
                    "headers" | "env" => Place::Sent,
                    "query" => Place::Expression,
                    _ => place,
                };
                let member = |(key, value): (String, Value)| {
                    let value = self.value(&key, value, place);
                    (key, value)
                };
                Value::Table(table.into_iter().map(member).collect())
            }
            (Value::Array(items), "argv" | "command" | "install") => {
                Value::Array(self.arguments(items))
            }
            (Value::Array(items), _) => {
                let items = items.into_iter().map(|item| self.value(key, item, place));
                Value::Array(items.collect())
            }
            (Value::String(text), _) => Value::String(self.text(key, &text, place)),
            (other, _) => other,
        }
    }

    /// Returns the arguments of a program; one after the name of a secret is left out.
    fn arguments(&self, items: Vec<Value>) -> Vec<Value> {
        let mut is_secret = false;
        let argument = |item: Value| {
            let Value::String(text) = item else { return item };
            let key = if std::mem::take(&mut is_secret) { "secret" } else { "" };
            is_secret = text.starts_with('-') && is_secret_name(text.trim_start_matches('-'));
            Value::String(self.text(key, &text, Place::Arguments))
        };
        items.into_iter().map(argument).collect()
    }

    fn text(&self, key: &str, text: &str, place: Place) -> String {
        let (secrets, rest) = secrets_of(text);
        let names = secrets.iter().map(|(_, name)| (*name).to_owned());
        self.variables.borrow_mut().extend(names);
        if secret_name(text).is_some() {
            return text.to_owned();
        }
        let written: String = secrets.iter().map(|(before, _)| *before).chain([rest]).collect();
        let is_left_out = match place {
            Place::Sent => !is_only_computed(&written),
            Place::Expression => written.contains(['\'', '"']),
            Place::Plain | Place::Arguments => is_secret_name(key),
        };
        if is_left_out {
            return REDACTED.to_owned();
        }
        if place == Place::Sent {
            return text.to_owned();
        }
        let mut text = match (place, text.split_once('=')) {
            (Place::Arguments, Some((name, _))) if is_secret_name(name.trim_start_matches('-')) => {
                format!("{name}={REDACTED}")
            }
            _ => without_parameters(text),
        };
        self.redactor.redact(&mut text, usize::MAX);
        text
    }
}

fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    // `cookie` of [auth.jwt] is the name of one; cookies themselves are headers
    let is_known = Redactor::is_secret_name(name) && lower != "cookie";
    is_known || lower == "hash" || ENDINGS.iter().any(|ending| lower.ends_with(ending))
}

/// Returns true for a text without references that is otherwise computed from values: it has
/// templates without literals, and at most the word that headers begin with.
fn is_only_computed(text: &str) -> bool {
    let mut rest = text;
    let mut written = String::new();
    while let Some((before, template)) = rest.split_once("{{") {
        let Some((inside, behind)) = template.split_once("}}") else { return false };
        if inside.contains(['\'', '"']) {
            return false;
        }
        written.push_str(before);
        rest = behind;
    }
    written.push_str(rest);
    let written = written.trim().to_ascii_lowercase();
    written.is_empty() || SCHEMES.contains(&written.as_str())
}

/// Returns a text whose addresses have no parameters, no credentials and no random parts.
fn without_parameters(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    // an address alone may have templates with spaces; one in prose ends with the word
    let is_alone = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    let end = if is_alone { None } else { rest.find(|c: char| c.is_whitespace()) };
    let (address, behind) = rest.split_at(end.unwrap_or(rest.len()));
    let begin = address.find(['?', '#']).unwrap_or(address.len());
    let (place, parameters) = address.split_at(begin);
    let place = without_credentials(place);
    let parts = place.split_inclusive('/').map(|part| match part.strip_suffix('/') {
        Some(inner) if is_random(inner) => format!("{REDACTED}/"),
        None if is_random(part) => REDACTED.to_owned(),
        _ => part.to_owned(),
    });
    let mut clean = format!("{scheme}://{}", parts.collect::<String>());
    for piece in parameters.split_inclusive(['?', '#', '&', ';']) {
        let (pair, mark) = match piece.char_indices().next_back() {
            Some((at, '?' | '#' | '&' | ';')) => piece.split_at(at),
            _ => (piece, ""),
        };
        clean.push_str(&parameter(pair));
        clean.push_str(mark);
    }
    clean + &without_parameters(behind)
}

/// Returns a parameter without its value, unless the value is computed.
fn parameter(pair: &str) -> String {
    match pair.split_once('=') {
        None if pair.is_empty() => String::new(),
        None => REDACTED.to_owned(),
        Some((name, _)) if HARMLESS.contains(&name) => pair.to_owned(),
        Some((_, value)) if value.contains("{{") && is_only_computed(value) => pair.to_owned(),
        Some((name, _)) => format!("{name}={REDACTED}"),
    }
}

/// Returns host and path without the user and the password before them.
fn without_credentials(place: &str) -> String {
    let authority = place.find('/').unwrap_or(place.len());
    let port = place[..authority].rsplit_once(':').map_or("", |(_, port)| port);
    // a password may contain a `/`, and then it looks like a host and a port that is none
    let has_port = port.chars().all(|c| c.is_ascii_digit()) || port.contains(']');
    let within = if has_port { &place[..authority] } else { place };
    match within.rfind('@') {
        Some(at) => format!("{REDACTED}{}", &place[at..]),
        None => place.to_owned(),
    }
}

fn is_random(part: &str) -> bool {
    let has = |is: fn(&char) -> bool| part.chars().any(|c| is(&c));
    part.len() >= RANDOM_CHARS_MIN
        && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && has(char::is_ascii_digit)
        && has(char::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_no_secrets() {
        for (text, expected) in [
            ("https://a.example/b", "https://a.example/b"),
            ("https://a.example:8080/b/{{ args.n }}", "https://a.example:8080/b/{{ args.n }}"),
            ("postgres://ann:pa@db1,db2:7/shop", "postgres://[redacted]@db1,db2:7/shop"),
            ("postgres://ann:p@a@db/shop", "postgres://[redacted]@db/shop"),
            ("postgres://ann:p/a@db/shop", "postgres://[redacted]@db/shop"),
            (
                "postgres://db/s?sslmode=disable&options=-c%20a",
                "postgres://db/s?sslmode=disable&options=[redacted]",
            ),
            (
                "https://a/b?x={{ args.x }}&sig=abc#t=1",
                "https://a/b?x={{ args.x }}&sig=[redacted]#t=[redacted]",
            ),
            ("https://a/?x={{ 'lit' }}", "https://a/?x=[redacted]"),
            ("https://a/?bare", "https://a/?[redacted]"),
            (
                "https://hooks.example/T0/a1b2c3d4e5f6a7b8c9d0/x",
                "https://hooks.example/T0/[redacted]/x",
            ),
            (
                "see https://a/?k=v and http://u:p@b/ too",
                "see https://a/?k=[redacted] and http://[redacted]@b/ too",
            ),
            ("sqlite://greenroom.db", "sqlite://greenroom.db"),
            ("http://[::1]:3141/a@b", "http://[::1]:3141/a@b"),
        ] {
            assert_eq!(without_parameters(text), expected);
        }
    }

    #[test]
    fn headers_show_references_and_templates_only() {
        let redaction = Redaction::new(&Secrets::default());
        for (text, is_shown) in [
            ("secret:TOKEN", true),
            ("Bearer ${TOKEN}", true),
            ("{{ context.tenant }}", true),
            ("Bearer {{ user.token }}", true),
            ("application/json", false),
            ("Bearer abc", false),
            ("Bearer abc secret:TOKEN", false),
            ("{{ 'abc' }}", false),
            ("{{ a", false),
        ] {
            let shown = redaction.text("x", text, Place::Sent);
            assert_eq!(shown, if is_shown { text } else { REDACTED }, "{text}");
        }
    }
}
