//! Calls that steps and tools make, as they are written.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use greenroom_actors::domain::definition::{CommandBody, HttpBody, HttpMethod};
use toml::de::DeValue;

use super::entry::Entry;
use super::secret::names_secret;
use super::section::Section;
use crate::adapters::tools::http::is_header_text;
use crate::nearest::nearest;

/// Memory that a program may be given: less than the first, none starts.
pub(super) const MEMORY_BYTES: RangeInclusive<i64> = 1 << 20..=1 << 40;
pub(super) const OUTPUT_BYTES: RangeInclusive<i64> = 1..=1 << 30;

/// A call of a server. What is wrong inside of its texts is seen when they are compiled.
pub(super) fn http(section: &Section<'_>) -> Option<HttpBody> {
    let method = section.get("method").map_or(Some(HttpMethod::Get), |entry| method(&entry));
    let url = section.required("url").and_then(|entry| entry.filled_text());
    for (name, entry) in section.named_entries("headers") {
        warn_of_plain_secret(&name, &entry);
    }
    let headers = sealed_texts(section, "headers");
    let query = section.named_entries("query").into_iter();
    let query: Vec<_> = query.map(|(key, entry)| Some((key, entry.projection()?))).collect();
    let body = section.get("body").map(|entry| entry.projection());
    Some(HttpBody {
        method: method?,
        url: url?,
        headers: headers?,
        query: query.into_iter().collect::<Option<_>>()?,
        body: match body {
            Some(body) => Some(body?),
            None => None,
        },
    })
}

/// A run of a program, likewise.
pub(super) fn command(section: &Section<'_>) -> Option<CommandBody> {
    let argv = section.required("argv").and_then(|entry| {
        let argv = entry.items()?.iter().map(raw_text).collect::<Option<Vec<_>>>()?;
        if argv.first().is_none_or(String::is_empty) {
            entry.place.refuse("names no program");
            return None;
        }
        Some(argv)
    });
    let input = section.get("input").map(|entry| entry.projection());
    let env = sealed_texts(section, "env");
    let cwd = section.get("cwd").map(|entry| entry.filled_text());
    let bytes = |key, bounds: RangeInclusive<i64>| {
        let bytes = section.get(key)?.integer(bounds)?;
        u64::try_from(bytes).ok()
    };
    let memory_bytes_max = bytes("memory_bytes_max", MEMORY_BYTES);
    let output_bytes_max = bytes("output_bytes_max", OUTPUT_BYTES);
    Some(CommandBody {
        argv: argv?,
        input: match input {
            Some(input) => Some(input?),
            None => None,
        },
        env: env?,
        cwd: match cwd {
            Some(cwd) => Some(cwd?),
            None => None,
        },
        memory_bytes_max,
        output_bytes_max,
    })
}

/// A method by its name on the wire.
pub(super) fn method(entry: &Entry<'_>) -> Option<HttpMethod> {
    let written = entry.text()?;
    let known = HttpMethod::NAMES.into_iter().find(|(name, _)| *name == written);
    if known.is_none() {
        let names = HttpMethod::NAMES.map(|(name, _)| name);
        let problem = entry.place.spot().error(format!("must be one of {}", names.join(", ")));
        entry.place.findings.report(problem.meant(nearest(&written, names)));
    }
    known.map(|(_, method)| method)
}

/// A text in which secrets may be named.
pub(super) fn sealed_text(entry: &Entry<'_>) -> Option<String> {
    let DeValue::String(text) = entry.value else {
        entry.place.refuse("must be a template in a string");
        return None;
    };
    Some(text.clone().into_owned())
}

fn sealed_texts(section: &Section<'_>, key: &'static str) -> Option<BTreeMap<String, String>> {
    let entries = section.named_entries(key).into_iter();
    let texts: Vec<_> = entries.map(|(name, entry)| Some((name, sealed_text(&entry)?))).collect();
    texts.into_iter().collect()
}

/// An argument: a secret in it has a refusal of its own, when it is compiled.
fn raw_text(entry: &Entry<'_>) -> Option<String> {
    let DeValue::String(text) = entry.value else {
        entry.place.refuse("must be a string");
        return None;
    };
    Some(text.clone().into_owned())
}

/// Warns of a header that is a secret by its name and written in the file. What stands there is
/// not repeated.
pub(super) fn warn_of_plain_secret(name: &str, entry: &Entry<'_>) {
    const SECRET: [&str; 6] =
        ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token"];
    let DeValue::String(text) = entry.value else { return };
    let is_secret = SECRET.contains(&name.to_ascii_lowercase().as_str());
    if is_secret && !text.contains("{{") && names_secret(text).is_none() {
        entry.place.warn(
            "a secret does not belong into this file: name a variable of the environment, as \
             \"secret:NAME\" or \"Bearer secret:NAME\"",
        );
    }
}

/// Returns the mistake in a secret that a header is to hold.
pub(super) fn header_secret_problem(value: &str) -> Option<&'static str> {
    let is_bad = !is_header_text(value);
    is_bad.then_some("holds a line break or another character that no header can hold")
}
