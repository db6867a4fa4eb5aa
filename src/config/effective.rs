//! The configuration in effect: the file, the command line and the defaults, without secrets.

mod redaction;

use std::collections::BTreeMap;

use toml::{Table, Value};

use self::redaction::Redaction;
use super::Config;
use super::keys::{Row, rows};
use super::shipped::default_of;

/// The origin of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// No key in the file.
    Default,
    /// The file, or one that it includes.
    File,
    /// An option of the command line.
    CommandLine,
}

impl Origin {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::CommandLine => "command line",
        }
    }
}

/// A key with its value.
#[derive(Debug)]
pub(crate) struct Set {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A value of the command line: section, key and value.
pub(crate) type Chosen<'a> = (&'a str, &'a str, Value);

/// A configuration as it is in effect. Keys without a value are left out.
#[derive(Debug)]
pub(crate) struct Effective {
    /// Sections with tables of keys, in the order of the documentation.
    pub(crate) sections: Vec<(&'static str, Vec<Set>)>,
    /// The other sections as written.
    pub(crate) definitions: Table,
    /// Environment variables that are named, each with true if it is set.
    pub(crate) variables: BTreeMap<String, bool>,
}

impl Effective {
    /// Returns the origin of every value by its dotted path; of definitions, by their name.
    pub(crate) fn origins(&self) -> BTreeMap<String, Origin> {
        let mut origins = BTreeMap::new();
        for (section, keys) in &self.sections {
            origins.extend(keys.iter().map(|set| (format!("{section}.{}", set.key), set.origin)));
        }
        for (name, value) in &self.definitions {
            match value {
                Value::Table(table) if name != "auth" => {
                    let names = table.keys().map(|inner| format!("{name}.{inner}"));
                    origins.extend(names.map(|name| (name, Origin::File)));
                }
                _ => {
                    origins.insert(name.clone(), Origin::File);
                }
            }
        }
        origins
    }

    /// Returns the whole as one table.
    pub(crate) fn table(&self) -> Table {
        let mut table = self.definitions.clone();
        for (section, keys) in &self.sections {
            let keys = keys.iter().map(|set| (set.key.to_owned(), set.value.clone()));
            table.insert((*section).to_owned(), Value::Table(keys.collect()));
        }
        table
    }
}

impl Config {
    /// Returns the configuration in effect. `chosen`: values of the command line, by section and
    /// key.
    pub(crate) fn effective(
        &self,
        chosen: &[Chosen<'_>],
        environment: impl Fn(&str) -> Option<String>,
    ) -> Effective {
        let redaction = Redaction::new(&self.secrets(&environment));
        let mut definitions = self.written.clone();
        let mut sections: Vec<(&str, Vec<Set>)> = Vec::new();
        for row in rows() {
            definitions.remove(row.section);
            let Some((value, origin)) = self.value_of(&row, chosen) else { continue };
            let value = redaction.of(row.name, value.clone());
            let set = Set { key: row.name, value, origin };
            match sections.last_mut().filter(|(section, _)| *section == row.section) {
                Some((_, keys)) => keys.push(set),
                None => sections.push((row.section, vec![set])),
            }
        }
        let definitions = definitions.into_iter().map(|(name, value)| {
            let value = redaction.of(&name, value);
            (name, value)
        });
        let definitions = definitions.collect();
        let named = redaction.variables.take().into_iter();
        let is_set = |name: &str| environment(name).is_some_and(|value| !value.trim().is_empty());
        let variables = named.map(|name| (name.clone(), is_set(&name))).collect();
        Effective { sections, definitions, variables }
    }

    /// Returns the value of a key, and its origin; `None` if it has none.
    fn value_of<'a>(&'a self, row: &Row, chosen: &'a [Chosen<'_>]) -> Option<(&'a Value, Origin)> {
        let is_row = |(section, key, _): &&Chosen<'_>| (*section, *key) == (row.section, row.name);
        if let Some((.., value)) = chosen.iter().find(is_row) {
            return Some((value, Origin::CommandLine));
        }
        let section = self.written.get(row.section);
        let written = section.and_then(|it| it.get(row.name).or_else(|| it.get(row.former?)));
        let default = || Some((default_of(row)?, Origin::Default));
        written.map(|value| (value, Origin::File)).or_else(default)
    }
}
