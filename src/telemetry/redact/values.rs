//! Extent of values behind their names: quotes, escapes, templates and further parameters.

/// The quotes of a text, read from its beginning.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    /// Bytes that are read.
    read: usize,
    /// The quote in which the text is there.
    pub(super) open: Option<char>,
    is_escaped: bool,
    /// The character before.
    before: Option<char>,
}

impl Quotes {
    /// Reads up to a byte. Quotes end with their line: an apostrophe in prose is none.
    pub(super) fn read_to(&mut self, text: &str, end: usize) {
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

pub(super) fn is_quote(c: char) -> bool {
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
pub(super) fn value(text: &str, open: Option<char>) -> usize {
    let mut behind = text;
    while let Some(rest) = behind.strip_prefix("{{").and_then(behind_template) {
        behind = rest;
    }
    if written(behind, open) == 0 { 0 } else { written(text, open) }
}

/// Returns what is behind the end of a template on this line.
fn behind_template(inside: &str) -> Option<&str> {
    let at = inside.find(['{', '}', '\n'])?;
    inside[at..].strip_prefix("}}")
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

/// Returns the length of a text up to its end quote. Within a text in quotes, that is escaped once, and
/// quotes of the text are escaped twice.
pub(super) fn quoted_text(text: &str, quote: char, is_escaped: bool) -> usize {
    let mut escapes = 0_usize;
    let end = text.char_indices().find_map(|(at, c)| {
        let is_end = match is_escaped {
            true => escapes == 0 || escapes % 4 == 1,
            false => escapes.is_multiple_of(2),
        };
        if c == quote && is_end {
            return Some(at - usize::from(is_escaped && escapes > 0));
        }
        escapes = if c == '\\' { escapes + 1 } else { 0 };
        None
    });
    end.unwrap_or(text.len())
}
