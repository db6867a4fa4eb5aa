//! Effective options of a model call.

use crate::ports::model::ModelOptions;

/// Defaults of the specification, used when neither caller nor agent sets a value.
const DEFAULT_TEMPERATURE: f64 = 0.7;
const DEFAULT_MAX_OUTPUT_TOKENS: u64 = 4000;
const DEFAULT_TOP_P: f64 = 1.0;
const DEFAULT_FREQUENCY_PENALTY: f64 = 0.0;
const DEFAULT_PRESENCE_PENALTY: f64 = 0.0;

/// Merges options: the caller's override the agent's, which override the defaults. Each option is
/// taken whole: `providerOptions` are not merged.
pub fn effective_options(caller: ModelOptions, agent: &ModelOptions) -> ModelOptions {
    ModelOptions {
        temperature: caller.temperature.or(agent.temperature).or(Some(DEFAULT_TEMPERATURE)),
        max_output_tokens: caller
            .max_output_tokens
            .or(agent.max_output_tokens)
            .or(Some(DEFAULT_MAX_OUTPUT_TOKENS)),
        top_p: caller.top_p.or(agent.top_p).or(Some(DEFAULT_TOP_P)),
        frequency_penalty: caller
            .frequency_penalty
            .or(agent.frequency_penalty)
            .or(Some(DEFAULT_FREQUENCY_PENALTY)),
        presence_penalty: caller
            .presence_penalty
            .or(agent.presence_penalty)
            .or(Some(DEFAULT_PRESENCE_PENALTY)),
        seed: caller.seed.or(agent.seed),
        stop_sequences: caller.stop_sequences.or_else(|| agent.stop_sequences.clone()),
        parallel_tool_calls: caller.parallel_tool_calls.or(agent.parallel_tool_calls),
        provider_options: caller.provider_options.or_else(|| agent.provider_options.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn options(wire: Value) -> ModelOptions {
        serde_json::from_value(wire).unwrap()
    }

    #[test]
    fn the_caller_overrides_the_agent_and_the_agent_the_defaults() {
        let defaults = json!({
            "temperature": 0.7, "maxOutputTokens": 4000, "topP": 1.0,
            "frequencyPenalty": 0.0, "presencePenalty": 0.0,
            "seed": null, "stopSequences": null, "providerOptions": null
        });
        let cases = [
            ("no choice", json!({}), json!({}), json!({})),
            ("the agent chose", json!({}), json!({ "seed": 7 }), json!({ "seed": 7 })),
            ("the caller chose", json!({ "topP": 0.5 }), json!({}), json!({ "topP": 0.5 })),
            (
                "calls one by one",
                json!({ "parallelToolCalls": true }),
                json!({ "parallelToolCalls": false }),
                json!({ "parallelToolCalls": true }),
            ),
            (
                "both chose",
                json!({ "temperature": 0.0, "stopSequences": ["a"] }),
                json!({ "temperature": 1.0, "stopSequences": ["b"], "maxOutputTokens": 9 }),
                json!({ "temperature": 0.0, "stopSequences": ["a"], "maxOutputTokens": 9 }),
            ),
            (
                "provider options are not mixed",
                json!({ "providerOptions": { "a": 1 } }),
                json!({ "providerOptions": { "b": 2 } }),
                json!({ "providerOptions": { "a": 1 } }),
            ),
        ];
        for (name, caller, agent, chosen) in cases {
            let mut expected = defaults.clone();
            for (key, value) in chosen.as_object().unwrap() {
                expected[key] = value.clone();
            }
            let given = effective_options(options(caller), &options(agent));
            assert_eq!(serde_json::to_value(given).unwrap(), expected, "{name}");
        }
    }
}
