//! Direct calls of tools.

use std::sync::{Arc, Weak};

use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::agent::generation::tools::{Invocation, approval_of, check_shape, invoke};
use crate::agent::tool::{ToolBody, ToolContext, ToolDefinition};
use crate::domain::assignment::{Answerer, AskRules};
use crate::domain::message::ToolOutcome;
use crate::domain::nesting::check_members_depth;
use crate::domain::trace::{EntityType, Trace, TraceOrigin};
use crate::home::Home;
use crate::observe::log_record::LogScope;
use crate::ports::workers::Lane;
use crate::requests::Unavailable;
use crate::runtime::Runtime;

/// A direct call of a tool.
#[derive(Debug, Clone, Default)]
pub struct CallTool {
    pub name: String,
    pub input: Value,
    pub user_id: Option<String>,
    /// Caller that has to be one of those who may approve the call, if the call needs approval; its
    /// own call is its approval. `None` calls in any case.
    pub answerer: Option<Answerer>,
    pub context: Map<String, Value>,
    pub trace: TraceOrigin,
}

/// Failure of a direct call of a tool.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallToolError {
    #[error("tool {0} not found")]
    UnknownTool(String),
    /// The place, and the problem there.
    #[error("invalid tool input: {0}")]
    InvalidInput(String),
    /// Others have to approve it: an agent can ask them, its caller is none of them.
    #[error("a call of tool {name} with these arguments needs the approval of {to}")]
    NotApproved { name: String, to: String },
    /// It failed, panicked, timed out or returned too much.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl Runtime {
    /// Calls a tool as an agent would: checked, bounded, and cancelled when the future is dropped.
    pub async fn call_tool(&self, call: CallTool) -> Result<Value, CallToolError> {
        let CallTool { name, input, user_id, answerer, context, trace } = call;
        let deps = self.generation_deps();
        let Some(tool) = deps.registry.tools.get(&name).cloned() else {
            return Err(CallToolError::UnknownTool(name));
        };
        let depth_max = self.shared.limits.machine.value_depth_max;
        check_shape(&input, depth_max).map_err(CallToolError::InvalidInput)?;
        let lane = Lane::of(&name, user_id.as_deref());
        let checked =
            self.shared.evaluations.check_for_request(lane, &tool.arguments, input).await?;
        let arguments =
            checked.map_err(|violation| CallToolError::InvalidInput(violation.to_string()))?;
        check_members_depth(&context, depth_max)
            .map_err(|too_deep| CallToolError::InvalidInput(format!("context: {too_deep}")))?;
        let context = Arc::new(context_of(user_id.as_deref(), context));
        if let Some(answerer) = &answerer {
            check_approval(&tool, &arguments, &context, answerer)?;
        }
        let ended = Unavailable::Draining { execution: None };
        if self.shared.is_draining() {
            return Err(ended.into());
        }
        let id = self.shared.clock.new_id();
        // Not on the caller's thread, which may belong to the front end.
        let arbiter = self.arbiters.spread(&id).ok_or(Unavailable::ActorLost)?;
        let trace = caller_trace(&id, &tool, trace);
        let scope = scope_of_call(user_id.as_deref(), trace.as_ref());
        let context = ToolContext { trace, ..direct_context(id, user_id, context) };
        let invocation =
            Invocation { arguments, context, depth: 0, is_repeated: false, is_of_step: false };
        let work = invoke(deps, tool, invocation);
        let (mut answer, reply) = oneshot::channel();
        let (running, ending) = (self.shared.bodies.enter(None), self.shared.ending.clone());
        arbiter.spawn(scope.during(async move {
            let _running = running;
            tokio::select! {
                returned = work => drop(answer.send(returned)),
                // The caller has disconnected.
                () = answer.closed() => {}
                () = ending.cancelled() => {}
            }
        }));
        match reply.await.map(|returned| returned.outcome) {
            Ok(ToolOutcome::Output(output)) => Ok(output),
            Ok(ToolOutcome::Error(message) | ToolOutcome::Denied(message)) => {
                Err(CallToolError::Failed(message))
            }
            Err(_) => Err(ended.into()),
        }
    }
}

/// Returns the caller's trace, if it sent one, with the tool's workflow or agent as its root here.
/// `None`: the workflow or agent begins its own.
fn caller_trace(id: &str, tool: &ToolDefinition, origin: TraceOrigin) -> Option<Trace> {
    let (root_type, root_id) = match &tool.body {
        ToolBody::Workflow(id) => (EntityType::Workflow, id),
        ToolBody::Agent(id) => (EntityType::Agent, id),
        // a function has no root; the target of a delegate is known from the call only
        ToolBody::Function(_) | ToolBody::Delegate(_) | ToolBody::AskUser => {
            (EntityType::Agent, &tool.spec.name)
        }
    };
    let root_id = Arc::from(root_id.as_str());
    (origin != TraceOrigin::New).then(|| Trace::of(id, root_type, &root_id, origin))
}

/// Returns the ids attached to log records of a call: those of the request, with its user and trace.
fn scope_of_call(user_id: Option<&str>, trace: Option<&Trace>) -> Arc<LogScope> {
    let request = LogScope::current().unwrap_or_default();
    Arc::new(LogScope {
        trace_id: trace.map(|trace| Arc::clone(&trace.id)),
        user_id: user_id.map(Arc::from),
        ..LogScope::clone(&request)
    })
}

/// Checks that the caller may approve the call, if that needs approval.
fn check_approval(
    tool: &ToolDefinition,
    arguments: &Value,
    context: &Arc<Map<String, Value>>,
    answerer: &Answerer,
) -> Result<(), CallToolError> {
    let Some(needed) = approval_of(tool, arguments, context) else { return Ok(()) };
    let rules = AskRules { to: needed.to, ..AskRules::default() };
    let Answerer { user, roles } = answerer;
    if rules.admits(user.as_deref(), roles, user.as_deref()) {
        return Ok(());
    }
    let to: Vec<_> = rules.to.iter().map(ToString::to_string).collect();
    Err(CallToolError::NotApproved { name: tool.spec.name.clone(), to: to.join(", ") })
}

fn context_of(user_id: Option<&str>, mut context: Map<String, Value>) -> Map<String, Value> {
    if let Some(user_id) = user_id {
        context.insert("userId".to_owned(), Value::from(user_id));
    }
    context
}

fn direct_context(
    id: Arc<str>,
    user_id: Option<String>,
    context: Arc<Map<String, Value>>,
) -> ToolContext {
    ToolContext {
        agent_id: None,
        generation_id: None,
        // This call is not repeated.
        idempotency_key: id.to_string(),
        tool_call_id: id,
        user_id: user_id.map(Arc::from),
        conversation_id: None,
        context,
        cancellation: CancellationToken::new(),
        trace: None,
        is_repetition: false,
        answers: Arc::default(),
        slot: Weak::new(),
        home: Home::default(),
    }
}
