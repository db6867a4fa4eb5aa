//! Secrets by name, `secret:NAME` and `${NAME}`: told from prose.

use std::ops::Range;

/// The first reference to a secret in a text where none is allowed.
pub(crate) fn names_secret(text: &str) -> Option<String> {
    reference_in(text).map(|(at, _)| text[at].to_owned())
}

/// A text taken apart at its references to secrets: what stands before each, its name, and what
/// is left behind the last.
pub(crate) fn secrets_of(text: &str) -> (Vec<(&str, &str)>, &str) {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((at, name)) = reference_in(rest) {
        found.push((&rest[..at.start], name));
        rest = &rest[at.end..];
    }
    (found, rest)
}

/// Where the first reference is, and the name in it.
fn reference_in(text: &str) -> Option<(Range<usize>, &str)> {
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

/// The variable that a whole text refers to.
pub(crate) fn secret_name(text: &str) -> Option<&str> {
    let braced = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let name = text.strip_prefix("secret:").or(braced)?;
    is_variable(name).then_some(name)
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
    fn a_whole_text_is_a_reference_or_none() {
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
}
