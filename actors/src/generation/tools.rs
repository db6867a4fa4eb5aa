//! The tools of a run: what the model may ask for, and the calls it makes.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::domain::message::{ToolCall, ToolOutcome};
use crate::generation::GenerationDeps;
use crate::ports::model::{ToolSpec, Usage};
use crate::registry::Registry;
use crate::tool::{ToolBody, ToolContext, ToolDefinition};

/// The tools that a run may use. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Toolset {
    tools: Arc<[Arc<ToolDefinition>]>,
}

/// Who calls.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) agent_id: Arc<str>,
    pub(crate) generation_id: Arc<str>,
    pub(crate) user_id: Option<Arc<str>>,
    pub(crate) conversation_id: Option<Arc<str>>,
    pub(crate) context: Arc<Map<String, Value>>,
    pub(crate) depth: u32,
}

/// What a call gave, and the tokens that agents used for it.
pub(crate) struct ToolReturn {
    pub(crate) outcome: ToolOutcome,
    pub(crate) usage: Usage,
}

impl Toolset {
    /// The error names a tool that is not registered.
    pub(crate) fn of(
        registry: &Registry,
        names: &[String],
        _sub_agents: &[String],
    ) -> Result<Self, String> {
        let tools = names.iter().map(|name| {
            let tool = registry.tools.get(name).cloned();
            tool.ok_or_else(|| format!("tool {name} is not registered"))
        });
        Ok(Self { tools: tools.collect::<Result<_, _>>()? })
    }

    /// What the model is told of them.
    pub(crate) fn specs(&self) -> Arc<[ToolSpec]> {
        self.tools.iter().map(|tool| tool.spec.clone()).collect()
    }

    /// Never fails and never panics. Dropping the future cancels the call.
    pub(crate) fn call(
        &self,
        _deps: &GenerationDeps,
        caller: &Caller,
        call: ToolCall,
    ) -> BoxFuture<'static, ToolReturn> {
        let tool = self.tools.iter().find(|tool| tool.spec.name == call.tool_name);
        let Some(ToolBody::Function(function)) = tool.map(|tool| &tool.body) else {
            let outcome = ToolOutcome::Error(format!("tool {} not found", call.tool_name));
            return ready(ToolReturn { outcome, usage: Usage::default() }).boxed();
        };
        let context = ToolContext {
            agent_id: Some(Arc::clone(&caller.agent_id)),
            generation_id: Some(Arc::clone(&caller.generation_id)),
            idempotency_key: format!("{}/{}", caller.generation_id, call.tool_call_id),
            tool_call_id: Arc::from(call.tool_call_id),
            user_id: caller.user_id.clone(),
            conversation_id: caller.conversation_id.clone(),
            context: Arc::clone(&caller.context),
            cancellation: CancellationToken::new(),
        };
        let called = function(call.input, context);
        let _ = caller.depth;
        async move {
            let outcome = match called.await {
                Ok(output) => ToolOutcome::Output(output),
                Err(error) => ToolOutcome::Error(error.to_string()),
            };
            ToolReturn { outcome, usage: Usage::default() }
        }
        .boxed()
    }
}
