//! MCP servers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_actors::agent::Approval;
use toml::{Table, Value};

use super::approval_problems;
use crate::config::{Config, ConfigProblem, McpConfig};

/// An MCP server, whose tools agents and steps use as `NAME.tool`: `[mcp.NAME]` of a configuration.
/// Programs and addresses are those of the operator, never of callers.
///
/// ```
/// use std::time::Duration;
///
/// use greenroom::Greenroom;
/// use greenroom::builder::McpServer;
///
/// let files = McpServer::command(["npx", "-y", "@modelcontextprotocol/server-filesystem", "/srv"])
///     .tools(["read_*", "list_*", "write_file"])
///     .approval(["write_file"]);
/// let issues = McpServer::url("https://mcp.example/issues")
///     .header("authorization", "Bearer secret:ISSUES_TOKEN")
///     .timeout(Duration::from_secs(20));
/// let server = Greenroom::new().mcp("files", files).mcp("issues", issues);
/// # drop(server);
/// ```
#[derive(Clone)]
#[must_use]
pub struct McpServer {
    /// As in a file, so that it is read by the same rules.
    keys: Table,
    /// Approval in place of the one that every call needs.
    approval: Option<Approval>,
}

impl McpServer {
    /// Starts a program, and speaks to it over its standard input and output. It gets `PATH`, `HOME`
    /// and what [`McpServer::env`] says.
    pub fn command<T: Into<String>>(argv: impl IntoIterator<Item = T>) -> Self {
        Self::with("command", texts(argv))
    }

    /// Connects to a server over Streamable HTTP.
    pub fn url(url: impl Into<String>) -> Self {
        Self::with("url", url.into().into())
    }

    fn with(key: &str, value: Value) -> Self {
        Self { keys: Table::new(), approval: None }.set(key, value)
    }

    fn set(mut self, key: &str, value: Value) -> Self {
        self.keys.insert(key.to_owned(), value);
        self
    }

    fn set_in(mut self, section: &str, key: &str, value: Value) -> Self {
        let inner = self.keys.entry(section).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(inner) = inner {
            inner.insert(key.to_owned(), value);
        }
        self
    }

    /// Adds a header. `secret:NAME` in its value stands for an environment variable.
    pub fn header(self, name: &str, value: impl Into<String>) -> Self {
        self.set_in("headers", name, value.into().into())
    }

    /// Sends a token with each request, which this process gets with its credentials, in place of
    /// a header `authorization`.
    pub fn oauth(self, oauth: OAuth) -> Self {
        self.set("oauth", Value::Table(oauth.0))
    }

    /// Adds a variable to the environment of the program. `secret:NAME` in its value stands for an
    /// environment variable of this process.
    pub fn env(self, name: &str, value: impl Into<String>) -> Self {
        self.set_in("env", name, value.into().into())
    }

    /// Sets the working directory of the program.
    pub fn cwd(self, folder: impl Into<String>) -> Self {
        self.set("cwd", folder.into().into())
    }

    /// Chooses the tools that are used, by patterns: `get_*`, `!get_secret`. All without this.
    pub fn tools<T: Into<String>>(self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.set("tools", texts(patterns))
    }

    /// Requires an approval of calls that agents make of these tools.
    pub fn approval<T: Into<String>>(self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.set("approval", texts(patterns))
    }

    /// Requires this approval of calls that agents make of these tools.
    pub fn approval_by<T: Into<String>>(
        mut self,
        patterns: impl IntoIterator<Item = T>,
        approval: Approval,
    ) -> Self {
        self.approval = Some(approval);
        self.approval(patterns)
    }

    /// Allows calls of these tools to be made again when it is not known whether they had their effect.
    pub fn retry<T: Into<String>>(self, patterns: impl IntoIterator<Item = T>) -> Self {
        self.set("retry", texts(patterns))
    }

    /// Refuses the questions that the server asks people; without this, they are asks.
    pub fn refuse_questions(self) -> Self {
        self.set("on_input", "refuse".into())
    }

    /// Names the users and roles who may answer the questions of the server: `user:<id>`,
    /// `role:<name>`, templates, `!self`.
    pub fn questions_to<T: Into<String>>(self, to: impl IntoIterator<Item = T>) -> Self {
        self.set_in("on_input", "to", texts(to))
    }

    /// Limits the time in which a question of the server can be answered.
    pub fn questions_deadline(self, deadline: Duration) -> Self {
        self.set_in("on_input", "deadline", milliseconds(deadline))
    }

    /// Begins with a handshake of version 2025-11-25 of the protocol, for servers that use what newer
    /// versions no longer have, such as questions while a call runs.
    pub fn older_protocol(self) -> Self {
        self.set("protocol", "2025-11-25".into())
    }

    /// Leaves out tools whose definitions change, until they are accepted; without this, calls of them
    /// need an approval.
    pub fn drop_changed(self) -> Self {
        self.set("on_change", "drop".into())
    }

    /// Uses tools as they are, also when their definitions change.
    pub fn use_changed(self) -> Self {
        self.set("on_change", "use".into())
    }

    /// Limits the number of its tools that are remembered, also of those that it has no longer: 2000
    /// without this.
    pub fn tools_seen_max(self, tools: usize) -> Self {
        self.set("tools_seen_max", number(tools))
    }

    /// Limits the time of one call.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set("timeout", milliseconds(timeout))
    }

    /// Limits the time of one call that becomes a task of the server: seven days without this.
    pub fn task_timeout(self, timeout: Duration) -> Self {
        self.set("task_timeout", milliseconds(timeout))
    }

    /// Limits the time from the begin of a connection to the list of tools: 30 s without this.
    pub fn connect_timeout(self, timeout: Duration) -> Self {
        self.set("connect_timeout", milliseconds(timeout))
    }

    /// Sets the pause before another attempt to connect, and the longest: each is twice the one before.
    pub fn restart(self, delay: Duration, max_delay: Duration) -> Self {
        let delayed = self.set_in("restart", "delay", milliseconds(delay));
        delayed.set_in("restart", "max_delay", milliseconds(max_delay))
    }

    /// Limits the number of calls at once: 100 without this.
    pub fn concurrency(self, calls: usize) -> Self {
        self.set("concurrency", number(calls))
    }

    /// Limits the memory of each process of the program, in bytes.
    pub fn memory_bytes_max(self, bytes: usize) -> Self {
        self.set("memory_bytes_max", number(bytes))
    }

    /// Limits one message of the server, in bytes: 4 MiB without this.
    pub fn message_bytes_max(self, bytes: usize) -> Self {
        self.set("message_bytes_max", number(bytes))
    }

    /// Limits the number of its tools: 500 without this.
    pub fn tools_max(self, tools: usize) -> Self {
        self.set("tools_max", number(tools))
    }

    /// Reads the server like one of a file. Returns also its problems and warnings.
    pub(crate) fn compile(self, name: &str) -> (Option<McpConfig>, Vec<ConfigProblem>) {
        let Self { keys, approval } = self;
        let named = Table::from_iter([(name.to_owned(), Value::Table(keys))]);
        let text = Table::from_iter([("mcp".to_owned(), Value::Table(named))]).to_string();
        let place = format!("MCP server {name}");
        let (mut made, mut problems) = match Config::parse(&text, &place) {
            Ok(mut config) => (config.mcp.remove(name), config.warnings),
            Err(problems) => (None, problems),
        };
        let begin = format!("mcp.{name}");
        for problem in &mut problems {
            // of the text above, which is nowhere
            (problem.line, problem.column) = (0, 0);
            let key = problem.key.strip_prefix(&begin).unwrap_or(&problem.key);
            problem.key = key.trim_start_matches('.').to_owned();
        }
        if let Some(approval) = approval {
            problems.extend(approval_problems(&format!("{name}.*"), None, &approval));
            let asked = made.as_mut().and_then(|made| made.server.approval.as_mut());
            if let Some((_, asked)) = asked {
                *asked = Arc::new(approval);
            }
        }
        (made, problems)
    }
}

/// Credentials of this process, for tokens of an MCP server over HTTP (OAuth 2.0).
///
/// ```
/// use greenroom::builder::{McpServer, OAuth};
///
/// let oauth = OAuth::client_credentials("greenroom", "secret:ISSUES_CLIENT_SECRET")
///     .scope("issues:read")
///     .token_url("https://issuer.example/token");
/// let issues = McpServer::url("https://mcp.example/issues").oauth(oauth);
/// # drop(issues);
/// ```
#[derive(Clone)]
#[must_use]
pub struct OAuth(Table);

impl OAuth {
    /// Names the client, and the environment variable that has its secret: `secret:NAME`.
    pub fn client_credentials(id: impl Into<String>, secret: impl Into<String>) -> Self {
        let id = ("client_id".to_owned(), Value::String(id.into()));
        let secret = ("client_secret".to_owned(), Value::String(secret.into()));
        Self(Table::from_iter([id, secret]))
    }

    fn set(mut self, key: &str, value: impl Into<String>) -> Self {
        self.0.insert(key.to_owned(), Value::String(value.into()));
        self
    }

    /// Sets the scope of the tokens, with spaces between its parts: what the server asks for without
    /// this.
    pub fn scope(self, scope: impl Into<String>) -> Self {
        self.set("scope", scope)
    }

    /// Sets the address that gives tokens: the one that the metadata of the server leads to without this.
    pub fn token_url(self, url: impl Into<String>) -> Self {
        self.set("token_url", url)
    }

    /// Sends the secret in the body of the request for a token: in a header without this, unless the
    /// metadata of the authorization server lists only the body.
    pub fn secret_in_body(self) -> Self {
        self.set("client_auth", "post")
    }
}

/// Shows no address and no secret that was written in place of a name.
impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.0.keys().collect();
        f.debug_struct("OAuth").field("keys", &keys).finish_non_exhaustive()
    }
}

fn texts<T: Into<String>>(items: impl IntoIterator<Item = T>) -> Value {
    Value::Array(items.into_iter().map(|item| Value::String(item.into())).collect())
}

fn milliseconds(duration: Duration) -> Value {
    Value::String(format!("{}ms", duration.as_millis()))
}

fn number(number: usize) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Shows no address and no argument, which may be confidential.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys.keys().collect();
        f.debug_struct("McpServer").field("keys", &keys).finish_non_exhaustive()
    }
}
