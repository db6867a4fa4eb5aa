//! Differences between two configurations, for the log.

use std::collections::BTreeSet;
use std::fmt;

use toml::{Table, Value};

use super::Config;
use super::workflows::children_of;

/// Sections that are applied without a restart.
const RELOADED: [&str; 5] = ["agents", "include", "models", "tools", "workflows"];

/// Changed names and sections.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Kinds with changes, each with its new, changed and removed names.
    kinds: Vec<(&'static str, [Vec<String>; 3])>,
    /// Removed names, by kind, that executions in progress may need: they keep the definitions that
    /// they started with, which name agents, tools and workflows.
    needed: Vec<(&'static str, Vec<String>)>,
    /// Changed settings that are read only at the start.
    pub(crate) at_next_start: Vec<String>,
}

/// End of the warning of removed tools.
const CALLS_OF_REMOVED: &str = ". Calls that agents have made of these tools end as errors for \
                                their models, also calls that a person approves later";

impl Changes {
    /// Compares two configurations. Sections that need a restart are compared with `started`, the
    /// configuration at the start of the process.
    pub(crate) fn between(started: &Config, old: &Config, new: &Config) -> Self {
        let workflow = |config: &Config, id: &str| -> Option<String> {
            config.workflows.get(id).map(|plan| plan.hash.to_string())
        };
        let tool = |config: &Config, name: &str| {
            let tool = config.tools.get(name)?;
            Some((config.entry("tools", name).cloned(), tool.parameters.clone()))
        };
        let raw = |kind: &'static str| {
            move |config: &Config, name: &str| config.entry(kind, name).cloned()
        };
        let kinds = [
            ("agents", compared(old.agents.keys(), new.agents.keys(), [old, new], raw("agents"))),
            ("models", compared(old.models.keys(), new.models.keys(), [old, new], raw("models"))),
            ("tools", compared(old.tools.keys(), new.tools.keys(), [old, new], tool)),
            (
                "workflows",
                compared(old.workflows.keys(), new.workflows.keys(), [old, new], workflow),
            ),
        ];
        let kinds = kinds.into_iter().filter(|(_, names)| names.iter().any(|it| !it.is_empty()));
        let mut at_next_start = settings_changed(started, new);
        at_next_start.extend(rules_changed(started, new));
        let kinds: Vec<_> = kinds.collect();
        let started_by_steps: BTreeSet<_> =
            old.workflows.values().flat_map(|plan| children_of(plan)).collect();
        let needed = kinds.iter().map(|(kind, [.., removed])| {
            let is_needed = |name: &&String| match *kind {
                "agents" | "tools" => true,
                "workflows" => started_by_steps.contains(name.as_str()),
                _ => false,
            };
            (*kind, removed.iter().filter(is_needed).cloned().collect::<Vec<_>>())
        });
        let needed = needed.filter(|(_, names)| !names.is_empty()).collect();
        Self { kinds, needed, at_next_start }
    }

    /// Returns true if nothing of this kind has changed.
    pub(crate) fn leaves(&self, kind: &str) -> bool {
        self.kinds.iter().all(|(changed, _)| *changed != kind)
    }

    /// Warns of removed names that executions and generations in progress may need.
    pub(crate) fn warning_of_removed(&self) -> Option<String> {
        let removed = self.needed.iter().map(|(kind, names)| format!("{kind}: {}", listed(names)));
        let removed: Vec<_> = removed.collect();
        (!removed.is_empty()).then(|| {
            let removed = removed.join("; ");
            let has_tools = self.needed.iter().any(|(kind, _)| *kind == "tools");
            let calls = if has_tools { CALLS_OF_REMOVED } else { "" };
            format!(
                "removed {removed}. Executions and generations in progress that need them do not \
                 continue until they are configured again (greenroom executions list --stuck){calls}"
            )
        })
    }

    /// Returns true if this name of the kind is unchanged, or did not exist.
    pub(crate) fn leaves_one(&self, kind: &str, name: &str) -> bool {
        let changed = self.kinds.iter().filter(|(changed, _)| *changed == kind);
        changed.flat_map(|(_, names)| names.iter().flatten()).all(|changed| changed != name)
    }
}

impl Config {
    fn entry(&self, kind: &str, name: &str) -> Option<&Value> {
        self.written.get(kind)?.get(name)
    }
}

fn compared<'a, T: PartialEq>(
    old: impl Iterator<Item = &'a String>,
    new: impl Iterator<Item = &'a String>,
    [before, after]: [&Config; 2],
    definition: impl Fn(&Config, &str) -> T,
) -> [Vec<String>; 3] {
    let (old, new): (BTreeSet<_>, BTreeSet<_>) = (old.collect(), new.collect());
    let is_changed = |name: &&&String| definition(before, name) != definition(after, name);
    let changed = old.intersection(&new).filter(is_changed);
    [
        new.difference(&old).map(|name| (*name).clone()).collect(),
        changed.map(|name| (*name).clone()).collect(),
        old.difference(&new).map(|name| (*name).clone()).collect(),
    ]
}

/// Returns the changed sections that are read only at the start, in the form `[name]`.
fn settings_changed(started: &Config, new: &Config) -> Vec<String> {
    let of = |config: &Config| -> Table {
        let settings = config.written.iter().filter(|(key, _)| !RELOADED.contains(&key.as_str()));
        settings.map(|(key, value)| (key.clone(), value.clone())).collect()
    };
    let (before, after) = (of(started), of(new));
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let shown = |key: &String| match before.get(key).or_else(|| after.get(key)) {
        Some(Value::Array(_)) => format!("[[{key}]]"),
        _ => format!("[{key}]"),
    };
    changed.map(shown).collect()
}

/// Returns the workflows whose `retention` has changed; retention is read only at the start.
fn rules_changed(started: &Config, new: &Config) -> Vec<String> {
    let (before, after) = (&started.retention.workflows, &new.retention.workflows);
    let ids: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changed = ids.into_iter().filter(|id| before.get(*id) != after.get(*id));
    changed.map(|id| format!("`retention` of workflow {id}")).collect()
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kinds.is_empty() {
            return f.write_str("no changes to agents, models, tools or workflows");
        }
        for (index, (kind, names)) in self.kinds.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "; " })?;
            f.write_str(kind)?;
            let words = ["added", "changed", "removed"];
            let shown = words.iter().zip(names).filter(|(_, names)| !names.is_empty());
            for (place, (word, names)) in shown.enumerate() {
                write!(f, "{} {word} {}", if place == 0 { ":" } else { "," }, listed(names))?;
            }
        }
        Ok(())
    }
}

/// Returns the first names and the number of the others.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let models = "[models.m]\nprovider = \"mock\"\n";
        Config::parse(&format!("{models}{text}"), "c.toml").unwrap()
    }

    #[test]
    fn changed_names_and_sections_are_listed() {
        let base = "[server]\nport = 1\n[agents.a]\nmodel = \"m\"\n[agents.b]\nmodel = \"m\"\n\
                    [workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n";
        let unchanged = "no changes to agents, models, tools or workflows";
        for (later, expected, at_next_start) in [
            (base.to_owned(), unchanged, &[][..]),
            (base.replace("port = 1", "port = 1 # the first"), unchanged, &[]),
            (base.replace("port = 1", "port = 2"), unchanged, &["[server]"]),
            (base.replace("[server]\nport = 1\n", ""), unchanged, &["[server]"]),
            (
                format!("{base}[[routes]]\npath = \"/a\"\nworkflow = \"w\"\n"),
                unchanged,
                &["[[routes]]"],
            ),
            (base.replace("map = 1", "map = 2"), "workflows: changed w", &[]),
            (
                base.replace("[workflows.w]", "[workflows.w]\nretention = \"1d\""),
                unchanged,
                &["`retention` of workflow w"],
            ),
            (
                base.replace("[agents.b]\nmodel = \"m\"", "[agents.c]\nmodel = \"m\""),
                "agents: added c, removed b",
                &[],
            ),
            (
                base.replace("[agents.a]", "[agents.a]\ninstructions = \"Be short\"")
                    .replace("workflows.w", "workflows.v"),
                "agents: changed a; workflows: added v, removed w",
                &[],
            ),
        ] {
            let (before, after) = (config(base), config(&later));
            let changes = Changes::between(&before, &before, &after);
            assert_eq!(changes.to_string(), expected, "{later}");
            assert_eq!(changes.at_next_start, at_next_start, "{later}");
        }
    }

    #[test]
    fn removed_agents_and_tools_are_warned_of() {
        let base = "[agents.a]\nmodel = \"m\"\n[agents.b]\nmodel = \"m\"\n\
                    [tools.t]\nkind = \"agent\"\nagent = \"a\"\ndescription = \"Asks\"\n\
                    [workflows.w]\nsteps = [{ id = \"a\", map = 1 }]\n\
                    [workflows.o]\nsteps = [{ id = \"a\", type = \"andWorkflow\", workflow = \"w\" }]\n";
        let renamed = base.replace("agents.b", "agents.c");
        for (later, expected) in [
            (base.to_owned(), None),
            (base.replace("workflows.o", "workflows.p"), None),
            (
                base.replace("workflows.w", "workflows.v").replace("\"w\"", "\"v\""),
                Some("removed workflows: w. "),
            ),
            (renamed.clone(), Some("removed agents: b. ")),
            (renamed.replace("tools.t", "tools.u"), Some("removed agents: b; tools: t. ")),
        ] {
            let (before, after) = (config(base), config(&later));
            let warning = Changes::between(&before, &before, &after).warning_of_removed();
            assert_eq!(warning.is_some(), expected.is_some(), "{warning:?}");
            let warning = warning.unwrap_or_default();
            assert!(expected.is_none_or(|begin| warning.starts_with(begin)), "{later}");
            assert_eq!(warning.ends_with(CALLS_OF_REMOVED), later.contains("tools.u"), "{warning}");
        }
    }

    #[test]
    fn long_lists_end_with_a_number() {
        let names: Vec<String> = (0..12).map(|n| n.to_string()).collect();
        assert!(listed(&names).ends_with("8, 9 and 2 more"), "{}", listed(&names));
    }
}
