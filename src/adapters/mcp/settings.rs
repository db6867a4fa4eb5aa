//! Settings of a server: how it is reached, and which of its tools are used in which way.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::Approval;
use greenroom_actors::agent::tool::ToolDefinition;
use greenroom_actors::domain::assignment::Assignee;
use greenroom_actors::domain::call::UnresolvedText;
use http::HeaderName;
use url::Url;

use crate::globs::Globs;

/// An MCP server.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// Begin of the names of its tools, before a dot.
    pub name: Arc<str>,
    pub transport: McpTransport,
    /// Tokens for a server over HTTP, in place of an `authorization` header.
    pub oauth: Option<OAuth>,
    /// The begin of conversations.
    pub protocol: Protocol,
    /// Tools that are used.
    pub tools: Globs,
    /// Tools whose calls by agents need an approval.
    pub approval: Option<(Globs, Arc<Approval>)>,
    /// Tools that may be called again though the server does not say so.
    pub retry: Option<Globs>,
    /// Asks for its questions; `None`: they are refused.
    pub on_input: Option<OnInput>,
    /// Treatment of tools whose definition changes.
    pub on_change: OnChange,
    pub limits: McpLimits,
    pub restart: Restart,
}

/// Limits of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpLimits {
    /// Maximum number of tools whose definitions are remembered.
    pub tools_seen_max: usize,
    /// Time limit of one call; `None`: that of all tools.
    pub timeout: Option<Duration>,
    /// Maximum number of calls at once; further ones wait.
    pub concurrency: usize,
    /// Time limit of a call that has become a task of the server: tasks may wait for people.
    pub task_timeout: Duration,
    /// Time limit from the begin of a connection to the list of tools.
    pub connect_timeout: Duration,
    /// Largest message of the server, in bytes.
    pub message_bytes_max: usize,
    /// Maximum number of its tools; further ones are left out.
    pub tools_max: usize,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            tools_seen_max: 2000,
            timeout: None,
            concurrency: 100,
            task_timeout: Duration::from_secs(7 * 24 * 60 * 60),
            connect_timeout: Duration::from_secs(30),
            message_bytes_max: 4 << 20,
            tools_max: 500,
        }
    }
}

/// Pauses between attempts to connect to a server, or to start its program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restart {
    /// Pause after the first failed attempt.
    pub delay: Duration,
    /// Longest pause; each is twice the one before.
    pub max_delay: Duration,
}

impl Default for Restart {
    fn default() -> Self {
        Self { delay: Duration::from_secs(1), max_delay: Duration::from_secs(60) }
    }
}

impl McpServer {
    /// Returns a tool of the server with what its section says: the limits of time, and the approval.
    /// `is_guarded`: its calls need approval whatever its name.
    pub fn define(&self, tool: &str, is_guarded: bool, made: ToolDefinition) -> ToolDefinition {
        let approval = self.approval.as_ref();
        let approval = approval.filter(|(globs, _)| is_guarded || globs.selects(tool));
        ToolDefinition {
            timeout: self.limits.timeout,
            task_timeout: Some(self.limits.task_timeout),
            approval: approval.map(|(_, approval)| Arc::clone(approval)),
            ..made
        }
    }

    /// Returns true if `retry` lets a tool be called again, whatever the server says of it.
    #[cfg(feature = "mcp")]
    pub(crate) fn may_repeat(&self, tool: &str) -> bool {
        self.retry.as_ref().is_some_and(|globs| globs.selects(tool))
    }
}

/// Reason of a tool that is left out because `tools` of its server does not select it.
pub const LEFT_OUT_BY_CHOICE: &str = "`tools` leaves it out";

/// The begin of a conversation with a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    /// The newest version that both know.
    #[default]
    Newest,
    /// A handshake: version 2025-11-25 of the protocol, or an older one that the server chooses.
    Handshake,
}

/// Treatment of a tool whose definition is not the one that was first seen or accepted since.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnChange {
    /// Calls of agents need an approval, others are refused, until a person accepts it.
    #[default]
    Ask,
    /// It is accepted at once.
    Use,
    /// The tool is left out until a person accepts it.
    Drop,
}

/// Asks for the questions of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnInput {
    /// Users and roles that may answer.
    pub to: Vec<Assignee>,
    /// Time after which the call fails without an answer.
    pub deadline: Option<Duration>,
    /// Maximum number of questions of one call.
    pub questions_max: usize,
    /// Largest state that a server may have kept with a question, in bytes.
    pub state_bytes_max: usize,
}

impl Default for OnInput {
    fn default() -> Self {
        Self { to: Vec::new(), deadline: None, questions_max: 10, state_bytes_max: 64 * 1024 }
    }
}

/// Tokens that this process gets with its credentials (OAuth 2.0, `client_credentials`).
#[derive(Clone, PartialEq, Eq)]
pub struct OAuth {
    pub client_id: String,
    /// Environment variable that has the secret.
    pub client_secret: Arc<str>,
    /// Scope of the tokens; `None`: what the server asks for.
    pub scope: Option<String>,
    /// Address that gives tokens; `None`: the one that the metadata of the server leads to.
    pub token_url: Option<Url>,
    /// Part of the request that has the secret; `None`: as the metadata of the authorization server says, else
    /// [`SecretIn::Header`].
    pub secret_in: Option<SecretIn>,
}

/// Part of a request for a token that has the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretIn {
    /// `client_secret_basic`.
    Header,
    /// `client_secret_post`.
    Body,
}

/// Returns true if a text can be one of the scopes of a token, between two spaces.
pub(crate) fn is_scope(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    !text.is_empty() && text.bytes().all(fits)
}

/// Shows no address, which may be confidential.
impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client_id, client_secret, scope, token_url, secret_in } = self;
        f.debug_struct("OAuth")
            .field("client_id", client_id)
            .field("client_secret", client_secret)
            .field("scope", scope)
            .field("has_token_url", &token_url.is_some())
            .field("secret_in", secret_in)
            .finish()
    }
}

/// Connection to a server.
#[derive(Clone)]
pub enum McpTransport {
    /// Streamable HTTP.
    Http { url: Url, headers: Vec<(HeaderName, UnresolvedText)> },
    /// A program that is started, and spoken to over its standard input and output.
    Program {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Its environment, beside `PATH` and `HOME`.
        env: Vec<(Arc<str>, UnresolvedText)>,
        /// Working directory; `None`: that of this process.
        cwd: Option<String>,
        /// Limit of each of its processes; `None`: that of all programs.
        memory_bytes_max: Option<u64>,
    },
}

impl McpTransport {
    /// Returns the texts in which secrets may be named, by header or variable.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &UnresolvedText)> {
        let (headers, env): (&[_], &[_]) = match self {
            Self::Http { headers, .. } => (headers, &[]),
            Self::Program { env, .. } => (&[], env),
        };
        let headers = headers.iter().map(|(name, text)| (name.as_str(), text));
        headers.chain(env.iter().map(|(name, text)| (&**name, text)))
    }
}

/// Shows no address and no argument, which may be confidential.
impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http { .. } => "Http",
            Self::Program { .. } => "Program",
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A server that is a program without a name.
    pub(in crate::adapters::mcp) fn server(name: &str) -> McpServer {
        McpServer {
            name: name.into(),
            transport: McpTransport::Program {
                argv: vec!["true".to_owned()],
                env: Vec::new(),
                cwd: None,
                memory_bytes_max: None,
            },
            oauth: None,
            protocol: Protocol::default(),
            tools: Globs::default(),
            approval: None,
            retry: None,
            on_input: Some(OnInput::default()),
            on_change: OnChange::default(),
            limits: McpLimits {
                tools_seen_max: 200,
                concurrency: 10,
                connect_timeout: Duration::from_secs(20),
                message_bytes_max: 1 << 20,
                tools_max: 100,
                ..McpLimits::default()
            },
            restart: Restart {
                delay: Duration::from_millis(10),
                max_delay: Duration::from_secs(1),
            },
        }
    }
}
