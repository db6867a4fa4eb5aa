//! Tools of a generation: which ones an agent has, and a call that always returns.
//!
//! Calls are checked and bounded here (`call`), for every kind of tool: a function, a workflow
//! (`workflow`), another agent (`agent`, `delegate`). A model is not trusted with names or
//! arguments, a tool neither with time nor with the size of its result.

mod agent;
mod ask_user;
mod call;
mod delegate;
mod gate;
mod question;
mod workflow;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::{Map, Value};

use crate::agent::AgentDefinition;
use crate::agent::ask::OnCrash;
use crate::agent::tool::{ASK_USER, Answers, NoteSender, ToolContext, ToolDefinition};
use crate::domain::failure::AttemptFailure;
use crate::domain::message::{ToolCall, ToolOutcome};
use crate::domain::trace::{SpanId, Trace};
use crate::limits::RuntimeLimits;
use crate::ports::model::{ToolSpec, Usage};
use crate::ports::store::McpCall;
use crate::ports::workers::Lane;
use crate::registry::Registry;
use crate::requests::Unavailable;

use super::GenerationDeps;

pub(crate) use agent::{child_of, usage_of};
pub(super) use call::fitting;
pub(crate) use call::{Invocation, check_shape, checked, invoke};
pub(crate) use gate::{ApprovalAsk, Waiting, approval_of};
#[cfg(test)]
pub(crate) use workflow::NoWorkflows;
pub(crate) use workflow::{RunWorkflow, WorkflowCall};

/// Maximum characters of an error message: a model reads it, and it costs tokens.
const MESSAGE_CHARS_MAX: usize = 2_000;
/// Outcome of a call that has to wait for a person, for callers that cannot wait.
pub(crate) const CANNOT_WAIT: &str =
    "the tool has to ask a person; only calls of agents and steps can wait for the answer";
/// Outcome of an interrupted call that is not repeated.
const INTERRUPTED: &str = "interrupted by a restart; it may or may not have had its effect";
/// Maximum characters of an unknown tool's name in the error.
const NAME_CHARS_SHOWN: usize = 100;

/// Limits of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolLimits {
    /// Default time limit.
    pub(crate) timeout: Duration,
    /// Maximum size of a result as JSON.
    pub(crate) result_bytes_max: usize,
    /// Maximum nesting of arguments and results.
    pub(crate) value_depth_max: usize,
    /// Maximum depth of agents and workflows that start one another.
    pub(crate) depth_max: u32,
    /// Maximum number of live generations, those started by tools included.
    pub(crate) generations_live_max: usize,
    /// Maximum number of open asks of one generation, those of its sub-agents included.
    pub(crate) asks_max: usize,
}

impl From<&RuntimeLimits> for ToolLimits {
    fn from(limits: &RuntimeLimits) -> Self {
        Self {
            timeout: limits.tool_timeout,
            result_bytes_max: limits.tool_result_bytes_max,
            value_depth_max: limits.machine.value_depth_max,
            depth_max: limits.child_depth_max,
            generations_live_max: limits.generations_live_max,
            asks_max: limits.generation_asks_max,
        }
    }
}

/// The tools of one agent. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Toolset {
    tools: Arc<[Arc<ToolDefinition>]>,
    specs: Arc<[ToolSpec]>,
}

/// The calling generation.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) agent_id: Arc<str>,
    pub(crate) generation_id: Arc<str>,
    /// Parent of the trace of calls.
    pub(crate) trace: Trace,
    pub(crate) user_id: Option<Arc<str>>,
    pub(crate) conversation_id: Option<Arc<str>>,
    /// The operation context, `userId` and `conversationId` included.
    pub(crate) context: Arc<Map<String, Value>>,
    /// Agents and workflows above the caller.
    pub(crate) depth: u32,
    /// Number of earlier calls of the generation with the same id.
    pub(crate) repetition: usize,
    /// True if the call may have been made before, by a process that was interrupted or by this run
    /// before it was put down.
    pub(crate) is_repeated: bool,
    /// True if a crash interrupted the call, and no person has decided about it since.
    pub(crate) is_interrupted: bool,
    /// Answers to the questions of the tool in earlier makings of the call.
    pub(crate) answers: Vec<Value>,
    /// Memo of the tool's newest question.
    pub(crate) memo: Option<Arc<Value>>,
    /// True if that is what the call has noted instead.
    pub(crate) has_noted: bool,
    /// Subject of the newest approval that the tool has asked for.
    pub(crate) approved: Option<Arc<str>>,
    /// Takes notes of the call.
    pub(crate) notes: Option<NoteSender>,
}

/// Decisions of people and interruptions that concern a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Permission {
    /// True if a person has approved the call.
    pub(crate) is_approved: bool,
    /// Schema of the tool, as a hash, that an earlier call in the conversation was approved under.
    pub(crate) approved_schema: Option<Arc<str>>,
    /// True if the call may have been interrupted since it was last approved.
    pub(crate) is_interrupted: bool,
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolReturn {
    pub(crate) outcome: ToolOutcome,
    /// Usage of agents asked; zero for other tools.
    pub(crate) usage: Usage,
    /// Details of an error.
    pub(crate) failure: Option<Box<AttemptFailure>>,
    /// Set if the call waits. The outcome is for callers that cannot wait.
    pub(crate) waits: Option<Box<Waiting>>,
    /// Request to an MCP server.
    pub(crate) mcp: Option<Box<McpCall>>,
}

/// Returns the tools of these names without duplicates, then `delegate_task` if there are
/// sub-agents. The error names what is not registered.
pub(crate) fn tools_of(
    registry: &Registry,
    names: &[String],
    sub_agents: &[String],
) -> Result<Vec<Arc<ToolDefinition>>, String> {
    let mut tools: Vec<Arc<ToolDefinition>> = Vec::with_capacity(names.len() + 1);
    for name in names {
        if name == ASK_USER {
            let made = ask_user::tool().map_err(|error| format!("tool {name}: {error}"))?;
            tools.push(Arc::new(made));
            continue;
        }
        let tool = registry.tools.get(name);
        let tool = tool.ok_or_else(|| format!("tool {name} is not registered"))?;
        if !tools.iter().any(|known| Arc::ptr_eq(known, tool)) {
            tools.push(Arc::clone(tool));
        }
    }
    if let Some(delegate) = delegate::tool(registry, sub_agents)? {
        if tools.iter().any(|tool| tool.spec.name == delegate.spec.name) {
            return Err(format!("the tool name {} is reserved for sub-agents", delegate.spec.name));
        }
        tools.push(Arc::new(delegate));
    }
    Ok(tools)
}

impl Registry {
    /// Returns the tools that an agent has in any context: its fixed list, and `delegate_task` if
    /// it has sub-agents, as shown to its model. The error names what is not registered.
    pub fn tools_of(&self, agent: &AgentDefinition) -> Result<Vec<Arc<ToolDefinition>>, String> {
        let names = agent.tools.fixed().map(Vec::as_slice).unwrap_or_default();
        tools_of(self, names, &agent.sub_agents)
    }
}

impl Toolset {
    /// Looks up the tools of these names, and adds `delegate_task` for an agent with sub-agents.
    pub(crate) fn of(
        registry: &Registry,
        names: &[String],
        sub_agents: &[String],
    ) -> Result<Self, String> {
        let tools = tools_of(registry, names, sub_agents)?;
        let specs = tools.iter().map(|tool| tool.spec.clone()).collect();
        Ok(Self { tools: tools.into(), specs })
    }

    /// Returns the descriptions for the model, in the order of the agent's list.
    pub(crate) fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// Calls a tool for a model. Never fails and never panics: arguments are checked, time and size
    /// of the result are bounded, and any failure is the outcome. Dropping the future cancels the
    /// call, and the workflow or agent that it waits for.
    pub(crate) fn call(
        &self,
        deps: &GenerationDeps,
        caller: &Caller,
        call: ToolCall,
    ) -> BoxFuture<'static, ToolReturn> {
        let ToolCall { tool_call_id, tool_name, input } = call;
        let Some(tool) = self.find(&tool_name) else {
            return ready(ToolReturn::error(self.not_available(&tool_name))).boxed();
        };
        let context = caller.tool_context(tool_call_id.into());
        let lane = Lane::of(&tool.spec.name, context.user_id.as_deref());
        let (deps, tool, depth) = (deps.clone(), Arc::clone(tool), caller.depth + 1);
        let (is_repeated, reached) = (caller.is_repeated, context.reached.clone());
        async move {
            let depth_max = deps.tool_limits.value_depth_max;
            match checked(&deps.evaluations, lane, &tool, or_empty_object(input), depth_max).await {
                Ok(arguments) => {
                    let invocation =
                        Invocation { arguments, context, depth, is_repeated, is_of_step: false };
                    let returned = invoke(deps, tool, invocation).await;
                    ToolReturn { mcp: reached.take().map(Box::new), ..returned }
                }
                Err(detail) => ToolReturn::error(format!("invalid arguments: {detail}")),
            }
        }
        .boxed()
    }

    fn find(&self, name: &str) -> Option<&Arc<ToolDefinition>> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }

    /// Returns true if calls of the tool are not always made at once.
    pub(crate) fn is_gated(&self, name: &str, permission: &Permission) -> bool {
        self.find(name).is_some_and(|tool| {
            let needs_approval = tool.approval.is_some() && !permission.allows(tool);
            needs_approval || (permission.is_interrupted && tool.on_crash != OnCrash::Repeat)
        })
    }

    /// Returns what keeps a call from being made now: an approval that it needs, or the refusal to
    /// repeat it. A call whose arguments cannot be checked fails.
    pub(crate) fn gate(
        &self,
        deps: &GenerationDeps,
        caller: &Caller,
        call: &ToolCall,
        permission: Permission,
    ) -> BoxFuture<'static, Option<ToolReturn>> {
        let Some(tool) = self.find(&call.tool_name).cloned() else { return ready(None).boxed() };
        let (deps, context) = (deps.clone(), Arc::clone(&caller.context));
        let lane = Lane::of(&tool.spec.name, caller.user_id.as_deref());
        let arguments = or_empty_object(call.input.clone());
        async move {
            if permission.is_interrupted && tool.on_crash == OnCrash::Tell {
                return Some(ToolReturn::error(INTERRUPTED));
            }
            let depth_max = deps.tool_limits.value_depth_max;
            let checked = checked(&deps.evaluations, lane, &tool, arguments, depth_max).await;
            let arguments = match checked {
                Ok(arguments) => arguments,
                // whether it needs approval is unknown
                Err(why) => return Some(ToolReturn::error(format!("invalid arguments: {why}"))),
            };
            let needed = match permission.is_interrupted {
                true => gate::approval_after_crash(&tool),
                false => None,
            };
            let needed = needed.or_else(|| {
                let is_asked = !permission.allows(&tool);
                is_asked.then(|| gate::approval_of(&tool, &arguments, &context)).flatten()
            })?;
            Some(ToolReturn::waiting(Waiting::Approval(needed)))
        }
        .boxed()
    }

    fn not_available(&self, name: &str) -> String {
        let name = shortened(name.to_owned(), NAME_CHARS_SHOWN);
        let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        match names.as_slice() {
            [] => format!("tool {name} is not available; there are no tools"),
            names => format!("tool {name} is not available; there are: {}", names.join(", ")),
        }
    }
}

impl Permission {
    /// Returns true if a call of the tool needs no further approval.
    fn allows(&self, tool: &ToolDefinition) -> bool {
        let is_known =
            |approved: &Arc<str>| gate::remembered_schema(tool).as_ref() == Some(approved);
        self.is_approved || self.approved_schema.as_ref().is_some_and(is_known)
    }
}

impl Caller {
    /// Returns the caller with the span and repetition of one of its calls.
    pub(crate) fn below(&self, span: SpanId, repetition: usize) -> Self {
        Self { trace: self.trace.below(span), repetition, ..self.clone() }
    }

    fn tool_context(&self, tool_call_id: Arc<str>) -> ToolContext {
        let key = idempotency_key(&self.generation_id, &tool_call_id, self.repetition);
        ToolContext {
            agent_id: Some(Arc::clone(&self.agent_id)),
            generation_id: Some(Arc::clone(&self.generation_id)),
            user_id: self.user_id.clone(),
            conversation_id: self.conversation_id.clone(),
            context: Arc::clone(&self.context),
            trace: Some(self.trace.clone()),
            is_repetition: self.is_interrupted,
            answers: Arc::new(Answers::new(self.answers.clone())),
            memo: self.memo.clone(),
            has_noted: self.has_noted,
            approved: self.approved.clone(),
            notes: self.notes.clone(),
            ..ToolContext::new(tool_call_id, key)
        }
    }
}

/// Returns a key that stays the same if the turn is repeated after a crash, and differs for another
/// call with the same id.
fn idempotency_key(generation_id: &str, tool_call_id: &str, repetition: usize) -> String {
    match repetition {
        0 => format!("{generation_id}/{tool_call_id}"),
        earlier => format!("{generation_id}/{tool_call_id}#{}", earlier + 1),
    }
}

impl ToolReturn {
    fn output(output: Value) -> Self {
        Self::of(ToolOutcome::Output(output))
    }

    fn error(message: impl Into<String>) -> Self {
        let message = shortened(message.into(), MESSAGE_CHARS_MAX);
        Self::of(ToolOutcome::Error(message))
    }

    /// Returns the result of a call without usage and details.
    pub(crate) fn of(outcome: ToolOutcome) -> Self {
        Self { outcome, usage: Usage::default(), failure: None, waits: None, mcp: None }
    }

    pub(crate) fn waiting(waits: Waiting) -> Self {
        Self { waits: Some(Box::new(waits)), ..Self::error(CANNOT_WAIT) }
    }

    fn failure(failure: AttemptFailure) -> Self {
        let message = failure.message.clone();
        Self { failure: Some(Box::new(failure)), ..Self::error(message) }
    }
}

impl<E: Into<String>> From<Result<Value, E>> for ToolReturn {
    fn from(result: Result<Value, E>) -> Self {
        result.map_or_else(Self::error, Self::output)
    }
}

/// Converts null and blank text to `{}`: models send these for a tool without arguments.
fn or_empty_object(input: Value) -> Value {
    match &input {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        _ => input,
    }
}

fn shortened(mut text: String, chars_max: usize) -> String {
    if let Some((cut, _)) = text.char_indices().nth(chars_max) {
        text.truncate(cut);
        text.push('…');
    }
    text
}

/// Returns the text for the model and callers about an agent or a workflow that is not available.
/// Details of the store and the runtime go to the log only.
fn unavailable_for_model(callee: &str, why: &Unavailable) -> String {
    match why {
        Unavailable::Busy { .. } | Unavailable::NoMemory | Unavailable::Draining { .. } => {
            why.to_string()
        }
        why => {
            log::warn!("{callee}, called by a tool, is not available: {why}");
            format!("{callee} is not available")
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
