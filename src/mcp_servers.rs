//! The MCP servers of a configuration, as callers and metrics see them. Adapters keep the connections;
//! this module knows no protocol and no web framework.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use greenroom_actors::domain::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Annotation of the schema of an answer: a page that a server wants opened before, as an object with
/// its address (`url`) and, if that is of another host than the server, the host of the server
/// (`serverHost`).
pub const OPEN_PAGE: &str = "openPage";

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

/// Bounds of the durations of calls, in seconds: those of steps, as a call may wait for a connection or
/// follow a task.
pub const CALL_BOUNDS: [f64; 10] =
    [0.005, 0.02, 0.08, 0.32, 1.28, 5.12, 20.48, 81.92, 600.0, 3600.0];

/// Outcome of a call of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    Completed,
    /// The tool said that it failed.
    ToolError,
    /// There is no result: the server was away, refused the call, or answered what cannot be read.
    Failed,
    /// A person has to answer or approve first. With the answer, the call is made again.
    Asked,
    TimedOut,
    /// It was given up by what made it.
    Cancelled,
    /// The connection was lost or this process ended meanwhile; the call may have happened.
    Interrupted,
}

impl CallOutcome {
    /// Every outcome, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Completed,
        Self::ToolError,
        Self::Failed,
        Self::Asked,
        Self::TimedOut,
        Self::Cancelled,
        Self::Interrupted,
    ];

    /// Returns the name of the outcome.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::ToolError => "tool_error",
            Self::Failed => "failed",
            Self::Asked => "asked",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Calls that have ended since the start of this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls by outcome, in the order of [`CallOutcome::ALL`].
    pub outcomes: [u64; CallOutcome::ALL.len()],
    /// Calls that took no longer than each of [`CALL_BOUNDS`], and all of them.
    pub durations: [u64; CALL_BOUNDS.len() + 1],
    pub duration_sum: Duration,
}

impl CallCounts {
    /// Returns the calls that have ended.
    pub fn ended(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// Returns those that have no result, and wait for no person. What tools say about themselves is a
    /// result.
    pub fn failures(&self) -> u64 {
        use CallOutcome::{Asked, Completed, ToolError};
        let others = [Completed, ToolError, Asked].map(|it| self.outcomes[it as usize]);
        self.ended() - others.iter().sum::<u64>()
    }
}

/// A tool of a server that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name at the server.
    pub name: String,
    pub why: String,
}

/// Part of a tool's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ChangedPart {
    /// Text for models about the tool, and its title.
    Description,
    /// Schema of the arguments.
    Parameters,
    /// Schema of the result.
    Result,
    /// Hints of the server about its effects.
    Annotations,
}

impl ChangedPart {
    /// Returns the name of the part.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Description => "description",
            Self::Parameters => "parameters",
            Self::Result => "result",
            Self::Annotations => "annotations",
        }
    }
}

/// A tool whose definition is not the accepted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedTool {
    /// Its name at the server.
    pub name: String,
    /// Hash of the definition that it has now.
    pub hash: Arc<str>,
    pub first_seen: Timestamp,
    /// Time since which the accepted definition is accepted.
    pub accepted_at: Timestamp,
    /// The parts that differ.
    pub parts: Vec<ChangedPart>,
    /// The new description around its first difference, if it differs.
    pub description: Option<String>,
}

/// Reason why a definition is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAccepted {
    NoServer,
    NoTool,
    /// The tool does not have the definition of this hash.
    Differs,
    /// The store cannot be read or written. The text is for the log.
    Unavailable(String),
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
    pub changed: Vec<ChangedTool>,
    pub unmatched: Vec<Unmatched>,
    /// Calls that are being made.
    pub running: u64,
    /// Connections that were lost since the start of this process.
    pub lost: u64,
    pub calls: CallCounts,
}

/// The servers of a configuration.
pub trait McpServers: Send + Sync {
    /// Returns all servers, by name.
    fn statuses(&self) -> Vec<ServerStatus>;

    /// Returns once tools can be called as [`statuses`](Self::statuses) described them before, or after
    /// a second, if they cannot be put in use.
    fn settled(&self) -> BoxFuture<'_, ()>;

    /// Ends the connection and begins another one. Returns false if there is no server of this name.
    fn restart(&self, name: &str) -> bool;

    /// Accepts the definitions that tools of a server have now: that of one tool, which has to have this
    /// hash if one is given, or of all that have changed. Returns the names of those that were not
    /// accepted before, once that is durable.
    fn accept<'a>(
        &'a self,
        name: &'a str,
        tool: Option<(&'a str, Option<&'a str>)>,
    ) -> BoxFuture<'a, Result<Vec<String>, NotAccepted>>;
}

impl fmt::Debug for dyn McpServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpServers")
    }
}
