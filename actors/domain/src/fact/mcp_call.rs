//! Requests to MCP servers, as spans describe them. No decision depends on them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The newest request of a call to an MCP server, for the span of the call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct McpCall {
    /// True over HTTP, false over the input and output of a program.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_http: bool,
    /// Host of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Arc<str>>,
    /// Id of the request in its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Arc<str>>,
    /// Name of the tool, with that of its server; `None` where the call is stored beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// Code of JSON-RPC with which the server refused the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<i32>,
}
