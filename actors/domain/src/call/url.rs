//! URL templates. A value in a URL cannot change the structure of the URL.

use std::fmt;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use url::Url;

use crate::expression::{Expression, Scope};
use crate::failure::AttemptFailure;

/// Longest URL; servers commonly reject longer ones.
pub(super) const URL_BYTES_MAX: usize = 8 << 10;

/// Characters to encode: all except those that RFC 3986 calls unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Source of the host of a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostChoice {
    /// The configuration.
    Operator,
    /// A value of an expression.
    Data,
}

/// A URL with expressions in `{{ }}`. A value in the path or the query is always one segment or
/// one query value; only a value at the very start, or in the host, selects the server.
#[derive(Clone)]
pub struct UrlTemplate {
    source: Arc<str>,
    pieces: Arc<[Piece]>,
}

enum Piece {
    Text(String),
    Value { expression: Expression, part: Part },
}

/// The part of a URL that contains a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Everything up to the path; the value is itself a URL.
    Base,
    Authority,
    Path,
    Query,
}

impl fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UrlTemplate").field(&self.source).finish()
    }
}

impl UrlTemplate {
    /// Compiles a URL; an error is the problem in words.
    pub fn compile(source: &str) -> Result<Self, String> {
        let pieces = pieces_of(source)?;
        let template = Self { source: Arc::from(source), pieces: Arc::from(pieces) };
        // a number is valid wherever a value is
        let sample = template.assembled(|_| Ok(Value::from(1)), "http://1");
        let sample = sample.map_err(|failure| failure.message)?;
        parsed_url(&sample)?;
        Ok(template)
    }

    /// Returns the source of the host.
    pub fn host_choice(&self) -> HostChoice {
        let chooses = |piece: &Piece| match piece {
            Piece::Text(_) => false,
            Piece::Value { part, .. } => matches!(part, Part::Base | Part::Authority),
        };
        if self.pieces.iter().any(chooses) { HostChoice::Data } else { HostChoice::Operator }
    }

    /// Returns the names that its expressions read, functions included, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let expressions = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Value { expression, .. } => Some(expression),
        });
        expressions.flat_map(Expression::names)
    }

    /// Renders the URL with the values in scope.
    pub(super) fn render(&self, scope: &Scope) -> Result<Url, AttemptFailure> {
        let evaluated = |expression: &Expression| {
            let value = expression.evaluate(scope);
            value.map_err(|error| AttemptFailure::not_evaluated("url: ", &error))
        };
        let base = match self.pieces.first() {
            Some(Piece::Value { expression, part: Part::Base }) => {
                base_of(&evaluated(expression)?, self.pieces.len() > 1)
                    .map_err(AttemptFailure::expression)?
            }
            Some(Piece::Text(_) | Piece::Value { .. }) | None => String::new(),
        };
        let text = self.assembled(evaluated, &base)?;
        if text.len() > URL_BYTES_MAX {
            return Err(too_long());
        }
        parsed_url(&text).map_err(AttemptFailure::expression)
    }

    fn assembled(
        &self,
        value_of: impl Fn(&Expression) -> Result<Value, AttemptFailure>,
        base: &str,
    ) -> Result<String, AttemptFailure> {
        let mut text = String::new();
        for piece in &*self.pieces {
            match piece {
                Piece::Text(literal) => text.push_str(literal),
                Piece::Value { part: Part::Base, .. } => text.push_str(base),
                Piece::Value { expression, part } => {
                    let value = plain_text(&value_of(expression)?).ok_or_else(|| {
                        unfit(expression, "must be a string, a number or a boolean")
                    })?;
                    match part {
                        Part::Authority if !is_host_text(&value) => {
                            return Err(unfit(expression, "is not a host"));
                        }
                        Part::Path if value.is_empty() => {
                            return Err(unfit(expression, "is empty"));
                        }
                        Part::Base | Part::Authority | Part::Path | Part::Query => {
                            text.extend(host_or_encoded(&value, *part));
                        }
                    }
                }
            }
        }
        Ok(text)
    }
}

/// Returns a host unchanged, anything else percent-encoded.
fn host_or_encoded(value: &str, part: Part) -> impl Iterator<Item = &str> {
    let (host, encoded) = match part {
        Part::Authority => (Some(value), None),
        Part::Base | Part::Path | Part::Query => (None, Some(utf8_percent_encode(value, RESERVED))),
    };
    host.into_iter().chain(encoded.into_iter().flatten())
}

/// Creates the failure of a URL beyond [`URL_BYTES_MAX`].
pub(super) fn too_long() -> AttemptFailure {
    AttemptFailure::expression(format!("the URL is longer than {URL_BYTES_MAX} bytes"))
}

fn unfit(expression: &Expression, what: &str) -> AttemptFailure {
    AttemptFailure::expression(format!("url: `{}` {what}", expression.source().trim()))
}

/// Returns the text of a value for a URL; `None` for null, arrays and objects.
pub(super) fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn is_host_text(value: &str) -> bool {
    let fits =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    !value.is_empty() && value.chars().all(fits)
}

/// Checks a URL that came from data. If more of the template follows, it must end with its path.
fn base_of(value: &Value, is_followed: bool) -> Result<String, String> {
    let text = plain_text(value).unwrap_or_default();
    let url = parsed_url(&text)?;
    if !is_followed {
        return Ok(url.into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("url: a path follows, so the value must not contain `?` or `#`".to_owned());
    }
    Ok(url.as_str().trim_end_matches('/').to_owned())
}

/// Parses a complete URL. Rejects schemes other than HTTP, credentials, and dot segments.
pub fn parsed_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("url: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("url: must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("url: must not contain a user or a password; use a header".to_owned());
    }
    // The parser would resolve `..`, and drop a part of the path.
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let is_dots = |segment: &str| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    };
    if path.split(['/', '\\']).skip(3).any(is_dots) {
        return Err("url: must not contain the path segments `.` and `..`".to_owned());
    }
    Ok(url)
}

fn pieces_of(source: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut part = Part::Base;
    let mut rest = source;
    while !rest.is_empty() {
        let at = rest.find("{{").unwrap_or(rest.len());
        let (literal, behind) = rest.split_at(at);
        if !literal.is_empty() {
            part = part_after(literal, part, pieces.is_empty())?;
            pieces.push(Piece::Text(literal.to_owned()));
        }
        let Some(behind) = behind.strip_prefix("{{") else { break };
        if part == Part::Base && !pieces.is_empty() {
            return Err("the URL may begin with only one value".to_owned());
        }
        let end = closing(behind).ok_or("a `{{` has no `}}`")?;
        let expression = Expression::compile(&behind[..end]).map_err(|error| error.to_string())?;
        pieces.push(Piece::Value { expression, part });
        rest = &behind[end + 2..];
    }
    Ok(pieces)
}

/// Returns the part of the URL that follows a literal.
fn part_after(literal: &str, before: Part, is_start: bool) -> Result<Part, String> {
    if literal.contains("{%") || literal.contains("{#") {
        return Err("a URL may contain {{ }} only".to_owned());
    }
    if literal.contains('#') {
        return Err("must not contain a fragment (`#`); it is never sent".to_owned());
    }
    let (mut part, mut rest) = (before, literal);
    if part == Part::Base && is_start {
        let scheme_end = rest.find("://").ok_or("must begin with http:// or https://")?;
        part = Part::Authority;
        rest = &rest[scheme_end + 3..];
    } else if part == Part::Base {
        part = Part::Path;
        if !rest.starts_with(['/', '?']) {
            return Err("a value that gives the host must be followed by `/` or `?`".to_owned());
        }
    }
    if part == Part::Authority
        && let Some(at) = rest.find(['/', '\\', '?'])
    {
        part = Part::Path;
        rest = &rest[at..];
    }
    if part == Part::Path && rest.contains('?') {
        part = Part::Query;
    }
    Ok(part)
}

/// Returns the index of the `}}` that ends an expression, ignoring those in its strings.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if character == '\\' => escaped = true,
            Some(open) if open == character => quote = None,
            Some(_) => {}
            None if matches!(character, '\'' | '"') => quote = Some(character),
            None if text[at..].starts_with("}}") => return Some(at),
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rendered(source: &str, args: Value) -> Result<String, String> {
        let scope = Scope::new().with("args", Arc::new(args));
        let url = UrlTemplate::compile(source).unwrap().render(&scope);
        url.map(String::from).map_err(|failure| failure.message)
    }

    #[test]
    fn a_value_stays_in_its_part_of_the_url() {
        let source = "https://api.example/v1/{{ args.a }}/end?q={{ args.a }}";
        for (value, path, query) in [
            (json!("plain-1_~.x"), "plain-1_~.x", "plain-1_~.x"),
            (json!(42), "42", "42"),
            (json!(true), "true", "true"),
            (json!("a/b"), "a%2Fb", "a%2Fb"),
            (json!("a\\b"), "a%5Cb", "a%5Cb"),
            (json!("../../admin"), "..%2F..%2Fadmin", "..%2F..%2Fadmin"),
            (json!("?x=1&y=2#z"), "%3Fx%3D1%26y%3D2%23z", "%3Fx%3D1%26y%3D2%23z"),
            (json!("@evil.example"), "%40evil.example", "%40evil.example"),
            (json!("%2e%2e%2f"), "%252e%252e%252f", "%252e%252e%252f"),
            (json!("a b\r\nhost: x"), "a%20b%0D%0Ahost%3A%20x", "a%20b%0D%0Ahost%3A%20x"),
            (json!("\t;:é"), "%09%3B%3A%C3%A9", "%09%3B%3A%C3%A9"),
        ] {
            let expected = format!("https://api.example/v1/{path}/end?q={query}");
            assert_eq!(rendered(source, json!({ "a": value })), Ok(expected));
        }
        for value in [json!(".."), json!("."), json!(""), json!(null), json!([1]), json!({})] {
            assert!(rendered(source, json!({ "a": value })).is_err(), "{value}");
        }
        assert!(rendered(source, json!({})).is_err(), "undefined");
        assert!(rendered("http://a/%2e{{ args.a }}", json!({ "a": "." })).is_err());
        assert!(rendered("http://a/.{{ args.a }}/b", json!({ "a": "." })).is_err());
        let long = "x".repeat(URL_BYTES_MAX);
        assert!(rendered(source, json!({ "a": long })).unwrap_err().contains("longer than 8192"));
    }

    #[test]
    fn a_value_in_place_of_the_host_is_a_host() {
        let sub = "https://{{ args.a }}.example.com/x";
        assert_eq!(rendered(sub, json!({ "a": "eu" })).unwrap(), "https://eu.example.com/x");
        for value in ["evil.com/", "evil.com:80", "u@evil.com", "evil.com#", "evil.com?", "", "é"]
        {
            assert!(rendered(sub, json!({ "a": value })).is_err(), "{value}");
        }
        let host = "http://{{ args.a }}/x";
        assert_eq!(rendered(host, json!({ "a": "h:81" })).unwrap(), "http://h:81/x");
        assert!(rendered(host, json!({ "a": "a:b@c" })).is_err());
    }

    #[test]
    fn a_value_at_the_start_is_a_url() {
        let whole = "{{ args.a }}";
        let more = "{{ args.a }}/v1/{{ args.b }}?q=1";
        for (source, value, expected) in [
            (whole, "https://a.example/x?y=1", Ok("https://a.example/x?y=1")),
            (more, "https://a.example", Ok("https://a.example/v1/b?q=1")),
            (more, "https://a.example/base/", Ok("https://a.example/base/v1/b?q=1")),
            (more, "https://a.example/?x=", Err(())),
            (whole, "file:///etc/passwd", Err(())),
            (whole, "ftp://a.example", Err(())),
            (whole, "https://user:pass@a.example", Err(())),
            (whole, "a.example", Err(())),
        ] {
            let made = rendered(source, json!({ "a": value, "b": "b" }));
            assert_eq!(made.as_deref().map_err(|_| ()), expected, "{source} with {value}");
        }
    }

    #[test]
    fn the_source_of_the_host_is_known() {
        for (source, expected) in [
            ("https://a.example", HostChoice::Operator),
            ("https://a.example:8443/{{ args.x }}?y={{ args.y }}", HostChoice::Operator),
            ("http://a?{{ args.x }}={{ '}}' }}", HostChoice::Operator),
            ("https://{{ args.x }}.example/", HostChoice::Data),
            ("https://a.example{{ args.x }}", HostChoice::Data),
            ("https://a.example:{{ args.port }}/", HostChoice::Data),
            ("{{ context.base }}/x", HostChoice::Data),
        ] {
            assert_eq!(UrlTemplate::compile(source).unwrap().host_choice(), expected, "{source}");
        }
    }

    #[test]
    fn bad_urls_are_refused_with_a_reason() {
        for (source, reason) in [
            ("", "url: relative URL without a base"),
            ("a.example/x", "must begin with http:// or https://"),
            ("ftp://a.example/", "url: must begin with http:// or https://"),
            ("https://u:p@a.example/", "url: must not contain a user or a password; use a header"),
            ("https://a.example/#x", "must not contain a fragment (`#`); it is never sent"),
            ("https://a.example/../x", "url: must not contain the path segments `.` and `..`"),
            ("https://a.example/{% if x %}", "a URL may contain {{ }} only"),
            ("https://a.example/{{ x", "a `{{` has no `}}`"),
            ("{{ a }}{{ b }}", "the URL may begin with only one value"),
            ("{{ a }}x", "a value that gives the host must be followed by `/` or `?`"),
            ("https://a.example:x/", "url: invalid port number"),
        ] {
            assert_eq!(UrlTemplate::compile(source).unwrap_err(), reason, "{source}");
        }
        assert!(UrlTemplate::compile("https://a/{{ }}").is_err());
    }
}
