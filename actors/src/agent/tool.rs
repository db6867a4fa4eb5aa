//! Tools, called by agents and directly by callers.

mod content;
mod error;
mod note;
mod read;
mod withdrawal;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

pub use self::content::Content;
pub use self::error::ToolError;
pub(crate) use self::note::{NOTE_BYTES_MAX, Note, NoteRecipient, NoteSender, StepNote};
pub use self::withdrawal::WithdrawalFunction;
pub(crate) use self::withdrawal::WithdrawnQuestion;

use crate::agent::ask::{Approval, OnCrash, ToolAsk};
use crate::domain::expression::json_bytes_exceed;
use crate::domain::note::Queued;
use crate::domain::plan::Plan;
use crate::domain::schema::{Schema, SchemaError};
use crate::domain::trace::Trace;
use crate::function::ProgressSender;
use crate::home::Home;
use crate::ports::model::ToolSpec;
use crate::ports::store::McpCall;

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

/// Context of one call, for a tool's function.
#[derive(Debug, Clone)]
#[non_exhaustive]
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
    /// Stays the same when this call is repeated. Pass it on to services that the tool calls.
    pub idempotency_key: String,
    /// Fires when the call is cancelled or timed out. The future itself is dropped then; the token
    /// stops work that it has moved to other threads.
    pub cancellation: CancellationToken,
    /// Trace of the call, below the call's own span; pass it on to what the tool calls, over HTTP
    /// with [`Trace::headers`]. For a direct call, the caller's trace, if it sent one.
    pub trace: Option<Trace>,
    /// True if the call is made again because its process ended during the attempt before, which may
    /// have had its effect. For agents, `on_crash` decides first whether it is.
    pub is_repetition: bool,
    /// Answers of people to earlier makings of this call.
    pub answers: Arc<Answers>,
    /// [`ToolAsk::memo`] of the newest ask of this call, or what it has noted since.
    pub memo: Option<Arc<Value>>,
    /// [`CallApproval::subject`](crate::agent::CallApproval::subject) of the newest approval of a person
    /// that this call has asked for.
    pub approved: Option<Arc<str>>,
    /// Sends progress, if the call is that of a step.
    pub(crate) progress: ProgressSender,
    /// True if `memo` is what the call has noted, and not that of a question.
    pub(crate) has_noted: bool,
    /// Takes notes, unless it is a direct call.
    pub(crate) notes: Option<NoteSender>,
    /// Its place among the concurrent calls of the tool, if these are limited.
    pub(crate) slot: Weak<OwnedSemaphorePermit>,
    /// Fires when the call follows a task.
    pub(crate) follows_task: CancellationToken,
    pub(crate) reached: Reached,
    pub(crate) expiry: Expiry,
    pub(crate) home: Home,
}

/// The place of a call among the concurrent calls of its tool, which is free once this is dropped.
#[derive(Debug)]
#[must_use = "the place is free once this is dropped"]
pub struct ToolSlot {
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}

/// Newest request of a call to an MCP server. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reached(Arc<Mutex<Option<McpCall>>>);

impl Reached {
    pub(crate) fn take(&self) -> Option<McpCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Mark of a call whose time is over. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Expiry(Arc<AtomicBool>);

impl Expiry {
    /// Sets the mark; has to come before the call is dropped.
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers to the questions of a call, in the order in which it asked them.
#[derive(Debug, Default)]
pub struct Answers {
    given: Vec<Value>,
    taken: AtomicUsize,
}

impl Answers {
    pub(crate) fn new(given: Vec<Value>) -> Self {
        Self { given, taken: AtomicUsize::new(0) }
    }

    /// Returns all answers, also those that [`ToolContext::ask`] has returned.
    pub fn given(&self) -> &[Value] {
        &self.given
    }

    fn next(&self) -> Option<&Value> {
        self.given.get(self.taken.fetch_add(1, Ordering::Relaxed))
    }
}

impl ToolContext {
    /// Creates a context like that of a direct call without a caller, for unit tests. The fields are
    /// public and can be set.
    ///
    /// ```
    /// use greenroom_actors::agent::tool::ToolContext;
    ///
    /// let mut context = ToolContext::for_test();
    /// context.user_id = Some("ann".into());
    /// assert_eq!(context.idempotency_key, "test");
    /// ```
    pub fn for_test() -> Self {
        Self {
            agent_id: None,
            generation_id: None,
            tool_call_id: Arc::from("test"),
            user_id: None,
            conversation_id: None,
            context: Arc::default(),
            idempotency_key: "test".to_owned(),
            cancellation: CancellationToken::new(),
            trace: None,
            is_repetition: false,
            answers: Arc::default(),
            memo: None,
            approved: None,
            progress: ProgressSender::default(),
            has_noted: false,
            notes: None,
            slot: Weak::new(),
            follows_task: CancellationToken::new(),
            reached: Reached::default(),
            expiry: Expiry::default(),
            home: Home::default(),
        }
    }

    /// Holds the place of the call among the concurrent calls of its tool, for work on another thread.
    /// A call that times out or is cancelled frees its place otherwise, while such work continues.
    pub fn hold_slot(&self) -> ToolSlot {
        ToolSlot { _permit: self.slot.upgrade() }
    }

    /// Says that the call from now on follows a task, which works elsewhere. Its place among the
    /// concurrent calls of the tool becomes free, and `ToolDefinition::task_timeout` limits its time.
    pub fn follow_task(&self) {
        self.follows_task.cancel();
    }

    /// Sends a `step-progress` with this `event` to the current subscribers of the execution whose step
    /// makes the call. Nothing is recorded. Returns false if it was not sent: in calls of agents and
    /// direct ones, without subscribers when the attempt began, above 64 kB, and above a hundred per
    /// second.
    pub fn progress(&self, event: impl Into<Value>) -> bool {
        self.progress.0.as_ref().is_some_and(|send| send(event.into()))
    }

    /// Says which request to an MCP server the call has made, for the span of a call of an agent or of an
    /// attempt of a step. The newest one counts.
    pub fn reached(&self, request: McpCall) {
        *self.reached.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
    }

    /// Notes where the call can continue if this process ends: it is made again then, whatever
    /// `on_crash` of the tool says, and finds this as [`ToolContext::memo`]. In a step, that is for
    /// attempts that were interrupted; one that follows a failure is another call. Returns true once
    /// the note is durable, and false if nothing is noted: for direct calls, and above 128 KiB.
    pub async fn note(&self, memo: Value) -> bool {
        let Some(notes) = &self.notes else { return false };
        if json_bytes_exceed(&memo, NOTE_BYTES_MAX) {
            return false;
        }
        notes.send(Arc::new(memo)).await
    }

    /// Notes that the call waits for its place among the concurrent calls of its tool. One that continues
    /// from its own note has no need of that.
    pub(super) async fn note_queued(&self) -> bool {
        let queued = Queued { memo: self.memo.clone(), is_repetition: self.is_repetition };
        !self.has_noted && self.note(queued.to_note()).await
    }

    /// Withdraws that note, before the call is made. Returns true once that is durable.
    pub(super) async fn withdraw_queued(&self) -> bool {
        match &self.notes {
            Some(notes) => notes.withdraw(self.memo.clone()).await,
            None => true,
        }
    }

    /// Returns the context with true if the process before ended while the call waited for its place: it
    /// is made as if it had not waited.
    pub(super) fn after_queue(self) -> (Self, bool) {
        match self.memo.as_deref().and_then(Queued::of) {
            Some(Queued { memo, is_repetition }) => {
                (Self { memo, is_repetition, has_noted: false, ..self }, true)
            }
            None => (self, false),
        }
    }

    /// Returns true if the call is dropped because the process ends, or another one continues what
    /// makes it; false if it is given up. A call that has noted where it continues leaves alone then
    /// what it follows.
    pub fn is_interrupted(&self) -> bool {
        self.notes.as_ref().is_some_and(|notes| (notes.is_interrupted)())
    }

    /// Returns true if the call is dropped because its time is over, by its own limit or by that of the
    /// attempt that makes it; false if it is given up for another reason.
    pub fn has_timed_out(&self) -> bool {
        self.expiry.0.load(Ordering::Relaxed)
    }

    /// Asks a person, and waits for the answer for as long as it takes: the call ends with this
    /// error, the generation is put down, and once there is an answer the tool is called again, with
    /// the same arguments and idempotency key. This then returns the answer. A tool that asks
    /// several questions has to ask them in the same order each time.
    ///
    /// A step that calls the tool suspends in the same way. Direct calls cannot wait, and fail.
    pub fn ask(&self, ask: ToolAsk) -> Result<Value, ToolError> {
        self.answers.next().cloned().ok_or_else(|| ToolError::Waits(Box::new(ask)))
    }
}

/// A tool as Rust code. It runs on an arbiter's thread beside other work; move blocking work to
/// `tokio::task::spawn_blocking`.
pub type ToolFunction =
    Arc<dyn Fn(Value, ToolContext) -> BoxFuture<'static, Result<Value, ToolError>> + Send + Sync>;

impl ToolDefinition {
    /// Compiles the schema of the arguments.
    pub fn new(spec: ToolSpec, body: ToolBody) -> Result<Self, SchemaError> {
        let arguments = Arc::new(Schema::compile(&spec.parameters)?);
        let on_crash = OnCrash::default();
        Ok(Self {
            spec,
            arguments,
            body,
            timeout: None,
            task_timeout: None,
            permits: None,
            approval: None,
            on_crash,
            on_withdrawal: None,
        })
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
