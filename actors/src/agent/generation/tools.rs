//! Tools as a generation calls them: which ones an agent has, and a call that always returns.
//!
//! A call is checked and bounded here (`call`), whatever it then does: run a function, run a
//! workflow (`workflow`), or ask another agent (`agent`, `delegate`). A model is not trusted with
//! names or arguments, a tool neither with time nor with the size of what it gives.

mod agent;
mod call;
mod delegate;
mod workflow;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::agent::AgentDefinition;
use crate::agent::tool::{ToolContext, ToolDefinition};
use crate::domain::failure::AttemptFailure;
use crate::domain::message::{ToolCall, ToolOutcome};
use crate::domain::trace::{SpanId, Trace};
use crate::limits::RuntimeLimits;
use crate::ports::model::{ToolSpec, Usage};
use crate::ports::workers::Lane;
use crate::registry::Registry;

use super::GenerationDeps;

pub(super) use call::bytes_within;
pub(crate) use call::{Invocation, check_shape, checked, invoke};
#[cfg(test)]
pub(crate) use workflow::NoWorkflows;
pub(crate) use workflow::RunWorkflow;

/// Longest message of a failed call, in characters: a model reads it, and pays for it.
const MESSAGE_CHARS_MAX: usize = 2_000;
/// Characters of a name that no tool has which the answer repeats.
const NAME_CHARS_SHOWN: usize = 100;

/// Bounds of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolLimits {
    /// Of a tool that has no time limit of its own.
    pub(crate) timeout: Duration,
    /// Of a result, as JSON.
    pub(crate) result_bytes_max: usize,
    /// How deep arguments and results may nest.
    pub(crate) value_depth_max: usize,
    /// Agents and workflows above one another.
    pub(crate) depth_max: u32,
    /// Generations at once, those that tools ask for included.
    pub(crate) generations_live_max: usize,
}

impl From<&RuntimeLimits> for ToolLimits {
    fn from(limits: &RuntimeLimits) -> Self {
        Self {
            timeout: limits.tool_timeout,
            result_bytes_max: limits.tool_result_bytes_max,
            value_depth_max: limits.machine.value_depth_max,
            depth_max: limits.child_depth_max,
            generations_live_max: limits.generations_live_max,
        }
    }
}

/// The tools of one agent. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Toolset {
    tools: Arc<[Arc<ToolDefinition>]>,
    specs: Arc<[ToolSpec]>,
}

/// The generation that calls.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) agent_id: Arc<str>,
    pub(crate) generation_id: Arc<str>,
    /// What a call makes belongs below this.
    pub(crate) trace: Trace,
    pub(crate) user_id: Option<Arc<str>>,
    pub(crate) conversation_id: Option<Arc<str>>,
    /// The operation context, `userId` and `conversationId` included.
    pub(crate) context: Arc<Map<String, Value>>,
    /// Agents and workflows above the caller.
    pub(crate) depth: u32,
    /// Calls of the generation before this one that had its id.
    pub(crate) repetition: usize,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolReturn {
    pub(crate) outcome: ToolOutcome,
    /// Of the agents that were asked; nothing for other tools.
    pub(crate) usage: Usage,
    /// What is known of an error beside its message.
    pub(crate) failure: Option<Box<AttemptFailure>>,
}

/// The tools of these names, then `delegate_task` where there are agents to hand work to. A name
/// that comes twice counts once. The error names what is not registered.
pub(crate) fn tools_of(
    registry: &Registry,
    names: &[String],
    sub_agents: &[String],
) -> Result<Vec<Arc<ToolDefinition>>, String> {
    let mut tools: Vec<Arc<ToolDefinition>> = Vec::with_capacity(names.len() + 1);
    for name in names {
        let tool = registry.tools.get(name);
        let tool = tool.ok_or_else(|| format!("tool {name} is not registered"))?;
        if !tools.iter().any(|known| Arc::ptr_eq(known, tool)) {
            tools.push(Arc::clone(tool));
        }
    }
    if let Some(delegate) = delegate::tool(registry, sub_agents)? {
        if tools.iter().any(|tool| tool.spec.name == delegate.spec.name) {
            return Err(format!("tool {} is also the way to sub-agents", delegate.spec.name));
        }
        tools.push(Arc::new(delegate));
    }
    Ok(tools)
}

impl Registry {
    /// The tools that an agent has whatever the context of a run is: those of its list and, for
    /// one with sub-agents, `delegate_task`, as its model is told of them. The error names what
    /// is not registered.
    pub fn tools_of(&self, agent: &AgentDefinition) -> Result<Vec<Arc<ToolDefinition>>, String> {
        let names = agent.tools.fixed().map(Vec::as_slice).unwrap_or_default();
        tools_of(self, names, &agent.sub_agents)
    }
}

impl Toolset {
    /// Finds the tools of these names, and makes `delegate_task` for an agent that has others to
    /// hand work to.
    pub(crate) fn of(
        registry: &Registry,
        names: &[String],
        sub_agents: &[String],
    ) -> Result<Self, String> {
        let tools = tools_of(registry, names, sub_agents)?;
        let specs = tools.iter().map(|tool| tool.spec.clone()).collect();
        Ok(Self { tools: tools.into(), specs })
    }

    /// What the model is told of them, in the order of the agent's list.
    pub(crate) fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// Calls a tool for a model. Never fails and never panics: arguments are checked, the call is
    /// bounded in time and its result in size, and whatever goes wrong is the outcome. Dropping
    /// the future cancels the call, with the workflow or the agent that it waits for.
    pub(crate) fn call(
        &self,
        deps: &GenerationDeps,
        caller: &Caller,
        call: ToolCall,
    ) -> BoxFuture<'static, ToolReturn> {
        let ToolCall { tool_call_id, tool_name, input } = call;
        let Some(tool) = self.tools.iter().find(|tool| tool.spec.name == tool_name) else {
            return ready(ToolReturn::error(self.not_available(&tool_name))).boxed();
        };
        let context = caller.tool_context(tool_call_id.into());
        let lane = Lane::of(&tool.spec.name, context.user_id.as_deref());
        let (deps, tool, depth) = (deps.clone(), Arc::clone(tool), caller.depth + 1);
        async move {
            let depth_max = deps.tool_limits.value_depth_max;
            match checked(&deps.evaluations, lane, &tool, given(input), depth_max).await {
                Ok(arguments) => invoke(deps, tool, Invocation { arguments, context, depth }).await,
                Err(detail) => ToolReturn::error(format!("invalid arguments: {detail}")),
            }
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

impl Caller {
    /// The same for the call that has this span, when so many before it had its id.
    pub(crate) fn below(&self, span: SpanId, repetition: usize) -> Self {
        Self { trace: self.trace.below(span), repetition, ..self.clone() }
    }

    /// The same for the same call when its turn comes again after a crash, another one for another
    /// call of the same id.
    fn idempotency_key(&self, tool_call_id: &str) -> String {
        let Self { generation_id, repetition, .. } = self;
        match repetition {
            0 => format!("{generation_id}/{tool_call_id}"),
            earlier => format!("{generation_id}/{tool_call_id}#{}", earlier + 1),
        }
    }

    fn tool_context(&self, tool_call_id: Arc<str>) -> ToolContext {
        ToolContext {
            agent_id: Some(Arc::clone(&self.agent_id)),
            generation_id: Some(Arc::clone(&self.generation_id)),
            idempotency_key: self.idempotency_key(&tool_call_id),
            tool_call_id,
            user_id: self.user_id.clone(),
            conversation_id: self.conversation_id.clone(),
            context: Arc::clone(&self.context),
            cancellation: CancellationToken::new(),
            trace: Some(self.trace.clone()),
        }
    }
}

impl ToolReturn {
    fn output(output: Value) -> Self {
        Self { outcome: ToolOutcome::Output(output), usage: Usage::default(), failure: None }
    }

    fn error(message: impl Into<String>) -> Self {
        let message = shortened(message.into(), MESSAGE_CHARS_MAX);
        Self { outcome: ToolOutcome::Error(message), usage: Usage::default(), failure: None }
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

/// For a tool without arguments models write nothing at all, or null.
fn given(input: Value) -> Value {
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

#[cfg(test)]
mod tests;
