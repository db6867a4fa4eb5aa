//! Questions of tools that are withdrawn: their calls are not made again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::ToolDefinition;

/// Time limit of what a tool does about a withdrawn question.
const WITHDRAWAL_MAX: Duration = Duration::from_secs(10);

/// Function of a tool that gets the memo of a question which is withdrawn, because its execution,
/// step or generation is cancelled. Nothing waits for it, it has ten seconds, and it is not called
/// again after a crash.
pub type WithdrawalFunction = Arc<dyn Fn(Arc<Value>) -> BoxFuture<'static, ()> + Send + Sync>;

/// A question with a memo that is withdrawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WithdrawnQuestion {
    pub(crate) tool: Arc<str>,
    pub(crate) memo: Arc<Value>,
}

impl WithdrawnQuestion {
    /// Calls the tool's function, if it has one.
    pub(crate) fn notify(self, tools: &BTreeMap<String, Arc<ToolDefinition>>) {
        let Self { tool, memo } = self;
        let known = tools.get(&*tool);
        let Some(function) = known.and_then(|known| known.on_withdrawal.clone()) else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            if timeout(WITHDRAWAL_MAX, function(memo)).await.is_err() {
                log::debug!(
                    "tool {tool}: it was not done with a withdrawn question in {WITHDRAWAL_MAX:?}"
                );
            }
        });
    }
}
