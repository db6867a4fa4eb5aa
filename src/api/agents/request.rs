//! Parses the body of a request to an agent; refusals name the place.

use std::fmt::Display;

use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::ids::STEP_GENERATION_PREFIX;
use greenroom_actors::ports::model::ModelOptions;
use serde_json::Value;

use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::ids::check_id;
use crate::api::json::{self, Object};
use crate::api::wire::agent::{GenerationBody, GenerationOptions};
use crate::api::wire::message::messages_of;

/// Largest integer that every JSON library represents exactly (2^53 - 1).
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Kind of output that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    Text,
    /// Requires `schema` in the body.
    Object,
    /// A text; the body may also be `messages`, the default form of chat clients.
    Chat,
}

/// Reads the body of a request to an agent.
pub fn read_request(
    agent_id: &str,
    kind: RequestKind,
    bytes: &[u8],
    caller: &Caller,
) -> Result<GenerationRequest, ApiError> {
    let GenerationBody { input, schema, options, messages, id } = json::parse(bytes)?;
    let is_chat = kind == RequestKind::Chat;
    let (key, input, is_whole) = match (input, messages) {
        (None, Some(messages)) if is_chat => ("messages", messages, true),
        (Some(input), _) => ("input", input, false),
        (None, _) => return Err(ApiError::body("input", "missing")),
    };
    let schema = if kind == RequestKind::Object { Some(read_schema(schema)?) } else { None };
    let Object(mut options) = options.unwrap_or_default();
    let Object(memory) = options.memory.take().unwrap_or_default();
    let user_id = caller.user_id(read_user(options.user_id.take(), memory.user_id)?);
    let mut context = options.context.take().unwrap_or_default();
    caller.sign(&mut context);
    let chat_id = id.filter(|_| is_chat);
    let conversation_id =
        read_conversation(options.conversation_id.take(), memory.conversation_id, chat_id)?;
    let conversation_id = caller.conversation(conversation_id);
    let messages = messages_of(key, &input, conversation_id.is_some())?;
    Ok(GenerationRequest {
        agent_id: agent_id.to_owned(),
        messages,
        is_whole,
        input,
        options: read_model_options(&mut options)?,
        schema,
        max_steps: count("maxSteps", options.max_steps, 1.0)?,
        context_limit: count("contextLimit", options.context_limit, 0.0)?,
        user_id,
        conversation_id,
        context,
        is_chat,
        is_resumable: options.resumable,
        chosen_id: read_generation_id(options.generation_id.take())?,
        ..GenerationRequest::default()
    })
}

fn read_schema(schema: Option<Value>) -> Result<Value, ApiError> {
    match schema {
        Some(schema @ Value::Object(_)) => Ok(schema),
        Some(_) => Err(ApiError::body("schema", "must be an object")),
        None => Err(ApiError::body("schema", "missing")),
    }
}

/// Begin of the ids of generations that are named after an `Idempotency-Key`.
pub const OF_KEY: &str = "key-";

/// Reads the id that a caller chose for a generation; the rules are those of executions.
fn read_generation_id(chosen: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(id) = chosen else { return Ok(None) };
    let refusal = |what: &dyn Display| ApiError::body("options.generationId", what);
    ExecutionId::parse(&id).map_err(|error| refusal(&error))?;
    for (prefix, of) in [(STEP_GENERATION_PREFIX, "steps"), (OF_KEY, "keys of completions")] {
        if id.starts_with(prefix) {
            let what = format!("must not begin with {prefix}, which is reserved for {of}");
            return Err(refusal(&what));
        }
    }
    Ok(Some(id))
}

fn read_user(own: Option<String>, memory: Option<String>) -> Result<Option<String>, ApiError> {
    let own = own.map(|id| checked_id("options.userId", id)).transpose()?;
    let memory = memory.map(|id| checked_id("options.memory.userId", id)).transpose()?;
    Ok(own.or(memory))
}

/// The options override the id of a chat. Every place is checked, even if it is overridden.
fn read_conversation(
    own: Option<String>,
    memory: Option<String>,
    chat_id: Option<Value>,
) -> Result<Option<String>, ApiError> {
    let own = own.map(|id| checked_id("options.conversationId", id)).transpose()?;
    let memory = memory.map(|id| checked_id("options.memory.conversationId", id)).transpose()?;
    let chat = match chat_id {
        Some(Value::String(id)) => Some(checked_id("id", id)?),
        Some(_) => return Err(ApiError::body("id", "must be a string")),
        None => None,
    };
    Ok(own.or(memory).or(chat))
}

fn checked_id(place: &str, id: String) -> Result<String, ApiError> {
    check_id(place, &id).map(|()| id)
}

fn read_model_options(options: &mut GenerationOptions) -> Result<ModelOptions, ApiError> {
    Ok(ModelOptions {
        temperature: within("temperature", options.temperature, 1.0)?,
        max_output_tokens: whole("maxOutputTokens", options.max_output_tokens, 1.0)?,
        top_p: within("topP", options.top_p, 1.0)?,
        frequency_penalty: within("frequencyPenalty", options.frequency_penalty, 2.0)?,
        presence_penalty: within("presencePenalty", options.presence_penalty, 2.0)?,
        seed: seed_of(options.seed)?,
        stop_sequences: options.stop_sequences.take(),
        parallel_tool_calls: options.parallel_tool_calls,
        provider_options: options.provider_options.take().map(Value::Object),
    })
}

fn seed_of(value: Option<f64>) -> Result<Option<i64>, ApiError> {
    let Some(seed) = value else { return Ok(None) };
    if seed.fract() == 0.0 && (-WHOLE_MAX..=WHOLE_MAX).contains(&seed) {
        // Whole and within 2^53 - 1 of 0: the cast is exact.
        return Ok(Some(seed as i64));
    }
    let what = format!("must be a whole number from -{WHOLE_MAX} to {WHOLE_MAX}");
    Err(ApiError::body("options.seed", what))
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

/// As [`whole`]; saturates at `u32::MAX`.
fn count(name: &str, value: Option<f64>, min: f64) -> Result<Option<u32>, ApiError> {
    let number = whole(name, value, min)?;
    Ok(number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
}

/// Checks that a number is whole and at least `min`.
fn whole(name: &str, value: Option<f64>, min: f64) -> Result<Option<u64>, ApiError> {
    let Some(number) = value else { return Ok(None) };
    if number.fract() == 0.0 && (min..=WHOLE_MAX).contains(&number) {
        // Whole, not negative and at most 2^53 - 1: the cast is exact.
        return Ok(Some(number as u64));
    }
    let what = match number > WHOLE_MAX {
        true => format!("must be at most {WHOLE_MAX}"),
        false => format!("must be a whole number of at least {min}"),
    };
    Err(ApiError::body(format!("options.{name}"), what))
}

#[cfg(test)]
mod tests;
