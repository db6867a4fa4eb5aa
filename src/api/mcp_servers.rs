//! Use cases of MCP servers: list, restart, and accept what has changed.

use crate::api::error::{ApiError, UnknownName};
use crate::api::json;
use crate::api::wire::mcp_servers::{AcceptBody, AcceptedView, RestartedView, ServerView};
use crate::mcp_servers::{McpServers, NotAccepted};

/// Lists the servers by name; none without servers. The list of tools that is read next describes
/// theirs in the same way, or newer ones.
pub async fn list(servers: Option<&dyn McpServers>) -> Vec<ServerView> {
    let Some(servers) = servers else { return Vec::new() };
    let statuses = servers.statuses();
    servers.settled().await;
    statuses.into_iter().map(ServerView::from).collect()
}

/// Begins another connection.
pub fn restart(servers: Option<&dyn McpServers>, name: &str) -> Result<RestartedView, ApiError> {
    if servers.is_some_and(|servers| servers.restart(name)) {
        return Ok(RestartedView { name: name.to_owned() });
    }
    Err(no_server(servers, name))
}

/// Accepts the definitions that tools have now, and returns once they are in use.
pub async fn accept(
    servers: Option<&dyn McpServers>,
    name: &str,
    body: &[u8],
) -> Result<AcceptedView, ApiError> {
    let is_known =
        |servers: &&dyn McpServers| servers.statuses().iter().any(|status| *status.name == *name);
    let Some(servers) = servers.filter(is_known) else { return Err(no_server(servers, name)) };
    let AcceptBody { tool, hash } = json::parse_closed_or_empty(body)?;
    if hash.is_some() && tool.is_none() {
        return Err(ApiError::body("tool", "is required with a hash"));
    }
    let chosen = tool.as_deref().map(|tool| (tool, hash.as_deref()));
    let of = |tool: Option<String>| format!("{name}.{}", tool.unwrap_or_default());
    match servers.accept(name, chosen).await {
        Ok(accepted) => {
            servers.settled().await;
            Ok(AcceptedView { name: name.to_owned(), accepted })
        }
        Err(NotAccepted::NoServer) => Err(no_server(Some(servers), name)),
        Err(NotAccepted::NoTool) => {
            Err(no_tool(servers, name, tool.as_deref().unwrap_or_default()))
        }
        Err(NotAccepted::Differs) => Err(ApiError::ToolChanged(of(tool))),
        Err(NotAccepted::Unavailable(why)) => {
            log::warn!("MCP server {name}: nothing was accepted: {why}");
            Err(ApiError::StoreUnavailable { recorded: None })
        }
    }
}

fn no_server(servers: Option<&dyn McpServers>, name: &str) -> ApiError {
    let statuses = servers.map(McpServers::statuses).unwrap_or_default();
    let known = statuses.iter().map(|status| &*status.name);
    ApiError::ServerNotFound(UnknownName::among(name, known))
}

fn no_tool(servers: &dyn McpServers, server: &str, tool: &str) -> ApiError {
    let statuses = servers.statuses();
    let changed = statuses.iter().filter(|status| *status.name == *server);
    let changed = changed.flat_map(|status| &status.changed).map(|changed| changed.name.as_str());
    ApiError::ToolNotFound(UnknownName::among(tool, changed))
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Mutex;

    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;
    use greenroom_actors::domain::time::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::mcp_servers::{
        CallCounts, ChangedPart, ChangedTool, LeftOut, ServerState, ServerStatus, Unmatched,
    };

    #[derive(Default)]
    struct Servers {
        restarted: Mutex<Vec<String>>,
        settled: Mutex<usize>,
    }

    impl McpServers for Servers {
        fn statuses(&self) -> Vec<ServerStatus> {
            let files = ServerStatus {
                name: "files".into(),
                transport: "program",
                state: ServerState::Failed,
                since: Timestamp(0),
                reason: Some("it ended".into()),
                protocol: None,
                tools: vec!["files.read".to_owned()],
                left_out: vec![LeftOut { name: "x y".to_owned(), why: "its name".to_owned() }],
                changed: vec![ChangedTool {
                    name: "read".to_owned(),
                    hash: "h2".into(),
                    first_seen: Timestamp(0),
                    accepted_at: Timestamp(1000),
                    parts: vec![ChangedPart::Description, ChangedPart::Parameters],
                    description: Some("Reads, and more".to_owned()),
                }],
                unmatched: vec![Unmatched { key: "retry", pattern: "get_*".to_owned() }],
                running: 2,
                lost: 4,
                // one completed, two with errors of the tool, one failed, one asked
                calls: CallCounts { outcomes: [1, 2, 1, 1, 0, 0, 0], ..CallCounts::default() },
            };
            vec![files]
        }

        fn settled(&self) -> BoxFuture<'_, ()> {
            *self.settled.lock().unwrap() += 1;
            ready(()).boxed()
        }

        fn restart(&self, name: &str) -> bool {
            self.restarted.lock().unwrap().push(name.to_owned());
            name == "files"
        }

        fn accept<'a>(
            &'a self,
            name: &'a str,
            tool: Option<(&'a str, Option<&'a str>)>,
        ) -> BoxFuture<'a, Result<Vec<String>, NotAccepted>> {
            let accepted = match (name, tool) {
                ("files", None | Some(("read", None | Some("h2")))) => Ok(vec!["read".to_owned()]),
                ("files", Some(("read", _))) => Err(NotAccepted::Differs),
                ("files", Some(("away", _))) => Err(NotAccepted::Unavailable("no disk".to_owned())),
                ("files", Some(_)) => Err(NotAccepted::NoTool),
                _ => Err(NotAccepted::NoServer),
            };
            ready(accepted).boxed()
        }
    }

    #[tokio::test]
    async fn changes_are_accepted_by_server_tool_and_hash() {
        let servers = Servers::default();
        let rows = [
            ("files", "", Ok(1)),
            ("files", r#"{"tool":"read"}"#, Ok(1)),
            ("files", r#"{"tool":"read","hash":"h2"}"#, Ok(1)),
            (
                "files",
                r#"{"tool":"read","hash":"h1"}"#,
                Err("Tool files.read does not have this definition: it has changed again"),
            ),
            ("files", r#"{"tool":"reads"}"#, Err("Tool reads not found")),
            ("files", r#"{"tool":"away"}"#, Err("The store is not available")),
            ("file", "{}", Err("MCP server file not found")),
            (
                "files",
                r#"{"hash":"h1"}"#,
                Err("Invalid request body: tool: is required with a hash"),
            ),
            (
                "files",
                r#"{"tools":"read"}"#,
                Err("Invalid request body: tools: unknown key; did you mean tool?"),
            ),
        ];
        for (server, body, expected) in rows {
            let accepted = accept(Some(&servers), server, body.as_bytes()).await;
            let accepted = accepted.map(|it| it.accepted.len()).map_err(|why| why.to_string());
            assert_eq!(accepted, expected.map_err(str::to_owned), "{body}");
        }
        assert!(accept(None, "files", b"").await.is_err());
        assert_eq!(*servers.settled.lock().unwrap(), 3, "what was accepted is in use");
    }

    #[tokio::test]
    async fn servers_are_listed_with_their_state_once_it_is_in_use() {
        assert!(list(None).await.is_empty());
        let servers = Servers::default();
        let shown = serde_json::to_value(list(Some(&servers)).await).unwrap();
        assert_eq!(*servers.settled.lock().unwrap(), 1);
        let expected = json!([{
            "name": "files", "transport": "program", "state": "failed",
            "since": "1970-01-01T00:00:00.000Z", "reason": "it ended",
            "tools": ["files.read"], "leftOut": [{ "name": "x y", "reason": "its name" }],
            "changed": [{ "name": "read", "hash": "h2", "firstSeen": "1970-01-01T00:00:00.000Z",
                "acceptedAt": "1970-01-01T00:00:01.000Z", "parts": ["description", "parameters"],
                "description": "Reads, and more" }],
            "unmatched": [{ "key": "retry", "pattern": "get_*" }], "running": 2, "lost": 4,
            "calls": 5, "failures": 1
        }]);
        assert_eq!(shown, expected);
    }

    #[test]
    fn only_a_known_server_is_restarted() {
        let servers = Servers::default();
        assert!(restart(Some(&servers), "files").is_ok());
        let refused = restart(Some(&servers), "file").unwrap_err();
        assert_eq!(refused.to_string(), "MCP server file not found");
        assert_eq!(*servers.restarted.lock().unwrap(), ["files", "file"]);
        assert!(restart(None, "files").is_err());
    }
}
