//! Incremental parser of incomplete JSON.
//!
//! Text is scanned once, as it arrives. Each call of [`PartialJson::value`] parses everything so
//! far, so callers decide how often to call it.

use greenroom_actors::domain::foreign;
use serde_json::Value;

/// Maximum of text before the JSON, in bytes. After a longer prefix no JSON is looked for.
const HEAD_BYTES_MAX: usize = 4096;

const FENCE: &str = "```";

/// An object or array that arrives in pieces, bare or inside a code fence.
#[derive(Debug, Default)]
pub struct PartialJson {
    /// Text before the JSON.
    head: String,
    /// Text from the first brace or bracket to its counterpart.
    text: String,
    /// Missing closing brackets, the innermost last.
    open: Vec<u8>,
    /// Length of the prefix of `text` that is valid once an open string and all brackets are
    /// closed.
    safe: usize,
    token: Token,
    /// True if the next string is a key of an object.
    expects_key: bool,
    is_complete: bool,
}

/// Token that the scanner is in.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// Between tokens.
    #[default]
    None,
    /// A number or literal; complete only when another character follows.
    Scalar,
    Text {
        is_key: bool,
        escape: Escape,
        /// True after a high surrogate without its low one.
        is_half: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Backslash,
    Hex { digits: u8, code: u32 },
}

impl PartialJson {
    /// Adds a piece; returns the part of it that belongs to the JSON.
    pub fn push(&mut self, piece: &str) -> &str {
        let before = self.text.len();
        if self.is_complete {
            return "";
        }
        if !self.text.is_empty() {
            self.scan(piece);
        } else if self.head.len() <= HEAD_BYTES_MAX {
            self.head.push_str(piece);
            if let Some(start) = start_of(&self.head) {
                let head = std::mem::take(&mut self.head);
                self.scan(&head[start..]);
            }
        }
        &self.text[before..]
    }

    /// Returns the JSON so far, unchanged.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses the JSON so far with all open strings and brackets closed. Keys without a value, and
    /// numbers and literals that may be incomplete, are omitted. `None` before it begins, and if it
    /// is invalid.
    pub fn value(&self) -> Option<Value> {
        if self.text.is_empty() {
            return None;
        }
        let mut closed = String::with_capacity(self.safe + self.open.len() + 1);
        closed.push_str(self.text.get(..self.safe)?);
        if matches!(self.token, Token::Text { is_key: false, .. }) {
            closed.push('"');
        }
        closed.extend(self.open.iter().rev().map(|byte| char::from(*byte)));
        foreign::from_str(&closed).ok()
    }

    fn scan(&mut self, piece: &str) {
        let start = self.text.len();
        for (index, byte) in piece.bytes().enumerate() {
            self.step(byte, start + index);
            if self.is_complete {
                self.text.push_str(&piece[..=index]);
                return;
            }
        }
        self.text.push_str(piece);
    }

    fn step(&mut self, byte: u8, at: usize) {
        match self.token {
            Token::Text { is_key, escape, is_half } => {
                self.in_text(byte, at, is_key, escape, is_half);
            }
            Token::Scalar if !ends_scalar(byte) => {}
            Token::Scalar => {
                self.token = Token::None;
                self.safe = at;
                self.between(byte, at);
            }
            Token::None => self.between(byte, at),
        }
    }

    fn between(&mut self, byte: u8, at: usize) {
        match byte {
            b'{' | b'[' => {
                self.open.push(if byte == b'{' { b'}' } else { b']' });
                self.expects_key = byte == b'{';
                self.safe = at + 1;
            }
            b'}' | b']' => {
                self.open.pop();
                self.is_complete = self.open.is_empty();
                self.safe = at + 1;
            }
            b',' => self.expects_key = self.open.last() == Some(&b'}'),
            b':' => self.expects_key = false,
            b'"' => {
                let is_key = self.expects_key;
                self.token = Token::Text { is_key, escape: Escape::None, is_half: false };
                self.keep_text(is_key, at);
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => self.token = Token::Scalar,
        }
    }

    fn in_text(&mut self, byte: u8, at: usize, is_key: bool, escape: Escape, is_half: bool) {
        let (escape, is_half) = match (escape, byte) {
            (Escape::None, b'"') => {
                self.token = Token::None;
                self.keep_text(is_key, at);
                return;
            }
            (Escape::None, b'\\') => (Escape::Backslash, is_half),
            (Escape::Backslash, b'u') => (Escape::Hex { digits: 0, code: 0 }, is_half),
            (Escape::None | Escape::Backslash, _) => (Escape::None, is_half),
            (Escape::Hex { digits, code }, _) => {
                let code = code * 16 + char::from(byte).to_digit(16).unwrap_or_default();
                match digits {
                    0..3 => (Escape::Hex { digits: digits + 1, code }, is_half),
                    _ => (Escape::None, !is_half && (0xD800..0xDC00).contains(&code)),
                }
            }
        };
        if escape == Escape::None && !is_half {
            self.keep_text(is_key, at);
        }
        self.token = Token::Text { is_key, escape, is_half };
    }

    /// Extends the valid prefix, except by a key, which needs its value.
    fn keep_text(&mut self, is_key: bool, at: usize) {
        if !is_key {
            self.safe = at + 1;
        }
    }
}

fn ends_scalar(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b':' | b']' | b'}' | b'[' | b'{' | b'"')
}

/// Finds the start of the JSON: at once, or after the first fence and its language.
fn start_of(head: &str) -> Option<usize> {
    let rest = head.trim_start();
    let rest = if rest.starts_with(['{', '[']) {
        rest
    } else {
        let (_, fenced) = head.split_once(FENCE)?;
        fenced.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).trim_start()
    };
    rest.starts_with(['{', '[']).then(|| head.len() - rest.len())
}

#[cfg(test)]
mod tests;
