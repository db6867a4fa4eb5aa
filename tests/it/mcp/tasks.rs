//! Calls that become tasks of their server.

use serde_json::{Value, json};
use support::eventually;
use support::server::{Home, Server};

use super::asking::{answer, open_ask, suspended, text_of};
use super::real::{Remote, clients};
use super::{call, ready};
use crate::program::Programs as _;

const CALLERS: &str = r#"
[models.offline]
provider = "rehearsal"
rules = [
    { when = "tool_results", reply = "it said {{ tool_results[-1] }}" },
    { tool_call = { name = "press.asking", args = {} } },
]

[agents.clerk]
model = "offline"
tools = ["press.asking"]

[workflows.printing]
steps = [{ id = "print", tool = "press.plain", args = {} }]
"#;

/// Starts a server that uses a press, with further lines for it.
fn printing(remote: &Remote, lines: &str) -> (Home, Server) {
    let home = Home::new(&format!("[mcp.press]\nurl = \"{}\"\n{lines}\n{CALLERS}", remote.url));
    let server = Server::start(home.greenroom(&[]));
    ready(&server, "press");
    (home, server)
}

fn count(server: &Server) -> Value {
    call(server, "press.count", &json!({})).unwrap()
}

#[test]
fn tasks_are_followed_until_they_end() {
    let Some(clients) = clients("an MCP server with tasks") else { return };
    let remote = Remote::of(&clients, &["mcp-tasks.mjs"]);
    let (_home, server) = printing(&remote, "");
    assert_eq!(call(&server, "press.plain", &json!({})), Ok(json!("done null")));
    let executed = server.post("/workflows/printing/execute", &json!({ "input": {} })).data();
    assert_eq!(executed["result"], "done null", "{executed}");
    let refused = call(&server, "press.refused", &json!({})).unwrap_err();
    assert_eq!(refused, "Failed to execute tool: no paper");
    assert_eq!(count(&server), json!({ "calls": 3, "cancelled": [] }));
}

#[test]
fn a_task_whose_call_is_given_up_is_cancelled() {
    let Some(clients) = clients("an MCP server with tasks") else { return };
    let remote = Remote::of(&clients, &["mcp-tasks.mjs"]);
    let (_home, server) = printing(&remote, "timeout = \"500ms\"");
    let failure = call(&server, "press.slow", &json!({})).unwrap_err();
    assert_eq!(failure, "Failed to execute tool: timed out after 500 ms");
    eventually("the cancellation", || (count(&server)["cancelled"] == json!(["t1"])).then_some(()));
}

#[test]
fn a_task_that_asks_continues_with_the_answer_after_a_kill() {
    let Some(clients) = clients("an MCP server with tasks") else { return };
    let remote = Remote::of(&clients, &["mcp-tasks.mjs"]);
    let (home, server) = printing(&remote, "");
    let waiting = suspended(&server, "print");
    let ask = open_ask(&server);
    assert_eq!(ask["reason"], "press asks: Which size?");
    server.kill();
    let server = Server::start(home.greenroom(&[]));
    ready(&server, "press");
    assert_eq!(answer(&server, &ask, &json!({ "size": 3 })), 200);
    let text = text_of(&server, &waiting).replace('\\', "");
    assert!(text.contains(r#""content":{"size":3}"#), "{text}");
    assert_eq!(count(&server), json!({ "calls": 1, "cancelled": [] }));
}
