//! Texts of a length, a format or a pattern.

use serde_json::Value;

use super::pattern::matching;
use super::{Keywords, count_of};

/// Longest sample text, in characters.
pub(super) const CHARS_MAX: usize = 10_000;

const WORD: &str = "sample";

/// Makes a text that meets the keywords; further variants differ in their first characters.
pub(super) fn text(keywords: &Keywords, variant: usize) -> Result<Value, String> {
    let shortest = count_of(keywords, "minLength").unwrap_or(0);
    let longest = count_of(keywords, "maxLength").unwrap_or(usize::MAX);
    if shortest > CHARS_MAX {
        return Err(format!("a text of {shortest} characters is too long for a sample"));
    }
    if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str)
        && let Some(matching) = matching(pattern, shortest, variant)
    {
        return Ok(Value::String(matching));
    }
    let format = keywords.get("format").and_then(Value::as_str).unwrap_or_default();
    if let Some(formatted) = formatted(format, variant) {
        return Ok(Value::String(formatted));
    }
    let word = if variant == 0 { WORD.to_owned() } else { format!("{variant} {WORD}") };
    let length = word.chars().count().max(shortest).min(longest);
    Ok(Value::String(word.chars().chain(WORD.chars().cycle()).take(length).collect()))
}

fn formatted(format: &str, variant: usize) -> Option<String> {
    let day = variant % 28 + 1;
    let text = match format {
        "date-time" => format!("2025-01-{day:02}T12:00:00Z"),
        "date" => format!("2025-01-{day:02}"),
        "time" => format!("12:{:02}:00Z", variant % 60),
        "duration" => format!("P{day}D"),
        "email" | "idn-email" => format!("sample{variant}@example.com"),
        "hostname" | "idn-hostname" => format!("host{variant}.example.com"),
        "uri" | "iri" | "uri-reference" | "iri-reference" => {
            format!("https://example.com/{variant}")
        }
        "uri-template" => format!("https://example.com/{variant}/{{id}}"),
        "uuid" => format!("00000000-0000-4000-8000-{variant:012x}"),
        "ipv4" => format!("192.0.2.{}", variant % 254 + 1),
        "ipv6" => format!("2001:db8::{:x}", variant % 0xffff + 1),
        "json-pointer" => format!("/{variant}"),
        "relative-json-pointer" => format!("{variant}/{WORD}"),
        "regex" => format!("^{WORD}{variant}$"),
        _ => return None,
    };
    Some(text)
}
