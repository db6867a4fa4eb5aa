//! Changed tools of servers that share a database: what one of them accepts is accepted at all.

use std::path::Path;

use serde_json::json;
use support::postgres::Server as Database;
use support::server::{Home, Server};

use super::{call, ready, scripted, status_when};
use crate::program::Programs as _;

/// Starts a member of a cluster with the MCP server `own`, whose file all of them share.
fn member(url: &str, name: &str, file: &Path) -> (Home, Server) {
    let home = Home::new("");
    let own = scripted::config("own", "good", file);
    let config = format!(
        "[server]\nport = 0\nname = \"{name}\"\n[store]\nurl = \"{url}\"\n\
         [cluster]\nlisten = \"127.0.0.1:0\"\nlease = \"1200ms\"\n{own}"
    );
    home.write("config.toml", &config);
    let server = Server::start(home.greenroom(&["serve"]));
    ready(&server, "own");
    (home, server)
}

#[test]
fn a_change_that_one_server_of_a_cluster_accepts_is_accepted_at_all() {
    let Some(url) = Database::shared().map(Database::fresh_url) else { return };
    let shared = Home::new("");
    let file = shared.path("asked");
    let [(_a_home, a), (_b_home, b)] = ["a", "b"].map(|name| member(&url, name, &file));
    shared.write("said", "Second");
    for server in [&a, &b] {
        call(server, "own.renew", &json!({})).unwrap();
        status_when(server, "own", |status| status["changed"][0]["name"] == "sum");
        let why = call(server, "own.sum", &json!({ "n": 1 })).unwrap_err();
        assert!(why.starts_with("Failed to execute tool: own.sum has changed since "), "{why}");
    }
    let accepted = a.post("/tools/mcp/own/accept", &json!({ "tool": "sum" })).data();
    assert_eq!(accepted["accepted"], json!(["sum"]));
    // the next call looks again, without a list of its server
    for server in [&b, &a] {
        assert_eq!(call(server, "own.sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
        status_when(server, "own", |status| status["changed"] == json!([]));
    }
    let (_home, late) = member(&url, "c", &file);
    assert_eq!(call(&late, "own.sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
}
