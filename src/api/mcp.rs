//! Use cases of MCP servers: list and restart.

use crate::api::error::{ApiError, UnknownName};
use crate::api::wire::mcp::{RestartedView, ServerView};
use crate::mcp_servers::McpServers;

/// Lists the servers by name; none without servers.
pub fn list(servers: Option<&dyn McpServers>) -> Vec<ServerView> {
    let statuses = servers.map(McpServers::statuses).unwrap_or_default();
    statuses.into_iter().map(ServerView::from).collect()
}

/// Begins another connection.
pub fn restart(servers: Option<&dyn McpServers>, name: &str) -> Result<RestartedView, ApiError> {
    if servers.is_some_and(|servers| servers.restart(name)) {
        return Ok(RestartedView { name: name.to_owned() });
    }
    let statuses = servers.map(McpServers::statuses).unwrap_or_default();
    let known = statuses.iter().map(|status| &*status.name);
    Err(ApiError::ServerNotFound(UnknownName::among(name, known)))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use greenroom_actors::domain::time::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::mcp_servers::{LeftOut, ServerState, ServerStatus, Unmatched};

    #[derive(Default)]
    struct Servers {
        restarted: Mutex<Vec<String>>,
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
                unmatched: vec![Unmatched { key: "retry", pattern: "get_*".to_owned() }],
                running: 2,
                lost: 4,
                calls: 3,
                failures: 1,
            };
            vec![files]
        }

        fn restart(&self, name: &str) -> bool {
            self.restarted.lock().unwrap().push(name.to_owned());
            name == "files"
        }
    }

    #[test]
    fn servers_are_listed_with_their_state() {
        assert!(list(None).is_empty());
        let servers = Servers::default();
        let shown = serde_json::to_value(list(Some(&servers))).unwrap();
        let expected = json!([{
            "name": "files", "transport": "program", "state": "failed",
            "since": "1970-01-01T00:00:00.000Z", "reason": "it ended",
            "tools": ["files.read"], "leftOut": [{ "name": "x y", "reason": "its name" }],
            "unmatched": [{ "key": "retry", "pattern": "get_*" }], "running": 2, "lost": 4,
            "calls": 3, "failures": 1
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
