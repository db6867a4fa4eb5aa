//! One request of a call. It is cancelled at the server if its future is dropped.

use std::sync::Arc;

use greenroom_actors::agent::tool::ToolContext;
use greenroom_actors::ports::store::McpCall;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientRequest, InputRequiredResult, RequestId, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use tokio::sync::Notify;

use crate::adapters::mcp::calls::trace;
use crate::adapters::mcp::connection::link::Link;

/// Answer to a call.
pub(crate) enum Reply {
    Complete(CallToolResult),
    InputRequired(InputRequiredResult),
    /// It asks for something that cannot be shown to people.
    InvalidInputRequired,
    /// The id of a task.
    Task(String),
    /// No result of a tool.
    Foreign,
}

/// Cancels a request unless it has ended.
struct Guard {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
    /// Notified when it is given up.
    given_up: Arc<Notify>,
}

/// Makes a call, and passes on the progress that its server reports.
pub(crate) async fn call(
    link: &Link,
    peer: &Peer<RoleClient>,
    params: CallToolRequestParams,
    context: &ToolContext,
) -> Result<Reply, ServiceError> {
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
    let options = PeerRequestOptions::no_options();
    let handle = peer.send_cancellable_request(request, options).await?;
    let listener = link.progress.begin(handle.progress_token.clone());
    let info = peer.peer_info();
    let version = info.as_deref().map(|info| &info.protocol_version);
    let traced = trace::of(&link.server.transport, version, &link.session_id, &handle.id);
    context.reached(traced.clone());
    let id = Some(handle.id.clone());
    let mut guard = Guard { peer: peer.clone(), id, given_up: Arc::clone(&link.given_up) };
    let result = tokio::select! {
        biased;
        never = listener.pass_on(link, context) => match never {},
        result = handle.await_response() => result,
    };
    guard.id = None;
    if let Err(ServiceError::McpError(refused)) = &result {
        context.reached(McpCall { error_code: Some(refused.code.0), ..traced });
    }
    let result = result?;
    Ok(match result {
        ServerResult::CallToolResult(result) => Reply::Complete(result),
        ServerResult::InputRequiredResult(result) => Reply::InputRequired(result),
        ServerResult::CreateTaskResult(result) => Reply::Task(result.task.task_id),
        ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => {
            Reply::Complete(CallToolResult::default())
        }
        ServerResult::CustomResult(result) => match &result.0 {
            result if result["resultType"] == "input_required" => Reply::InvalidInputRequired,
            // a result without content
            Value::Object(members) if members.keys().all(|name| name == "_meta") => {
                Reply::Complete(CallToolResult::default())
            }
            _ => Reply::Foreign,
        },
        _ => Reply::Foreign,
    })
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        self.given_up.notify_one();
        let reason = Some("the caller no longer waits".to_owned());
        let params = CancelledNotificationParam::new(Some(id), reason);
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let notification = CancelledNotification::new(params);
            if let Err(error) = peer.send_notification(notification.into()).await {
                log::debug!("a call of an MCP server could not be cancelled: {error}");
            }
        });
    }
}
