//! `role` in the profile of an API key's user, where `roles` was meant.

use toml::Value;
use toml::de::DeValue;

use super::Config;
use super::asked::Assignment;
use super::problem::{ConfigProblem, Spot};
use super::section::Section;

/// A `role` of a profile without `roles`. By itself it is right: expressions may read it.
#[derive(Debug)]
pub(crate) struct LoneRole {
    spot: Spot,
    names: Vec<String>,
}

impl LoneRole {
    /// Notes the `role` of a profile, which is checked when the whole configuration is read.
    pub(super) fn note(profile: &Section<'_>) {
        if profile.has("roles") {
            return;
        }
        let Some(entry) = profile.get("role") else { return };
        let name = |value: &DeValue<'_>| match value {
            DeValue::String(text) => Some(text.to_string()),
            _ => None,
        };
        let names = match entry.value {
            DeValue::Array(items) => items.iter().filter_map(|it| name(it.get_ref())).collect(),
            one => name(one).into_iter().collect(),
        };
        let role = Self { spot: profile.key_place("role").spot(), names };
        entry.place.findings.lone_roles.borrow_mut().push(role);
    }

    /// Returns a warning if something in the configuration is for callers with that role, and no
    /// text reads `role` of a user.
    pub(crate) fn check(&self, config: &Config, asked: &[Assignment]) -> Option<ConfigProblem> {
        let name = self.names.iter().find(|name| is_wanted(name, config, asked))?;
        if config.written.values().any(reads_role) {
            return None;
        }
        let message = format!(
            "does not give the role {name}: roles are in `roles`, as in roles = [{name:?}]"
        );
        Some(self.spot.warning(message))
    }
}

/// Returns true if rules of access, claims or asks name a role.
fn is_wanted(name: &str, config: &Config, asked: &[Assignment]) -> bool {
    let rules = config.auth.rules.iter().flat_map(|rule| &rule.roles);
    let owners = config.auth.owner_roles.iter().flatten();
    let mut roles = rules.chain(owners).chain(&config.inbox.force_roles);
    roles.any(|role| role == name) || asked.iter().any(|it| it.names_role(name))
}

/// Returns true if a text of a value may read `role` of a user.
fn reads_role(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let is_apart = |c: char| !c.is_alphanumeric() && c != '_';
            let has = |wanted: &str| text.split(is_apart).any(|word| word == wanted);
            has("user") && has("role")
        }
        Value::Array(items) => items.iter().any(reads_role),
        Value::Table(table) => table.values().any(reads_role),
        _ => false,
    }
}
