//! Environment variables in the values that differ between servers with one configuration file:
//! `${NAME}`.

mod filling;

use greenroom_actors::domain::call::is_variable;

use super::entry::Entry;
use super::secret::value_of;

const OPENING: &str = "${";

/// Reads a text that is not empty and in which variables may be named.
pub(crate) fn text_with_variables(entry: &Entry<'_>) -> Option<String> {
    let written = entry.text_with_secrets("a string")?;
    let shown = filled(&written, |_| Some("1".to_owned()));
    match shown {
        Ok(text) if text.contains(OPENING) => {
            entry.refuse("has `${` without the name of a variable, as in `${POD_IP}`")
        }
        Ok(text) if text.contains("secret:") => {
            entry.refuse("is no secret; write `${NAME}` for an environment variable")
        }
        Ok(text) if text.is_empty() => entry.refuse("must not be empty"),
        Ok(_) => Some(written),
        Err(problem) => entry.refuse(problem),
    }
}

/// Replaces each `${NAME}` by the value of that variable; the error is about the first one that has
/// none.
pub(crate) fn filled(
    text: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, from)) = rest.split_once(OPENING) {
        let reference = from.split_once('}').filter(|(name, _)| is_variable(name));
        let Some((name, after)) = reference else { break };
        let value = value_of(name, &environment)?;
        filled.push_str(before);
        filled.push_str(value.trim());
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_and_nothing_else() {
        let environment = |name: &str| match name {
            "IP" => Some("10.0.0.5".to_owned()),
            "PORT" => Some(" 3142\n".to_owned()),
            "NONE" => Some("  ".to_owned()),
            _ => None,
        };
        for (text, expected) in [
            ("node-a", Ok("node-a")),
            ("${IP}", Ok("10.0.0.5")),
            ("${IP}:${PORT}", Ok("10.0.0.5:3142")),
            ("[${IP}]:1", Ok("[10.0.0.5]:1")),
            ("$IP {IP}", Ok("$IP {IP}")),
            ("${UNSET}:1", Err("the environment variable UNSET is not set")),
            ("${NONE}:1", Err("the environment variable NONE is empty")),
        ] {
            let found = filled(text, environment);
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{text}");
        }
    }
}
