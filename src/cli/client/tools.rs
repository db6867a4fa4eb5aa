//! `greenroom tools`: calling a tool without a model, and the MCP servers that bring tools.

use std::time::Duration;

use serde_json::{Value, json};

use super::api::Call;
use super::exit::{Exit, Failure};
use super::problems::all_of;
use super::screen::note;
use super::session::{Session, attended, deadline_of, duration_of, json_of, put_text};
use super::text::{cell, compact, duration, items, pretty};
use crate::adapters::mcp::settings::LEFT_OUT_BY_CHOICE;

/// Actions on tools.
#[derive(Debug, Clone, PartialEq, Eq, clap::Subcommand)]
pub(in crate::cli) enum Action {
    /// Lists the tools.
    List,
    /// Calls a tool, and prints its result.
    Call {
        /// Name of the tool.
        #[arg(add = super::complete::tools())]
        name: String,
        /// Input: JSON, @FILE, or - for stdin.
        #[arg(short, long, value_name = "JSON", default_value = "{}", add = super::complete::json_files())]
        input: String,
        /// Stop waiting after this time, as 30s or 5m, with exit code 124.
        #[arg(long, value_name = "DURATION", value_parser = duration_of)]
        timeout: Option<Duration>,
        /// User of the call, if no token names one.
        #[arg(long, value_name = "ID")]
        user: Option<String>,
    },
    /// Lists the MCP servers, with their state and the tools that are left out.
    Servers,
    /// Begins another connection to an MCP server.
    Restart {
        /// Name of the server.
        name: String,
    },
    /// Accepts tools of an MCP server that have changed since they were seen or accepted.
    Accept {
        /// Name of the server.
        name: String,
        /// Name of the tool at the server; all that have changed without this.
        tool: Option<String>,
        /// Hash of the definition to accept, as `tools servers -o json` shows it: another one is refused.
        #[arg(long, value_name = "HASH", requires = "tool")]
        hash: Option<String>,
    },
}

/// Runs an action.
pub(super) async fn run(session: &Session, action: &Action) -> Result<Exit, Failure> {
    let (name, input, timeout, user) = match action {
        Action::List => return list(session).await,
        Action::Servers => return servers(session).await,
        Action::Restart { name } => return restart(session, name).await,
        Action::Accept { name, tool, hash } => {
            return accept(session, name, tool.as_ref(), hash.as_ref()).await;
        }
        Action::Call { name, input, timeout, user } => (name, input, *timeout, user),
    };
    let mut body = json!({ "input": json_of("--input", input)? });
    put_text(&mut body, "userId", user.as_ref());
    let path = ["tools", name, "execute"];
    let calling = session.api.data(Call::post(&path, &body).long());
    let left = |exit| Failure::new(exit, "the tool has not answered, and may have had its effect");
    let called = match attended(calling, deadline_of(timeout), left).await {
        Err(failure) if failure.is_refused_as("tool_input_invalid") => {
            let tools = session.api.data(Call::get(&["tools"])).await?;
            let tools = tools.as_array().map_or(&[][..], Vec::as_slice);
            let tool = tools.iter().find(|it| it["name"] == name.as_str());
            let schema = tool.map_or(&Value::Null, |tool| &tool["parameters"]);
            return Err(all_of(failure, schema, &body["input"]));
        }
        called => called?,
    };
    session.screen.value(&called, |called| vec![pretty(&called["result"])])?;
    if let Some(ms) = called["executionTime"].as_u64() {
        note(&format!("{name} took {}", duration(ms)));
    }
    Ok(Exit::Ok)
}

async fn list(session: &Session) -> Result<Exit, Failure> {
    let tools = session.api.data(Call::get(&["tools"])).await?;
    let tools = tools.as_array().map_or(&[][..], Vec::as_slice);
    let cells = |it: &Value| {
        let agents: Vec<_> = items(it, "agents").iter().map(cell).collect();
        let parameters = compact(&it["parameters"]["properties"]);
        [cell(&it["name"]), agents.join(" "), cell(&it["description"]), parameters]
    };
    let head = ["NAME", "AGENTS", "DESCRIPTION", "PARAMETERS"];
    session.screen.list(tools, head, cells, "the server has no tools")?;
    Ok(Exit::Ok)
}

async fn servers(session: &Session) -> Result<Exit, Failure> {
    let servers = session.api.data(Call::get(&["tools", "mcp"])).await?;
    let servers = servers.as_array().map_or(&[][..], Vec::as_slice);
    let cells = |it: &Value| {
        [
            cell(&it["name"]),
            cell(&it["state"]),
            cell(&it["since"]),
            items(it, "tools").len().to_string(),
            cell(&it["running"]),
            cell(&it["calls"]),
            cell(&it["failures"]),
            remarks(it).join("; "),
        ]
    };
    let head = ["NAME", "STATE", "SINCE", "TOOLS", "RUNNING", "CALLS", "FAILED", "REMARKS"];
    session.screen.list(servers, head, cells, "the server has no MCP servers")?;
    Ok(Exit::Ok)
}

/// Returns what is wrong with an MCP server: why it is away, what is left out, what matches nothing.
fn remarks(server: &Value) -> Vec<String> {
    let reason = server["reason"].as_str().map(str::to_owned);
    let (chosen, left_out): (Vec<_>, Vec<_>) =
        items(server, "leftOut").iter().partition(|it| it["reason"] == LEFT_OUT_BY_CHOICE);
    let left_out = left_out
        .into_iter()
        .map(|it| format!("without {}: {}", cell(&it["name"]), cell(&it["reason"])));
    let chosen = (!chosen.is_empty()).then(|| format!("{} left out by `tools`", chosen.len()));
    let unmatched = items(server, "unmatched").iter().map(|it| {
        let (key, pattern) = (cell(&it["key"]), cell(&it["pattern"]));
        let so = if key == "approval" { ", so all its tools need approval" } else { "" };
        format!("{key} names no tool: {pattern}{so}")
    });
    let changed = items(server, "changed").iter();
    let changed = changed.map(|it| {
        let parts: Vec<_> = items(it, "parts").iter().map(cell).collect();
        format!("{} has changed: {}", cell(&it["name"]), parts.join(", "))
    });
    let remarks = reason.into_iter().chain(changed).chain(unmatched);
    remarks.chain(left_out).chain(chosen).collect()
}

async fn accept(
    session: &Session,
    server: &str,
    tool: Option<&String>,
    hash: Option<&String>,
) -> Result<Exit, Failure> {
    let mut body = json!({});
    put_text(&mut body, "tool", tool);
    put_text(&mut body, "hash", hash);
    let path = ["tools", "mcp", server, "accept"];
    let accepted = session.api.data(Call::post(&path, &body)).await?;
    session.screen.value(&accepted, |accepted| match items(accepted, "accepted") {
        [] => vec!["nothing has changed".to_owned()],
        tools => tools.iter().map(|tool| format!("accepted {server}.{}", cell(tool))).collect(),
    })?;
    Ok(Exit::Ok)
}

async fn restart(session: &Session, server: &str) -> Result<Exit, Failure> {
    let path = ["tools", "mcp", server, "restart"];
    let restarted = session.api.data(Call::post(&path, &json!({}))).await?;
    session.screen.value(&restarted, |_| vec![format!("connecting {server} again")])?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_say_what_is_wrong_with_a_server() {
        let server = json!({ "name": "files", "state": "failed", "reason": "it ended",
            "leftOut": [{ "name": "x y", "reason": "its name" },
                        { "name": "z", "reason": LEFT_OUT_BY_CHOICE }],
            "changed": [{ "name": "read", "parts": ["description", "parameters"] }],
            "unmatched": [{ "key": "approval", "pattern": "writes" }] });
        let expected = [
            "it ended",
            "read has changed: description, parameters",
            "approval names no tool: writes, so all its tools need approval",
            "without x y: its name",
            "1 left out by `tools`",
        ];
        assert_eq!(remarks(&server), expected);
        assert!(remarks(&json!({ "tools": ["a"], "leftOut": [], "unmatched": [] })).is_empty());
    }
}
