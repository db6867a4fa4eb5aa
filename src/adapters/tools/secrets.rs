//! Secrets of the environment, read when a call is made.

use std::env::VarError;
use std::fmt;
use std::sync::Arc;

use greenroom_actors::domain::call::UnresolvedText;

/// Secrets shorter than this are not searched in answers: they would be found in everything.
const SEARCHED_BYTES_MIN: usize = 6;

/// Replacement for a secret.
const REMOVED: &str = "[secret]";

/// Lookup of secrets by name. Cheap to clone; `Debug` shows none.
#[derive(Clone)]
pub struct SecretLookup(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Result<String, VarError> + Send + Sync;

impl SecretLookup {
    /// Reads secrets from the environment of the process.
    pub fn of_process() -> Self {
        Self::new(|name| std::env::var(name))
    }

    /// Reads secrets with a function.
    pub fn new(secret: impl Fn(&str) -> Result<String, VarError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(secret))
    }

    /// Returns a secret, or the reason why there is none, which names only the variable.
    pub fn secret(&self, name: &str) -> Result<String, String> {
        match (self.0)(name) {
            Ok(value) if value.trim().is_empty() => {
                Err(format!("the environment variable {name} is empty"))
            }
            Ok(value) => Ok(value),
            Err(VarError::NotPresent) => Err(format!("the environment variable {name} is not set")),
            Err(VarError::NotUnicode(_)) => {
                Err(format!("the environment variable {name} is not UTF-8"))
            }
        }
    }

    /// Inserts the secrets into texts; returns both.
    pub(in crate::adapters) fn resolve<'a>(
        &self,
        texts: impl IntoIterator<Item = (&'a Arc<str>, &'a UnresolvedText)>,
    ) -> Result<Resolved, String> {
        let mut resolved = Resolved::default();
        for (name, text) in texts {
            for secret in text.secrets() {
                resolved.secrets.0.push(self.secret(secret)?);
            }
            let value = text.resolved(|name| self.secret(name))?;
            resolved.texts.push((Arc::clone(name), value));
        }
        Ok(resolved)
    }
}

impl fmt::Debug for SecretLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretLookup")
    }
}

/// Texts with their secrets inserted. Must not be shown.
#[derive(Default)]
pub(in crate::adapters) struct Resolved {
    pub(in crate::adapters) texts: Vec<(Arc<str>, String)>,
    pub(in crate::adapters) secrets: Known,
}

/// Secrets that were sent, and may come back in an answer.
#[derive(Default)]
pub(in crate::adapters) struct Known(Vec<String>);

impl Known {
    /// Returns true if there are no secrets.
    #[cfg(feature = "mcp")]
    pub(in crate::adapters) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the secrets from an answer, also from JSON strings with any escapes, since parsing
    /// would restore them.
    pub(in crate::adapters) fn removed_from(&self, text: String) -> String {
        let mut searched: Vec<&str> = self.0.iter().map(String::as_str).collect();
        searched.retain(|secret| secret.len() >= SEARCHED_BYTES_MIN);
        // longest first: one may be the beginning of another, whose rest would stay
        searched.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        searched.into_iter().fold(text, |mut text, secret| {
            if text.contains(secret) {
                text = text.replace(secret, REMOVED);
            }
            if text.contains('\\') { without_escaped(&text, secret) } else { text }
        })
    }
}

#[cfg(feature = "mcp")]
impl Known {
    /// Returns these secrets and further ones.
    pub(in crate::adapters) fn and(&self, more: impl IntoIterator<Item = String>) -> Self {
        Self(self.0.iter().cloned().chain(more).collect())
    }

    #[cfg(test)]
    pub(in crate::adapters) fn of<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        Self(secrets.into_iter().map(str::to_owned).collect())
    }

    /// Removes the secrets from the begin of a longer text, also the part of one that was cut at its end.
    pub(in crate::adapters) fn removed_from_begin(&self, text: String) -> String {
        let mut text = self.removed_from(text);
        let len = |secret: &String| (1..secret.len()).rev().find(|len| ends(&text, secret, *len));
        if let Some(len) = self.searched().filter_map(len).max() {
            text.truncate(text.len() - len);
        }
        text
    }

    /// Removes the secrets from the end of a longer text, also the part of one that was cut at its begin.
    pub(in crate::adapters) fn removed_from_end(&self, text: &str) -> String {
        let part = |secret: &String| {
            let rests = (1..secret.len()).filter_map(|at| secret.get(at..));
            rests.into_iter().find(|rest| text.starts_with(rest)).map(str::len)
        };
        let len = self.searched().filter_map(part).max().unwrap_or(0);
        self.removed_from(text[len..].to_owned())
    }

    fn searched(&self) -> impl Iterator<Item = &String> {
        self.0.iter().filter(|secret| secret.len() >= SEARCHED_BYTES_MIN)
    }
}

/// Returns true if a text ends with the first bytes of a secret.
#[cfg(feature = "mcp")]
fn ends(text: &str, secret: &str, len: usize) -> bool {
    secret.get(..len).is_some_and(|part| text.ends_with(part))
}

/// Shows no secret.
impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Known")
    }
}

/// Removes a secret, with or without JSON escapes in it.
fn without_escaped(text: &str, secret: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((_, len)) = first_char(rest) {
        let (kept, len) = match matched_len(rest, secret) {
            Some(len) => (REMOVED, len),
            None => (&rest[..len], len),
        };
        cleaned.push_str(kept);
        rest = &rest[len..];
    }
    cleaned
}

/// Returns the number of bytes at the beginning of the text that spell the secret.
fn matched_len(text: &str, secret: &str) -> Option<usize> {
    let mut rest = text;
    for expected in secret.chars() {
        let (found, len) = first_char(rest)?;
        if found != expected {
            return None;
        }
        rest = &rest[len..];
    }
    Some(text.len() - rest.len())
}

/// Returns the first character after unescaping, and its length in the text.
fn first_char(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    let escaped = text.strip_prefix('\\').and_then(escaped_char);
    Some(match escaped {
        Some((char, len)) => (char, len + 1),
        None => (first, first.len_utf8()),
    })
}

/// Parses a JSON escape after its backslash: the character, and the length in the text.
fn escaped_char(text: &str) -> Option<(char, usize)> {
    let simple = |char| Some((char, 1));
    match text.chars().next()? {
        char @ ('"' | '\\' | '/') => simple(char),
        'b' => simple('\u{8}'),
        'f' => simple('\u{c}'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'u' => {
            let first = utf16_unit(&text[1..])?;
            if let Some(char) = char::from_u32(first.into()) {
                return Some((char, 5));
            }
            let second = utf16_unit(text.get(5..)?.strip_prefix("\\u")?)?;
            let char = char::decode_utf16([first, second]).next()?.ok()?;
            Some((char, 11))
        }
        _ => None,
    }
}

fn utf16_unit(text: &str) -> Option<u16> {
    let digits = text.get(..4).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::call::UnresolvedPart;

    use super::*;

    fn lookup() -> SecretLookup {
        SecretLookup::new(|name| match name {
            "EMPTY" => Ok(String::new()),
            "SHORT" => Ok("abc".to_owned()),
            "QUOTED" => Ok("cana\"ry".to_owned()),
            "KEY" => Ok("canary-1".to_owned()),
            "SLASHED" => Ok("s3cr3t/V+q".to_owned()),
            "PICTURE" => Ok("cana\t\u{1f600}ry".to_owned()),
            _ => Err(VarError::NotPresent),
        })
    }

    #[test]
    fn a_missing_secret_is_named() {
        for (name, expected) in [
            ("KEY", Ok("canary-1")),
            ("EMPTY", Err("the environment variable EMPTY is empty")),
            ("NONE", Err("the environment variable NONE is not set")),
        ] {
            let found = lookup().secret(name);
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
        assert_eq!(format!("{:?}", lookup()), "SecretLookup");
    }

    #[test]
    fn secrets_are_removed() {
        for (name, text, expected) in [
            ("KEY", "a canary-1 b canary-1", "a [secret] b [secret]"),
            ("QUOTED", r#"{"a":"cana\"ry"}"#, r#"{"a":"[secret]"}"#),
            ("SHORT", "abc", "abc"),
            ("SLASHED", r#"["s3cr3t\/V+q"]"#, r#"["[secret]"]"#),
            ("KEY", r#"{"\u0063anary-\u0031":"\ud83d"}"#, r#"{"[secret]":"\ud83d"}"#),
            ("PICTURE", r#""cana\t\uD83D\ude00ry\n""#, r#""[secret]\n""#),
            ("KEY", r#""\\canary-1 \\u0063anary-1""#, r#""\\[secret] \\u0063anary-1""#),
            ("KEY", r"\u006 \u \ud83d\u0 \é canary-2 \", r"\u006 \u \ud83d\u0 \é canary-2 \"),
        ] {
            let unresolved = UnresolvedText(vec![UnresolvedPart::Secret(Arc::from(name))]);
            let header = Arc::from("x");
            let resolved = lookup().resolve([(&header, &unresolved)]).ok().unwrap();
            assert_eq!(resolved.secrets.removed_from(text.to_owned()), expected);
        }
    }

    #[test]
    fn a_secret_that_is_a_prefix_of_another_leaves_no_rest() {
        let known = Known(vec!["canary-1".to_owned(), "canary-1/long".to_owned()]);
        assert_eq!(known.removed_from(r"canary-1\/long canary-1".to_owned()), "[secret] [secret]");
        assert_eq!(known.removed_from("canary-1/long".to_owned()), "[secret]");
    }
}
