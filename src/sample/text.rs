//! Texts of a length, a format or a pattern.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::Value;

use super::{Keywords, count_of};

/// Longest sample text, in characters.
const CHARS_MAX: usize = 10_000;

/// Steps in which open repetitions of a pattern grow before they grow by all that is missing.
const GROWTH_MAX: usize = 16;

/// Preferred characters of a class, best first.
const COMMON: &str = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-. ";

const WORD: &str = "sample";

/// Makes a text that meets the keywords; further variants differ in their first characters.
pub(super) fn text(keywords: &Keywords, variant: usize) -> Result<Value, String> {
    let shortest = count_of(keywords, "minLength").unwrap_or(0);
    let longest = count_of(keywords, "maxLength").unwrap_or(usize::MAX);
    if shortest > CHARS_MAX {
        return Err(format!("a text of {shortest} characters is too long for a sample"));
    }
    if let Some(pattern) = keywords.get("pattern").and_then(Value::as_str)
        && let Some(text) = matching(pattern, shortest, variant)
    {
        return Ok(Value::String(text));
    }
    let format = keywords.get("format").and_then(Value::as_str).unwrap_or_default();
    if let Some(text) = formatted(format, variant) {
        return Ok(Value::String(text));
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

/// Makes a text of at least `shortest` characters that the pattern should match. Anchors and word
/// boundaries are ignored; the validator decides.
fn matching(pattern: &str, shortest: usize, variant: usize) -> Option<String> {
    let pattern = regex_syntax::parse(pattern).ok()?;
    // open repetitions grow together until the text is long enough
    (0..=shortest.min(GROWTH_MAX)).chain([shortest]).find_map(|extra| {
        let mut text = String::new();
        write(&pattern, extra, variant, &mut text)?;
        (text.chars().count() >= shortest).then_some(text)
    })
}

fn write(pattern: &Hir, extra: usize, variant: usize, text: &mut String) -> Option<()> {
    if text.len() > CHARS_MAX {
        return None;
    }
    match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(std::str::from_utf8(&literal.0).ok()?),
        HirKind::Class(Class::Unicode(class)) => {
            // sorted and without overlaps; a class such as `\W` has hundreds of ranges
            let ranges = class.ranges();
            let is_in = |c: &char| {
                let at = ranges.partition_point(|range| range.end() < *c);
                ranges.get(at).is_some_and(|range| range.start() <= *c)
            };
            let common: Vec<char> = COMMON.chars().filter(is_in).collect();
            let picked = common.get(variant % common.len().max(1)).copied();
            text.push(picked.or_else(|| Some(ranges.first()?.start()))?);
        }
        HirKind::Class(Class::Bytes(_)) => return None,
        HirKind::Capture(capture) => write(&capture.sub, extra, variant, text)?,
        HirKind::Concat(parts) => {
            parts.iter().try_for_each(|part| write(part, extra, variant, text))?;
        }
        HirKind::Alternation(parts) => {
            write(&parts[variant % parts.len()], extra, variant, text)?;
        }
        HirKind::Repetition(repetition) => {
            let least = repetition.min as usize;
            let most = repetition.max.map_or(usize::MAX, |most| most as usize);
            for _ in 0..least.saturating_add(extra).min(most) {
                let before = text.len();
                write(&repetition.sub, extra, variant, text)?;
                // repetitions of nothing add nothing
                if text.len() == before {
                    break;
                }
            }
        }
    }
    Some(())
}
