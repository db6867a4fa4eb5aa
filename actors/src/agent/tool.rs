//! Tools, called by agents and directly by callers.

mod content;
mod context;
mod error;
mod note;
mod read;
mod withdrawal;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

pub use self::content::Content;
pub(crate) use self::context::Expiry;
pub use self::context::{Answers, ToolContext, ToolSlot};
pub use self::error::ToolError;
pub(crate) use self::note::{IsInterrupted, Note, NoteRecipient, NoteSender, StepNote};
pub use self::withdrawal::WithdrawalFunction;
pub(crate) use self::withdrawal::WithdrawnQuestion;

use crate::agent::ask::{Approval, OnCrash};
use crate::domain::failure::AttemptFailure;
use crate::domain::plan::Plan;
use crate::domain::schema::{Schema, SchemaError};
use crate::ports::model::ToolSpec;

/// Name of the built-in tool with which an agent asks a person. Agents list it like any other tool;
/// none can be registered under this name.
pub const ASK_USER: &str = "ask_user";

/// A tool, ready to be called.
#[derive(Clone)]
pub struct ToolDefinition {
    /// Name, description and parameters, as models and callers see them.
    pub spec: ToolSpec,
    /// Compiled `spec.parameters`; checks the arguments before the call.
    pub arguments: Arc<Schema>,
    pub body: ToolBody,
    /// Time limit of one call; `None`: `RuntimeLimits::tool_timeout`.
    pub timeout: Option<Duration>,
    /// Time limit of a call that follows a task, see [`ToolContext::follow_task`]; `None`: `timeout`.
    pub task_timeout: Option<Duration>,
    /// Limits concurrent calls over all agents; further calls wait. `None`: unlimited.
    pub permits: Option<Arc<Semaphore>>,
    /// Approval that calls of agents need.
    pub approval: Option<Arc<Approval>>,
    /// Treatment of a call of an agent that a crash interrupted.
    pub on_crash: OnCrash,
    /// Called when a question of the tool is withdrawn that has a memo.
    pub on_withdrawal: Option<WithdrawalFunction>,
    /// Called before a call begins that a person has approved because the tool asked for it.
    pub on_approval: Option<ApprovalFunction>,
}

/// Implementation of a tool.
#[derive(Clone)]
pub enum ToolBody {
    /// Rust code, or an adapter that leaves the process.
    Function(ToolFunction),
    /// Runs a workflow with the arguments as its input.
    Workflow(String),
    /// Asks another agent with the argument `prompt`.
    Agent(String),
    /// Asks the agent named by the argument `agent`, one of these, with the argument `task`.
    Delegate(Vec<String>),
    /// Asks a person the argument `question`; the answer is the result.
    AskUser,
}

/// A tool as Rust code. It runs on an arbiter's thread beside other work; move blocking work to
/// `tokio::task::spawn_blocking`.
pub type ToolFunction =
    Arc<dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

/// Function of a tool that makes an approval count for more than its call. It gets the subject of the
/// approval ([`CallApproval::subject`](crate::agent::CallApproval::subject)). The call begins once it has
/// returned, and is not made if it fails. If the process ends before, both are done again.
pub type ApprovalFunction =
    Arc<dyn Fn(Arc<str>) -> BoxFuture<'static, Result<(), AttemptFailure>> + Send + Sync>;

impl ToolDefinition {
    /// Compiles the schema of the arguments.
    pub fn new(spec: ToolSpec, body: ToolBody) -> Result<Self, SchemaError> {
        let arguments = Arc::new(Schema::compile(&spec.parameters)?);
        Ok(Self::compiled(spec, arguments, body))
    }

    /// Creates a tool whose `spec.parameters` are compiled already.
    pub fn compiled(spec: ToolSpec, arguments: Arc<Schema>, body: ToolBody) -> Self {
        Self {
            spec,
            arguments,
            body,
            timeout: None,
            task_timeout: None,
            permits: None,
            approval: None,
            on_crash: OnCrash::default(),
            on_withdrawal: None,
            on_approval: None,
        }
    }

    /// Creates a tool that runs a workflow. Parameters default to the workflow's input schema, the
    /// description to its purpose.
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

    /// Returns the parameters of a tool that asks an agent.
    pub fn agent_parameters() -> Value {
        json!({
            "type": "object",
            "required": ["prompt"],
            "properties": { "prompt": { "type": "string", "description": "What to ask the agent" } }
        })
    }
}

/// Returns a workflow's input schema with `"type": "object"`, which providers require of tools.
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
            ToolBody::AskUser => "ask_user",
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
