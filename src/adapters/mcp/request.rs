//! One request of a call. It is cancelled at the server if its future is dropped.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotification,
    CancelledNotificationParam, ClientRequest, InputRequiredResult, RequestId, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;

/// Answer to a call.
pub(super) enum Reply {
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
}

/// Makes a call.
pub(super) async fn call(
    peer: &Peer<RoleClient>,
    params: CallToolRequestParams,
) -> Result<Reply, ServiceError> {
    let result = send(peer, ClientRequest::CallToolRequest(CallToolRequest::new(params))).await?;
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

/// Sends a request and waits for its answer.
pub(super) async fn send(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
) -> Result<ServerResult, ServiceError> {
    let options = PeerRequestOptions::no_options();
    let handle = peer.send_cancellable_request(request, options).await?;
    let mut guard = Guard { peer: peer.clone(), id: Some(handle.id.clone()) };
    let result = handle.await_response().await;
    guard.id = None;
    result
}

impl Drop for Guard {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let reason = Some("the caller no longer waits".to_owned());
        let params = CancelledNotificationParam::new(Some(id), reason);
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let notification = CancelledNotification::new(params);
            if let Err(error) = peer.send_notification(notification.into()).await {
                log::debug!("a call of an MCP server was not cancelled: {error}");
            }
        });
    }
}
