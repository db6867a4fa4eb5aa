//! Secrets of the environment, opened when a call is made.

use std::env::VarError;
use std::fmt;
use std::sync::Arc;

use greenroom_actors::domain::call::SealedText;

/// Secrets shorter than this are not looked for in answers: they would be found in everything.
const SOUGHT_BYTES_MIN: usize = 6;

/// What stands in place of a secret.
const STRUCK: &str = "[secret]";

/// Where secrets are found by name. Cheap to clone; prints none.
#[derive(Clone)]
pub struct Keyring(Arc<Lookup>);

type Lookup = dyn Fn(&str) -> Result<String, VarError> + Send + Sync;

impl Keyring {
    /// The environment of the process.
    pub fn of_process() -> Self {
        Self::new(|name| std::env::var(name))
    }

    /// Secrets from elsewhere.
    pub fn new(secret: impl Fn(&str) -> Result<String, VarError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(secret))
    }

    /// A secret, or why there is none. Says the name and never the value.
    pub fn secret(&self, name: &str) -> Result<String, String> {
        match (self.0)(name) {
            Ok(value) if value.is_empty() => {
                Err(format!("the environment variable {name} is empty"))
            }
            Ok(value) => Ok(value),
            Err(VarError::NotPresent) => Err(format!("the environment variable {name} is not set")),
            Err(VarError::NotUnicode(_)) => {
                Err(format!("the environment variable {name} is not UTF-8"))
            }
        }
    }

    /// The texts with their secrets, and what must not come back.
    pub(super) fn open<'a>(
        &self,
        texts: impl IntoIterator<Item = (&'a Arc<str>, &'a SealedText)>,
    ) -> Result<Opened, String> {
        let mut opened = Opened::default();
        for (name, text) in texts {
            for secret in text.secrets() {
                opened.secrets.0.push(self.secret(secret)?);
            }
            let value = text.opened(|name| self.secret(name))?;
            opened.texts.push((Arc::clone(name), value));
        }
        Ok(opened)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")
    }
}

/// Texts with their secrets in them. Not to be shown.
#[derive(Default)]
pub(super) struct Opened {
    pub(super) texts: Vec<(Arc<str>, String)>,
    pub(super) secrets: Known,
}

/// Secrets that the other side knows, and may say again.
#[derive(Default)]
pub(super) struct Known(Vec<String>);

impl Known {
    /// A text from outside without the secrets, also where they stand in JSON: however the other
    /// side escapes them there, whoever parses it has them.
    pub(super) fn struck_from(&self, text: String) -> String {
        let mut sought: Vec<&str> = self.0.iter().map(String::as_str).collect();
        sought.retain(|secret| secret.len() >= SOUGHT_BYTES_MIN);
        // one may be the beginning of another, and would leave the rest of it
        sought.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        sought.into_iter().fold(text, |mut text, secret| {
            if text.contains(secret) {
                text = text.replace(secret, STRUCK);
            }
            if text.contains('\\') { without_escaped(&text, secret) } else { text }
        })
    }
}

/// The text without a secret, with or without escapes of JSON in it.
fn without_escaped(text: &str, secret: &str) -> String {
    let mut struck = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((_, len)) = first_char(rest) {
        let (kept, len) = match said_len(rest, secret) {
            Some(len) => (STRUCK, len),
            None => (&rest[..len], len),
        };
        struck.push_str(kept);
        rest = &rest[len..];
    }
    struck
}

/// How many bytes at the beginning of the text say the secret.
fn said_len(text: &str, secret: &str) -> Option<usize> {
    let mut rest = text;
    for sought in secret.chars() {
        let (said, len) = first_char(rest)?;
        if said != sought {
            return None;
        }
        rest = &rest[len..];
    }
    Some(text.len() - rest.len())
}

/// The first character as it is when parsed, and its bytes as it is written.
fn first_char(text: &str) -> Option<(char, usize)> {
    let first = text.chars().next()?;
    let escaped = text.strip_prefix('\\').and_then(escaped_char);
    Some(match escaped {
        Some((said, len)) => (said, len + 1),
        None => (first, first.len_utf8()),
    })
}

/// What stands for a character behind a backslash in JSON, and its bytes.
fn escaped_char(text: &str) -> Option<(char, usize)> {
    let simple = |said| Some((said, 1));
    match text.chars().next()? {
        said @ ('"' | '\\' | '/') => simple(said),
        'b' => simple('\u{8}'),
        'f' => simple('\u{c}'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'u' => {
            let first = utf16_unit(&text[1..])?;
            if let Some(said) = char::from_u32(first.into()) {
                return Some((said, 5));
            }
            let second = utf16_unit(text.get(5..)?.strip_prefix("\\u")?)?;
            let said = char::decode_utf16([first, second]).next()?.ok()?;
            Some((said, 11))
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
    use greenroom_actors::domain::call::SealedPart;

    use super::*;

    fn keyring() -> Keyring {
        Keyring::new(|name| match name {
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
    fn a_secret_that_is_not_there_is_told_by_its_name() {
        for (name, expected) in [
            ("KEY", Ok("canary-1")),
            ("EMPTY", Err("the environment variable EMPTY is empty")),
            ("NONE", Err("the environment variable NONE is not set")),
        ] {
            let found = keyring().secret(name);
            assert_eq!(found.as_deref().map_err(String::as_str), expected);
        }
        assert_eq!(format!("{:?}", keyring()), "Keyring");
    }

    #[test]
    fn secrets_are_struck_out() {
        for (name, said, expected) in [
            ("KEY", "a canary-1 b canary-1", "a [secret] b [secret]"),
            ("QUOTED", r#"{"a":"cana\"ry"}"#, r#"{"a":"[secret]"}"#),
            ("SHORT", "abc", "abc"),
            ("SLASHED", r#"["s3cr3t\/V+q"]"#, r#"["[secret]"]"#),
            ("KEY", r#"{"\u0063anary-\u0031":"\ud83d"}"#, r#"{"[secret]":"\ud83d"}"#),
            ("PICTURE", r#""cana\t\uD83D\ude00ry\n""#, r#""[secret]\n""#),
            ("KEY", r#""\\canary-1 \\u0063anary-1""#, r#""\\[secret] \\u0063anary-1""#),
            ("KEY", r"\u006 \u \ud83d\u0 \é canary-2 \", r"\u006 \u \ud83d\u0 \é canary-2 \"),
        ] {
            let text = SealedText(vec![SealedPart::Secret(Arc::from(name))]);
            let header = Arc::from("x");
            let opened = keyring().open([(&header, &text)]).ok().unwrap();
            assert_eq!(opened.secrets.struck_from(said.to_owned()), expected);
        }
    }

    #[test]
    fn a_secret_that_begins_another_leaves_nothing_of_it() {
        let known = Known(vec!["canary-1".to_owned(), "canary-1/long".to_owned()]);
        assert_eq!(known.struck_from(r"canary-1\/long canary-1".to_owned()), "[secret] [secret]");
        assert_eq!(known.struck_from("canary-1/long".to_owned()), "[secret]");
    }
}
