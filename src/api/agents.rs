//! Use cases of agents: list, describe, generate a text.

use greenroom_actors::Runtime;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::generation::{Generation, GenerationRequest};
use greenroom_actors::ports::model::ModelOptions;
use serde_json::Value;

use crate::api::error::ApiError;
use crate::api::json::{self, Object};
use crate::api::wire::agent::{AgentDetailView, AgentView, GenerationBody, GenerationOptions};
use crate::api::wire::message::messages_of;

/// Largest whole number that every JSON library keeps exactly.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Lists the registered agents by id.
pub fn list(runtime: &Runtime) -> Vec<AgentView<'_>> {
    let is_working = |agent: &AgentDefinition| runtime.is_agent_working(&agent.id);
    let agents = runtime.registry().agents.values();
    agents.map(|agent| AgentView::of(agent, is_working(agent))).collect()
}

/// Shows an agent.
pub fn describe<'a>(runtime: &'a Runtime, id: &str) -> Result<AgentDetailView<'a>, ApiError> {
    let agent = find(runtime, id)?;
    Ok(AgentDetailView::of(agent, runtime.is_agent_working(id)))
}

/// Finds a registered agent: the subject that is looked for before the body is read.
pub fn find<'a>(runtime: &'a Runtime, id: &str) -> Result<&'a AgentDefinition, ApiError> {
    let agent = runtime.registry().agents.get(id);
    agent.map(|agent| &**agent).ok_or_else(|| ApiError::AgentNotFound(id.to_owned()))
}

/// Lets an agent generate a text. Dropping the future cancels the generation.
pub async fn generate_text(
    runtime: &Runtime,
    agent: &AgentDefinition,
    body: &[u8],
) -> Result<Generation, ApiError> {
    let request = read_request(&agent.id, body)?;
    Ok(runtime.generate(request).await?)
}

fn read_request(agent_id: &str, bytes: &[u8]) -> Result<GenerationRequest, ApiError> {
    let GenerationBody { input, options } = json::parse(bytes)?;
    let input = input.ok_or_else(|| ApiError::body("input", "missing"))?;
    let messages = messages_of(&input)?;
    let Object(options) = options.unwrap_or_default();
    whole("contextLimit", options.context_limit, 0.0)?;
    let max_steps = whole("maxSteps", options.max_steps, 1.0)?;
    let max_steps = max_steps.map(|steps| u32::try_from(steps).unwrap_or(u32::MAX));
    let model = read_model_options(&options)?;
    Ok(GenerationRequest {
        agent_id: agent_id.to_owned(),
        messages,
        input,
        options: model,
        max_steps,
        user_id: options.user_id,
        conversation_id: options.conversation_id,
        context: options.context.unwrap_or_default(),
        ..GenerationRequest::default()
    })
}

fn read_model_options(options: &GenerationOptions) -> Result<ModelOptions, ApiError> {
    Ok(ModelOptions {
        temperature: within("temperature", options.temperature, 1.0)?,
        max_output_tokens: whole("maxOutputTokens", options.max_output_tokens, 1.0)?,
        top_p: within("topP", options.top_p, 1.0)?,
        frequency_penalty: within("frequencyPenalty", options.frequency_penalty, 2.0)?,
        presence_penalty: within("presencePenalty", options.presence_penalty, 2.0)?,
        seed: whole("seed", options.seed, 0.0)?,
        stop_sequences: options.stop_sequences.clone(),
        provider_options: options.provider_options.clone().map(Value::Object),
    })
}

/// Checks that a number is in `0..=max`.
fn within(name: &str, value: Option<f64>, max: f64) -> Result<Option<f64>, ApiError> {
    match value {
        Some(number) if !(0.0..=max).contains(&number) => {
            Err(ApiError::body(format!("options.{name}"), format!("must be from 0 to {max}")))
        }
        Some(_) | None => Ok(value),
    }
}

/// Checks that a number is whole and at least `min`.
fn whole(name: &str, value: Option<f64>, min: f64) -> Result<Option<u64>, ApiError> {
    let Some(number) = value else { return Ok(None) };
    if number.fract() == 0.0 && (min..=WHOLE_MAX).contains(&number) {
        // Whole, not negative and exactly kept: the cast changes nothing.
        return Ok(Some(number as u64));
    }
    let what = format!("must be a whole number from {min} on");
    Err(ApiError::body(format!("options.{name}"), what))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(options: &Value) -> Result<GenerationRequest, ApiError> {
        let body = json!({ "input": "hi", "options": options });
        read_request("assistant", body.to_string().as_bytes())
    }

    #[test]
    fn options_reach_the_request() {
        let request = read(&json!({
            "userId": "u", "conversationId": "c", "maxSteps": 3, "temperature": 1,
            "maxOutputTokens": 10, "topP": 0.5, "frequencyPenalty": 2, "presencePenalty": 0,
            "seed": 42, "stopSequences": ["."], "providerOptions": { "a": {} },
            "context": { "tone": "kind" }, "contextLimit": 5
        }))
        .unwrap();
        assert_eq!((request.max_steps, request.options.seed), (Some(3), Some(42)));
        assert_eq!(request.options.temperature, Some(1.0));
        assert_eq!(request.context["tone"], "kind");
        assert_eq!(request.input, "hi");
    }

    #[test]
    fn numbers_outside_their_ranges_are_refused() {
        let rows = [
            (json!({ "temperature": 1.1 }), "temperature: must be from 0 to 1"),
            (json!({ "topP": -0.1 }), "topP: must be from 0 to 1"),
            (json!({ "frequencyPenalty": 2.5 }), "frequencyPenalty: must be from 0 to 2"),
            (json!({ "presencePenalty": -1 }), "presencePenalty: must be from 0 to 2"),
            (json!({ "maxOutputTokens": 0 }), "maxOutputTokens: must be a whole number from 1 on"),
            (json!({ "maxSteps": 1.5 }), "maxSteps: must be a whole number from 1 on"),
            (json!({ "seed": -1 }), "seed: must be a whole number from 0 on"),
            (json!({ "contextLimit": -1 }), "contextLimit: must be a whole number from 0 on"),
            (
                json!({ "temperature": "hot" }),
                "temperature: invalid type: string \"hot\", expected f64",
            ),
            (
                json!({ "stopSequences": [1] }),
                "stopSequences[0]: invalid type: integer `1`, expected a string",
            ),
        ];
        for (options, what) in rows {
            let text = read(&options).unwrap_err().to_string();
            assert_eq!(text, format!("Invalid request body: options.{what}"));
        }
    }

    #[test]
    fn the_input_is_required() {
        let text = read_request("a", b"{}").unwrap_err().to_string();
        assert_eq!(text, "Invalid request body: input: missing");
    }
}
