//! Completions of agents.

use std::borrow::Cow;

use greenroom_actors::Runtime;
use greenroom_actors::agent::generation::GenerationRequest;
use greenroom_actors::domain::hash::long_hash;
use greenroom_actors::domain::message::{Message, Role};
use greenroom_actors::ports::model::ModelOptions;
use greenroom_actors::requests::IdempotencyKey;
use greenroom_actors::visibility::Visibility;
use serde_json::{Map, Value, json};

use crate::api::agents::OF_KEY;
use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::ids::check_id;
use crate::api::wire::generation_stream::GenerationStream;
use crate::api::wire::openai::{
    CompletionBody, CompletionChunks, CompletionHead, messages_of, tools_of,
};
use crate::api::workflows::idempotency;
use crate::faces::OpenAiFace;

/// Largest value of `temperature`.
const TEMPERATURE_MAX: f64 = 2.0;
/// Largest absolute value of a penalty.
const PENALTY_MAX: f64 = 2.0;
/// Maximum number of texts in `stop`, that of OpenAI's API.
const STOPS_MAX: usize = 4;

/// Reads the request of a completion of an agent. `key` is the `Idempotency-Key`, after which the
/// generation is named, so that there is one only.
pub fn read_generation(
    face: &OpenAiFace,
    agent_id: &str,
    body: CompletionBody,
    (conversation_id, key): (Option<String>, Option<&str>),
    caller: &Caller,
) -> Result<GenerationRequest, ApiError> {
    body.unsupported.check()?;
    let messages = messages_of(&body.messages)?;
    let schema = schema_of(body.response_format.as_ref())?;
    let (client_tools, tool_choice) =
        tools_of(body.tools.as_ref(), body.tool_choice.as_ref(), face.tools_max)?;
    let options = options_of(&body)?;
    let is_stream = body.stream == Some(true);
    body.user.as_deref().map_or(Ok(()), |user| check_id("user", user))?;
    let user_id = caller.user_id(body.user);
    let key = idempotency(key, "completion", agent_id, (caller, user_id.as_deref()), b"")?;
    let id_of = |key: IdempotencyKey| format!("{OF_KEY}{}", long_hash(&[&key.scope]));
    let mut context = Map::new();
    caller.sign(&mut context);
    let conversation_id = caller.conversation(conversation_id);
    let messages = match conversation_id {
        Some(_) => new_of(messages)?,
        None => messages,
    };
    Ok(GenerationRequest {
        agent_id: agent_id.to_owned(),
        messages,
        input: body.messages,
        options,
        // text is sent as it arrives, so the model cannot be asked to repair it
        object_repairs: (is_stream && schema.is_some()).then_some(0),
        schema,
        client_tools,
        tool_choice,
        user_id,
        conversation_id,
        context,
        chosen_id: key.map(id_of),
        ..GenerationRequest::default()
    })
}

/// Refuses a request whose key was used before, as long as the history has the generation. One that
/// comes at the same time is refused when it begins.
pub async fn check_key(runtime: &Runtime, request: &GenerationRequest) -> Result<(), ApiError> {
    let Some(id) = &request.chosen_id else { return Ok(()) };
    // the scope of the key has the user
    let known = runtime.generation(&request.agent_id, id, &Visibility::Everything).await?;
    match known {
        None => Ok(()),
        Some(known) if known.record.input == request.input => {
            Err(ApiError::GenerationExists(id.clone()))
        }
        Some(_) => Err(ApiError::KeyReused),
    }
}

/// Returns the stream of a completion of an agent.
pub fn stream_of(
    head: CompletionHead,
    has_usage: bool,
    generation: &GenerationRequest,
) -> GenerationStream {
    let chunks = CompletionChunks::new(head, has_usage).calling(generation.client_tools.clone());
    let chunks = if generation.schema.is_some() { chunks.of_object() } else { chunks };
    GenerationStream::Completion(Box::new(chunks))
}

/// Returns the messages that the conversation does not have yet: those after the last answer, and
/// with results of calls that answer too. Instructions are never stored.
fn new_of(messages: Vec<Message>) -> Result<Vec<Message>, ApiError> {
    let last = messages.iter().rposition(|message| message.role == Role::Assistant);
    let begin = last.map_or(0, |last| {
        let has_results = messages.get(last + 1).is_some_and(|next| next.role == Role::Tool);
        if has_results { last } else { last + 1 }
    });
    let is_new =
        |(index, message): &(usize, Message)| *index >= begin || message.role == Role::System;
    let new = messages.into_iter().enumerate().filter(is_new);
    let new: Vec<_> = new.map(|(_, message)| message).collect();
    if new.iter().all(|message| message.role == Role::System) {
        return Err(ApiError::body("messages", "must end with a message of the user or of a tool"));
    }
    Ok(new)
}

fn options_of(body: &CompletionBody) -> Result<ModelOptions, ApiError> {
    let penalty = |name, value| within(name, value, -PENALTY_MAX, PENALTY_MAX);
    let max_output_tokens = body.max_completion_tokens.or(body.max_tokens);
    if max_output_tokens == Some(0) {
        return Err(ApiError::body("max_completion_tokens", "must be at least 1"));
    }
    Ok(ModelOptions {
        temperature: within("temperature", body.temperature, 0.0, TEMPERATURE_MAX)?,
        max_output_tokens,
        top_p: within("top_p", body.top_p, 0.0, 1.0)?,
        frequency_penalty: penalty("frequency_penalty", body.frequency_penalty)?,
        presence_penalty: penalty("presence_penalty", body.presence_penalty)?,
        seed: body.seed,
        stop_sequences: stops_of(body.stop.as_ref())?,
        parallel_tool_calls: body.parallel_tool_calls,
        provider_options: None,
    })
}

fn within(name: &str, value: Option<f64>, min: f64, max: f64) -> Result<Option<f64>, ApiError> {
    match value {
        Some(number) if !(min..=max).contains(&number) => {
            Err(ApiError::body(name, format!("must be from {min} to {max}")))
        }
        Some(_) | None => Ok(value),
    }
}

fn stops_of(stop: Option<&Value>) -> Result<Option<Vec<String>>, ApiError> {
    let texts = match stop {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => Cow::Owned(vec![Value::from(text.as_str())]),
        Some(Value::Array(texts)) if texts.len() <= STOPS_MAX => Cow::Borrowed(texts),
        Some(_) => {
            let what = format!("must be a string or an array of at most {STOPS_MAX}");
            return Err(ApiError::body("stop", what));
        }
    };
    let text = |text: &Value| text.as_str().map(str::to_owned);
    let read: Option<Vec<_>> = texts.iter().map(text).collect();
    read.map(Some).ok_or_else(|| ApiError::body("stop", "must be a string or an array of strings"))
}

/// Returns the schema that an answer must meet, if one is requested.
fn schema_of(format: Option<&Value>) -> Result<Option<Value>, ApiError> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(json!({ "type": "object" }))),
        Some("json_schema") => match format.pointer("/json_schema/schema") {
            Some(schema @ Value::Object(_)) => Ok(Some(schema.clone())),
            _ => Err(ApiError::body("response_format.json_schema.schema", "must be an object")),
        },
        _ => {
            let what = "must be \"text\", \"json_object\" or \"json_schema\"";
            Err(ApiError::body("response_format.type", what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value, conversation: Option<&str>) -> Result<GenerationRequest, String> {
        let mut whole =
            json!({ "model": "desk", "messages": [{ "role": "user", "content": "hi" }] });
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let body: CompletionBody = serde_json::from_value(whole).unwrap();
        let (face, caller) = (OpenAiFace::default(), Caller::unchecked());
        let conversation = conversation.map(str::to_owned);
        let read = read_generation(&face, "desk", body, (conversation, None), &caller);
        read.map_err(|it| it.to_string())
    }

    #[test]
    fn options_are_those_of_the_model() {
        let body = json!({
            "temperature": 2, "top_p": 0.5, "max_tokens": 5, "max_completion_tokens": 6, "seed": -7,
            "presence_penalty": -2, "frequency_penalty": 1, "stop": "x", "user": "ann",
            "parallel_tool_calls": false,
        });
        let generation = read(&body, None).unwrap();
        let expected = ModelOptions {
            temperature: Some(2.0),
            max_output_tokens: Some(6),
            top_p: Some(0.5),
            frequency_penalty: Some(1.0),
            presence_penalty: Some(-2.0),
            seed: Some(-7),
            stop_sequences: Some(vec!["x".to_owned()]),
            parallel_tool_calls: Some(false),
            provider_options: None,
        };
        assert_eq!((generation.options, generation.user_id.as_deref()), (expected, Some("ann")));
        assert_eq!(generation.schema, None);
    }

    #[test]
    fn a_key_names_the_generation() {
        let id = |user: &str, agent: &str, key: Option<&str>| {
            let messages = json!([{ "role": "user", "content": "hi" }]);
            let body = json!({ "model": agent, "messages": messages, "user": user });
            let body: CompletionBody = serde_json::from_value(body).unwrap();
            let (face, caller) = (OpenAiFace::default(), Caller::unchecked());
            let read = read_generation(&face, agent, body, (None, key), &caller);
            read.map(|generation| generation.chosen_id).map_err(|it| it.to_string())
        };
        let first = id("ann", "desk", Some("k")).unwrap().unwrap();
        assert!(first.starts_with(OF_KEY) && first.len() == OF_KEY.len() + 32, "{first}");
        assert_eq!(id("ann", "desk", Some("k")), Ok(Some(first.clone())));
        for other in [id("eve", "desk", Some("k")), id("ann", "clerk", Some("k"))] {
            assert_ne!(other, Ok(Some(first.clone())));
        }
        assert_eq!(id("ann", "desk", None), Ok(None));
        let (longest, too_long) = ("k".repeat(255), "k".repeat(256));
        assert!(id("ann", "desk", Some(&longest)).is_ok());
        for bad in ["", "a b", &too_long] {
            let refused = id("ann", "desk", Some(bad)).unwrap_err();
            assert!(refused.contains("must be 1 to 255 visible ASCII characters"), "{refused}");
        }
    }

    #[test]
    fn a_format_is_a_schema() {
        let schema = json!({ "type": "object", "required": ["a"] });
        let rows = [
            (json!({ "type": "text" }), None),
            (json!({ "type": "json_object" }), Some(json!({ "type": "object" }))),
            (
                json!({ "type": "json_schema", "json_schema": { "name": "a", "schema": schema } }),
                Some(schema),
            ),
        ];
        for (format, expected) in rows {
            let generation =
                read(&json!({ "response_format": format, "stream": true }), None).unwrap();
            assert_eq!(generation.object_repairs.is_some(), expected.is_some(), "{format}");
            assert_eq!(generation.schema, expected, "{format}");
        }
    }

    #[test]
    fn wrong_values_are_refused_with_their_place() {
        let rows = [
            (json!({ "temperature": 2.1 }), "temperature: must be from 0 to 2"),
            (json!({ "top_p": -1 }), "top_p: must be from 0 to 1"),
            (json!({ "presence_penalty": 3 }), "presence_penalty: must be from -2 to 2"),
            (json!({ "max_tokens": 0 }), "max_completion_tokens: must be at least 1"),
            (json!({ "stop": 1 }), "stop: must be a string or an array of at most 4"),
            (json!({ "stop": ["a", 1] }), "stop: must be a string or an array of strings"),
            (
                json!({ "stop": ["a", "b", "c", "d", "e"] }),
                "stop: must be a string or an array of at most 4",
            ),
            (
                json!({ "response_format": { "type": "xml" } }),
                "response_format.type: must be \"text\", \"json_object\" or \"json_schema\"",
            ),
            (
                json!({ "response_format": { "type": "json_schema" } }),
                "response_format.json_schema.schema: must be an object",
            ),
            (json!({ "user": "" }), "user: must be 1 to 200 characters, no control characters"),
        ];
        for (body, what) in rows {
            let refused = read(&body, None).unwrap_err();
            assert_eq!(refused, format!("Invalid request body: {what}"), "{body}");
        }
        assert!(read(&json!({ "n": 2 }), None).unwrap_err().starts_with("n is not supported"));
    }

    #[test]
    fn only_what_is_new_is_added_to_a_conversation() {
        let user = |text: &str| json!({ "role": "user", "content": text });
        let said = json!({ "role": "assistant", "content": "yes" });
        let rules = json!({ "role": "system", "content": "Be kind" });
        let call = json!({ "role": "assistant", "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "map", "arguments": "{}" } }] });
        let result = json!({ "role": "tool", "tool_call_id": "c1", "content": "a" });
        let rows = [
            (json!([user("a")]), vec![Role::User]),
            (json!([rules, user("a"), said, user("b")]), vec![Role::System, Role::User]),
            (json!([user("a"), said, user("b"), user("c")]), vec![Role::User, Role::User]),
            (json!([user("a"), call, result]), vec![Role::Assistant, Role::Tool]),
            (json!([user("a"), call, result, said, user("b")]), vec![Role::User]),
        ];
        for (messages, expected) in rows {
            let body = json!({ "messages": messages });
            let all = read(&body, None).unwrap().messages.len();
            assert_eq!(all, messages.as_array().unwrap().len());
            let new = read(&body, Some("c")).unwrap().messages;
            let roles: Vec<_> = new.iter().map(|message| message.role).collect();
            assert_eq!(roles, expected, "{messages}");
        }
        let refused =
            read(&json!({ "messages": [rules, user("a"), said] }), Some("c")).unwrap_err();
        let what =
            "Invalid request body: messages: must end with a message of the user or of a tool";
        assert_eq!(refused, what);
    }
}
