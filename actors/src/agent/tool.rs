//! Tools: what agents may call while they work, and callers directly.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::domain::failure::{AttemptFailure, ErrorKind};
use crate::domain::plan::Plan;
use crate::domain::schema::{Schema, SchemaError};
use crate::domain::trace::Trace;
use crate::ports::model::ToolSpec;

/// A tool, ready to be called.
#[derive(Clone)]
pub struct ToolDefinition {
    /// What models and callers are told of it.
    pub spec: ToolSpec,
    /// The compiled `spec.parameters`: arguments are checked before the call.
    pub arguments: Arc<Schema>,
    pub body: ToolBody,
    /// Bound of one call; without it `RuntimeLimits::tool_timeout`.
    pub timeout: Option<Duration>,
    /// How many calls may run at once, over all agents; the others wait. No bound without it.
    pub permits: Option<Arc<Semaphore>>,
}

/// What a tool does.
#[derive(Clone)]
pub enum ToolBody {
    /// Rust code, or an adapter that leaves the process.
    Function(ToolFunction),
    /// Runs a workflow with the arguments as its input.
    Workflow(String),
    /// Asks another agent; the argument `prompt` is what it is asked.
    Agent(String),
    /// Asks the one of these agents that the argument `agent` names; the argument `task` is what
    /// it is asked.
    Delegate(Vec<String>),
}

/// What a tool's function may know.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The agent that called; none for a direct call.
    pub agent_id: Option<Arc<str>>,
    /// The generation that called; none for a direct call.
    pub generation_id: Option<Arc<str>>,
    pub tool_call_id: Arc<str>,
    pub user_id: Option<Arc<str>>,
    pub conversation_id: Option<Arc<str>>,
    /// The operation context: the caller's object plus `user`, `userId`, `conversationId`.
    pub context: Arc<Map<String, Value>>,
    /// The same whenever this call is made again: hand it to whatever the tool calls.
    pub idempotency_key: String,
    /// Fires when the call is cancelled or timed out. The future itself is dropped then; the
    /// token is for work that it has put on other threads.
    pub cancellation: CancellationToken,
    /// The trace that the call belongs to, below the call's own span: what the tool calls in turn
    /// carries it on, by [`Trace::headers`] over HTTP. Of a direct call, its caller's, if it named
    /// one.
    pub trace: Option<Trace>,
}

/// Why a tool gave nothing. The model is told its message, and callers see it; the retry of a step
/// reads its class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub AttemptFailure);

impl From<AttemptFailure> for ToolError {
    fn from(failure: AttemptFailure) -> Self {
        Self(failure)
    }
}

impl From<String> for ToolError {
    fn from(message: String) -> Self {
        Self(AttemptFailure::new(ErrorKind::Tool, message))
    }
}

impl From<&str> for ToolError {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

/// A tool as code. It runs on an arbiter's thread beside other work: what blocks belongs into
/// `tokio::task::spawn_blocking`.
pub type ToolFunction =
    Arc<dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

impl ToolDefinition {
    /// Compiles the schema of the arguments.
    pub fn new(spec: ToolSpec, body: ToolBody) -> Result<Self, SchemaError> {
        let arguments = Arc::new(Schema::compile(&spec.parameters)?);
        Ok(Self { spec, arguments, body, timeout: None, permits: None })
    }

    /// Makes a tool that runs a workflow. Without parameters of its own it takes what the
    /// workflow takes; without a description it has the workflow's purpose.
    pub fn for_workflow(
        name: impl Into<String>,
        description: Option<String>,
        parameters: Option<Value>,
        plan: &Plan,
    ) -> Result<Self, SchemaError> {
        let definition = &plan.definition;
        let spec = ToolSpec {
            name: name.into(),
            description: description.unwrap_or_else(|| definition.purpose.clone()),
            parameters: parameters
                .unwrap_or_else(|| object_schema(definition.input_schema.clone())),
        };
        Self::new(spec, ToolBody::Workflow(definition.id.clone()))
    }

    /// The arguments of a tool that asks an agent.
    pub fn agent_parameters() -> Value {
        json!({
            "type": "object",
            "required": ["prompt"],
            "properties": { "prompt": { "type": "string", "description": "What to ask the agent" } }
        })
    }
}

/// The input schema of a workflow as one of arguments: these are an object, and providers want
/// that said.
fn object_schema(schema: Option<Value>) -> Value {
    match schema {
        Some(Value::Object(mut schema)) => {
            schema.entry("type").or_insert_with(|| json!("object"));
            Value::Object(schema)
        }
        Some(_) | None => json!({ "type": "object" }),
    }
}

impl std::fmt::Debug for ToolDefinition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = match &self.body {
            ToolBody::Function(_) => "function",
            ToolBody::Workflow(_) => "workflow",
            ToolBody::Agent(_) => "agent",
            ToolBody::Delegate(_) => "delegate",
        };
        f.debug_struct("ToolDefinition")
            .field("spec", &self.spec)
            .field("body", &body)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::definition::WorkflowDefinition;

    #[test]
    fn a_workflow_as_a_tool_takes_what_the_workflow_takes() {
        let rows = [
            (None, None, json!({ "type": "object" })),
            (Some(json!(true)), None, json!({ "type": "object" })),
            (
                Some(json!({ "required": ["n"] })),
                None,
                json!({ "required": ["n"], "type": "object" }),
            ),
            (Some(json!({ "type": "array" })), None, json!({ "type": "array" })),
            (
                Some(json!({ "type": "object" })),
                Some(json!({ "type": "object", "required": ["m"] })),
                json!({ "type": "object", "required": ["m"] }),
            ),
        ];
        for (input_schema, parameters, expected) in rows {
            let nap = json!({
                "id": "nap", "name": "Nap", "purpose": "", "on_error": "fail",
                "kind": { "sleep": { "duration_ms": 1 } }
            });
            let definition = json!({
                "id": "flow", "name": "Flow", "purpose": "Flows", "steps": [nap],
                "input_schema": input_schema
            });
            let definition: WorkflowDefinition = serde_json::from_value(definition).unwrap();
            let plan = Plan::compile(definition).unwrap();
            let tool = ToolDefinition::for_workflow("flows", None, parameters, &plan).unwrap();
            assert_eq!(tool.spec.parameters, expected);
            assert_eq!(
                (tool.spec.name.as_str(), tool.spec.description.as_str()),
                ("flows", "Flows")
            );
            assert!(matches!(&tool.body, ToolBody::Workflow(id) if id == "flow"));
        }
    }
}
