//! The lines of an environment file, as bytes: other lines need not be text.

/// UTF-8 byte order mark, which some editors write at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the text with these variables set: each where it was first set, else at the end, and
/// nowhere else. Text before the name (`export`, indentation) and the line ending stay.
pub(super) fn with_variables(old: &[u8], variables: &[(&str, &str)]) -> Vec<u8> {
    let (mark, text) = match old.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK, text),
        None => (&[][..], old),
    };
    let mut new = mark.to_vec();
    let mut is_set = vec![false; variables.len()];
    for entry in Entries(text) {
        let found = variables.iter().position(|(name, _)| entry.name == Some(name.as_bytes()));
        match found {
            None => new.extend_from_slice(entry.text),
            Some(index) if is_set[index] => {}
            Some(index) => {
                is_set[index] = true;
                let (name, value) = variables[index];
                new.extend_from_slice(entry.lead);
                push(&mut new, name, value, end_of(entry.text));
            }
        }
    }
    let line_end: &[u8] = if has_crlf(text) { b"\r\n" } else { b"\n" };
    for ((name, value), _) in variables.iter().zip(is_set).filter(|(_, is_set)| !is_set) {
        if new.len() > mark.len() && !new.ends_with(b"\n") {
            new.extend_from_slice(line_end);
        }
        push(&mut new, name, value, line_end);
    }
    new
}

/// Returns the value of a variable where it is first set: what [`with_variables`] would replace.
/// `None` if the value is not UTF-8.
pub(super) fn value_of(text: &[u8], name: &str) -> Option<String> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let entry = Entries(text).find(|entry| entry.name == Some(name.as_bytes()))?;
    let (_, _, value_at) = assignment(entry.text)?;
    Some(unquoted(std::str::from_utf8(&entry.text[value_at..]).ok()?.trim()))
}

/// Removes quotes, escapes and a trailing comment from a value.
fn unquoted(text: &str) -> String {
    let closed = match text.as_bytes().first() {
        Some(quote @ (b'"' | b'\'' | b'`')) => closing(text.as_bytes(), *quote),
        _ => None,
    };
    let Some(end) = closed else {
        let comment = text.find(" #").or_else(|| text.find("\t#"));
        return text[..comment.unwrap_or(text.len())].trim_end().to_owned();
    };
    let inner = &text[1..end];
    if !text.starts_with('"') {
        return inner.to_owned();
    }
    let mut value = String::new();
    let mut chars = inner.chars().peekable();
    while let Some(char) = chars.next() {
        let escaped = chars.peek().filter(|next| matches!(next, '"' | '\\' | '$' | '`'));
        match (char, escaped.copied()) {
            ('\\', Some(next)) => {
                value.push(next);
                chars.next();
            }
            _ => value.push(char),
        }
    }
    value
}

fn push(text: &mut Vec<u8>, name: &str, value: &str, end: &[u8]) {
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(quoted(value).as_bytes());
    text.extend_from_slice(end);
}

/// Quotes a value so that all readers of such files agree on it. Single quotes are literal; but
/// they cannot hold a single quote, and some readers see an escape in two backslashes or in a final
/// one. Such a value is put in double quotes, with the escapes of a shell.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:+@%,=".contains(c);
    if !value.is_empty() && value.chars().all(is_plain) {
        return value.to_owned();
    }
    if !value.contains('\'') && !value.contains(r"\\") && !value.ends_with('\\') {
        return format!("'{value}'");
    }
    let mut quoted = String::from("\"");
    for char in value.chars() {
        if matches!(char, '"' | '\\' | '$' | '`') {
            quoted.push('\\');
        }
        quoted.push(char);
    }
    quoted.push('"');
    quoted
}

/// Returns the line ending; empty at the end of the text.
fn end_of(line: &[u8]) -> &[u8] {
    match line {
        [.., b'\r', b'\n'] => b"\r\n",
        [.., b'\n'] => b"\n",
        _ => b"",
    }
}

/// Returns true if the first line of the text ends with CR LF.
fn has_crlf(text: &[u8]) -> bool {
    let first = text.split_inclusive(|byte| *byte == b'\n').next();
    first.is_some_and(|line| end_of(line) == b"\r\n")
}

/// An assignment of one variable, or any other line.
struct Entry<'t> {
    /// All bytes with the line ending. More than one line if a quoted value spans lines.
    text: &'t [u8],
    /// Text before the name.
    lead: &'t [u8],
    name: Option<&'t [u8]>,
}

/// Iterates over the entries of a text, which together are the text.
struct Entries<'t>(&'t [u8]);

impl<'t> Iterator for Entries<'t> {
    type Item = Entry<'t>;

    fn next(&mut self) -> Option<Entry<'t>> {
        let text = self.0;
        let line = text.split_inclusive(|byte| *byte == b'\n').next()?;
        let Some((lead, name, value_at)) = assignment(line) else {
            self.0 = &text[line.len()..];
            return Some(Entry { text: line, lead: &[], name: None });
        };
        let (entry, rest) = text.split_at(value_at + value_length(&text[value_at..]));
        self.0 = rest;
        Some(Entry { text: entry, lead, name: Some(name) })
    }
}

/// Parses `NAME=`, optionally after `export`: returns the text before the name, the name, and the
/// position of the value.
fn assignment(line: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let mut name_at = blanks(line);
    if let Some(rest) = line[name_at..].strip_prefix(b"export")
        && blanks(rest) > 0
    {
        name_at = line.len() - rest.len() + blanks(rest);
    }
    let (lead, rest) = line.split_at(name_at);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let length = rest.iter().take_while(|byte| is_name(byte)).count();
    let (name, rest) = rest.split_at(length);
    let rest = rest[blanks(rest)..].strip_prefix(b"=")?;
    let value_at = line.len() - rest.len() + blanks(rest);
    (!name.is_empty()).then_some((lead, name, value_at))
}

/// Counts spaces and tabs at the start.
fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Returns the length of the value at the start of the text, with the rest of its last line. A
/// quote that is never closed is an ordinary character.
fn value_length(text: &[u8]) -> usize {
    let closed_at = match text.first() {
        Some(quote @ (b'"' | b'\'' | b'`')) => closing(text, *quote).unwrap_or(0),
        _ => 0,
    };
    let rest = &text[closed_at..];
    let line = rest.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    closed_at + line.len()
}

/// Returns the position of the quote that closes the one at the start of the text.
fn closing(text: &[u8], quote: u8) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match *byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if quote == b'"' => is_escaped = true,
            byte if byte == quote => return Some(at),
            _ => {}
        }
    }
    None
}
