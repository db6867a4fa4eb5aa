//! Secrets by name, `secret:NAME` and `${NAME}`: told from prose.

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
}
