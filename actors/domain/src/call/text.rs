//! Texts with values and secrets.

use std::ops::Range;
use std::sync::Arc;

use crate::expression::{ExpressionError, Scope, Template};

/// A compiled text with values and secrets. It holds the names of secrets, not their values.
#[derive(Debug, Clone)]
pub struct UnresolvedTemplate(pub Vec<UnresolvedPart<Template>>);

/// A rendered text. It holds the names of its secrets, not their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedText(pub Vec<UnresolvedPart<String>>);

/// A part of a text with secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnresolvedPart<T> {
    Text(T),
    /// The environment variable that holds the secret.
    Secret(Arc<str>),
}

impl UnresolvedTemplate {
    /// Compiles the text around the secrets.
    pub fn compile(source: &str) -> Result<Self, ExpressionError> {
        let (secrets, rest) = secrets_of(source);
        let mut parts = Vec::new();
        for (before, name) in secrets {
            if !before.is_empty() {
                parts.push(UnresolvedPart::Text(Template::compile(before)?));
            }
            parts.push(UnresolvedPart::Secret(Arc::from(name)));
        }
        if !rest.is_empty() {
            parts.push(UnresolvedPart::Text(Template::compile(rest)?));
        }
        Ok(Self(parts))
    }

    /// Returns the names that it reads, functions included, in no particular order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let templates = self.0.iter().filter_map(|part| match part {
            UnresolvedPart::Text(template) => Some(template),
            UnresolvedPart::Secret(_) => None,
        });
        templates.flat_map(Template::names)
    }

    /// Returns the variables of its secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(UnresolvedPart::secret)
    }

    /// Renders the text with the values in scope.
    pub fn render(&self, scope: &Scope) -> Result<UnresolvedText, ExpressionError> {
        let parts = self.0.iter().map(|part| match part {
            UnresolvedPart::Text(template) => template.render(scope).map(UnresolvedPart::Text),
            UnresolvedPart::Secret(name) => Ok(UnresolvedPart::Secret(Arc::clone(name))),
        });
        parts.collect::<Result<_, _>>().map(UnresolvedText)
    }
}

impl UnresolvedText {
    /// Returns the text with its secrets filled in, or the error of the first unavailable one.
    pub fn resolved<'a, E>(
        &'a self,
        secret: impl Fn(&'a str) -> Result<String, E>,
    ) -> Result<String, E> {
        self.0.iter().try_fold(String::new(), |text, part| {
            Ok(text
                + &match part {
                    UnresolvedPart::Text(words) => words.clone(),
                    UnresolvedPart::Secret(name) => secret(name)?,
                })
        })
    }

    /// Returns the variables of its secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(UnresolvedPart::secret)
    }
}

impl<T> UnresolvedPart<T> {
    fn secret(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::Secret(name) => Some(name),
        }
    }
}

/// Splits a text at its references to secrets, `secret:NAME` and `${NAME}`. Returns the text
/// before each reference with its name, and the text after the last.
pub fn secrets_of(text: &str) -> (Vec<(&str, &str)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((at, name)) = secret_in(rest) {
        found.push((&rest[..at.start], name));
        rest = &rest[at.end..];
    }
    (found, rest)
}

/// Finds the first reference to a secret: its range and its name.
pub fn secret_in(text: &str) -> Option<(Range<usize>, &str)> {
    let braced = text.match_indices("${").find_map(|(at, opening)| {
        let from = at + opening.len();
        let name = &text[from..from + text[from..].find('}')?];
        is_variable(name).then_some((at..from + name.len() + 1, name))
    });
    let prefixed = text.match_indices("secret:").find_map(|(at, prefix)| {
        let is_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let from = at + prefix.len();
        let end = text[from..].find(|c: char| !is_variable_char(c));
        let name = &text[from..end.map_or(text.len(), |end| from + end)];
        (!is_word && is_variable(name)).then_some((at..from + name.len(), name))
    });
    braced.into_iter().chain(prefixed).min_by_key(|(at, _)| at.start)
}

/// Returns true if the text is a valid name of an environment variable.
pub fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(is_variable_char)
}

fn is_variable_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_split_at_its_secrets() {
        for (text, found, rest) in [
            ("plain", vec![], "plain"),
            ("secret:KEY", vec![("", "KEY")], ""),
            ("Bearer ${TOKEN}!", vec![("Bearer ", "TOKEN")], "!"),
            ("secret:A:${B}", vec![("", "A"), (":", "B")], ""),
            ("topsecret:A secret:A", vec![("topsecret:A ", "A")], ""),
        ] {
            assert_eq!(secrets_of(text), (found, rest), "for {text:?}");
        }
    }

    #[test]
    fn secrets_are_named_until_they_are_resolved() {
        let template = UnresolvedTemplate::compile("{{ data }} secret:KEY!").unwrap();
        assert_eq!(template.secrets().collect::<Vec<_>>(), ["KEY"]);
        assert_eq!(template.names().collect::<Vec<_>>(), ["data"]);
        // text that comes from data is not a reference
        let scope = Scope::new().with("data", Arc::new(json!("secret:OTHER")));
        let text = template.render(&scope).unwrap();
        assert!(!format!("{text:?}").contains("canary"));
        let resolved = text.resolved(|name| match name {
            "KEY" => Ok("canary".to_owned()),
            other => Err(other),
        });
        assert_eq!(resolved, Ok("secret:OTHER canary!".to_owned()));
        assert_eq!(text.resolved(Err::<String, _>), Err("KEY"));
        assert!(UnresolvedTemplate::compile("{{ secret:KEY }}").is_err());
        assert!(template.render(&Scope::new()).is_err(), "undefined");
    }
}
