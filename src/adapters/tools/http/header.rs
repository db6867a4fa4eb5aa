//! Values of headers: templates, and secrets that nobody is shown.

use std::fmt;
use std::sync::Arc;

use greenroom_actors::domain::expression::{Scope, Template};
use reqwest::header::HeaderValue;

/// Secrets shorter than this are not looked for in answers: they would be found in everything.
const SOUGHT_BYTES_MIN: usize = 6;

/// A secret of the environment. Prints as `[secret]`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Longest secret, in bytes.
    pub const BYTES_MAX: usize = 8 << 10;

    /// Takes what can be sent in a header; says what is wrong with anything else.
    pub fn new(value: &str) -> Result<Self, &'static str> {
        if value.is_empty() {
            return Err("is empty");
        }
        if value.len() > Self::BYTES_MAX {
            return Err("is longer than 8192 bytes");
        }
        if HeaderValue::from_str(value).is_err() {
            return Err("holds a line break or another character that no header can hold");
        }
        Ok(Self(Arc::from(value)))
    }

    /// A text without the secret, also where it stands in JSON.
    fn struck_from(&self, text: String) -> String {
        if self.0.len() < SOUGHT_BYTES_MIN {
            return text;
        }
        let json = serde_json::Value::from(&*self.0).to_string();
        let escaped = json.trim_matches('"');
        [&*self.0, escaped].into_iter().fold(text, |text, form| match text.contains(form) {
            true => text.replace(form, "[secret]"),
            false => text,
        })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// A piece of a header's value.
#[derive(Debug, Clone)]
pub enum HeaderPiece {
    Template(Template),
    Secret(Secret),
}

/// A header's value, piece by piece.
#[derive(Debug, Clone)]
pub struct HeaderTemplate(pub Vec<HeaderPiece>);

impl HeaderTemplate {
    /// The secrets in it.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            HeaderPiece::Template(_) => None,
            HeaderPiece::Secret(secret) => Some(&*secret.0),
        })
    }

    /// The value for what is in scope. Errors do not repeat it.
    pub(super) fn render(&self, scope: &Scope) -> Result<HeaderValue, String> {
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                HeaderPiece::Template(template) => {
                    text.push_str(&template.render(scope).map_err(|error| error.to_string())?);
                }
                HeaderPiece::Secret(Secret(value)) => text.push_str(value),
            }
        }
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| "holds a character that no header can hold".to_owned())?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Strikes its secrets from a text that came from outside.
    pub(super) fn struck_from(&self, text: String) -> String {
        self.0.iter().fold(text, |text, piece| match piece {
            HeaderPiece::Template(_) => text,
            HeaderPiece::Secret(secret) => secret.struck_from(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_put_together_and_bounded() {
        let secret = Secret::new("canary-1").unwrap();
        let template = Template::compile("Bearer {{ args.a }} ").unwrap();
        let header =
            HeaderTemplate(vec![HeaderPiece::Template(template), HeaderPiece::Secret(secret)]);
        for (value, expected) in [
            ("x", Ok("Bearer x canary-1")),
            ("x\r\nhost: y", Err("holds a character that no header can hold")),
            ("x\u{0}", Err("holds a character that no header can hold")),
        ] {
            let scope = Scope::new().with("args", Arc::new(json!({ "a": value })));
            let made = header.render(&scope);
            let made = made.as_ref().map(|value| value.to_str().unwrap());
            assert_eq!(made.map_err(String::as_str), expected);
        }
        assert!(!format!("{header:?}").contains("canary"));
    }

    #[test]
    fn secrets_are_struck_out() {
        let struck = |secret: &str, text: &str| {
            let secret = HeaderPiece::Secret(Secret::new(secret).unwrap());
            HeaderTemplate(vec![secret]).struck_from(text.to_owned())
        };
        assert_eq!(struck("canary-1", "a canary-1 b canary-1"), "a [secret] b [secret]");
        assert_eq!(struck("cana\"ry", r#"{"a":"cana\"ry"}"#), r#"{"a":"[secret]"}"#);
        assert_eq!(struck("abc", "abc"), "abc");
    }

    #[test]
    fn what_no_header_can_hold_is_no_secret() {
        let long = "x".repeat(Secret::BYTES_MAX + 1);
        for value in ["", "a\nb", long.as_str()] {
            assert!(Secret::new(value).is_err());
        }
    }
}
