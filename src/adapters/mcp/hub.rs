//! All servers: the thread of their connections, and their tools for the registry.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use greenroom_actors::agent::OnCrash;
use greenroom_actors::agent::tool::{
    ApprovalFunction, ToolBody, ToolDefinition, ToolFunction, WithdrawalFunction,
};
use greenroom_actors::ports::model::ToolSpec;
use greenroom_actors::ports::store::KnownTools;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use crate::adapters::mcp::connection::connect::McpEnvironment;

use crate::adapters::mcp::calls::call::{function, placeholder};
use crate::adapters::mcp::calls::task::on_withdrawal;
use crate::adapters::mcp::connection::connect::start_checks;
use crate::adapters::mcp::connection::link::Link;
use crate::adapters::mcp::settings::{McpServer, McpTransport};
use crate::adapters::mcp::tools::admission::{Listed, RemoteTool};
use crate::adapters::mcp::tools::records::Records;
use crate::adapters::mcp::tools::review::on_approval;
use crate::mcp_servers::{McpServers, NotAccepted, ServerStatus};

/// Longest wait for the end of programs when the process stops. Each of them is killed after a grace,
/// but one that waits for a disk ends when the disk answers.
const STOP_MAX: Duration = Duration::from_secs(5);
/// Pause between two looks whether they have ended.
const STOP_PAUSE: Duration = Duration::from_millis(5);
/// Longest wait until changes of tools are in use. It takes some 20 ms, unless the store is away.
const IN_USE_MAX: Duration = Duration::from_secs(1);

/// A tool that a server may have once it is connected.
pub struct Placeholder {
    pub function: ToolFunction,
    pub on_withdrawal: WithdrawalFunction,
    pub on_approval: ApprovalFunction,
    /// Places of concurrent calls of all tools of the server.
    pub permits: Arc<Semaphore>,
}

/// The MCP servers of a configuration.
pub struct McpHub {
    links: BTreeMap<String, Arc<Link>>,
    records: Records,
    changes: watch::Receiver<u64>,
    /// The newest change that is in use.
    in_use: watch::Sender<u64>,
    stop: CancellationToken,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Tools by the names of their servers.
    defined: Mutex<BTreeMap<String, Defined>>,
}

impl McpHub {
    /// Prepares servers; none is connected before [`McpHub::start`].
    pub fn new(servers: impl IntoIterator<Item = McpServer>, environment: &McpEnvironment) -> Self {
        let (sender, changes) = watch::channel(0);
        let records = Records::default();
        let link = |server: McpServer| {
            let name = server.name.to_string();
            (
                name,
                Arc::new(Link::new(server, environment.clone(), records.clone(), sender.clone())),
            )
        };
        let links = servers.into_iter().map(link).collect();
        Self {
            links,
            records,
            changes,
            in_use: watch::Sender::new(0),
            stop: CancellationToken::new(),
            thread: Mutex::default(),
            defined: Mutex::default(),
        }
    }

    /// Begins to connect all servers, on a separate thread, and returns at once. The store knows the
    /// definitions of their tools. Must be called on a thread that has a runtime.
    pub fn start(&self, store: Arc<dyn KnownTools>) -> io::Result<()> {
        if self.links.is_empty() {
            return Ok(());
        }
        start_checks()?;
        self.records.open(store);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (links, stop) = (self.links.values().cloned().collect::<Vec<_>>(), self.stop.clone());
        let thread = std::thread::Builder::new().name("mcp".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let running = links.into_iter().map(|link| tokio::spawn(link.run(stop.clone())));
                for link in running.collect::<Vec<_>>() {
                    if let Err(error) = link.await {
                        log::error!("a connection to an MCP server ended unexpectedly: {error}");
                    }
                }
            });
        })?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Closes all connections, and waits for the end of their programs, for five seconds at most.
    pub async fn stop(&self) {
        self.stop.cancel();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        let deadline = Instant::now() + STOP_MAX;
        while !thread.is_finished() {
            if Instant::now() >= deadline {
                log::warn!("programs of MCP servers have not ended within {STOP_MAX:?}");
                return;
            }
            sleep(STOP_PAUSE).await;
        }
        if thread.join().is_err() {
            log::error!("the thread of MCP servers ended unexpectedly");
        }
    }

    /// Returns true if there are any.
    pub fn has_servers(&self) -> bool {
        !self.links.is_empty()
    }

    /// Returns a counter that changes whenever there are other tools.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.clone()
    }

    /// Notes that the tools are in use as they were after a change.
    pub fn use_change(&self, number: u64) {
        self.in_use.send_replace(number);
    }

    /// Returns the functions of a tool that a server may have once it is connected, and the places of
    /// its concurrent calls.
    pub fn placeholder(&self, server: &str, tool: &str) -> Option<Placeholder> {
        let link = self.links.get(server)?;
        Some(Placeholder {
            function: placeholder(link, tool),
            on_withdrawal: on_withdrawal(link, tool),
            on_approval: on_approval(link, tool),
            permits: Arc::clone(&link.permits),
        })
    }

    /// Returns the known tools of these servers, with the names of the registry.
    pub fn tools(&self, of: impl Fn(&str) -> bool) -> Vec<Arc<ToolDefinition>> {
        let mut defined = self.defined.lock().unwrap_or_else(PoisonError::into_inner);
        let links = self.links.iter().filter(|(name, _)| of(name));
        links
            .flat_map(|(name, link)| defined_of(link, defined.entry(name.clone()).or_default()))
            .collect()
    }
}

/// The tools of a list as they are registered.
#[derive(Default)]
struct Defined {
    listed: Arc<Listed>,
    tools: Vec<Arc<ToolDefinition>>,
}

/// Returns the tools of a server. They are made once for each list, however often other servers change
/// theirs.
fn defined_of(link: &Arc<Link>, known: &mut Defined) -> Vec<Arc<ToolDefinition>> {
    let listed = link.listed();
    if !Arc::ptr_eq(&listed, &known.listed) {
        let tools = listed.tools.iter();
        known.tools = tools.map(|tool| definition(link, tool, listed.is_guarded)).collect();
        known.listed = listed;
    }
    known.tools.clone()
}

/// `is_guarded`: its calls need approval whatever its name.
fn definition(link: &Arc<Link>, tool: &RemoteTool, is_guarded: bool) -> Arc<ToolDefinition> {
    let RemoteTool { name, description, parameters, arguments, is_repeatable, .. } = tool;
    let spec = ToolSpec {
        name: format!("{}.{name}", link.server.name),
        description: description.clone(),
        parameters: parameters.clone(),
    };
    let body = ToolBody::Function(function(link, name));
    let made = ToolDefinition {
        permits: Some(Arc::clone(&link.permits)),
        on_crash: if *is_repeatable { OnCrash::Repeat } else { OnCrash::Tell },
        on_withdrawal: Some(on_withdrawal(link, name)),
        on_approval: Some(on_approval(link, name)),
        ..ToolDefinition::compiled(spec, Arc::clone(arguments), body)
    };
    Arc::new(link.server.define(name, is_guarded, made))
}

impl McpServers for McpHub {
    fn statuses(&self) -> Vec<ServerStatus> {
        let status = |link: &Arc<Link>| {
            let (state, reason, protocol) = link.state();
            let listed = link.listed();
            let name = &link.server.name;
            let tools = listed.tools.iter().map(|tool| format!("{name}.{}", tool.name));
            ServerStatus {
                name: Arc::clone(name),
                transport: match &link.server.transport {
                    McpTransport::Http { .. } => "http",
                    McpTransport::Program { .. } => "program",
                },
                state,
                since: link.counts.since(),
                reason,
                protocol: protocol.map(|version| version.to_string()),
                tools: tools.collect(),
                left_out: listed.left_out.clone(),
                changed: link.changed(),
                unmatched: listed.unmatched.clone(),
                running: link.running(),
                lost: link.counts.lost(),
                calls: link.counts.calls(),
            }
        };
        self.links.values().map(status).collect()
    }

    fn settled(&self) -> BoxFuture<'_, ()> {
        async move {
            let newest = *self.changes.borrow();
            let mut in_use = self.in_use.subscribe();
            let wait = in_use.wait_for(|number| *number >= newest);
            if timeout(IN_USE_MAX, wait).await.is_err() {
                log::debug!("changes of tools of MCP servers are not in use yet");
            }
        }
        .boxed()
    }

    fn restart(&self, name: &str) -> bool {
        let Some(link) = self.links.get(name) else { return false };
        log::info!(
            "MCP server {name}: another connection was requested; {} calls are interrupted",
            link.running()
        );
        link.restart.notify_one();
        true
    }

    fn accept<'a>(
        &'a self,
        name: &'a str,
        tool: Option<(&'a str, Option<&'a str>)>,
    ) -> BoxFuture<'a, Result<Vec<String>, NotAccepted>> {
        async move {
            let link = self.links.get(name).ok_or(NotAccepted::NoServer)?;
            match tool {
                Some((tool, hash)) => {
                    let is_new = link.accept(tool, hash).await?;
                    Ok(is_new.then(|| tool.to_owned()).into_iter().collect())
                }
                None => link.accept_all().await,
            }
        }
        .boxed()
    }
}

impl Drop for McpHub {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl std::fmt::Debug for McpHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("McpHub").field(&self.links.keys()).finish()
    }
}
