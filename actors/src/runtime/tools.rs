//! Direct calls of tools.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::agent::ToolAsk;
use crate::agent::generation::tools::{
    CANNOT_WAIT, Invocation, ToolReturn, Waiting, approval_of, check_shape, invoke,
};
use crate::agent::tool::{Answers, ToolBody, ToolContext, ToolDefinition};
use crate::domain::assignment::{Answerer, AskRules};
use crate::domain::message::ToolOutcome;
use crate::domain::nesting::{check_depth, check_members_depth};
use crate::domain::question::declined;
use crate::domain::trace::{EntityType, Trace, TraceOrigin};
use crate::observe::log_record::LogScope;
use crate::ports::workers::Lane;
use crate::requests::Unavailable;
use crate::runtime::Runtime;

/// Maximum number of questions of one call.
const ANSWERS_MAX: usize = 16;

/// End of a call that was under way when the process stopped.
const INTERRUPTED: &str =
    "the server stopped during the call, which may or may not have had its effect";

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
    /// The making before, which has asked something; `None`: the first one.
    pub after: Option<AskedBefore>,
}

/// A making of a direct call that has asked something, and the answer. The caller keeps it: nothing
/// is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AskedBefore {
    /// Id of the call, from which its idempotency key follows.
    pub id: String,
    /// Answers so far, in the order of the questions, the newest last.
    pub answers: Vec<Value>,
    /// Schema of the newest answer.
    pub schema: Option<Value>,
    /// True if the newest question may be declined. Its answer is then as the tool gets it: see
    /// [`ToolAsk::declinable`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_declinable: bool,
    /// [`ToolAsk::memo`] of the newest question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memo: Option<Value>,
}

/// Failure of a direct call of a tool.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallToolError {
    #[error("tool {0} not found")]
    UnknownTool(String),
    /// The place, and the problem there.
    #[error("invalid tool input: {0}")]
    InvalidInput(String),
    /// Others than its caller have to approve it; an agent can ask them.
    #[error("a call of tool {name} with these arguments needs the approval of {to}")]
    NotApproved { name: String, to: String },
    /// The place, and the problem there, of the newest answer to the tool's questions.
    #[error("invalid answer: {0}")]
    InvalidAnswer(String),
    /// It asks a person. A call [`after`](CallTool::after) this one answers.
    #[error("{CANNOT_WAIT}")]
    Waits { id: String, ask: Box<ToolAsk> },
    /// It failed, panicked, timed out or returned too much.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// A call that may be made.
struct Checked {
    tool: Arc<ToolDefinition>,
    arguments: Value,
    context: Arc<Map<String, Value>>,
}

impl Runtime {
    /// Checks the arguments of a call and who makes it, for callers that do by other means what the
    /// tool does. Returns the arguments.
    pub async fn check_tool_call(&self, mut call: CallTool) -> Result<Value, CallToolError> {
        Ok(self.checked(&mut call).await?.arguments)
    }

    /// Calls a tool as an agent would: checked, bounded, and cancelled when the future is dropped.
    pub async fn call_tool(&self, mut call: CallTool) -> Result<Value, CallToolError> {
        let Checked { tool, arguments, context } = self.checked(&mut call).await?;
        let CallTool { name, user_id, trace, after, .. } = call;
        let deps = self.generation_deps();
        if self.shared.is_draining() {
            return Err(Unavailable::Draining { execution: None }.into());
        }
        let (id, answers, memo) = match after {
            Some(AskedBefore { id, answers, memo, .. }) => (Arc::from(id), answers, memo),
            None => (self.shared.clock.new_id(), Vec::new(), None),
        };
        // Not on the caller's thread, which may belong to the front end.
        let arbiter = self.arbiters.spread(&id).ok_or(Unavailable::ActorLost)?;
        let trace = caller_trace(&id, &tool, trace);
        let scope = scope_of_call(user_id.as_deref(), trace.as_ref());
        let context = ToolContext {
            user_id: user_id.map(Arc::from),
            context,
            trace,
            answers: Arc::new(Answers::new(answers)),
            memo: memo.map(Arc::new),
            // the same once a question of the call is answered
            ..ToolContext::new(Arc::clone(&id), id.to_string())
        };
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
        // not a refusal, which clients would repeat
        let ended = || CallToolError::Failed(INTERRUPTED.to_owned());
        let ToolReturn { outcome, waits, .. } = reply.await.map_err(|_| ended())?;
        match (outcome, waits.map(|waits| *waits)) {
            (_, Some(Waiting::Input(ask))) => {
                Err(CallToolError::Waits { id: id.to_string(), ask: Box::new(ask) })
            }
            (ToolOutcome::Output(output), _) => Ok(output),
            (ToolOutcome::Error(message) | ToolOutcome::Denied(message), _) => {
                // nothing else records it
                log::info!(tool:% = name; "tool {name}: a direct call failed: {message}");
                Err(CallToolError::Failed(message))
            }
        }
    }

    /// Takes the arguments and the context of a call that may be made.
    async fn checked(&self, call: &mut CallTool) -> Result<Checked, CallToolError> {
        let Some(tool) = self.registry().tools.get(&call.name).cloned() else {
            return Err(CallToolError::UnknownTool(call.name.clone()));
        };
        let (input, context) = (std::mem::take(&mut call.input), std::mem::take(&mut call.context));
        let depth_max = self.shared.limits.machine.value_depth_max;
        check_shape(&input, depth_max).map_err(CallToolError::InvalidInput)?;
        let lane = Lane::of(&call.name, call.user_id.as_deref());
        let evaluations = &self.shared.evaluations;
        let checked = evaluations.check_for_request(lane, &tool.arguments, input).await?;
        let arguments =
            checked.map_err(|violation| CallToolError::InvalidInput(violation.to_string()))?;
        self.check_answer(lane, call.after.as_ref()).await?;
        check_members_depth(&context, depth_max)
            .map_err(|too_deep| CallToolError::InvalidInput(format!("context: {too_deep}")))?;
        let context = Arc::new(context_of(call.user_id.as_deref(), context));
        if let Some(answerer) = &call.answerer {
            check_approval(&tool, &arguments, &context, answerer)?;
        }
        Ok(Checked { tool, arguments, context })
    }

    /// Checks the newest answer, and that there are not more than of a call of an agent.
    async fn check_answer(
        &self,
        lane: Lane,
        after: Option<&AskedBefore>,
    ) -> Result<(), CallToolError> {
        let Some(AskedBefore { answers, schema, is_declinable, .. }) = after else {
            return Ok(());
        };
        if answers.len() > ANSWERS_MAX {
            let why = format!("there are more than {ANSWERS_MAX} answers");
            return Err(CallToolError::InvalidAnswer(why));
        }
        let depth_max = self.shared.limits.machine.value_depth_max;
        for answer in answers {
            let checked = check_depth(answer, depth_max);
            checked.map_err(|too_deep| CallToolError::InvalidAnswer(too_deep.to_string()))?;
        }
        let Some((schema, answer)) = schema.as_ref().zip(answers.last()) else { return Ok(()) };
        let answer = match is_declinable {
            true if declined(answer).is_some() => return Ok(()),
            true => answer.get("content").unwrap_or(answer),
            false => answer,
        };
        let evaluations = &self.shared.evaluations;
        let compiled = evaluations.compile_for_request(lane, schema.clone()).await?;
        let schema = compiled.map_err(|why| CallToolError::InvalidAnswer(why.to_string()))?;
        let checked = evaluations.check_for_request(lane, &schema, answer.clone()).await?;
        checked.map(drop).map_err(|problem| CallToolError::InvalidAnswer(problem.to_string()))
    }
}

/// Returns the caller's trace, if it sent one or came through an API that is recorded, with the tool's
/// workflow or agent as its root here.
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
    let starts_nothing = matches!(tool.body, ToolBody::Function(_) | ToolBody::AskUser);
    let is_needed = origin != TraceOrigin::New && !(starts_nothing && origin.is_new());
    is_needed.then(|| Trace::of(id, root_type, &root_id, origin))
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
