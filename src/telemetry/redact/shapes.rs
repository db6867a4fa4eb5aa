//! Detection of unknown secrets by their shape.

use std::ops::Range;

use aho_corasick::AhoCorasick;

use super::named;

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
const BEGINNINGS: [(&str, Kind); 13] = [
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
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    Credentials,
    Jwt,
    Key,
    UserInfo,
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
        let (mut keys_end, mut parts_end) = (0, 0);
        for hit in hits {
            let Some((_, kind)) = BEGINNINGS.get(hit.pattern().as_usize()) else { continue };
            // one inside of another ends with it: the work stays linear
            let read_end = match kind {
                Kind::Key => &mut keys_end,
                Kind::Jwt => &mut parts_end,
                Kind::Credentials | Kind::UserInfo => &mut 0,
            };
            let (before, behind) = (&text[..hit.start()], &text[hit.end()..]);
            let begins = match kind {
                Kind::UserInfo => true,
                Kind::Jwt => is_border(before) || before.ends_with("%22"),
                Kind::Credentials | Kind::Key => is_border(before),
            };
            if !begins || hit.end() < *read_end {
                continue;
            }
            *read_end = hit.end()
                + match kind {
                    Kind::Jwt => jwt_part(behind),
                    Kind::Key => word(behind),
                    Kind::Credentials | Kind::UserInfo => 0,
                };
            found.extend(secret(*kind, text, hit.range()));
        }
        named::find(text, found);
    }
}

/// Returns true if a word can begin behind a text.
fn is_border(before: &str) -> bool {
    before.chars().next_back().is_none_or(|c| !c.is_alphanumeric())
}

/// Returns the range of the secret at a hit.
fn secret(kind: Kind, text: &str, Range { start, end }: Range<usize>) -> Option<Range<usize>> {
    let behind = &text[end..];
    match kind {
        Kind::Credentials => {
            let from = end + spaces(behind);
            let length = word(&behind[from - end..]);
            (length >= WORD_BYTES_MIN).then_some(from..from + length)
        }
        Kind::Jwt => Some(start..end + jwt(behind)?),
        Kind::Key => {
            let length = word(behind);
            let length = behind[..length].find('@').unwrap_or(length);
            (length >= WORD_BYTES_MIN).then_some(start..end + length)
        }
        Kind::UserInfo => {
            let ends =
                |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '<' | '>');
            let authority = &behind[..behind.find(ends).unwrap_or(behind.len())];
            let length = authority.rfind('@').filter(|length| *length > 0)?;
            Some(end..end + length)
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

/// Returns the length of the rest of a JSON Web Token after its prefix `eyJ`.
fn jwt(text: &str) -> Option<usize> {
    let head = jwt_part(text);
    let claims = jwt_part(text[head..].strip_prefix('.')?);
    let behind_claims = head + 1 + claims;
    // even without a signature a token identifies a person
    let signature = jwt_part(text[behind_claims..].strip_prefix('.')?);
    let is_token = head >= JWT_PART_BYTES_MIN && claims >= JWT_PART_BYTES_MIN;
    is_token.then_some(behind_claims + 1 + signature)
}

/// Returns the length of the first part of a JSON Web Token.
fn jwt_part(text: &str) -> usize {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.find(|c| !is_inner(c)).unwrap_or(text.len())
}
