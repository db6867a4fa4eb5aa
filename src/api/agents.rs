//! Use cases of agents: list, describe, generate, cancel.

mod continuing;
mod request;

use std::collections::BTreeSet;
use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::agent::generation::{Generation, GenerationRequest, GenerationSubscriber};
use greenroom_actors::agent::{AgentDefinition, PendingAsk};
use greenroom_actors::ports::model::FinishReason;
use greenroom_actors::ports::store::{GenerationEntry, GenerationStatus};
use greenroom_actors::registry::Registry;
use greenroom_actors::runtime::{Activity, BegunGeneration, FailedGeneration, StreamedGeneration};
use serde::de::IgnoredAny;

use crate::api::caller::Caller;
use crate::api::error::{ApiError, Product, UnknownName};
use crate::api::executions::Sent;
use crate::api::json;
use crate::api::query::{Pairs, value_of};
use crate::api::wire::agent::{AgentDetailView, AgentStatus, AgentView};
use crate::api::wire::generation_stream::GenerationStream;

pub use continuing::{approve, continue_chat, waiting_events};
pub use request::{OF_KEY, RequestKind, read_request};

/// Name of the built-in model.
const REHEARSAL: &str = "rehearsal";

/// Lists the registered agents by id.
pub fn list<'a>(
    activity: &Activity,
    registry: &'a Registry,
    is_telemetry_enabled: bool,
) -> Vec<AgentView<'a>> {
    let status = |agent: &AgentDefinition| AgentStatus {
        is_working: activity.is_agent_working(&agent.id),
        is_telemetry_enabled,
    };
    let agents = registry.agents.values();
    agents.map(|agent| AgentView::of(agent, registry, status(agent))).collect()
}

/// Returns the ids of the agents that use the built-in model.
pub fn rehearsing(registry: &Registry) -> BTreeSet<&str> {
    let rehearses = |agent: &AgentDefinition| {
        let model = agent.model.fixed().and_then(|name| registry.models.get(name));
        model.is_some_and(|model| model.name() == REHEARSAL)
    };
    let agents = registry.agents.values().filter(|agent| rehearses(agent));
    agents.map(|agent| agent.id.as_str()).collect()
}

/// Shows an agent.
pub fn describe<'a>(
    activity: &Activity,
    registry: &'a Registry,
    id: &str,
    is_telemetry_enabled: bool,
) -> Result<AgentDetailView<'a>, ApiError> {
    let agent = find_in(registry, id)?;
    let status = AgentStatus { is_working: activity.is_agent_working(id), is_telemetry_enabled };
    Ok(AgentDetailView::of(agent, registry, status))
}

/// Finds a registered agent. Handlers call it before they read the body.
pub fn find(runtime: &Runtime, id: &str) -> Result<Arc<AgentDefinition>, ApiError> {
    find_in(&runtime.registry(), id).map(Arc::clone)
}

fn find_in<'a>(registry: &'a Registry, id: &str) -> Result<&'a Arc<AgentDefinition>, ApiError> {
    let known = || registry.agents.keys().map(String::as_str);
    let agent = registry.agents.get(id);
    agent.ok_or_else(|| ApiError::AgentNotFound(UnknownName::among(id, known())))
}

/// Generates a text, or an object if the request has a schema. Dropping the future cancels the
/// generation.
pub async fn generate(
    runtime: &Runtime,
    request: GenerationRequest,
) -> Result<Generation, ApiError> {
    let product = product_of(&request);
    finished(product, runtime.generate(request).await)
}

/// Starts a generation that continues without its caller; resolves once the history has it.
/// Dropping the future before that cancels the generation.
pub async fn begin(
    runtime: &Runtime,
    request: GenerationRequest,
) -> Result<BegunGeneration, ApiError> {
    let product = product_of(&request);
    let begun = runtime.begin_generation(request).await;
    begun.map_err(|error| ApiError::from_generate(product, error))
}

/// Returns the answer of a generation that has ended.
pub fn finished(
    product: Product,
    generation: Result<Generation, FailedGeneration>,
) -> Result<Generation, ApiError> {
    let generation = generation.map_err(|error| ApiError::from_generate(product, error))?;
    // calls of the caller's tools end a generation without an object
    let is_left_to_caller = generation.finish_reason == FinishReason::ToolCalls;
    let is_missing = generation.object.is_none() && !is_left_to_caller;
    if product == Product::Object && is_missing {
        log::error!("bug in the server: generation {} has a schema and no object", generation.id);
        return Err(ApiError::Internal);
    }
    Ok(generation)
}

/// Starts a generation for a subscriber; resolves once it has begun. Dropping the result or the
/// future cancels the generation.
pub async fn stream(
    runtime: &Runtime,
    request: GenerationRequest,
    subscriber: GenerationSubscriber,
) -> Result<StreamedGeneration, ApiError> {
    let product = product_of(&request);
    let streamed = runtime.stream_generation(request, subscriber).await;
    streamed.map_err(|error| ApiError::from_generate(product, error))
}

/// Returns what a request generates.
pub fn product_of(request: &GenerationRequest) -> Product {
    if request.schema.is_some() { Product::Object } else { Product::Text }
}

/// Selects the format of an object stream. Text is sent as it arrives, so the model cannot be asked
/// to repair it.
pub fn object_stream(
    request: &mut GenerationRequest,
    accept: Option<&str>,
    query: &Pairs,
) -> Result<GenerationStream, ApiError> {
    let is_text = match value_of(query, "format") {
        Some("text") => true,
        Some("sse") => false,
        Some(_) => {
            let what = "must be sse or text".to_owned();
            return Err(ApiError::InvalidQuery { name: "format".to_owned(), what });
        }
        None => accept.is_some_and(prefers_text),
    };
    if !is_text {
        return Ok(GenerationStream::object());
    }
    request.object_repairs = Some(0);
    Ok(GenerationStream::object_text())
}

/// Returns true if `Accept` names plain text and not `text/event-stream`.
fn prefers_text(accept: &str) -> bool {
    let names = |media_type: &str| {
        let mut kinds = accept.split(',').filter_map(|range| range.split(';').next());
        kinds.any(|kind| kind.trim().eq_ignore_ascii_case(media_type))
    };
    names("text/plain") && !names("text/event-stream")
}

/// Subscribes to the chat that runs in a conversation and returns the id of its generation, or
/// `None` if no chat is running.
pub async fn attach(
    runtime: &Runtime,
    agent: &AgentDefinition,
    conversation_id: &str,
    query: &Pairs,
    caller: &Caller,
    subscriber: GenerationSubscriber,
) -> Option<Arc<str>> {
    if caller.sees_nothing() {
        return None;
    }
    let user_id = caller.subject_id(value_of(query, "userId").filter(|id| !id.is_empty()));
    runtime.attach_to_chat(&agent.id, user_id.as_deref(), conversation_id, subscriber).await
}

/// Shows a generation of the agent that the caller sees, as recorded so far.
pub async fn generation(
    runtime: &Runtime,
    agent: &AgentDefinition,
    generation_id: &str,
    caller: &Caller,
) -> Result<GenerationEntry, ApiError> {
    let entry = runtime.generation(&agent.id, generation_id, &caller.visibility()).await?;
    entry.ok_or_else(|| ApiError::GenerationNotFound(generation_id.to_owned()))
}

/// Returns what a suspended generation waits for.
pub async fn asks(runtime: &Runtime, entry: &GenerationEntry) -> Result<Vec<PendingAsk>, ApiError> {
    if entry.record.status != GenerationStatus::Suspended {
        return Ok(Vec::new());
    }
    Ok(runtime.pending_asks(&entry.record.id).await?)
}

/// Returns the parsed request, or its refusal. A generation that the caller does not see is reported
/// before an invalid body.
async fn existing<T>(
    runtime: &Runtime,
    agent: &AgentDefinition,
    generation_id: &str,
    read: Result<T, ApiError>,
    caller: &Caller,
) -> Result<T, ApiError> {
    if read.is_err() {
        generation(runtime, agent, generation_id, caller).await?;
    }
    read
}

/// Cancels a generation of the agent that the caller sees. The body is ignored, but has to be JSON.
pub async fn cancel(
    runtime: &Runtime,
    agent: &AgentDefinition,
    generation_id: &str,
    body: Sent<'_>,
    caller: &Caller,
) -> Result<(), ApiError> {
    let read = body.map_err(Clone::clone).and_then(json::parse_or_empty::<IgnoredAny>);
    existing(runtime, agent, generation_id, read, caller).await?;
    let cancelled = runtime.cancel_generation(&agent.id, generation_id, &caller.visibility()).await;
    cancelled.map_err(ApiError::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_sent_only_when_requested() {
        let rows = [
            (None, None, false),
            (Some("*/*"), None, false),
            (Some("text/*"), None, false),
            (Some("text/plain"), None, true),
            (Some("Text/Plain; charset=utf-8, */*;q=0.1"), None, true),
            (Some("text/event-stream, text/plain"), None, false),
            (Some("application/json"), Some(("format", "text")), true),
            (Some("text/plain"), Some(("format", "sse")), false),
            (None, Some(("other", "text")), false),
        ];
        for (accept, query, is_text) in rows {
            let mut request = GenerationRequest::default();
            let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
            let query: Vec<_> = query.map(pair).into_iter().collect();
            let stream = object_stream(&mut request, accept, &query).unwrap();
            assert_eq!(!stream.is_events(), is_text, "{accept:?} {query:?}");
            assert_eq!(request.object_repairs, is_text.then_some(0), "{accept:?} {query:?}");
        }
        let query = [("format".to_owned(), "xml".to_owned())];
        let refused = object_stream(&mut GenerationRequest::default(), None, &query).unwrap_err();
        assert_eq!(refused.to_string(), "Invalid query parameter format: must be sse or text");
    }
}
