//! MCP servers on the wire.

use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::wire::Iso;
use crate::mcp_servers::{LeftOut, ServerState, ServerStatus, Unmatched};

/// Item of `GET /tools/mcp`.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpServer)]
#[serde(rename_all = "camelCase")]
pub struct ServerView {
    /// Begin of the names of its tools, before a dot.
    name: String,
    /// `http` or `program`.
    transport: &'static str,
    state: StateView,
    /// Time since which it is connected, or not.
    since: Iso,
    /// Reason of the newest failure, while there is no connection.
    reason: Option<String>,
    /// Version of the protocol, while there is a connection.
    protocol: Option<String>,
    /// Names of its tools; of the newest connection.
    tools: Vec<String>,
    /// Tools that cannot or must not be used.
    left_out: Vec<LeftOutView>,
    /// Patterns of the configuration that match no tool of the server. While `approval` names a tool
    /// that the server does not have, every call of an agent needs approval.
    unmatched: Vec<UnmatchedView>,
    /// Calls that are being made.
    running: u64,
    /// Connections that were lost, since the start of this server.
    lost: u64,
    /// Calls that have ended, since the start of this server.
    calls: u64,
    /// Calls that failed.
    failures: u64,
}

/// State of a connection.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpServerState)]
#[serde(rename_all = "lowercase")]
enum StateView {
    Connecting,
    Ready,
    Failed,
}

/// A tool that is not used.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpToolLeftOut)]
struct LeftOutView {
    /// Its name at the server.
    name: String,
    reason: String,
}

/// A pattern that matches no tool of its server.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpPatternUnmatched)]
struct UnmatchedView {
    /// Its key: `tools`, `approval` or `retry`.
    key: &'static str,
    pattern: String,
}

/// Response of `POST /tools/mcp/:server/restart`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpServerRestarted)]
pub struct RestartedView {
    pub name: String,
}

impl From<ServerStatus> for ServerView {
    fn from(status: ServerStatus) -> Self {
        let ServerStatus { name, transport, state, reason, protocol, tools, .. } = status;
        let left_out = status.left_out.into_iter();
        let unmatched = status.unmatched.into_iter();
        Self {
            name: name.to_string(),
            transport,
            state: match state {
                ServerState::Connecting => StateView::Connecting,
                ServerState::Ready => StateView::Ready,
                ServerState::Failed => StateView::Failed,
            },
            since: Iso(status.since),
            reason: reason.map(|reason| reason.to_string()),
            protocol,
            tools,
            left_out: left_out
                .map(|LeftOut { name, why }| LeftOutView { name, reason: why })
                .collect(),
            unmatched: unmatched
                .map(|Unmatched { key, pattern }| UnmatchedView { key, pattern })
                .collect(),
            running: status.running,
            lost: status.lost,
            calls: status.calls,
            failures: status.failures,
        }
    }
}
