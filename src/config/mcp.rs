//! `[mcp.*]`: MCP servers whose tools are tools of agents and steps.

mod oauth;

use std::sync::Arc;

use greenroom_actors::agent::Approval;
use greenroom_actors::domain::call::{UnresolvedPart, UnresolvedText, secrets_of};
use http::HeaderName;
use toml::de::DeValue;

use super::Config;
use super::calls::{MEMORY_BYTES, NOT_FOR_HEADERS, header_secret_problem, plain_secret_problem};
use super::entry::{Entry, only_one_of};
use super::features::MCP;
use super::keys::{Keys as _, Takes, section};
use super::names::Reference;
use super::problem::{ConfigProblem, Spot};
use super::programs::Program;
use super::secret::problem_of;
use super::section::Section;
use super::tools::{Parts, approval, in_scope};
use super::workflows::deepest;
use crate::adapters::mcp::settings::{
    McpLimits, McpServer, McpTransport, OnChange, OnInput, Protocol, Restart,
};
use crate::globs::Globs;

/// Longest name of a server: the names of its tools, which begin with it, have at most 64 characters.
const NAME_CHARS_MAX: usize = 32;

/// Headers that the protocol and the client set.
const OWN_HEADERS: [&str; 9] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-session-id",
    "transfer-encoding",
];
/// Begin of further headers of the protocol.
const OWN_HEADERS_BEGIN: &str = "mcp-";

/// An MCP server as configured.
#[derive(Debug, Clone)]
pub struct McpConfig {
    pub server: McpServer,
    /// The place in the file, for checks that need the whole configuration.
    pub(crate) spot: Spot,
    /// Places of headers and variables, in their order.
    texts: Vec<Spot>,
    /// The place of `oauth`.
    oauth: Spot,
}

section! {
    impl McpLimits {
        /// Number of tools whose definitions are remembered, also of those that the server has no
        /// longer.
        tools_seen_max: tools_seen_max, Takes::Integer(1..=100_000);
        /// Time limit of one call. Default: limits.tool_timeout.
        timeout: timeout, Takes::Duration;
        /// Calls at once; further ones wait.
        concurrency: concurrency, Takes::Integer(1..=1_000_000);
        /// Time limit of a call that the server has turned into a task, from the begin of the call.
        /// Tasks may wait for people.
        task_timeout: task_timeout, Takes::Duration;
        /// Time limit from the begin of a connection to the list of tools.
        connect_timeout: connect_timeout, Takes::Duration;
        /// Largest message of the server; a larger one ends the connection.
        message_bytes_max: message_bytes_max, Takes::Bytes(1 << 10..=1 << 30);
        /// Number of tools; further ones are left out.
        tools_max: tools_max, Takes::Integer(1..=10_000);
    }
}

section! {
    impl Restart {
        /// Pause after the first failed attempt; each is twice the one before.
        delay: delay, Takes::Duration;
        /// Longest pause.
        max_delay: max_delay, Takes::Duration;
    }
}

section! {
    impl OnInput {
        /// Questions of one call.
        questions_max: questions_max, Takes::Integer(1..=1000);
        /// Largest state that a server keeps with a question.
        state_bytes_max: state_bytes_max, Takes::Bytes(1..=1 << 24);
    }
}

/// Returns the problem of a server's name.
fn name_problem(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let is_good = !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(fits);
    (!is_good).then(|| format!("must be 1 to {NAME_CHARS_MAX} of the characters A-Z a-z 0-9 _ -"))
}

/// Reads a server.
pub(crate) fn read(name: &str, section: Section<'_>) -> Option<McpConfig> {
    if let Some(problem) = name_problem(name).or_else(|| MCP.lacking("connect to MCP servers")) {
        section.place.refuse(problem);
    }
    let (transport, texts) = transport(&section).unzip();
    let credentials = match &transport {
        Some(McpTransport::Http { url, .. }) => section.get("oauth").map(|it| (it, Some(url))),
        // it is misplaced
        Some(McpTransport::Program { .. }) => None,
        None => section.get("oauth").map(|entry| (entry, None)),
    };
    let credentials = credentials.map(|(entry, url)| oauth::read(&entry, &section, url));
    let tools = section.get("tools").map(|entry| globs(&entry));
    let approval = section.get("approval").map(|entry| approvals(&entry, &section));
    let retry = section.get("retry").map(|entry| globs(&entry));
    let on_input = section.get("on_input").map(|entry| on_input(&entry));
    let on_change = section.get("on_change").map(|entry| on_change(&entry));
    let protocol = section.get("protocol").map(|entry| protocol(&entry));
    let limits = McpLimits::read_keys(&section);
    let restart = section.section("restart").map(restart).unwrap_or_default();
    let server = McpServer {
        name: name.into(),
        oauth: credentials.map_or(Some(None), |oauth| oauth.map(Some))?,
        protocol: protocol.unwrap_or(Some(Protocol::Newest))?,
        tools: tools.unwrap_or_else(|| Some(Globs::default()))?,
        approval: approval.unwrap_or(Some(None))?,
        retry: retry.map_or(Some(None), |retry| retry.map(Some))?,
        on_input: on_input.unwrap_or_else(|| Some(Some(OnInput::default())))?,
        on_change: on_change.unwrap_or(Some(OnChange::Ask))?,
        limits,
        restart,
        transport: transport?,
    };
    let (spot, oauth) = (section.place.spot(), section.key_place("oauth").spot());
    warn_of_left_out(&server, &section);
    section.close();
    Some(McpConfig { server, spot, texts: texts?, oauth })
}

fn transport(section: &Section<'_>) -> Option<(McpTransport, Vec<Spot>)> {
    let (url, command) = (section.get("url"), section.get("command"));
    match (url, command) {
        (Some(url), None) => {
            for key in ["cwd", "env", "memory_bytes_max"] {
                section.misplaced(key, "belongs to a server with `command`");
            }
            let headers = section.named_entries("headers").into_iter();
            let headers: Vec<_> = headers.map(|(name, entry)| header(&name, &entry)).collect();
            let headers: Vec<_> = headers.into_iter().collect::<Option<_>>()?;
            let (headers, texts) = headers.into_iter().unzip();
            Some((McpTransport::Http { url: url.web_address()?, headers }, texts))
        }
        (None, Some(command)) => {
            for key in ["headers", "oauth"] {
                section.misplaced(key, "belongs to a server with `url`");
            }
            program(&command, section)
        }
        (url, command) => {
            // these belong to one of the two
            for key in ["cwd", "env", "headers", "memory_bytes_max"] {
                section.get(key);
            }
            match url.and(command) {
                Some(command) => command.place.refuse(only_one_of("url")),
                None => section.place.refuse("needs `url` or `command`"),
            }
            None
        }
    }
}

fn header(name: &str, entry: &Entry<'_>) -> Option<((HeaderName, UnresolvedText), Spot)> {
    let Ok(name) = HeaderName::try_from(name) else {
        return entry.refuse("is not a valid header name");
    };
    if OWN_HEADERS.contains(&name.as_str()) || name.as_str().starts_with(OWN_HEADERS_BEGIN) {
        return entry.refuse("is set by the server itself");
    }
    let written = entry.text_with_secrets("a string, e.g. \"Bearer secret:TOKEN\"")?;
    if let Some(problem) = plain_secret_problem(name.as_str(), &written) {
        entry.place.warn(problem);
    }
    if header_secret_problem(&written).is_some() {
        return entry.refuse(NOT_FOR_HEADERS);
    }
    Some(((name, plain_text(entry, &written)?), entry.place.spot()))
}

fn program(command: &Entry<'_>, section: &Section<'_>) -> Option<(McpTransport, Vec<Spot>)> {
    let argv = command.texts();
    let variables = section.named_entries("env").into_iter();
    let variables: Vec<_> = variables.map(|(name, entry)| variable(&name, &entry)).collect();
    let cwd = section.get("cwd").map(|entry| entry.filled_text());
    let memory = section.get("memory_bytes_max").map(|entry| entry.integer(MEMORY_BYTES));
    if argv.as_ref().is_some_and(|argv| argv.first().is_none_or(String::is_empty)) {
        return command.refuse("must name a program");
    }
    let variables: Vec<_> = variables.into_iter().collect::<Option<_>>()?;
    let (env, texts) = variables.into_iter().unzip();
    let transport = McpTransport::Program {
        argv: argv?,
        env,
        cwd: match cwd {
            Some(cwd) => Some(cwd?),
            None => None,
        },
        memory_bytes_max: memory.flatten().and_then(|bytes| u64::try_from(bytes).ok()),
    };
    Some((transport, texts))
}

fn variable(name: &str, entry: &Entry<'_>) -> Option<((Arc<str>, UnresolvedText), Spot)> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return entry.refuse("is not a valid name of a variable");
    }
    let written = entry.text_with_secrets("a string, e.g. \"secret:TOKEN\"")?;
    if written.contains('\0') {
        return entry.refuse("contains a zero byte, which no variable can hold");
    }
    Some(((name.into(), plain_text(entry, &written)?), entry.place.spot()))
}

/// Returns a text with the names of its secrets.
fn plain_text(entry: &Entry<'_>, written: &str) -> Option<UnresolvedText> {
    if written.contains("{{") {
        return entry.refuse("cannot be a template: all calls share the connection");
    }
    let (secrets, rest) = secrets_of(written);
    let mut parts = Vec::new();
    for (before, name) in secrets {
        parts
            .extend([UnresolvedPart::Text(before.to_owned()), UnresolvedPart::Secret(name.into())]);
    }
    parts.push(UnresolvedPart::Text(rest.to_owned()));
    Some(UnresolvedText(parts))
}

fn globs(entry: &Entry<'_>) -> Option<Globs> {
    let items = entry.items()?;
    let written = entry.texts()?;
    let parsed = Globs::parse(&written);
    parsed
        .map_err(|invalid| {
            let item = invalid.index.and_then(|index| items.get(index)).unwrap_or(entry);
            item.place.refuse(invalid.problem);
        })
        .ok()
}

/// Reads `true`, `false`, patterns of tools, or a table like that of other tools with patterns.
#[expect(clippy::option_option, reason = "outer: refused; inner: none")]
fn approvals(entry: &Entry<'_>, server: &Section<'_>) -> Option<Option<(Globs, Arc<Approval>)>> {
    let scope = in_scope(None);
    let spot_of = |keys: &[String]| deepest(server.place.clone(), server.table, keys).spot();
    let report = |problem| server.place.findings.report(problem);
    let parts = Parts { scope: &scope, spot: &spot_of, report: &report };
    match entry.value {
        DeValue::Array(_) => Some(Some((globs(entry)?, Arc::new(Approval::always())))),
        DeValue::Table(_) => {
            let section = entry.section()?;
            let tools = section.get("tools").map(|entry| globs(&entry));
            let approval = approval::read_table(section, &parts)?;
            let tools = tools.unwrap_or_else(|| Some(Globs::default()))?;
            Some(Some((tools, Arc::new(approval))))
        }
        DeValue::Boolean(is_needed) => {
            Some(is_needed.then(|| (Globs::default(), Arc::new(Approval::always()))))
        }
        _ => entry.refuse("must be true, false, patterns of tools or { tools = ..., when = ... }"),
    }
}

/// Reads `"refuse"`, or who answers questions of the server and until when.
#[expect(clippy::option_option, reason = "outer: refused; inner: none")]
fn on_input(entry: &Entry<'_>) -> Option<Option<OnInput>> {
    if !matches!(entry.value, DeValue::Table(_)) {
        entry.one_of(&[("refuse", ())])?;
        return Some(None);
    }
    let section = entry.section()?;
    let read = OnInput {
        to: section.get("to").map(|entry| approval::assignees(&entry)).unwrap_or_default(),
        deadline: section.get("deadline").and_then(|entry| entry.duration()),
        ..OnInput::read_keys(&section)
    };
    section.close();
    Some(Some(read))
}

/// Reads what becomes of tools that change.
fn on_change(entry: &Entry<'_>) -> Option<OnChange> {
    let known = [("ask", OnChange::Ask), ("use", OnChange::Use), ("drop", OnChange::Drop)];
    entry.one_of(&known)
}

/// Reads how conversations begin.
fn protocol(entry: &Entry<'_>) -> Option<Protocol> {
    entry.one_of(&[("newest", Protocol::Newest), ("2025-11-25", Protocol::Handshake)])
}

/// Reads the pauses. The longest one is at least `delay`; only where the file has both, that is its
/// mistake.
fn restart(section: Section<'_>) -> Restart {
    let Restart { delay, max_delay } = Restart::read_keys(&section);
    if max_delay < delay && section.has("delay") && section.has("max_delay") {
        section.key_place("max_delay").refuse("must not be shorter than `delay`");
    }
    section.close();
    Restart { delay, max_delay: max_delay.max(delay) }
}

/// Warns of names of tools for which something is set, and that are not used: those that `tools`
/// leaves out, and those with the name of the server, as agents and steps write them.
fn warn_of_left_out(server: &McpServer, section: &Section<'_>) {
    let prefix = format!("{}.", server.name);
    let approval = server.approval.as_ref().map(|(globs, _)| ("approval", globs));
    let retry = server.retry.as_ref().map(|globs| ("retry", globs));
    for (key, globs) in approval.into_iter().chain(retry) {
        for name in globs.names() {
            if let Some(bare) = name.strip_prefix(&prefix) {
                let message = format!("names {name}; here tools have their own names, as {bare}");
                section.key_place(key).warn(message);
            } else if !server.tools.selects(name) {
                section.key_place(key).warn(format!("names {name}, which `tools` leaves out"));
            }
        }
    }
}

impl McpConfig {
    /// Returns the program that it starts.
    pub(crate) fn program(&self) -> Option<Program> {
        let McpTransport::Program { argv, cwd, .. } = &self.server.transport else { return None };
        let program = argv.first()?;
        let spot = Spot { key: format!("{}.command", self.spot.key), ..self.spot.clone() };
        Some(Program::new(program.as_str().into(), cwd.is_some(), spot))
    }

    /// Returns the names of its secrets.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let texts = self.server.transport.texts().flat_map(|(_, text)| text.secrets());
        texts.chain(self.server.oauth.iter().map(|oauth| &*oauth.client_secret))
    }

    /// Returns the environment variables that are missing or unusable.
    pub(crate) fn check_secrets(
        &self,
        environment: &impl Fn(&str) -> Option<String>,
    ) -> Vec<ConfigProblem> {
        let is_header = matches!(self.server.transport, McpTransport::Http { .. });
        let texts = self.server.transport.texts().zip(&self.texts);
        let secrets = texts.flat_map(|((_, text), spot)| text.secrets().map(move |it| (it, spot)));
        let problem = |(name, spot): (&str, &Spot)| {
            let problem = problem_of(name, environment, |value| match is_header {
                true => header_secret_problem(value),
                false => value.contains('\0').then_some("contains a zero byte"),
            });
            problem.map(|problem| spot.error(problem))
        };
        let oauth = self.server.oauth.iter();
        let oauth = oauth.filter_map(|it| oauth::secret_problem(it, &self.oauth, environment));
        secrets.filter_map(problem).chain(oauth).collect()
    }
}

impl Config {
    /// Adds a server of Rust code, in place of one of the file. Returns false if Rust code has added
    /// one of this name before.
    pub(crate) fn add_mcp(&mut self, name: &str, server: McpConfig) -> bool {
        self.mcp.insert(name.to_owned(), server);
        self.coded_mcp.insert(name.to_owned())
    }

    /// Returns the servers of Rust code.
    pub(crate) fn coded_mcp(&self) -> impl Iterator<Item = (&String, &McpConfig)> {
        self.coded_mcp.iter().filter_map(|name| self.mcp.get_key_value(name))
    }

    /// Returns the MCP server to which a name of a tool belongs, and the tool's own name there.
    pub(crate) fn mcp_tool<'n>(&self, name: &'n str) -> Option<(&McpConfig, &'n str)> {
        let (server, tool) = name.split_once('.').filter(|(_, tool)| !tool.is_empty())?;
        Some((self.mcp.get(server)?, tool))
    }

    /// Returns tools whose names belong to MCP servers, and references to tools that are not used.
    pub(super) fn check_mcp<'r>(
        &self,
        references: impl Iterator<Item = &'r Reference>,
    ) -> Vec<ConfigProblem> {
        let taken = self.tools.iter().filter_map(|(name, tool)| {
            let (server, _) = self.mcp_tool(name)?;
            let server = &server.server.name;
            Some(tool.spot.error(format!("belongs to [mcp.{server}]; choose another name")))
        });
        let left_out = references.filter_map(|reference| {
            let (name, spot) = reference.tool()?;
            let (server, tool) = self.mcp_tool(name)?;
            let McpServer { name: server, tools, .. } = &server.server;
            let message = format!("`tools` of [mcp.{server}] leaves out {tool}");
            (!tools.selects(tool)).then(|| spot.error(message))
        });
        taken.chain(left_out).collect()
    }
}
