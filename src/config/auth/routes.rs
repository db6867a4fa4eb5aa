//! Routes that need no token, and routes that need one with a role. Whether a pattern is one, and
//! of any route, shows when all routes are known.

use crate::config::entry::Entry;
use crate::config::problem::{ConfigProblem, Spot};
use crate::config::section::Section;

/// A pattern of routes, `METHOD /path`, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutePattern {
    /// The pattern itself.
    pub text: String,
    spot: Spot,
}

/// Routes that need a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteRule {
    /// Which routes.
    pub route: RoutePattern,
    /// The roles of which a user needs one; empty: any valid token does.
    pub roles: Vec<String>,
}

impl RoutePattern {
    /// A pattern that a program gives; `given_by` names it in messages.
    pub fn new(text: &str, given_by: &str) -> Self {
        Self { text: text.to_owned(), spot: Spot::nowhere(given_by) }
    }

    fn read(entry: &Entry<'_>) -> Option<Self> {
        Some(Self { text: entry.filled_text()?, spot: entry.place.spot() })
    }

    /// Says what is odd about the pattern, and what was probably meant.
    pub(crate) fn warning(&self, message: String, suggestion: Option<String>) -> ConfigProblem {
        self.spot.warning(message).meant(suggestion)
    }

    /// Says what is wrong with the pattern, and what was probably meant.
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
                entry.place.refuse("needs a role; without the key, any valid token does");
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

/// The roles of `ownership`.
pub(super) fn owner_roles(section: Section<'_>) -> Vec<String> {
    let items = section.get("roles").and_then(|entry| entry.items());
    let roles = roles(&items.unwrap_or_default());
    section.close();
    roles
}

fn roles(items: &[Entry<'_>]) -> Vec<String> {
    let role = |item: &Entry<'_>| {
        let role = item.filled_text()?;
        // In a token, spaces stand between roles.
        if role.contains(char::is_whitespace) {
            item.place.refuse("must have no spaces");
            return None;
        }
        Some(role)
    };
    items.iter().filter_map(role).collect()
}
