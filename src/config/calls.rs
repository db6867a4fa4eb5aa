//! Calls of steps and tools: the keys of `http` and `command`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use greenroom_actors::domain::definition::{CommandBody, HttpBody, HttpMethod};
use http::HeaderValue;
use toml::de::DeValue;

use super::entry::Entry;
use super::secret::names_secret;
use super::section::Section;

/// Bounds of `memory_bytes_max`; with less than 1 MiB no program starts.
pub(crate) const MEMORY_BYTES: RangeInclusive<i64> = 1 << 20..=1 << 40;
pub(crate) const OUTPUT_BYTES: RangeInclusive<i64> = 1..=1 << 30;

pub(super) const NOT_FOR_HEADERS: &str =
    "contains a line break or another character that is not allowed in a header";

/// Reads an HTTP call. Its texts are checked when they are compiled.
pub(super) fn http(section: &Section<'_>) -> Option<HttpBody> {
    let method = section
        .get("method")
        .map_or(Some(HttpMethod::Get), |entry| entry.one_of(&HttpMethod::NAMES));
    let url = section.required("url").and_then(|entry| entry.filled_text());
    for (name, entry) in section.named_entries("headers") {
        let DeValue::String(text) = entry.value else { continue };
        if let Some(problem) = plain_secret_problem(&name, text) {
            entry.place.warn(problem);
        }
    }
    let headers = texts_with_secrets(section, "headers");
    let query = section.named_entries("query").into_iter();
    let query: Vec<_> = query.map(|(key, entry)| Some((key, entry.mapping()?))).collect();
    let body = section.get("body").map(|entry| entry.mapping());
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

/// Reads a run of a program. Its texts are checked when they are compiled.
pub(super) fn command(section: &Section<'_>) -> Option<CommandBody> {
    let argv = section.required("argv").and_then(|entry| {
        // a secret in an argument has its own refusal, when the call is compiled
        let argument = |item: &Entry<'_>| item.text_with_secrets("a string");
        let argv = entry.items()?.iter().map(argument).collect::<Option<Vec<_>>>()?;
        let has_program = argv.first().is_some_and(|program| !program.is_empty());
        if has_program { Some(argv) } else { entry.refuse("must name a program") }
    });
    let input = section.get("input").map(|entry| entry.mapping());
    let env = texts_with_secrets(section, "env");
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

fn texts_with_secrets(
    section: &Section<'_>,
    key: &'static str,
) -> Option<BTreeMap<String, String>> {
    let text = |(name, entry): (String, Entry<'_>)| {
        Some((name, entry.text_with_secrets("a template in a string")?))
    };
    let texts: Vec<_> = section.named_entries(key).into_iter().map(text).collect();
    texts.into_iter().collect()
}

/// Returns the warning about a header whose name says that it is a secret and whose value is in the
/// definition. The value is not repeated.
pub(super) fn plain_secret_problem(name: &str, text: &str) -> Option<&'static str> {
    const SECRET: [&str; 6] =
        ["authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "x-auth-token"];
    let is_secret = SECRET.contains(&name.to_ascii_lowercase().as_str());
    let is_plain = is_secret && !text.contains("{{") && names_secret(text).is_none();
    is_plain.then_some(
        "looks like a secret in plain text; name an environment variable, as \"secret:NAME\" or \
         \"Bearer secret:NAME\"",
    )
}

/// Returns the problem of a secret as the value of a header.
pub(super) fn header_secret_problem(value: &str) -> Option<&'static str> {
    let is_bad = HeaderValue::from_str(value).is_err();
    is_bad.then_some(NOT_FOR_HEADERS)
}
