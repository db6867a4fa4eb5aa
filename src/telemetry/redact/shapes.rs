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
const BEGINNINGS: [(&str, Kind); 33] = [
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
    ("password=", Kind::Parameter),
    ("passwd=", Kind::Parameter),
    ("secret=", Kind::Parameter),
    ("private_key=", Kind::Parameter),
    ("?key=", Kind::Parameter),
    ("&key=", Kind::Parameter),
    ("api-key:", Kind::Header),
    ("\"token\"", Kind::Member),
    ("\"access_token\"", Kind::Member),
    ("\"refresh_token\"", Kind::Member),
    ("\"api_key\"", Kind::Member),
    ("\"apikey\"", Kind::Member),
    ("\"password\"", Kind::Member),
    ("\"passwd\"", Kind::Member),
    ("\"secret\"", Kind::Member),
    ("\"client_secret\"", Kind::Member),
    ("\"private_key\"", Kind::Member),
];

#[derive(Debug, Clone, Copy)]
enum Kind {
    Credentials,
    Jwt,
    Key,
    UserInfo,
    /// The value after `name=`.
    Parameter,
    /// The value after `name:` and spaces.
    Header,
    /// The text of a member of a JSON object, after its name.
    Member,
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
        let mut quotes = Quotes::default();
        let (mut keys_end, mut values_end) = (0, 0);
        for hit in hits {
            let Some((_, kind)) = BEGINNINGS.get(hit.pattern().as_usize()) else { continue };
            // hits come in the order of their ends
            quotes.read_to(text, hit.end());
            // one inside of another ends with it: the work stays linear
            let known_end = match kind {
                Kind::Key => &mut keys_end,
                Kind::Parameter if !text[hit.end()..].starts_with(is_quote) => &mut values_end,
                _ => &mut 0,
            };
            if hit.end() < *known_end {
                continue;
            }
            let secret = secret(*kind, text, hit.range(), quotes.open);
            *known_end = secret.as_ref().map_or(*known_end, |it| it.end);
            found.extend(secret);
        }
    }
}

/// Returns the range of the secret at a hit. `open`: the quote in which the hit ends.
fn secret(
    kind: Kind,
    text: &str,
    Range { start, end }: Range<usize>,
    open: Option<char>,
) -> Option<Range<usize>> {
    let (before, behind) = (&text[..start], &text[end..]);
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
            let length = value(behind, open);
            (length > 0).then_some(end..end + length)
        }
        Kind::Header => {
            let from = end + spaces(behind);
            let length = value(&text[from..], open);
            (length > 0).then_some(from..from + length)
        }
        Kind::Member => {
            let inside = behind.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
            let from = text.len() - inside.len();
            let length = json_text(inside);
            (length > 0).then_some(from..from + length)
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

/// The quotes of a text, read from its beginning.
#[derive(Debug, Default)]
struct Quotes {
    /// Bytes that are read.
    read: usize,
    /// The quote in which the text is there.
    open: Option<char>,
    is_escaped: bool,
    /// The character before.
    before: Option<char>,
}

impl Quotes {
    /// Reads up to a byte. Quotes end with their line: an apostrophe in prose is none.
    fn read_to(&mut self, text: &str, end: usize) {
        for (at, c) in text.get(self.read..end).unwrap_or_default().char_indices() {
            let rest = &text[self.read + at..];
            if c == '\n' {
                self.open = None;
            } else if is_quote(c) && !self.is_escaped {
                match self.open {
                    Some(open) if open == c && closes(rest) => self.open = None,
                    None if !self.before.is_some_and(char::is_alphanumeric) => self.open = Some(c),
                    Some(_) | None => {}
                }
            }
            self.is_escaped = c == '\\' && !self.is_escaped;
            self.before = Some(c);
        }
        self.read = self.read.max(end);
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

/// Returns true if the quote at the beginning of a text can be a closing one. One before a letter, a
/// digit or a second quote belongs to what is quoted.
fn closes(text: &str) -> bool {
    let mut chars = text.chars();
    let quote = chars.next();
    chars.next().is_none_or(|c| !c.is_alphanumeric() && Some(c) != quote)
}

/// Returns the length of the value after `name=` that is left out. A template is no secret.
fn value(text: &str, open: Option<char>) -> usize {
    let mut behind = text;
    while let Some((inside, rest)) =
        behind.strip_prefix("{{").and_then(|rest| rest.split_once("}}"))
        && !inside.contains(['{', '\n'])
    {
        behind = rest;
    }
    if written(behind, open) == 0 { 0 } else { written(text, open) }
}

/// Returns the length of a value; one that may be too long, rather than a part of a secret. A value
/// in quotes ends with them. Another one ends at white space, before `&` or `;` with another `name=`,
/// and at the quote in which its name is, `open`: commas, brackets and other quotes belong to it.
fn written(text: &str, open: Option<char>) -> usize {
    let own = text.chars().next().filter(|c| is_quote(*c));
    let own = own.filter(|quote| open != Some(*quote) || !closes(text));
    let quote_bytes = usize::from(own.is_some());
    let mut is_escaped = false;
    let end = text.char_indices().skip(quote_bytes).find(|(at, c)| {
        let rest = &text[*at..];
        let is_end = match own {
            Some(quote) => *c == quote && closes(rest),
            None => match c {
                '&' | ';' => begins_parameter(&rest[1..]),
                c if is_quote(*c) => open == Some(*c) && closes(rest),
                c => c.is_whitespace() || c.is_control(),
            },
        };
        let is_end = is_end && !is_escaped;
        let is_doubled = own == Some(*c) && rest[1..].starts_with(*c);
        is_escaped = (*c == '\\' || is_doubled) && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |(at, _)| at + quote_bytes)
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
