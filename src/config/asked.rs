//! Users and roles in assignments of asks.

mod ownership;
mod warnings;

use toml::de::DeValue;

use super::entry::Entry;
use super::problem::Spot;

/// Prefix of a role in an assignment.
const ROLE: &str = "role:";

/// One `to`, with the places of its entries.
#[derive(Debug)]
pub(crate) struct Assignment {
    spot: Spot,
    entries: Vec<(Spot, String)>,
}

impl Assignment {
    /// Notes a `to`, which is checked when the whole configuration is read.
    pub(super) fn note(entry: &Entry<'_>) {
        // anything else is a problem, which its reader reports
        let DeValue::Array(_) = entry.value else { return };
        let items = entry.items().unwrap_or_default();
        let entries = items.iter().filter_map(|item| match item.value {
            DeValue::String(text) => Some((item.place.spot(), text.to_string())),
            _ => None,
        });
        let assignment = Self { spot: entry.place.spot(), entries: entries.collect() };
        entry.place.findings.assignments.borrow_mut().push(assignment);
    }

    /// Returns true if those who have this role are asked.
    pub(super) fn names_role(&self, role: &str) -> bool {
        self.entries.iter().any(|(_, entry)| entry.strip_prefix(ROLE) == Some(role))
    }

    /// Returns a `to` of Rust code.
    pub(crate) fn of(spot: Spot, to: impl IntoIterator<Item = String>) -> Self {
        let entry = |(index, text): (usize, String)| {
            (Spot { key: format!("{}.{index}", spot.key), ..spot.clone() }, text)
        };
        let entries = to.into_iter().enumerate().map(entry).collect();
        Self { spot, entries }
    }
}
