//! The lines of an environment file, as bytes: what is not touched need not be text.

/// Marks UTF-8 at the start of a file, where some editors leave it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The text with these variables in it: each where it was first set, else at the end, and nowhere
/// else. What stands before the name (`export`, a margin) stays, and so does the end of the line.
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

/// The value of a variable where it is first set: what [`with_variables`] would replace. None where
/// it is no text.
pub(super) fn value_of(text: &[u8], name: &str) -> Option<String> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let entry = Entries(text).find(|entry| entry.name == Some(name.as_bytes()))?;
    let (_, _, value_at) = assignment(entry.text)?;
    Some(unquoted(std::str::from_utf8(&entry.text[value_at..]).ok()?.trim()))
}

/// A value without its quotes, its escapes, and the comment behind it.
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

/// A value as readers of such files understand it. Single quotes take things literally; but they
/// cannot hold themselves, and some readers see an escape in two backslashes or in one before the
/// end. Such a value stands in double quotes, with the escapes of a shell.
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

/// How a line ends; nothing where the text does.
fn end_of(line: &[u8]) -> &[u8] {
    match line {
        [.., b'\r', b'\n'] => b"\r\n",
        [.., b'\n'] => b"\n",
        _ => b"",
    }
}

/// Whether the lines of a text end as on Windows: its first one does.
fn has_crlf(text: &[u8]) -> bool {
    let first = text.split_inclusive(|byte| *byte == b'\n').next();
    first.is_some_and(|line| end_of(line) == b"\r\n")
}

/// What sets one variable, or one line of anything else.
struct Entry<'t> {
    /// With its end. More than one line where a quoted value goes on.
    text: &'t [u8],
    /// What stands before the name.
    lead: &'t [u8],
    name: Option<&'t [u8]>,
}

/// The entries of a text, one after the other; together they are the text.
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

/// `NAME=`, perhaps behind `export`: what stands before the name, the name, and where the value
/// begins.
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

/// Spaces and tabs at the start.
fn blanks(text: &[u8]) -> usize {
    text.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Up to the end of the line on which a value ends, which begins the text. A quote that is never
/// closed is a character like any other.
fn value_length(text: &[u8]) -> usize {
    let closed_at = match text.first() {
        Some(quote @ (b'"' | b'\'' | b'`')) => closing(text, *quote).unwrap_or(0),
        _ => 0,
    };
    let rest = &text[closed_at..];
    let line = rest.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    closed_at + line.len()
}

/// Where the quote that begins the text is closed.
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
