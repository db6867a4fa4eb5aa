//! Calls to the agent's hooks. Their panics are caught here.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};

use crate::agent::generation::GenerateError;
use crate::agent::generation::tools::ToolReturn;
use crate::agent::outcome::Generation;
use crate::agent::{Hooks, RunInfo};
use crate::domain::message::{ToolCall, ToolResult};

use super::tools::refused;
use super::{Outcome, Run};

impl Run {
    pub(super) fn info(&self) -> RunInfo {
        let of = |text: &Option<String>| text.as_deref().map(Arc::from);
        RunInfo {
            generation_id: Arc::clone(&self.id),
            agent_id: Arc::from(self.record.agent_id.as_str()),
            user_id: of(&self.record.user_id),
            conversation_id: of(&self.record.conversation_id),
            context: Arc::clone(&self.context),
        }
    }

    /// Calls `on_start`, before the first question to the model.
    pub(super) async fn start_hook(&mut self) -> Result<(), GenerateError> {
        let Some(Hooks(hooks)) = &self.agent.hooks else { return Ok(()) };
        self.is_start_hook_called = true;
        let info = self.info();
        let started = caught("on_start", async { hooks.on_start(&info).await }).await;
        let started = started.unwrap_or_else(|| Err("the hook on_start panicked".to_owned()));
        started.map_err(GenerateError::Failed)
    }

    /// Calls `on_end` once the end is decided, before it is recorded; not if `on_start` was not
    /// called, or the run is only put down.
    pub(super) async fn end_hook(&self, outcome: &Outcome) {
        let is_end = !outcome.as_ref().is_ok_and(Generation::is_suspended);
        let is_called = self.is_start_hook_called && is_end;
        let Some(Hooks(hooks)) = self.agent.hooks.as_ref().filter(|_| is_called) else {
            return;
        };
        let info = self.info();
        caught("on_end", async { hooks.on_end(&info, outcome).await }).await;
    }
}

/// Makes a call between its two hooks; skips it if the first refuses. A call that waits for people
/// has not ended.
pub(super) async fn hooked(
    hooks: Hooks,
    info: RunInfo,
    call: ToolCall,
    make: impl FnOnce(ToolCall) -> BoxFuture<'static, ToolReturn>,
) -> ToolReturn {
    let Hooks(hooks) = hooks;
    let started = caught("on_tool_start", async { hooks.on_tool_start(&info, &call).await }).await;
    match started {
        Some(Ok(())) => {}
        Some(Err(why)) => return refused(why),
        None => return refused("the hook on_tool_start panicked".to_owned()),
    }
    let returned = make(call.clone()).await;
    if returned.waits.is_some() {
        return returned;
    }
    let ToolCall { tool_call_id, tool_name, input } = call;
    let outcome = returned.outcome.clone();
    let result = ToolResult { tool_call_id, tool_name, input, outcome };
    caught("on_tool_end", async { hooks.on_tool_end(&info, &result).await }).await;
    returned
}

/// Returns `None` if the hook panicked.
async fn caught<T>(name: &str, hook: impl Future<Output = T>) -> Option<T> {
    let called = AssertUnwindSafe(hook).catch_unwind().await;
    called.inspect_err(|_| log::error!("the hook {name} of an agent panicked")).ok()
}
