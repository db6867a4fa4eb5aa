//! The described parts of the schema, with values and groups of keys in place of their names.

use greenroom_actors::domain::definition::{HttpMethod, StepType};
use serde_json::{Map, Value, json};

use super::{kinds, rows};
use crate::adapters::mcp::settings::{McpLimits, OnInput, Restart};
#[cfg(feature = "providers")]
use crate::adapters::models::{Objects, PROVIDERS};
#[cfg(feature = "jwt")]
use crate::config::auth::algorithm_names;
use crate::config::calls::{MEMORY_BYTES, OUTPUT_BYTES};
#[cfg(feature = "providers")]
use crate::config::models::{FORMER_MOCK, MOCK};

/// The only definition that stays a reference: it is large, and used twice.
const STEP: &str = "#/definitions/step";

/// Key of the names of groups whose members take its place.
const SPREAD: &str = "...";

/// Files by name.
const FILES: [(&str, &str); 9] = [
    ("auth", include_str!("auth.json")),
    ("models", include_str!("models.json")),
    ("agents", include_str!("agents.json")),
    ("tools", include_str!("tools.json")),
    ("mcp", include_str!("mcp.json")),
    ("workflows", include_str!("workflows.json")),
    ("steps", include_str!("steps.json")),
    ("faces", include_str!("faces.json")),
    ("routes", include_str!("routes.json")),
];

/// Values and groups of keys by name.
pub(super) struct Parts {
    values: Map<String, Value>,
    groups: Map<String, Value>,
}

impl Parts {
    pub(super) fn new() -> Self {
        let mut values = parsed(include_str!("values.json"));
        #[cfg(feature = "providers")]
        let providers = PROVIDERS.iter().map(|provider| provider.name).chain([MOCK, FORMER_MOCK]);
        let names: Vec<(&str, Vec<&str>)> = vec![
            #[cfg(feature = "jwt")]
            ("algorithm", algorithm_names().collect()),
            ("method", HttpMethod::NAMES.map(|(name, _)| name).to_vec()),
            #[cfg(feature = "providers")]
            ("object_mode", Objects::NAMES.map(|(name, _)| name).to_vec()),
            #[cfg(feature = "providers")]
            ("provider", providers.collect()),
            ("step_type", StepType::ALL.map(StepType::name).to_vec()),
        ];
        values.extend(
            names.into_iter().map(|(name, names)| (name.to_owned(), json!({ "enum": names }))),
        );
        let bounds = [("memory_bytes", MEMORY_BYTES), ("output_bytes", OUTPUT_BYTES)];
        values.extend(bounds.map(|(name, bounds)| {
            let (min, max) = bounds.into_inner();
            (name.to_owned(), json!({ "type": "integer", "minimum": min, "maximum": max }))
        }));
        let mut parts = Self { values, groups: parsed(include_str!("groups.json")) };
        let tables = [
            ("mcp_limits", rows::group::<McpLimits>(&parts)),
            ("mcp_restart", rows::group::<Restart>(&parts)),
            ("mcp_questions", rows::group::<OnInput>(&parts)),
        ];
        parts.groups.extend(tables.map(|(name, keys)| (name.to_owned(), keys)));
        parts
    }

    /// Returns a value by its name.
    pub(super) fn value(&self, name: &str) -> Value {
        self.values.get(name).cloned().unwrap_or_default()
    }

    /// Returns the part of a file.
    pub(super) fn whole(&self, file: &str) -> Value {
        let text = FILES.iter().find(|(name, _)| *name == file).map_or("{}", |(_, text)| text);
        let mut part = self.filled(Value::Object(parsed(text)));
        kinds::expand(&mut part);
        part
    }

    /// Puts values and groups in the place of their names.
    fn filled(&self, part: Value) -> Value {
        match part {
            Value::Object(members) => self.filled_object(members),
            Value::Array(items) => items.into_iter().map(|item| self.filled(item)).collect(),
            other => other,
        }
    }

    fn filled_object(&self, members: Map<String, Value>) -> Value {
        let mut filled = Map::new();
        for (key, member) in members {
            match (key.as_str(), &member) {
                ("$ref", Value::String(place)) if place != STEP => {
                    let name = place.rsplit('/').next().unwrap_or_default();
                    filled.extend(self.members(self.values.get(name)));
                }
                (SPREAD, Value::Array(names)) => {
                    let groups = names.iter().filter_map(|name| self.groups.get(name.as_str()?));
                    groups.for_each(|group| filled.extend(self.members(Some(group))));
                }
                _ => {
                    filled.insert(key, self.filled(member));
                }
            }
        }
        Value::Object(filled)
    }

    fn members(&self, part: Option<&Value>) -> Map<String, Value> {
        match self.filled(part.cloned().unwrap_or_default()) {
            Value::Object(members) => members,
            _ => Map::new(),
        }
    }
}

/// Parses a file, which the tests have seen whole.
fn parsed(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}
