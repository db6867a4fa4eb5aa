//! A tool call that asks another agent, by a generation below the caller's.

use std::sync::Arc;

use actix::Arbiter;
use serde_json::{Map, Value};

use crate::agent::generation::{
    GenerateError, GenerationDeps, GenerationRequest, spawn_generation,
};
use crate::agent::tool::ToolContext;
use crate::domain::hash::long_hash;
use crate::domain::ids::STEP_GENERATION_PREFIX;
use crate::domain::message::{Message, Role};
use crate::ports::model::Usage;
use crate::ports::store::{GenerationEntry, GenerationStatus};
use crate::requests::Unavailable;

use super::{ToolReturn, Waiting, idempotency_key, unavailable_for_model};

/// Asks the agent and waits for its text. Failures report the agent's usage too. Dropping the
/// future cancels the generation, or interrupts it if the call is made again elsewhere.
pub(super) async fn ask(
    deps: GenerationDeps,
    agent_id: &str,
    prompt: &str,
    context: &ToolContext,
    depth: u32,
    is_repeated: bool,
) -> ToolReturn {
    let limits = deps.tool_limits;
    if depth > limits.depth_max {
        return ToolReturn::error(too_deep(limits.depth_max));
    }
    // one that continues was admitted when it began
    if !is_repeated && deps.active.live() >= limits.generations_live_max {
        return ToolReturn::error(Unavailable::Busy { execution: None }.to_string());
    }
    let id = generation_id(&deps, context);
    if is_repeated && let Some(answer) = answer_of(&deps, &id).await {
        return answer;
    }
    let mut request = request(agent_id, prompt, context, depth);
    request.continues = is_repeated;
    let arbiter = Arbiter::current();
    let mut generation = spawn_generation(&arbiter, deps.clone(), request, id.to_string(), None);
    // a step that calls it again gets a new id
    if context.generation_id.is_some()
        && let Some(notes) = &context.notes
    {
        generation.leave_if(Arc::clone(&notes.is_interrupted));
    }
    match generation.outcome().await {
        Ok(answer) if answer.is_suspended() => {
            ToolReturn::waiting(Waiting::Child { generation_id: id, asks: answer.asks })
        }
        Ok(answer) => {
            ToolReturn { usage: answer.usage, ..ToolReturn::output(Value::from(answer.text)) }
        }
        Err(error) => {
            let usage = usage_of(&deps, &id).await;
            ToolReturn { usage, ..ToolReturn::error(message_for_model(agent_id, &error)) }
        }
    }
}

pub(super) fn too_deep(depth_max: u32) -> String {
    format!("agents and workflows are nested deeper than {depth_max}")
}

/// Builds the request, with the caller's user, conversation and context; the agent's memory is
/// separate.
fn request(agent_id: &str, prompt: &str, context: &ToolContext, depth: u32) -> GenerationRequest {
    GenerationRequest {
        agent_id: agent_id.to_owned(),
        messages: vec![Message::text(Role::User, prompt)],
        input: Value::from(prompt),
        user_id: context.user_id.as_deref().map(str::to_owned),
        conversation_id: context.conversation_id.as_deref().map(str::to_owned),
        context: Map::clone(&context.context),
        depth,
        trace: context.trace.clone().into(),
        parent: context.generation_id.clone(),
        ..GenerationRequest::default()
    }
}

/// Returns the id of the generation that a call asks: the same for a repeated call, so that the
/// generation continues.
fn generation_id(deps: &GenerationDeps, context: &ToolContext) -> Arc<str> {
    match &context.generation_id {
        None => deps.clock.new_id(),
        Some(_) => generation_of(&context.idempotency_key),
    }
}

fn generation_of(idempotency_key: &str) -> Arc<str> {
    let hash = long_hash(&[idempotency_key]);
    Arc::from(format!("{STEP_GENERATION_PREFIX}{hash}"))
}

/// Returns the id of the generation that a call asks, the first one of those with this id.
pub(crate) fn child_of(generation_id: &str, tool_call_id: &str) -> Arc<str> {
    generation_of(&idempotency_key(generation_id, tool_call_id, 0))
}

/// Returns the answer of a generation that has completed before.
async fn answer_of(deps: &GenerationDeps, id: &str) -> Option<ToolReturn> {
    let GenerationEntry { record, steps } = deps.generations.generation(id).await.ok()??;
    (record.status == GenerationStatus::Completed).then(|| {
        let text = steps.last().map(|step| step.text.clone()).unwrap_or_default();
        let usage = record.usage.unwrap_or_default();
        ToolReturn { usage, ..ToolReturn::output(Value::from(text)) }
    })
}

/// Returns the usage of a failed generation, from the history.
pub(crate) async fn usage_of(deps: &GenerationDeps, id: &Arc<str>) -> Usage {
    let entry = deps.generations.generation(id).await;
    entry.ok().flatten().and_then(|entry| entry.record.usage).unwrap_or_default()
}

/// Returns the text for the model and callers.
fn message_for_model(agent_id: &str, error: &GenerateError) -> String {
    if let GenerateError::Unavailable(why) = error {
        return unavailable_for_model(&format!("agent {agent_id}"), why);
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn identity_and_depth_are_passed_on() {
        let context = ToolContext {
            user_id: Some(Arc::from("anna")),
            conversation_id: Some(Arc::from("c1")),
            context: Arc::new(Map::from_iter([("tier".to_owned(), json!("gold"))])),
            ..ToolContext::for_test()
        };
        let request = request("clerk", "how much?", &context, 4);
        assert_eq!(request.depth, 4);
        assert_eq!(request.user_id.as_deref(), Some("anna"));
        assert_eq!(request.conversation_id.as_deref(), Some("c1"));
        assert_eq!(request.context["tier"], "gold");
    }
}
