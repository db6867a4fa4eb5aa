//! Detection of values whose names say that they are secrets: parameters (`db_password=…`), headers
//! (`Cookie: …`) and members of objects (`"auth_token": "…"`).

use std::ops::Range;

use super::REDACTED;
use super::values::{Quotes, is_quote, quoted_text, value};

/// Ends of names whose values are secrets, without `_` and `-`.
const SECRET_ENDS: [&str; 9] = [
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
];

/// Words that begin a sentence about a name, not its value.
const PROSE: [&str; 19] = [
    "a", "an", "the", "is", "was", "has", "must", "may", "should", "cannot", "no", "not",
    "missing", "required", "expected", "invalid", "unknown", "too", "expired",
];

/// Minimum length of a secret after `token: `, which has a digit: shorter ones, and words, are prose.
const TOKEN_BYTES_MIN: usize = 8;

/// Adds the ranges of values with secret names.
pub(super) fn find(text: &str, found: &mut Vec<Range<usize>>) {
    let mut quotes = Quotes::default();
    let (mut plain_end, mut quoted_end) = (0, 0);
    for (at, separator) in text.match_indices(['=', ':']) {
        let from = at + separator.len();
        quotes.read_to(text, from);
        let (before, behind) = (&text[..at], &text[from..]);
        let Some(named) = Named::of(before, behind, separator) else { continue };
        let is_quoted = matches!(named, Named::Member { .. }) || behind.starts_with(is_quote);
        // one inside of another ends with it: the work stays linear
        if at < quoted_end || (!is_quoted && at < plain_end) {
            continue;
        }
        if named.is_prose(behind) {
            continue;
        }
        let Some(value) = named.value_in(behind, quotes.open) else { continue };
        let known_end = if is_quoted { &mut quoted_end } else { &mut plain_end };
        *known_end = from + value.end;
        found.push(from + value.start..from + value.end);
    }
}

/// Form of what is written behind a secret name and its separator.
#[derive(Debug, Clone, Copy)]
enum Named<'t> {
    /// `name=value`
    Parameter,
    /// `name: value`
    Header { name: &'t str },
    /// The rest of a line.
    Cookie,
    /// A text in quotes, which are escaped if those of the name are.
    Member { is_escaped: bool },
}

impl<'t> Named<'t> {
    /// Returns what is behind a separator; `None` unless a secret name is before it.
    fn of(before: &'t str, behind: &str, separator: &str) -> Option<Self> {
        let name = name_at_end(before);
        if separator == "=" {
            let is_key = name.eq_ignore_ascii_case("key")
                && before[..before.len() - name.len()].ends_with(['?', '&']);
            // a shell has its folder there
            let is_folder = name == "PWD" && behind.starts_with('/');
            return ((is_key || is_secret(name)) && !is_folder).then_some(Self::Parameter);
        }
        if name.is_empty() {
            let (name, is_escaped) = member_at_end(before)?;
            return (is_secret(name) || is_cookie(name)).then_some(Self::Member { is_escaped });
        }
        if is_cookie(name) {
            return Some(Self::Cookie);
        }
        let is_apart = behind.starts_with([' ', '\t']) || ends_with(name, "api-key");
        // behind a word it is prose: "it has no token: …"
        let is_first = || {
            let before = before[..before.len() - name.len()].trim_end_matches([' ', '\t']);
            before.chars().next_back().is_none_or(|c| !c.is_alphanumeric())
        };
        let is_header = is_apart && is_secret(name);
        let is_header = is_header && (!name.eq_ignore_ascii_case("token") || is_first());
        is_header.then_some(Self::Header { name })
    }

    /// Returns the range of the value behind the separator. `open`: the quote in which that is.
    fn value_in(self, behind: &str, open: Option<char>) -> Option<Range<usize>> {
        let from = behind.len() - behind.trim_start_matches([' ', '\t']).len();
        let range = match self {
            Self::Parameter => 0..value(behind, open),
            Self::Header { .. } => from..from + value(&behind[from..], open),
            // what follows on the line may have followed on another one before
            Self::Cookie if behind[from..].starts_with(REDACTED) => return None,
            Self::Cookie => from..from + rest_of_line(&behind[from..], open),
            Self::Member { is_escaped } => {
                let inside = behind.trim_start();
                let inside = if is_escaped { inside.strip_prefix('\\')? } else { inside };
                let quote = inside.chars().next().filter(|c| matches!(c, '"' | '\''))?;
                let from = behind.len() - inside.len() + quote.len_utf8();
                from..from + quoted_text(&behind[from..], quote, is_escaped)
            }
        };
        (!range.is_empty()).then_some(range)
    }

    /// Returns true if a sentence about the name begins behind the separator, and no value.
    fn is_prose(self, behind: &str) -> bool {
        let Self::Header { name } = self else { return false };
        let behind = behind.trim_start_matches([' ', '\t']);
        let word = &behind[..behind.find(char::is_whitespace).unwrap_or(behind.len())];
        if name.eq_ignore_ascii_case("token") {
            return word.len() < TOKEN_BYTES_MIN || !word.contains(|c: char| c.is_ascii_digit());
        }
        let word = word.trim_end_matches([',', ';', '.']);
        PROSE.iter().any(|known| known.eq_ignore_ascii_case(word))
    }
}

/// Returns the name at the end of a text.
fn name_at_end(text: &str) -> &str {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    &text[text.trim_end_matches(is_inner).len()..]
}

/// Returns the name of a member at the end of a text, without its quotes, and true if these are escaped.
fn member_at_end(text: &str) -> Option<(&str, bool)> {
    let text = text.trim_end();
    let quote = text.chars().next_back().filter(|c| matches!(c, '"' | '\''))?;
    let text = text.strip_suffix(quote)?;
    let (text, is_escaped) = match text.strip_suffix('\\') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let name = name_at_end(text);
    let before = text[..text.len() - name.len()].strip_suffix(quote)?;
    (before.ends_with('\\') == is_escaped).then_some((name, is_escaped))
}

fn is_cookie(name: &str) -> bool {
    name.eq_ignore_ascii_case("cookie") || name.eq_ignore_ascii_case("set-cookie")
}

/// Returns true for names that end with a word for secrets: `token`, `DB_PASSWORD`, `x-api-key`,
/// `clientSecret`.
pub(super) fn is_secret(name: &str) -> bool {
    let is_end = |word: &str| {
        let letters = name.bytes().rev().filter(|byte| !matches!(byte, b'_' | b'-'));
        let mut letters = letters.map(|byte| byte.to_ascii_lowercase());
        word.bytes().rev().all(|letter| letters.next() == Some(letter))
    };
    // too short to be found in other words
    let is_pwd = || {
        let rest = &name[..name.len().saturating_sub("pwd".len())];
        ends_with(name, "pwd") && (rest.is_empty() || rest.ends_with(['_', '-', '.']))
    };
    SECRET_ENDS.iter().any(|word| is_end(word)) || is_pwd()
}

fn ends_with(name: &str, end: &str) -> bool {
    let at = name.len().checked_sub(end.len());
    at.is_some_and(|at| name[at..].eq_ignore_ascii_case(end))
}

/// Returns the length of the rest of a line, or up to the quote in which it is.
fn rest_of_line(text: &str, open: Option<char>) -> usize {
    let end = text.find(|c: char| matches!(c, '\n' | '\r' | '\0') || open == Some(c));
    text[..end.unwrap_or(text.len())].trim_end().len()
}
