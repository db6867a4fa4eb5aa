//! Tools of MCP servers in the registry: those of connected servers, and placeholders for those that
//! agents and steps name before.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
#[cfg(feature = "mcp")]
use std::time::Duration;

use greenroom_actors::Runtime;
use greenroom_actors::agent::OnCrash;
#[cfg(feature = "mcp")]
use greenroom_actors::agent::tool::ToolFunction;
use greenroom_actors::agent::tool::{ToolBody, ToolDefinition};
use greenroom_actors::domain::plan::Call;
use greenroom_actors::ports::model::ToolSpec;
use greenroom_actors::ports::store::KnownTools;
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::Unavailable;
use serde_json::json;
#[cfg(feature = "mcp")]
use tokio::sync::Mutex;

use super::Outward;
use super::tools::{OutwardCall, OutwardFunction};
#[cfg(feature = "mcp")]
use crate::adapters::mcp::hub::{McpEnvironment, McpHub, Placeholder};
use crate::adapters::outbound::OutboundClients;
#[cfg(feature = "mcp")]
use crate::adapters::tools::secrets::SecretLookup;
use crate::config::Config;
use crate::config::steps::calls;
use crate::mcp_servers::McpServers;
use crate::telemetry::metrics::Metrics;

/// Time in which changes of several servers are taken together.
#[cfg(feature = "mcp")]
const GATHER: Duration = Duration::from_millis(20);
/// Pause before a registry that could not be put in use is tried again.
#[cfg(feature = "mcp")]
const EXCHANGE_PAUSE: Duration = Duration::from_secs(1);

/// Prepares the connections to the servers of a configuration.
#[cfg(feature = "mcp")]
pub(super) fn hub(config: &Config) -> McpHub {
    let environment = McpEnvironment {
        secrets: SecretLookup::of_process(),
        outgoing_hosts: config.limits.outgoing_hosts.as_slice().into(),
        memory_bytes_max: config.limits.command_memory_bytes_max,
    };
    McpHub::new(config.mcp.values().map(|server| server.server.clone()), &environment)
}

/// Returns the function of a tool. Servers that are new since the start of the process are connected
/// after a restart.
#[cfg(feature = "mcp")]
pub(super) fn function(hub: &McpHub, server: &str, tool: &str) -> OutwardFunction {
    if let Some(placeholder) = hub.placeholder(server, tool) {
        let Placeholder { function, on_withdrawal, on_approval, permits } = placeholder;
        let (on_withdrawal, on_approval) = (Some(on_withdrawal), Some(on_approval));
        return OutwardFunction { function, permits: Some(permits), on_withdrawal, on_approval };
    }
    let why = format!("the MCP server {server} is new: restart this server to connect it");
    let function: ToolFunction =
        Arc::new(move |_, _| Box::pin(std::future::ready(Err(why.clone().into()))));
    function.into()
}

/// Adds tools in place of those that agents and steps name, which are not known before their servers
/// are connected.
pub(super) fn add_placeholders(
    config: &Config,
    outward: Outward<'_>,
    registry: &mut Registry,
) -> io::Result<()> {
    for name in named_tools(registry) {
        let Some((server, tool)) = config.mcp_tool(&name) else { continue };
        if registry.tools.contains_key(&name) {
            continue;
        }
        let refused = |why| io::Error::other(format!("tool {name}: {why}"));
        let call = OutwardCall::Mcp { server: &server.server.name, tool };
        let OutwardFunction { function, permits, on_withdrawal, on_approval } =
            outward(&name, call).map_err(refused)?;
        let spec = ToolSpec {
            name: name.clone(),
            description: format!("A tool of {}, which is not connected yet", server.server.name),
            parameters: json!({ "type": "object" }),
        };
        let made = ToolDefinition::new(spec, ToolBody::Function(function));
        let made = made.map_err(|error| refused(error.to_string()))?;
        // its function decides once the server is connected
        let on_crash = OnCrash::Repeat;
        let made = ToolDefinition { permits, on_withdrawal, on_approval, on_crash, ..made };
        let made = server.server.define(tool, false, made);
        registry.tools.insert(name, Arc::new(made));
    }
    Ok(())
}

/// Returns the tools that agents and steps name.
fn named_tools(registry: &Registry) -> BTreeSet<String> {
    let agents = registry.agents.values().filter_map(|agent| agent.tools.fixed());
    let steps = registry.workflows.values().flat_map(|plan| calls(&plan.steps));
    let steps = steps.filter_map(|(_, call)| match call {
        Call::Tool { tool, .. } => Some(tool.to_string()),
        Call::Function(_) | Call::Http(_) | Call::Command(_) => None,
    });
    agents.flatten().cloned().chain(steps).collect()
}

/// The tools of MCP servers in the registry in use. Clones share them.
#[derive(Clone)]
pub(super) struct Tools {
    runtime: Runtime,
    metrics: Option<Arc<Metrics>>,
    #[cfg(feature = "mcp")]
    hub: Arc<McpHub>,
    /// The registry in use without tools of servers, apart from placeholders.
    #[cfg(feature = "mcp")]
    base: Arc<Mutex<Base>>,
}

/// Registry without tools of servers, apart from placeholders.
#[cfg(feature = "mcp")]
struct Base {
    registry: Registry,
    /// Servers of the newest configuration; `None`: all that there are. One that it has no longer keeps
    /// its connection until a restart, but its tools are gone.
    servers: Option<BTreeSet<String>>,
}

impl Tools {
    /// Begins to connect the servers; does not wait for them.
    #[cfg_attr(not(feature = "mcp"), expect(unused_variables, reason = "there are none"))]
    pub(super) fn start(
        outbound: &OutboundClients,
        runtime: &Runtime,
        store: Arc<dyn KnownTools>,
        metrics: Option<Arc<Metrics>>,
    ) -> io::Result<Self> {
        #[cfg(feature = "mcp")]
        outbound.mcp.start(store)?;
        Ok(Self {
            #[cfg(feature = "mcp")]
            hub: Arc::clone(&outbound.mcp),
            #[cfg(feature = "mcp")]
            base: Arc::new(Mutex::new(Base {
                registry: Registry::clone(&runtime.registry()),
                servers: None,
            })),
            runtime: runtime.clone(),
            metrics,
        })
    }

    /// Returns the servers, if there are any.
    pub(super) fn servers(&self) -> Option<Arc<dyn McpServers>> {
        #[cfg(feature = "mcp")]
        if self.hub.has_servers() {
            return Some(Arc::clone(&self.hub) as _);
        }
        None
    }

    /// Puts the registry of a configuration in use, with the tools of the connected servers.
    #[cfg_attr(not(feature = "mcp"), expect(unused_variables, reason = "there are no servers"))]
    pub(super) async fn exchange(
        &self,
        registry: Registry,
        config: &Config,
    ) -> Result<(), Unavailable> {
        #[cfg(feature = "mcp")]
        {
            let mut base = self.base.lock().await;
            let servers = Some(config.mcp.keys().cloned().collect());
            let new = Base { registry, servers };
            self.put(self.joined(&new)).await?;
            *base = new;
            Ok(())
        }
        #[cfg(not(feature = "mcp"))]
        self.put(registry).await
    }

    async fn put(&self, registry: Registry) -> Result<(), Unavailable> {
        if let Some(metrics) = &self.metrics {
            metrics.follow(&registry);
        }
        self.runtime.exchange(registry).await
    }

    /// Returns a registry with the tools of the servers, in place of their placeholders.
    #[cfg(feature = "mcp")]
    fn joined(&self, Base { registry, servers }: &Base) -> Registry {
        let is_configured =
            |name: &str| servers.as_ref().is_none_or(|servers| servers.contains(name));
        let mut registry = registry.clone();
        for tool in self.hub.tools(is_configured) {
            registry.tools.insert(tool.spec.name.clone(), tool);
        }
        registry
    }

    /// Puts the tools of servers in use whenever they change. Never returns.
    #[cfg(feature = "mcp")]
    pub(super) async fn follow(&self) {
        let mut changes = self.hub.changes();
        while changes.changed().await.is_ok() {
            tokio::time::sleep(GATHER).await;
            loop {
                let base = self.base.lock().await;
                let newest = *changes.borrow_and_update();
                match self.put(self.joined(&base)).await {
                    Ok(()) => {
                        self.hub.use_change(newest);
                        break;
                    }
                    Err(error @ Unavailable::Draining { .. }) => {
                        log::debug!("the tools of MCP servers stay as they are: {error}");
                        return std::future::pending().await;
                    }
                    Err(error) => {
                        log::warn!("the tools of MCP servers cannot be used yet: {error}");
                    }
                }
                drop(base);
                tokio::time::sleep(EXCHANGE_PAUSE).await;
            }
        }
        std::future::pending().await
    }

    /// Never returns: there are no servers.
    #[cfg(not(feature = "mcp"))]
    pub(super) async fn follow(&self) {
        std::future::pending().await
    }

    /// Closes the connections.
    pub(super) async fn stop(&self) {
        #[cfg(feature = "mcp")]
        self.hub.stop().await;
        #[cfg(not(feature = "mcp"))]
        std::future::ready(()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::mcp::settings::McpLimits;

    const TEXT: &str = "[models.m]\nprovider = \"mock\"\n\
        [mcp.files]\ncommand = [\"true\"]\napproval = [\"write\"]\nretry = [\"read\"]\n\
        [agents.a]\nmodel = \"m\"\ntools = [\"files.write\"]\n\
        [workflows.w]\nsteps = [{ id = \"s\", tool = \"files.read\" }]\n";

    #[test]
    fn tools_that_agents_and_steps_name_have_placeholders() {
        let config = Config::parse(TEXT, "c.toml").unwrap();
        let outward = |name: &str, call: OutwardCall<'_>| {
            let OutwardCall::Mcp { server, tool } = call else { panic!("{name}: {call:?}") };
            assert_eq!(name, format!("{server}.{tool}"));
            let function: ToolFunction =
                Arc::new(|_, _| Box::pin(std::future::ready(Ok(json!(1)))));
            Ok(function.into())
        };
        let registry = super::super::registry(&config, &outward, Registry::default()).unwrap();
        let (read, write) = (&registry.tools["files.read"], &registry.tools["files.write"]);
        assert_eq!(registry.tools.len(), 2);
        assert_eq!(read.spec.parameters, json!({ "type": "object" }));
        assert!(read.approval.is_none() && write.approval.is_some());
        assert_eq!(read.task_timeout, Some(McpLimits::default().task_timeout));
        assert_eq!((read.on_crash, write.on_crash), (OnCrash::Repeat, OnCrash::Repeat));
    }
}
