//! MCP servers on the wire.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::json::Closed;
use crate::api::wire::Iso;
use crate::mcp_servers::{ChangedPart, ChangedTool, LeftOut, ServerState, ServerStatus, Unmatched};

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
    /// Tools whose definitions are not the ones that were first seen, or accepted since. By `on_change`
    /// their calls need an approval, or they are left out.
    changed: Vec<ChangedView>,
    /// Patterns of the configuration that match no tool of the server. While `approval` names a tool
    /// that the server does not have, every call of an agent needs approval.
    unmatched: Vec<UnmatchedView>,
    /// Calls that are being made.
    running: u64,
    /// Connections that were lost, since the start of this server.
    lost: u64,
    /// Calls that have ended, since the start of this server.
    calls: u64,
    /// Calls that ended without a result, those included that timed out or were cancelled; not those that
    /// wait for a person.
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

/// A tool whose definition is not the accepted one.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpToolChanged)]
#[serde(rename_all = "camelCase")]
struct ChangedView {
    /// Its name at the server.
    name: String,
    /// Hash of the definition that it has now, to be named when that is accepted.
    hash: String,
    /// Time at which the server was first seen to have the tool.
    first_seen: Iso,
    /// Time since which the other definition is accepted.
    accepted_at: Iso,
    /// Parts that differ: the description or the title, the schema of the arguments, that of the result, or
    /// the hints about effects.
    parts: Vec<PartView>,
    /// The new description, if it differs, around the first difference.
    description: Option<String>,
}

/// Part of the definition of a tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpToolPart)]
#[serde(rename_all = "lowercase")]
enum PartView {
    Description,
    Parameters,
    Result,
    Annotations,
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

/// Body of `POST /tools/mcp/:server/accept`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = McpAcceptBody)]
#[serde(deny_unknown_fields)]
pub struct AcceptBody {
    /// Name of the tool at the server. Default: all tools that have changed.
    #[serde(default)]
    #[schema(example = "write_file")]
    pub tool: Option<String>,
    /// Hash of the definition that is accepted, as `GET /tools/mcp` shows it; needs `tool`. Refused with
    /// 409 if the tool has another one by now. Default: the definition that the tool has.
    #[serde(default)]
    pub hash: Option<String>,
}

impl Closed for AcceptBody {
    const KEYS: &'static [&'static str] = &["tool", "hash"];
}

/// Response of `POST /tools/mcp/:server/accept`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpToolsAccepted)]
pub struct AcceptedView {
    pub name: String,
    /// Names, at the server, of the tools whose definitions were not accepted before.
    pub accepted: Vec<String>,
}

impl From<ChangedTool> for ChangedView {
    fn from(changed: ChangedTool) -> Self {
        let ChangedTool { name, hash, first_seen, accepted_at, parts, description } = changed;
        let part = |part| match part {
            ChangedPart::Description => PartView::Description,
            ChangedPart::Parameters => PartView::Parameters,
            ChangedPart::Result => PartView::Result,
            ChangedPart::Annotations => PartView::Annotations,
        };
        Self {
            name,
            hash: hash.to_string(),
            first_seen: Iso(first_seen),
            accepted_at: Iso(accepted_at),
            parts: parts.into_iter().map(part).collect(),
            description,
        }
    }
}

impl From<ServerStatus> for ServerView {
    fn from(status: ServerStatus) -> Self {
        let ServerStatus { name, transport, state, reason, protocol, tools, .. } = status;
        let left_out = status.left_out.into_iter();
        let changed = status.changed.into_iter();
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
            changed: changed.map(ChangedView::from).collect(),
            unmatched: unmatched
                .map(|Unmatched { key, pattern }| UnmatchedView { key, pattern })
                .collect(),
            running: status.running,
            lost: status.lost,
            calls: status.calls.ended(),
            failures: status.calls.failures(),
        }
    }
}
