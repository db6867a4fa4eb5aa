//! Calls that became tasks of their server: asked for until they end, and cancelled if nothing waits
//! for them any longer.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use greenroom_actors::agent::tool::{ToolContext, ToolError, WithdrawalFunction};
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind};
use rmcp::model::{
    CallToolResult, CancelTaskParams, ErrorData, GetTaskParams, InputRequiredResult,
    InputResponses, TaskPayload, UpdateTaskParams,
};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;

use crate::adapters::mcp::calls::call::{Lost, asked, lost, refused, said};
use crate::adapters::mcp::calls::callable::CallableConnection;
use crate::adapters::mcp::calls::memo::{Memo, Next, Round};
use crate::adapters::mcp::calls::result::value_of;
use crate::adapters::mcp::connection::link::Link;
use crate::adapters::mcp::failed::failed;
use crate::mcp_servers::CallOutcome;

/// Pause between two looks at a task whose server suggests none.
const PAUSE: Duration = Duration::from_secs(1);
/// Bounds of the pauses that a server suggests.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Longest id of a task, in bytes.
const ID_BYTES_MAX: usize = 1024;

/// A task, and the answers that it waits for.
#[derive(Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) id: String,
    /// Answers that the server does not have yet.
    pub(crate) responses: Option<InputResponses>,
    /// Questions that are answered; the server may show them for a while.
    pub(crate) answered: Vec<String>,
}

/// Cancels a task that is given up: not one that has ended, waits for a person, or is followed on
/// after a restart.
struct Guard<'c> {
    id: String,
    peer: Option<Peer<RoleClient>>,
    context: &'c ToolContext,
}

impl Task {
    /// Returns a task that has just begun. Calls of agents and steps note it, and find it after a restart.
    pub(crate) async fn begun(
        link: &Link,
        id: String,
        context: &ToolContext,
    ) -> Result<Self, ToolError> {
        if id.is_empty() || id.len() > ID_BYTES_MAX {
            let why = format!("the MCP server {} sent a task with an invalid id", link.name());
            return Err(failed(ErrorKind::Response, why));
        }
        if let Ok(memo) = serde_json::to_value(Memo::Task { id: id.clone() }) {
            context.note(memo).await;
        }
        Ok(Self { id, responses: None, answered: Vec::new() })
    }

    /// Waits for the end of the task, also while connections are lost.
    pub(crate) async fn follow(
        mut self,
        link: &Link,
        tool: &str,
        context: &ToolContext,
        outcome: &mut Option<CallOutcome>,
    ) -> Result<Value, ToolError> {
        context.follow_task();
        let given = context.answers.given();
        let mut guard = Guard { id: self.id.clone(), peer: None, context };
        let (mut lost_session, mut unseen) = (None, PAUSE);
        loop {
            // without a server, the task is followed once there is one again
            let Ok(CallableConnection { peer, session, .. }) =
                link.connected(tool, lost_session.take()).await
            else {
                unseen = next_pause(unseen).await;
                continue;
            };
            guard.peer = Some(peer.clone());
            let looked = self.look(link, &peer).await;
            if looked.is_ok() {
                unseen = PAUSE;
            }
            let pause = match looked {
                Ok((TaskPayload::Working, pause)) => pause,
                Ok((TaskPayload::InputRequired { input_requests }, pause)) => {
                    let mut asked_now = input_requests;
                    asked_now.retain(|key, _| !self.answered.contains(key));
                    if !asked_now.is_empty() {
                        let asked = InputRequiredResult::new(Some(asked_now), None);
                        let asked = self.ask(link, asked, given);
                        if matches!(asked, ToolError::Waits(_)) {
                            guard.peer = None;
                        }
                        return Err(asked);
                    }
                    pause
                }
                Ok((payload, _)) => {
                    guard.peer = None;
                    return end(link, payload, outcome);
                }
                Err(Lost::Interrupted { is_closed }) => {
                    lost_session = is_closed.then_some(session);
                    unseen = next_pause(unseen).await;
                    continue;
                }
                Err(Lost::Failed(failure)) => return Err(ToolError::Failed(failure)),
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Sends the answers that are due, and reads the state with the pause before the next look.
    async fn look(
        &mut self,
        link: &Link,
        peer: &Peer<RoleClient>,
    ) -> Result<(TaskPayload, Duration), Lost> {
        if let Some(responses) = self.responses.clone() {
            let keys: Vec<_> = responses.keys().cloned().collect();
            let params = UpdateTaskParams::new(self.id.as_str(), responses);
            match peer.update_task(params).await {
                // one that refuses them may have got them before an interruption
                Ok(()) | Err(ServiceError::McpError(_)) => {}
                Err(error) => return Err(not_seen(link, &error)),
            }
            self.responses = None;
            self.answered.extend(keys);
        }
        let params = GetTaskParams::new(self.id.as_str());
        let found = peer.get_task(params).await.map_err(|error| not_seen(link, &error))?.task;
        if found.task.task_id != self.id {
            let why = format!("the MCP server {} answered about another task", link.name());
            return Err(Lost::Failed(AttemptFailure::new(ErrorKind::Response, why)));
        }
        let pause = found.task.poll_interval_ms.map_or(PAUSE, Duration::from_millis);
        Ok((found.payload, pause.clamp(PAUSE_MIN, PAUSE_MAX)))
    }

    /// Returns the end of a call whose task waits for answers.
    fn ask(self, link: &Link, asked_now: InputRequiredResult, given: &[Value]) -> ToolError {
        let round = Round::of(&link.server, asked_now, given);
        match round.map(|round| round.of_task(self.id, self.answered).next(given)) {
            Ok(Next::Ask(question, memo)) => asked(link, &question, &memo),
            // it has at least one question
            Ok(Next::Call { .. } | Next::Task(_)) => {
                failed(ErrorKind::Internal, "the task asks no question")
            }
            Err(refused) => refused,
        }
    }
}

/// Returns the function of a tool that cancels the task whose question to a person is withdrawn, if its
/// server can be reached.
pub(crate) fn on_withdrawal(link: &Arc<Link>, tool: &str) -> WithdrawalFunction {
    let (link, tool) = (Arc::clone(link), Arc::<str>::from(tool));
    Arc::new(move |memo| {
        let (link, tool) = (Arc::clone(&link), Arc::clone(&tool));
        async move {
            let Some(id) = Memo::task_of(&memo) else { return };
            match link.connected(&tool, None).await {
                Ok(CallableConnection { peer, .. }) => cancel(&peer, id).await,
                Err(_) => log::debug!("a task of the MCP server {} is left alone", link.name()),
            }
        }
        .boxed()
    })
}

async fn cancel(peer: &Peer<RoleClient>, id: String) {
    if let Err(error) = peer.cancel_task(CancelTaskParams::new(id)).await {
        log::debug!("a task of an MCP server could not be cancelled: {error}");
    }
}

/// Explains why a task was not seen. It works on, unless its server refuses to show it.
fn not_seen(link: &Link, error: &ServiceError) -> Lost {
    match lost(link, error) {
        Lost::Failed(_) if !matches!(error, ServiceError::McpError(_)) => {
            Lost::Interrupted { is_closed: false }
        }
        seen => seen,
    }
}

/// Waits after a look that saw nothing; returns the pause after the next one.
async fn next_pause(pause: Duration) -> Duration {
    tokio::time::sleep(pause).await;
    (pause * 2).min(PAUSE_MAX)
}

/// Returns the end of a call whose task has ended.
fn end(
    link: &Link,
    payload: TaskPayload,
    outcome: &mut Option<CallOutcome>,
) -> Result<Value, ToolError> {
    let server = link.name();
    match payload {
        TaskPayload::Completed { result } => {
            match serde_json::from_value::<CallToolResult>(Value::Object(result)) {
                Ok(result) => said(link.cleaned(value_of(result)), outcome),
                Err(_) => {
                    let why =
                        format!("the task of the MCP server {server} has an invalid tool result");
                    Err(failed(ErrorKind::Response, why))
                }
            }
        }
        TaskPayload::Failed { error } => {
            let read = serde_json::from_value::<ErrorData>(Value::Object(error));
            let message = read.map_or_else(|_| "the task failed".into(), |error| error.message);
            Err(ToolError::Failed(refused(link, &message)))
        }
        _ => {
            let why = format!("the task was cancelled by the MCP server {server}");
            Err(failed(ErrorKind::Tool, why))
        }
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if self.context.is_interrupted() {
            return;
        }
        let (Some(peer), Ok(runtime)) = (self.peer.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let id = std::mem::take(&mut self.id);
        runtime.spawn(async move { cancel(&peer, id).await });
    }
}
