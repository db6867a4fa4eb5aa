//! Names of databases, roles and schemas, as statements and addresses have them.

use std::mem;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The entry of a search_path that stands for the schema of the role's name.
const OF_ROLE: &str = "$user";

/// Characters that a parameter of an address has as codes.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'_').remove(b'-').remove(b'.').remove(b',');

/// Returns a name as statements have it: some names are words of SQL, others have capitals.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the parameter of an address that sets the search_path.
pub(super) fn search_path_of(schemas: &[&str]) -> String {
    let schemas: Vec<_> = schemas.iter().map(|schema| in_options(schema)).collect();
    let path = schemas.join(",");
    format!("options=-c%20search_path%3D{}", utf8_percent_encode(&path, ENCODED))
}

/// Returns the name of a schema within the options of a session, which end at a space.
fn in_options(schema: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if schema.chars().all(is_plain) {
        return schema.to_owned();
    }
    quoted(schema).replace('\\', "\\\\").replace(' ', "\\ ")
}

/// Returns the schema that a search_path names for tables, unless it is the one in use.
///
/// PostgreSQL skips schemas that do not exist or may not be used, and takes the next one. Only that
/// of the role's name is meant to be skipped: it is in the default.
pub(super) fn skipped(search_path: &str, user: &str, in_use: Option<&str>) -> Option<String> {
    let entries = entries(search_path);
    let wanted = entries.iter().find(|entry| *entry != OF_ROLE);
    let of_role = entries.iter().any(|entry| entry == OF_ROLE).then_some(user);
    let is_first = entries.first().is_some_and(|entry| entry == OF_ROLE);
    if in_use.is_some() && is_first && in_use == of_role {
        return None;
    }
    let wanted = wanted.map(String::as_str).or(of_role).unwrap_or_default();
    (in_use != Some(wanted)).then(|| wanted.to_owned())
}

/// Returns the names in a search_path.
fn entries(search_path: &str) -> Vec<String> {
    let (mut entries, mut entry, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut chars = search_path.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.next_if_eq(&'"').is_some() => entry.push(c),
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => entry.push(c),
            ',' => entries.push(mem::take(&mut entry)),
            _ if c.is_whitespace() => {}
            _ => entry.push(c.to_ascii_lowercase()),
        }
    }
    entries.push(entry);
    entries.retain(|entry| !entry.is_empty());
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_the_search_path_names_first_is_not_skipped() {
        for (search_path, in_use, expected) in [
            ("\"$user\", public", Some("public"), None),
            ("\"$user\", public", Some("ann"), None),
            ("$user,public", Some("public"), None),
            ("\"$user\", public", None, Some("public")),
            ("\"$user\"", None, Some("ann")),
            ("mine,public", Some("mine"), None),
            ("mine,public", Some("public"), Some("mine")),
            ("mine, \"$user\"", Some("ann"), Some("mine")),
            ("\"$user\", mine, public", Some("public"), Some("mine")),
            ("Mine,public", Some("mine"), None),
            ("\"Mine\",public", Some("public"), Some("Mine")),
            ("\"a,\"\"b\"\" c\"", Some("a,\"b\" c"), None),
            ("\"\"", None, Some("")),
            ("", None, Some("")),
        ] {
            let skipped = skipped(search_path, "ann", in_use);
            assert_eq!(skipped.as_deref(), expected, "{search_path}, {in_use:?}");
        }
    }

    #[test]
    fn advised_parameters_are_those_of_addresses() {
        for (schemas, expected) in [
            (["mine", "tools"], "-c search_path=mine,tools"),
            (["My \"own\"", "a%b\\"], r#"-c search_path="My\ ""own""","a%b\\""#),
        ] {
            let url = format!("postgres://ann@db/shop?{}", search_path_of(&schemas));
            let address: crate::Address = url.parse().unwrap();
            assert_eq!(address.options.as_deref(), Some(expected), "{url}");
        }
    }
}
