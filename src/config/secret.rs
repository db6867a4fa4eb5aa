//! Secrets in environment variables: references to them, `secret:NAME` and `${NAME}`, and their values.

use std::fmt::Display;

use greenroom_actors::domain::call::{is_variable, secret_in};
use toml::de::DeValue;

use super::entry::Entry;

/// Returns the first reference to a secret in a text.
pub(crate) fn names_secret(text: &str) -> Option<String> {
    secret_in(text).map(|(at, _)| text[at].to_owned())
}

/// Returns the variable if the whole text is a reference.
pub(crate) fn secret_name(text: &str) -> Option<&str> {
    let braced = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = text.strip_prefix("secret:").or(braced)?;
    is_variable(name).then_some(name)
}

/// Reads the name of a variable. Refusals do not repeat the text, which may be the secret itself.
pub(crate) fn read_variable(entry: &Entry<'_>, example: &str) -> Option<String> {
    let written = match entry.value {
        DeValue::String(text) => secret_name(text),
        _ => None,
    };
    let refused =
        || entry.refuse(format!("must name an environment variable, e.g. \"secret:{example}\""));
    written.map(str::to_owned).or_else(refused)
}

/// Names a variable and its problem, such as `is not set`.
pub(crate) fn variable_problem(name: &str, problem: impl Display) -> String {
    format!("the environment variable {name} {problem}")
}

/// Returns the value of a variable, or the problem of one that has none. Spaces alone are no value.
pub(crate) fn value_of(
    name: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    match environment(name) {
        Some(value) if !value.trim().is_empty() => Ok(value),
        Some(_) => Err(variable_problem(name, "is empty")),
        None => Err(variable_problem(name, "is not set")),
    }
}

/// Returns the problem of a variable that has no value, or one for which `check` has a problem.
pub(crate) fn problem_of<'p>(
    name: &str,
    environment: impl Fn(&str) -> Option<String>,
    check: impl FnOnce(&str) -> Option<&'p str>,
) -> Option<String> {
    match value_of(name, environment) {
        Ok(value) => check(&value).map(|problem| variable_problem(name, problem)),
        Err(problem) => Some(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_texts_are_references() {
        for (text, expected) in [
            ("secret:KEY", Some("KEY")),
            ("${KEY_2}", Some("KEY_2")),
            ("secret:", None),
            ("secret:a b", None),
            ("Bearer ${KEY}", None),
            ("sk-1", None),
        ] {
            assert_eq!(secret_name(text), expected, "for {text:?}");
        }
    }

    #[test]
    fn a_variable_has_a_value_or_a_problem() {
        let environment = |name: &str| match name {
            "SET" => Some("key".to_owned()),
            "SPACES" => Some(" \n".to_owned()),
            _ => None,
        };
        for (name, expected) in [
            ("SET", Ok("key".to_owned())),
            ("SPACES", Err("the environment variable SPACES is empty".to_owned())),
            ("UNSET", Err("the environment variable UNSET is not set".to_owned())),
        ] {
            assert_eq!(value_of(name, environment), expected);
            assert_eq!(problem_of(name, environment, |_| None), expected.err());
        }
        let refused =
            problem_of("SET", environment, |value| (value == "key").then_some("is short"));
        assert_eq!(refused.unwrap(), "the environment variable SET is short");
    }

    #[test]
    fn references_differ_from_prose() {
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
