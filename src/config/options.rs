//! Options of a generation: snake_case in the file, wire names in definitions.

use std::ops::RangeInclusive;

use greenroom_actors::ports::model::ModelOptions;
use serde_json::{Map, Value};

use super::section::Section;

/// Options of a call of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentOptions {
    /// Options that are sent to the model.
    pub model: ModelOptions,
    /// Maximum number of turns.
    pub max_steps: Option<u32>,
    /// Maximum number of earlier messages that the model sees.
    pub context_limit: Option<u32>,
}

impl AgentOptions {
    /// Returns the wire form (`temperature`, `maxSteps`, ...) without unset options; `None` if all
    /// are unset.
    pub fn into_wire(self) -> Option<Value> {
        let Self { model, max_steps, context_limit } = self;
        let mut options = Map::new();
        if let Ok(Value::Object(model)) = serde_json::to_value(model) {
            options.extend(model.into_iter().filter(|(_, value)| !value.is_null()));
        }
        let own = [("maxSteps", max_steps), ("contextLimit", context_limit)];
        options.extend(own.into_iter().filter_map(|(key, n)| Some((key.to_owned(), n?.into()))));
        (!options.is_empty()).then_some(Value::Object(options))
    }

    pub(crate) fn read(section: Section<'_>) -> Self {
        let count = |key, min: i64| {
            let bounds = min..=i64::from(u32::MAX);
            section.get(key)?.integer(bounds).and_then(|number| u32::try_from(number).ok())
        };
        let (max_steps, context_limit) = (count("max_steps", 1), count("context_limit", 0));
        let options = Self { model: read_keys(&section), max_steps, context_limit };
        section.close();
        options
    }
}

/// Reads a table of options.
pub(crate) fn read_model_options(section: Section<'_>) -> ModelOptions {
    section.misplaced("max_steps", "belongs to the agent itself, beside `options`");
    let options = read_keys(&section);
    section.close();
    options
}

fn read_keys(section: &Section<'_>) -> ModelOptions {
    let number = |key, bounds: RangeInclusive<f64>| section.get(key)?.number(bounds);
    let whole = |key, bounds: RangeInclusive<i64>| section.get(key)?.integer(bounds);
    let max_output_tokens = whole("max_output_tokens", 1..=i64::MAX);
    ModelOptions {
        temperature: number("temperature", 0.0..=1.0),
        max_output_tokens: max_output_tokens.and_then(|count| u64::try_from(count).ok()),
        top_p: number("top_p", 0.0..=1.0),
        frequency_penalty: number("frequency_penalty", 0.0..=2.0),
        presence_penalty: number("presence_penalty", 0.0..=2.0),
        seed: whole("seed", 0..=i64::MAX),
        stop_sequences: section.get("stop_sequences").and_then(|entry| entry.texts()),
        parallel_tool_calls: section.get("parallel_tool_calls").and_then(|entry| entry.flag()),
        provider_options: section.get("provider_options").and_then(|entry| {
            let is_table = entry.section().is_some();
            is_table.then(|| entry.json()).flatten()
        }),
    }
}
