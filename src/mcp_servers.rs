//! The MCP servers of a configuration, as callers and metrics see them. Adapters keep the connections;
//! this module knows no protocol and no web framework.

use std::fmt;
use std::sync::Arc;

use greenroom_actors::domain::time::Timestamp;

/// State of the connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Neither connected nor failed yet.
    Connecting,
    /// Its tools can be called.
    Ready,
    /// The newest attempt failed; there will be another.
    Failed,
}

impl ServerState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Connecting, Self::Ready, Self::Failed];

    /// Returns the name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}

/// A tool of a server that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name at the server.
    pub name: String,
    pub why: String,
}

/// A pattern of the configuration that matches no tool of its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmatched {
    /// `tools`, `approval` or `retry`.
    pub key: &'static str,
    pub pattern: String,
}

/// A server with its tools.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerStatus {
    pub name: Arc<str>,
    /// `http` or `program`.
    pub transport: &'static str,
    pub state: ServerState,
    /// Time since which it is connected, or not.
    pub since: Timestamp,
    /// The reason of a failure, without secrets.
    pub reason: Option<Arc<str>>,
    /// Version of the protocol, while it is connected.
    pub protocol: Option<String>,
    /// Names of its tools, with the name of the server; of the newest connection.
    pub tools: Vec<String>,
    pub left_out: Vec<LeftOut>,
    pub unmatched: Vec<Unmatched>,
    /// Calls that are being made.
    pub running: u64,
    /// Connections that were lost since the start of this process.
    pub lost: u64,
    /// Calls that have ended since the start of this process, and those that failed.
    pub calls: u64,
    pub failures: u64,
}

/// The servers of a configuration.
pub trait McpServers: Send + Sync {
    /// Returns all servers, by name.
    fn statuses(&self) -> Vec<ServerStatus>;

    /// Ends the connection and begins another one. Returns false if there is no server of this name.
    fn restart(&self, name: &str) -> bool;
}

impl fmt::Debug for dyn McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpServers")
    }
}
