//! References to secrets: `secret:NAME` and `${NAME}`.

use greenroom_actors::domain::call::{is_variable, secret_in};

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
