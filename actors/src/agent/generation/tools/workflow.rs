//! A call that runs a workflow, with the arguments as its input.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use crate::agent::generation::GenerationDeps;
use crate::agent::tool::{IsInterrupted, ToolContext};
use crate::domain::fact::Suspension;
use crate::domain::hash::short_hash;
use crate::domain::ids::{ExecutionId, compensated_path};
use crate::domain::state::Outcome;
use crate::requests::{ExecutionOutcome, Halted, StartError, StartExecution};

use super::agent::too_deep;
use super::{ToolReturn, unavailable_for_model};

/// The call of a tool that runs a workflow.
pub(crate) struct WorkflowCall {
    pub(crate) start: StartExecution,
    /// Number of agents and workflows above the execution.
    pub(crate) depth: u32,
    /// True if it is that of a compensation, which another execution that undoes the same makes too.
    pub(crate) is_shared: bool,
    pub(crate) is_interrupted: Option<IsInterrupted>,
}

/// Runs workflows for tools.
pub(crate) trait RunWorkflow: Send + Sync {
    /// Starts the execution, and waits until it is suspended or ends. If the same call has started it
    /// already, waits for that one instead; if its id belongs to another execution, it gets another id.
    /// Dropping the future cancels the execution if it is still running, unless the caller is
    /// interrupted, and waits for it again later.
    fn run(&self, call: WorkflowCall) -> BoxFuture<'static, Result<ExecutionOutcome, StartError>>;
}

/// Runs the workflow and returns its result. A suspended one stays suspended, and the model is
/// informed.
pub(super) async fn run(
    deps: &GenerationDeps,
    workflow_id: &str,
    input: Value,
    context: &ToolContext,
    depth: u32,
) -> ToolReturn {
    let depth_max = deps.tool_limits.depth_max;
    if depth > depth_max {
        return ToolReturn::error(too_deep(depth_max));
    }
    let start = StartExecution {
        workflow_id: workflow_id.to_owned(),
        execution_id: Some(execution_id(context)),
        input,
        user_id: context.user_id.as_deref().map(str::to_owned),
        conversation_id: context.conversation_id.as_deref().map(str::to_owned),
        context: Map::clone(&context.context),
        idempotency: None,
        trace: context.trace.clone().into(),
    };
    let is_interrupted = context.notes.as_ref().map(|notes| Arc::clone(&notes.is_interrupted));
    let is_shared = is_of_compensation(context);
    let call = WorkflowCall { start, depth, is_shared, is_interrupted };
    let ended = deps.workflows.run(call).await;
    ended
        .map_err(|error| message_for_model(workflow_id, &error))
        .and_then(|rest| outcome_for_model(workflow_id, rest))
        .into()
}

/// Returns the same id for a repeated call, so that nothing runs twice; one that a step makes after a
/// failure is another call. The call's id is the model's and may contain anything, so only its hash
/// is used.
fn execution_id(context: &ToolContext) -> ExecutionId {
    let key = context.idempotency_key.as_str();
    let fingerprint = match &context.after {
        Some(failures) => short_hash(&[key, failures]),
        None => short_hash(&[key]),
    };
    let above = context.generation_id.as_ref().unwrap_or(&context.tool_call_id);
    ExecutionId::parse(&format!("{above}.{fingerprint}"))
        .unwrap_or_else(|_| ExecutionId::trusted(fingerprint))
}

/// Returns true for the call that a compensation makes itself.
fn is_of_compensation(context: &ToolContext) -> bool {
    context.generation_id.is_none() && compensated_path(&context.tool_call_id).is_some()
}

/// Returns the outcome as shown to the model.
fn outcome_for_model(workflow_id: &str, outcome: ExecutionOutcome) -> Result<Value, String> {
    match outcome.halted {
        Halted::Suspended { suspension, others } => {
            let others = others.as_deref().map_or(&[][..], |others| &others.suspensions);
            let all: Vec<Value> =
                std::iter::once(&*suspension).chain(others).map(suspension_for_model).collect();
            Ok(json!({
                "status": "suspended",
                "executionId": outcome.execution_id.as_str(),
                "stepId": suspension.step_id,
                "reason": suspension.reason,
                "suspensionId": suspension.id,
                "suspensions": all,
            }))
        }
        Halted::Ended { outcome: Outcome::Completed { result }, .. } => {
            Ok(Arc::unwrap_or_clone(result))
        }
        Halted::Ended { outcome: Outcome::Cancelled { reason }, .. } => {
            Err(format!("workflow {workflow_id} was cancelled: {reason}"))
        }
        Halted::Ended { outcome: Outcome::Failed { error, .. }, .. } => {
            Err(format!("workflow {workflow_id} failed: {error}"))
        }
    }
}

/// Returns a suspension as shown to the model.
fn suspension_for_model(suspension: &Suspension) -> Value {
    json!({ "id": suspension.id, "path": suspension.path, "reason": suspension.reason })
}

/// Returns the text for the model and callers.
fn message_for_model(workflow_id: &str, error: &StartError) -> String {
    if let StartError::Unavailable(why) = error {
        return unavailable_for_model(&format!("workflow {workflow_id}"), why);
    }
    error.to_string()
}

/// Stub for tests that run no workflow.
#[cfg(test)]
pub(crate) struct NoWorkflows;

#[cfg(test)]
impl RunWorkflow for NoWorkflows {
    fn run(&self, call: WorkflowCall) -> BoxFuture<'static, Result<ExecutionOutcome, StartError>> {
        Box::pin(std::future::ready(Err(StartError::UnknownWorkflow(call.start.workflow_id))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(generation_id: Option<&str>, tool_call_id: &str) -> String {
        let generation_id: Option<Arc<str>> = generation_id.map(Arc::from);
        let above = generation_id.as_deref().unwrap_or_default();
        let context = ToolContext {
            idempotency_key: format!("{above}/{tool_call_id}"),
            generation_id,
            tool_call_id: Arc::from(tool_call_id),
            ..ToolContext::for_test()
        };
        execution_id(&context).to_string()
    }

    #[test]
    fn an_execution_is_named_after_its_call() {
        let long = "x".repeat(5_000);
        let rows = [
            (Some("g1"), "call_1"),
            (Some("g1"), "call/1 with\nwhat a model makes up"),
            (Some("g1"), &long),
            (Some("g1"), ""),
            (Some(long.as_str()), "call_1"),
            (None, "0199"),
        ];
        let ids = rows.map(|(generation, call)| id(generation, call));
        for (index, (name, (generation, call))) in ids.iter().zip(rows).enumerate() {
            assert!(ExecutionId::parse(name).is_ok(), "{name}");
            assert_eq!(*name, id(generation, call), "the same call, the same id");
            assert!(!ids[..index].contains(name), "two calls, two ids");
        }
        assert!(ids[0].starts_with("g1."));
        assert!(ids[5].starts_with("0199."));
    }
}
