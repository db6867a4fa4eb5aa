//! andAgent: a generation of its own, as a step's body.

use std::sync::Arc;

use actix::{Arbiter, Context};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::domain::ids::StepPath;
use crate::domain::machine::{AgentCall, StepResult};
use crate::execution::ExecutionActor;
use crate::generation::{GenerateError, Generation, GenerationRequest, spawn_generation};
use crate::ports::model::{Message, ModelOptions, Role};
use crate::ports::store::StepOrigin;
use crate::requests::Unavailable;

impl ExecutionActor {
    pub(super) fn start_agent(&mut self, path: &StepPath, attempt: u32, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let call = self.core.at_moment(|moment| life.machine.agent_call(path, moment));
        match call {
            None => {}
            Some(Err(error)) => self.fail_attempt(path, attempt, error, ctx),
            Some(Ok(call)) => {
                let timeout = call.timeout_ms;
                let Some(body) = self.generation(path, call) else { return };
                self.start_body(path, attempt, body, timeout, CancellationToken::new(), ctx);
            }
        }
    }

    /// The generation starts at once; dropping the body cancels it.
    fn generation(
        &self,
        path: &StepPath,
        call: AgentCall,
    ) -> Option<BoxFuture<'static, StepResult>> {
        let start = &self.life.as_ref()?.machine.state().start;
        let deps = self.core.generations.get()?.clone();
        let context = match &*start.context {
            Value::Object(context) => context.clone(),
            _ => serde_json::Map::new(),
        };
        let options = call.options.clone().unwrap_or(Value::Null);
        let max_steps = options.get("maxSteps").and_then(Value::as_u64);
        let request = GenerationRequest {
            agent_id: call.agent.to_string(),
            messages: vec![Message::text(Role::User, call.prompt.as_str())],
            input: Value::from(call.prompt),
            options: serde_json::from_value::<ModelOptions>(options).unwrap_or_default(),
            schema: call.schema.as_ref().map(|schema| Value::clone(schema)),
            max_steps: max_steps.and_then(|steps| u32::try_from(steps).ok()),
            user_id: start.user_id.as_deref().map(str::to_owned),
            conversation_id: start.conversation_id.as_deref().map(str::to_owned),
            context,
            origin: Some(StepOrigin { execution_id: self.id.clone(), path: Arc::clone(path) }),
            ..GenerationRequest::default()
        };
        let id = self.core.clock.new_id().to_string();
        let handle = spawn_generation(&Arbiter::current(), deps, request, id, None);
        Some(Box::pin(async move {
            match handle.outcome().await {
                // the process is about to end, and the step is to run again: it has no result
                Err(GenerateError::Unavailable(Unavailable::Draining { .. })) => {
                    std::future::pending().await
                }
                outcome => step_result(outcome),
            }
        }))
    }
}

fn step_result(outcome: Result<Generation, GenerateError>) -> StepResult {
    match outcome {
        Ok(Generation { object: Some(object), .. }) => StepResult::Completed(object),
        Ok(Generation { text, usage, .. }) => {
            StepResult::Completed(json!({ "text": text, "usage": usage }))
        }
        // What the store or the runtime says is for the log, not for the execution's state.
        Err(GenerateError::Unavailable(why)) => {
            log::warn!("a generation of an agent step: {why}");
            StepResult::Failed("the agent is not available".to_owned())
        }
        Err(error) => StepResult::Failed(error.to_string()),
    }
}
