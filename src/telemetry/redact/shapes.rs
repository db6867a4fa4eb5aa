//! Detection of unknown secrets by their shape.

use std::ops::Range;

use aho_corasick::AhoCorasick;

/// Minimum length of a secret after `Bearer` or `Basic`; shorter words are prose.
const WORD_BYTES_MIN: usize = 8;
/// Minimum length of header and claims of a JSON Web Token.
const JWT_PART_BYTES_MIN: usize = 4;

/// Names whose values are secrets.
const SECRET_NAMES: [&str; 13] = [
    "token",
    "access_token",
    "refresh_token",
    "api_key",
    "api-key",
    "x-api-key",
    "password",
    "passwd",
    "client_secret",
    "private_key",
    "cookie",
    "secret",
    "authorization",
];

/// Prefixes of secrets, or of the texts before them, in any letter case, with the kind of secret.
const BEGINNINGS: [(&str, Kind); 39] = [
    ("bearer ", Kind::Credentials),
    ("basic ", Kind::Credentials),
    ("eyj", Kind::Jwt),
    ("sk-", Kind::Key),
    ("ghp_", Kind::Key),
    ("gho_", Kind::Key),
    ("github_pat_", Kind::Key),
    ("glpat-", Kind::Key),
    ("xoxb-", Kind::Key),
    ("xoxp-", Kind::Key),
    ("akia", Kind::Key),
    ("aiza", Kind::Key),
    ("://", Kind::UserInfo),
    ("token=", Kind::Parameter),
    ("api_key=", Kind::Parameter),
    ("api-key=", Kind::Parameter),
    ("api-key: ", Kind::Parameter),
    ("password=", Kind::Parameter),
    ("passwd=", Kind::Parameter),
    ("secret=", Kind::Parameter),
    ("private_key=", Kind::Parameter),
    ("\"token\":\"", Kind::Member),
    ("\"access_token\":\"", Kind::Member),
    ("\"refresh_token\":\"", Kind::Member),
    ("\"api_key\":\"", Kind::Member),
    ("\"apikey\":\"", Kind::Member),
    ("\"password\":\"", Kind::Member),
    ("\"secret\":\"", Kind::Member),
    ("\"client_secret\":\"", Kind::Member),
    ("\"token\": \"", Kind::Member),
    ("\"access_token\": \"", Kind::Member),
    ("\"refresh_token\": \"", Kind::Member),
    ("\"api_key\": \"", Kind::Member),
    ("\"apikey\": \"", Kind::Member),
    ("\"password\": \"", Kind::Member),
    ("\"secret\": \"", Kind::Member),
    ("\"client_secret\": \"", Kind::Member),
    ("?key=", Kind::QueryKey),
    ("&key=", Kind::QueryKey),
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    Credentials,
    Jwt,
    Key,
    UserInfo,
    Parameter,
    /// A member of a JSON object.
    Member,
    QueryKey,
}

/// Finds texts shaped like secrets.
#[derive(Debug)]
pub(super) struct Shapes {
    beginnings: Option<AhoCorasick>,
}

pub(super) fn is_secret_name(name: &str) -> bool {
    SECRET_NAMES.iter().any(|secret| secret.eq_ignore_ascii_case(name))
}

impl Shapes {
    pub(super) fn new() -> Self {
        let beginnings = BEGINNINGS.map(|(beginning, _)| beginning);
        let built = AhoCorasick::builder().ascii_case_insensitive(true).build(beginnings);
        Self { beginnings: built.ok() }
    }

    pub(super) fn find(&self, text: &str, found: &mut Vec<Range<usize>>) {
        // overlapping, because "Bearer eyJ..." has two prefixes
        let hits = self.beginnings.iter().flat_map(|it| it.find_overlapping_iter(text));
        for hit in hits {
            let Some((_, kind)) = BEGINNINGS.get(hit.pattern().as_usize()) else { continue };
            let (before, behind) = (&text[..hit.start()], &text[hit.end()..]);
            found.extend(secret(*kind, before, behind, hit.start(), hit.end()));
        }
    }
}

fn secret(
    kind: Kind,
    before: &str,
    behind: &str,
    start: usize,
    end: usize,
) -> Option<Range<usize>> {
    let is_word = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
    match kind {
        Kind::Credentials => {
            let from = end + spaces(behind);
            let length = word(&behind[from - end..]);
            (is_word && length >= WORD_BYTES_MIN).then_some(from..from + length)
        }
        Kind::Jwt => {
            let length = jwt(behind)?;
            (is_word || before.ends_with("%22")).then_some(start..end + length)
        }
        Kind::Key => {
            let length = word(behind);
            let length = behind[..length].find('@').unwrap_or(length);
            (is_word && length >= WORD_BYTES_MIN).then_some(start..end + length)
        }
        Kind::UserInfo => {
            let ends =
                |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '<' | '>');
            let authority = &behind[..behind.find(ends).unwrap_or(behind.len())];
            let length = authority.rfind('@').filter(|length| *length > 0)?;
            Some(end..end + length)
        }
        Kind::Parameter => {
            let length = parameter(before, behind);
            (length > 0).then_some(end..end + length)
        }
        Kind::Member => {
            let length = json_text(behind);
            (length > 0).then_some(end..end + length)
        }
        Kind::QueryKey => {
            let length = word(behind);
            (length > 0).then_some(end..end + length)
        }
    }
}

fn spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// Returns the length of the first word of a text.
fn word(text: &str) -> usize {
    text.find(ends_word).unwrap_or(text.len())
}

fn ends_word(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '"' | '\'' | '`' | '\\' | ',' | ';' | '&' | '#' | '<' | '>')
        || matches!(c, '(' | ')' | '{' | '}' | '[' | ']')
}

/// Returns the length of a value after `name=`. Only in a query, and before another `name=`, an `&`
/// ends it; elsewhere the value may have one in it. A value in quotes ends with them.
fn parameter(before: &str, behind: &str) -> usize {
    if let Some(quote) = behind.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let end = behind[1..].find(quote);
        return end.map_or(behind.len(), |inside| inside + 2);
    }
    let apart = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
    let word_before = before.rfind(apart).map_or(before, |at| &before[at..]);
    let in_query = word_before.contains(['?', '&', '=']);
    let ends = |(at, c): &(usize, char)| match c {
        '&' => in_query || begins_parameter(&behind[at + 1..]),
        '#' => in_query,
        c => ends_word(*c),
    };
    behind.char_indices().find(ends).map_or(behind.len(), |(at, _)| at)
}

/// Returns true for a name and `=` at the beginning of a text.
fn begins_parameter(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let rest = text.trim_start_matches(is_inner);
    rest.len() < text.len() && rest.starts_with('=')
}

/// Returns the length of a JSON text up to its end quote.
fn json_text(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.char_indices().find(|(_, c)| {
        let is_end = *c == '"' && !is_escaped;
        is_escaped = *c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at)
}

/// Returns the length of the rest of a JSON Web Token after its prefix `eyJ`.
fn jwt(text: &str) -> Option<usize> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let part = |text: &str| text.find(|c| !is_inner(c)).unwrap_or(text.len());
    let head = part(text);
    let claims = part(text[head..].strip_prefix('.')?);
    let behind_claims = head + 1 + claims;
    // even without a signature a token identifies a person
    let signature = part(text[behind_claims..].strip_prefix('.')?);
    let is_token = head >= JWT_PART_BYTES_MIN && claims >= JWT_PART_BYTES_MIN;
    is_token.then_some(behind_claims + 1 + signature)
}
