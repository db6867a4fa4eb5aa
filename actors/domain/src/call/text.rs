//! Texts with values and secrets in them.

use std::ops::Range;
use std::sync::Arc;

use crate::expression::{ExpressionError, Scope, Template};

/// A text with values and secrets in it, compiled. Secrets are named and not there.
#[derive(Debug, Clone)]
pub struct UnresolvedTemplate(pub Vec<UnresolvedPart<Template>>);

/// A text whose secrets are named and not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedText(pub Vec<UnresolvedPart<String>>);

/// A part of such a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnresolvedPart<T> {
    Text(T),
    /// The variable of the environment that holds the secret.
    Secret(Arc<str>),
}

impl UnresolvedTemplate {
    /// Compiles what stands around the secrets.
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

    /// The names that it reads, functions included, in no order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let templates = self.0.iter().filter_map(|part| match part {
            UnresolvedPart::Text(template) => Some(template),
            UnresolvedPart::Secret(_) => None,
        });
        templates.flat_map(Template::names)
    }

    /// The variables of its secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(UnresolvedPart::secret)
    }

    /// The text for what is in scope.
    pub fn render(&self, scope: &Scope) -> Result<UnresolvedText, ExpressionError> {
        let parts = self.0.iter().map(|part| match part {
            UnresolvedPart::Text(template) => template.render(scope).map(UnresolvedPart::Text),
            UnresolvedPart::Secret(name) => Ok(UnresolvedPart::Secret(Arc::clone(name))),
        });
        parts.collect::<Result<_, _>>().map(UnresolvedText)
    }
}

impl UnresolvedText {
    /// The text with its secrets, or the error of the first that cannot be had.
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

    /// The variables of its secrets.
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

/// A text taken apart at its references to secrets, `secret:NAME` and `${NAME}`: what stands
/// before each, its name, and what is left behind the last.
pub fn secrets_of(text: &str) -> (Vec<(&str, &str)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((at, name)) = secret_in(rest) {
        found.push((&rest[..at.start], name));
        rest = &rest[at.end..];
    }
    (found, rest)
}

/// Where the first reference to a secret is, and the name in it.
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

/// Whether a text can name a variable of the environment.
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
    fn a_text_is_taken_apart_at_its_secrets() {
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
        // what data says is no reference
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
