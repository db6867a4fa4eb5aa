//! One call of a tool of a server, from the thread of its caller.

use std::sync::Arc;

use futures_util::FutureExt as _;
use greenroom_actors::agent::tool::{ToolContext, ToolError, ToolFunction};
use greenroom_actors::domain::failure::{AttemptFailure, ErrorKind, shortened};
use rmcp::ServiceError;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, MetaObject, RequestMetaObject,
};
use serde_json::{Map, Value};

use super::connect::{was_not_sent, why_not_sent};
use super::link::{Link, Peered};
use super::result::value_of;

/// Member of `_meta` with the key that stays the same when a call is repeated.
const IDEMPOTENCY_KEY: &str = "greenroom/idempotencyKey";
/// Longest message of a server about a refused call.
const MESSAGE_BYTES_MAX: usize = 4096;

/// End of an attempt that has no result.
enum Lost {
    /// The call may have been made. `is_closed`: the connection is lost for all calls.
    Interrupted {
        is_closed: bool,
    },
    Failed(AttemptFailure),
}

/// Returns the function of a tool. It waits for a server that is being connected, and fails at once
/// while one is away.
pub(super) fn function(link: &Arc<Link>, tool: &str) -> ToolFunction {
    let (link, tool) = (Arc::clone(link), Arc::<str>::from(tool));
    Arc::new(move |arguments, context| {
        let (link, tool) = (Arc::clone(&link), Arc::clone(&tool));
        async move {
            let mut count = Count { link: &link, has_failed: true };
            let called = call(&link, &tool, arguments, &context).await;
            count.has_failed = called.is_err();
            called
        }
        .boxed()
    })
}

/// Counts a call when it ends, also one that is given up.
struct Count<'l> {
    link: &'l Link,
    has_failed: bool,
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.link.count(self.has_failed);
    }
}

/// Calls a tool. If the connection is lost meanwhile, a call that may be repeated is made once more.
async fn call(
    link: &Link,
    tool: &str,
    arguments: Value,
    context: &ToolContext,
) -> Result<Value, ToolError> {
    let Value::Object(arguments) = arguments else {
        return Err(failed(ErrorKind::Schema, "invalid arguments: not a JSON object"));
    };
    let server = link.name();
    let (mut may_repeat, mut lost_session) = (true, None);
    loop {
        let Peered { peer, session, is_repeatable } = link.connected(tool, lost_session).await?;
        if context.is_repetition && !is_repeatable {
            return Err(interrupted());
        }
        let params = params(tool, arguments.clone(), context);
        match peer.call_tool_once(params).await.map_err(|error| lost(link, &error)) {
            Ok(CallToolResponse::Complete(result)) => return value_of(link.cleaned(result)),
            Ok(CallToolResponse::InputRequired(_)) => {
                let why = format!("the MCP server {server} asks a person, which is not supported");
                return Err(failed(ErrorKind::Tool, why));
            }
            Ok(_) => {
                let why = format!("the MCP server {server} gave a task, which is not supported");
                return Err(failed(ErrorKind::Tool, why));
            }
            Err(Lost::Interrupted { is_closed }) if is_repeatable && may_repeat => {
                (may_repeat, lost_session) = (false, is_closed.then_some(session));
            }
            Err(Lost::Interrupted { .. }) => return Err(interrupted()),
            Err(Lost::Failed(failure)) => return Err(ToolError::Failed(failure)),
        }
    }
}

fn params(
    tool: &str,
    arguments: Map<String, Value>,
    context: &ToolContext,
) -> CallToolRequestParams {
    let mut meta = Map::new();
    meta.insert(IDEMPOTENCY_KEY.to_owned(), Value::from(context.idempotency_key.as_str()));
    for (name, value) in context.trace.iter().flat_map(|trace| trace.headers()) {
        meta.insert(name.to_owned(), Value::from(value));
    }
    let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    params.meta = Some(RequestMetaObject(MetaObject(meta)));
    params
}

fn lost(link: &Link, error: &ServiceError) -> Lost {
    let server = link.name();
    match error {
        ServiceError::McpError(error) => {
            let message = shortened(&error.message, MESSAGE_BYTES_MAX);
            let message = link.without_secrets(message.to_owned());
            Lost::Failed(AttemptFailure::new(ErrorKind::Tool, message))
        }
        ServiceError::TransportSend(error) => {
            link.suspect();
            let error = error.error.as_ref();
            if was_not_sent(error) {
                let why = format!("the MCP server {server}: {}", why_not_sent(error));
                return Lost::Failed(AttemptFailure::new(ErrorKind::Connection, why));
            }
            log::info!("MCP server {server}: a call was interrupted: {}", why_not_sent(error));
            Lost::Interrupted { is_closed: false }
        }
        ServiceError::TransportClosed | ServiceError::Cancelled { .. } => {
            Lost::Interrupted { is_closed: true }
        }
        _ => {
            let why = format!("the answer of the MCP server {server} is no result of a tool");
            Lost::Failed(AttemptFailure::new(ErrorKind::Response, why))
        }
    }
}

fn interrupted() -> ToolError {
    failed(ErrorKind::Connection, "the call was interrupted; it may have happened")
}

pub(super) fn failed(kind: ErrorKind, why: impl Into<String>) -> ToolError {
    ToolError::Failed(AttemptFailure::new(kind, why))
}

impl Link {
    /// Removes the secrets of the connection from a result.
    fn cleaned(&self, result: CallToolResult) -> CallToolResult {
        if !self.has_secrets() {
            return result;
        }
        let text = serde_json::to_string(&result).map(|text| self.without_secrets(text));
        let cleaned = text.and_then(|text| serde_json::from_str(&text));
        cleaned.unwrap_or_default()
    }
}
