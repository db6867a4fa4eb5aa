//! Builds the configured tools.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use greenroom_actors::agent::tool::{
    ApprovalFunction, ToolBody, ToolDefinition, ToolFunction, WithdrawalFunction,
};
use greenroom_actors::domain::call::{CommandCall, HttpCall};
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::ports::model::ToolSpec;
use tokio::sync::Semaphore;

use crate::adapters::outbound::OutboundClients;
use crate::adapters::tools::command::{CommandTool, Commands};
#[cfg(feature = "providers")]
use crate::adapters::tools::http::{HttpCalls, HttpTool};
#[cfg(feature = "providers")]
use crate::adapters::tools::outgoing::Outgoing;
use crate::adapters::tools::secrets::SecretLookup;
use crate::config::tools::parameters_problem;
use crate::config::{Config, LimitsConfig, ToolConfig, ToolKind};

/// Builds the clients for HTTP calls and programs, which steps and tools share. Without
/// certificates the server starts, and HTTP calls fail.
pub(super) fn outbound(config: &Config) -> OutboundClients {
    let limits = &config.limits;
    #[cfg(feature = "providers")]
    let http = Outgoing::new(&limits.outgoing_hosts).map(|outgoing| HttpCalls {
        outgoing,
        secrets: SecretLookup::of_process(),
        request_bytes_max: limits.http_request_bytes_max,
        answer_bytes_max: limits.http_answer_bytes_max,
    });
    #[cfg(feature = "providers")]
    let http = http.map_err(|error| {
        log::warn!("HTTP steps and tools fail: {error}");
        "this server cannot make HTTP calls; its log has the reason".to_owned()
    });
    let commands = Commands {
        secrets: SecretLookup::of_process(),
        memory_bytes_max: limits.command_memory_bytes_max,
        output_bytes_max: limits.command_output_bytes_max,
        permits: Arc::new(Semaphore::new(limits.commands_max)),
    };
    OutboundClients {
        #[cfg(feature = "providers")]
        http,
        commands,
        #[cfg(feature = "mcp")]
        mcp: Arc::new(super::mcp::hub(config)),
    }
}

/// Functions of tools that leave the process, by name and kind; an error says why there is none.
pub(crate) type Outward<'a> = &'a dyn Fn(&str, OutwardCall<'_>) -> Result<OutwardFunction, String>;

/// Function of a tool that leaves the process.
pub(crate) struct OutwardFunction {
    pub(crate) function: ToolFunction,
    /// Places of its concurrent calls, if it shares them with other tools.
    pub(crate) permits: Option<Arc<Semaphore>>,
    pub(crate) on_withdrawal: Option<WithdrawalFunction>,
    pub(crate) on_approval: Option<ApprovalFunction>,
}

impl From<ToolFunction> for OutwardFunction {
    fn from(function: ToolFunction) -> Self {
        Self { function, permits: None, on_withdrawal: None, on_approval: None }
    }
}

/// The kinds of tools that leave the process.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "providers"), expect(dead_code, reason = "nothing makes HTTP calls"))]
pub(crate) enum OutwardCall<'a> {
    Http(&'a HttpCall),
    Command(&'a CommandCall),
    /// A tool of an MCP server.
    #[cfg_attr(not(feature = "mcp"), expect(dead_code, reason = "nothing is connected"))]
    Mcp {
        server: &'a str,
        tool: &'a str,
    },
}

/// Returns the functions of tools that call servers and run programs.
#[cfg_attr(not(feature = "providers"), expect(unused_variables, reason = "limits of HTTP calls"))]
pub(super) fn outward(
    outbound: &OutboundClients,
    limits: &LimitsConfig,
) -> impl Fn(&str, OutwardCall<'_>) -> Result<OutwardFunction, String> {
    move |name, call| match call {
        #[cfg(not(feature = "providers"))]
        OutwardCall::Http(_) => {
            Err("this program was built without the feature `providers`".to_owned())
        }
        #[cfg(feature = "providers")]
        OutwardCall::Http(call) => {
            let answer_bytes_max = limits.runtime.tool_result_bytes_max;
            let calls = HttpCalls { answer_bytes_max, ..outbound.http.clone()? };
            Ok(HttpTool::new(name, call.clone(), calls).into_function().into())
        }
        OutwardCall::Command(call) => {
            let tool = CommandTool::new(name, call.clone(), outbound.commands.clone());
            Ok(tool.into_function().into())
        }
        #[cfg(feature = "mcp")]
        OutwardCall::Mcp { server, tool } => Ok(super::mcp::function(&outbound.mcp, server, tool)),
        #[cfg(not(feature = "mcp"))]
        OutwardCall::Mcp { .. } => {
            Err("this program was built without the feature `mcp`".to_owned())
        }
    }
}

/// Builds every configured tool. `workflows` are those of the configuration and of Rust code.
pub(super) fn definitions(
    tools: &BTreeMap<String, ToolConfig>,
    outward: Outward<'_>,
    workflows: &BTreeMap<String, Arc<Plan>>,
) -> io::Result<BTreeMap<String, Arc<ToolDefinition>>> {
    let mut definitions = BTreeMap::new();
    for (name, tool) in tools {
        let ToolConfig { description, timeout, concurrency, approval, on_crash, kind, .. } = tool;
        let parameters =
            tool.parameters_in(workflows).unwrap_or_else(ToolDefinition::agent_parameters);
        let refused = |why| io::Error::other(format!("tools.{name}: {why}"));
        if let Some(problem) = parameters_problem(&parameters) {
            return Err(refused(problem));
        }
        let body = match kind {
            ToolKind::Workflow(id) => ToolBody::Workflow(id.clone()),
            ToolKind::Agent(id) => ToolBody::Agent(id.clone()),
            ToolKind::Http(call) => {
                let made = outward(name, OutwardCall::Http(call)).map_err(refused)?;
                ToolBody::Function(made.function)
            }
            ToolKind::Command(call) => {
                let made = outward(name, OutwardCall::Command(call)).map_err(refused)?;
                ToolBody::Function(made.function)
            }
        };
        let spec = ToolSpec { name: name.clone(), description: description.clone(), parameters };
        let made = ToolDefinition::new(spec, body).map_err(|error| refused(error.to_string()))?;
        let permits = concurrency.map(|count| Arc::new(Semaphore::new(count)));
        let made = ToolDefinition {
            timeout: *timeout,
            permits,
            approval: approval.clone().map(Arc::new),
            on_crash: *on_crash,
            ..made
        };
        definitions.insert(name.clone(), Arc::new(made));
    }
    Ok(definitions)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::builder::{Step, Workflow};
    use crate::config::Config;

    fn workflows(input: Value) -> BTreeMap<String, Arc<Plan>> {
        let workflow = Workflow::new("w").input_schema(input).step(Step::map("s", json!(1)));
        BTreeMap::from([("w".to_owned(), Arc::new(workflow.compile().unwrap()))])
    }

    /// Builds the tools of a file whose workflow `w` is Rust code.
    fn made(input: Value) -> io::Result<BTreeMap<String, Arc<ToolDefinition>>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        let text = "[tools.flow]\nkind = \"workflow\"\nworkflow = \"w\"\ndescription = \"f\"\n\
                    timeout = \"3s\"\nconcurrency = 2\n\
                    [tools.ask]\nkind = \"agent\"\nagent = \"a\"\ndescription = \"a\"\n\
                    [tools.call]\nkind = \"http\"\nurl = \"http://a.example\"\n\
                    description = \"c\"\nparameters = { type = \"object\" }\n";
        std::fs::write(&path, text).unwrap();
        let config = Config::load_open(&path).unwrap();
        let outbound = outbound(&config);
        let outward = outward(&outbound, &config.limits);
        definitions(&config.tools, &outward, &workflows(input))
    }

    #[test]
    fn configured_tools_are_built() {
        let input = json!({ "type": "object", "required": ["n"] });
        let tools = made(input.clone()).unwrap();
        let flow = &tools["flow"];
        assert_eq!((&flow.spec.parameters, flow.spec.description.as_str()), (&input, "f"));
        assert_eq!(flow.timeout, Some(Duration::from_secs(3)));
        assert_eq!(flow.permits.as_ref().map(|permits| permits.available_permits()), Some(2));
        assert!(matches!(&flow.body, ToolBody::Workflow(id) if id == "w"));
        assert!(flow.arguments.check(&json!({})).is_err());
        assert_eq!(tools["ask"].spec.parameters, ToolDefinition::agent_parameters());
        assert!(matches!(&tools["call"].body, ToolBody::Function(_)));
        assert!(tools["call"].timeout.is_none() && tools["call"].permits.is_none());
    }

    #[test]
    fn a_workflow_of_rust_code_as_a_tool_must_take_an_object() {
        let error = made(json!({ "type": "integer" })).unwrap_err().to_string();
        assert_eq!(
            error,
            "tools.flow: arguments are an object: the schema needs type = \"object\""
        );
    }
}
