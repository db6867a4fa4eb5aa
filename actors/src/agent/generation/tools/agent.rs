//! A tool call that asks another agent, by a generation below the caller's.

use std::sync::Arc;

use actix::Arbiter;
use serde_json::{Map, Value};

use crate::agent::generation::{
    GenerateError, GenerationDeps, GenerationRequest, spawn_generation,
};
use crate::agent::tool::ToolContext;
use crate::domain::message::{Message, Role};
use crate::ports::model::Usage;
use crate::requests::Unavailable;

use super::{ToolReturn, unavailable_for_model};

/// Asks the agent and waits for its text. Failures report the agent's usage too. Dropping the
/// future cancels the generation.
pub(super) async fn ask(
    deps: GenerationDeps,
    agent_id: &str,
    prompt: &str,
    context: &ToolContext,
    depth: u32,
) -> ToolReturn {
    let limits = deps.tool_limits;
    if depth > limits.depth_max {
        return ToolReturn::error(too_deep(limits.depth_max));
    }
    if deps.active.live() >= limits.generations_live_max {
        return ToolReturn::error(Unavailable::Busy { execution: None }.to_string());
    }
    let id = deps.clock.new_id();
    let request = request(agent_id, prompt, context, depth);
    let arbiter = Arbiter::current();
    let generation = spawn_generation(&arbiter, deps.clone(), request, id.to_string(), None);
    match generation.outcome().await {
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
        ..GenerationRequest::default()
    }
}

/// Returns the usage of a failed generation, from the history.
async fn usage_of(deps: &GenerationDeps, id: &Arc<str>) -> Usage {
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
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn identity_and_depth_are_passed_on() {
        let context = ToolContext {
            agent_id: None,
            generation_id: None,
            tool_call_id: Arc::from("call"),
            user_id: Some(Arc::from("anna")),
            conversation_id: Some(Arc::from("c1")),
            context: Arc::new(Map::from_iter([("tier".to_owned(), json!("gold"))])),
            idempotency_key: String::new(),
            cancellation: CancellationToken::new(),
            trace: None,
        };
        let request = request("clerk", "how much?", &context, 4);
        assert_eq!(request.depth, 4);
        assert_eq!(request.user_id.as_deref(), Some("anna"));
        assert_eq!(request.conversation_id.as_deref(), Some("c1"));
        assert_eq!(request.context["tier"], "gold");
    }
}
