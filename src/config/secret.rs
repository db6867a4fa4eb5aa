//! Secrets: named in the configuration, kept in the environment, never printed.

use std::fmt;

/// A text that neither `Debug` nor `Display` shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself; for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A key or header as the configuration has it: the name of a secret, or the text itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// `secret:NAME` or `${NAME}`: a variable of the environment.
    Environment(String),
    /// Anything else stands for itself, and is hidden all the same.
    Literal(Secret),
}

impl SecretRef {
    /// Reads a key or header.
    pub fn parse(text: &str) -> Self {
        let braced = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
        match text.strip_prefix("secret:").or(braced) {
            Some(name) if is_variable(name) => Self::Environment(name.to_owned()),
            _ => Self::Literal(Secret::new(text)),
        }
    }

    /// Looks the secret up. Called when something active needs it: a name that nothing uses may
    /// stay unset.
    pub fn resolve(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Secret, UnsetSecret> {
        match self {
            Self::Environment(name) => {
                environment(name).map(Secret).ok_or_else(|| UnsetSecret(name.clone()))
            }
            Self::Literal(secret) => Ok(secret.clone()),
        }
    }
}

/// The variable of a secret is not set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not set in the environment")]
pub struct UnsetSecret(pub String);

/// The first reference to a secret in a text where none is allowed.
pub(crate) fn names_secret(text: &str) -> Option<String> {
    let braced = text.match_indices("${").find_map(|(at, opening)| {
        let rest = &text[at + opening.len()..];
        let name = &rest[..rest.find('}')?];
        is_variable(name).then(|| format!("${{{name}}}"))
    });
    let prefixed = || {
        text.match_indices("secret:").find_map(|(at, prefix)| {
            let is_word = text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            let rest = &text[at + prefix.len()..];
            let end = rest.find(|c: char| !is_variable_char(c)).unwrap_or(rest.len());
            let name = &rest[..end];
            (!is_word && is_variable(name)).then(|| format!("{prefix}{name}"))
        })
    };
    braced.or_else(prefixed)
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(is_variable_char)
}

fn is_variable_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new("hunter2");
        assert!(
            !format!("{secret} {secret:?} {:#?}", SecretRef::Literal(secret.clone()))
                .contains("hunter2")
        );
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_secret_is_looked_up_when_it_is_needed() {
        let environment = |name: &str| (name == "TOKEN").then(|| "t0".to_owned());
        for written in ["secret:TOKEN", "${TOKEN}"] {
            let secret = SecretRef::parse(written).resolve(&environment).unwrap();
            assert_eq!(secret.expose(), "t0", "for {written}");
        }
        let unset = SecretRef::parse("secret:OTHER").resolve(&environment).unwrap_err();
        assert_eq!(unset.to_string(), "OTHER is not set in the environment");
        let literal = SecretRef::parse("secret: no").resolve(&environment).unwrap();
        assert_eq!(literal.expose(), "secret: no");
    }

    #[test]
    fn references_are_told_from_prose() {
        for (text, expected) in [
            ("Bearer ${TOKEN}!", Some("${TOKEN}")),
            ("secret:KEY", Some("secret:KEY")),
            ("a secret: keep it", None),
            ("topsecret:no", None),
            ("costs ${{ n }}", None),
            ("^a{2}$", None),
        ] {
            assert_eq!(names_secret(text).as_deref(), expected, "for {text:?}");
        }
    }
}
