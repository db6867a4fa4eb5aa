//! Options of a generation, written in snake_case, kept in the names of the wire.

use std::ops::RangeInclusive;

use greenroom_actors::ports::model::ModelOptions;
use serde_json::{Map, Value};

use super::section::Section;

/// Options of a call of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentOptions {
    /// What the model itself is told.
    pub model: ModelOptions,
}

impl AgentOptions {
    /// The wire form (`temperature`, `maxOutputTokens`, ...), without what nobody set; `None` when
    /// nobody set anything.
    pub fn into_wire(self) -> Option<Value> {
        let mut options = Map::new();
        if let Ok(Value::Object(model)) = serde_json::to_value(self.model) {
            options.extend(model.into_iter().filter(|(_, value)| !value.is_null()));
        }
        (!options.is_empty()).then_some(Value::Object(options))
    }

    pub(crate) fn read(section: Section<'_>) -> Self {
        Self { model: read_model_options(section) }
    }
}

/// Reads a table of options.
pub(crate) fn read_model_options(section: Section<'_>) -> ModelOptions {
    section.later(&["max_steps"]);
    let options = read_keys(&section);
    section.close();
    options
}

fn read_keys(section: &Section<'_>) -> ModelOptions {
    let number = |key, bounds: RangeInclusive<f64>| section.get(key)?.number(bounds);
    let whole = |key, bounds: RangeInclusive<i64>| {
        section.get(key)?.integer(bounds).and_then(|number| u64::try_from(number).ok())
    };
    ModelOptions {
        temperature: number("temperature", 0.0..=1.0),
        max_output_tokens: whole("max_output_tokens", 1..=i64::MAX),
        top_p: number("top_p", 0.0..=1.0),
        frequency_penalty: number("frequency_penalty", 0.0..=2.0),
        presence_penalty: number("presence_penalty", 0.0..=2.0),
        seed: whole("seed", 0..=i64::MAX),
        stop_sequences: section.get("stop_sequences").and_then(|entry| entry.texts()),
        provider_options: section.get("provider_options").and_then(|entry| {
            let is_table = entry.section().is_some();
            is_table.then(|| entry.json()).flatten()
        }),
    }
}
