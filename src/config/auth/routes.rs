//! Routes that need no token, and routes that need one with a role. Patterns are checked when all
//! routes are known.

use crate::config::entry::Entry;
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::section::Section;

/// A pattern of routes, `METHOD /path`, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePattern {
    /// The pattern itself.
    pub text: String,
    spot: Spot,
}

/// Routes that need a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRule {
    pub route: RoutePattern,
    /// Roles of which a user needs one; if empty, any valid token is accepted.
    pub roles: Vec<String>,
}

impl RoutePattern {
    /// Returns a pattern from Rust code; `given_by` names its origin in messages.
    pub fn new(text: &str, given_by: &str) -> Self {
        Self { text: text.to_owned(), spot: Spot::nowhere(given_by) }
    }

    fn read(entry: &Entry<'_>) -> Option<Self> {
        Some(Self { text: entry.filled_text()?, spot: entry.place.spot() })
    }

    /// Returns a warning about the pattern.
    pub(crate) fn warning(&self, message: String, suggestion: Option<String>) -> ConfigProblem {
        self.spot.warning(message).meant(suggestion)
    }

    /// Returns an error about the pattern.
    pub(crate) fn problem(&self, message: &str, suggestion: Option<String>) -> ConfigProblem {
        self.spot.error(message).meant(suggestion)
    }
}

impl RouteRule {
    pub(super) fn read(section: Section<'_>) -> Option<Self> {
        let route = section.required("route").and_then(|entry| RoutePattern::read(&entry));
        let roles = section.get("roles").and_then(|entry| {
            let items = entry.items()?;
            if items.is_empty() {
                entry.place.refuse("needs a role; omit the key to accept any valid token");
            }
            Some(roles(&items))
        });
        section.close();
        Some(Self { route: route?, roles: roles.unwrap_or_default() })
    }
}

pub(super) fn public(entry: &Entry<'_>) -> Vec<RoutePattern> {
    let items = entry.items().unwrap_or_default();
    items.iter().filter_map(RoutePattern::read).collect()
}

/// Reads the roles of `ownership`.
pub(super) fn owner_roles(section: Section<'_>) -> Vec<String> {
    let items = section.get("roles").and_then(|entry| entry.items());
    let roles = roles(&items.unwrap_or_default());
    section.close();
    roles
}

/// Reads an array of roles.
pub(in crate::config) fn roles_of(entry: &Entry<'_>) -> Option<Vec<String>> {
    Some(roles(&entry.items()?))
}

fn roles(items: &[Entry<'_>]) -> Vec<String> {
    let role = |item: &Entry<'_>| {
        let role = item.filled_text()?;
        // a token may list roles in one text, separated by spaces
        if role.contains(char::is_whitespace) {
            return item.refuse("must not contain spaces");
        }
        Some(role)
    };
    items.iter().filter_map(role).collect()
}
