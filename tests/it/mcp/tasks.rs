//! Calls that become tasks of their server.

use serde_json::{Value, json};
use support::client::Wire;
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
    { when = "'long' in prompt", tool_call = { name = "press.long", args = {} } },
    { tool_call = { name = "press.asking", args = {} } },
]

[agents.clerk]
model = "offline"
tools = ["press.asking", "press.long"]

[workflows.printing]
steps = [{ id = "print", tool = "press.plain", args = {} }]

[workflows.printing-asked]
steps = [{ id = "print", tool = "press.asking", args = {} }]

[workflows.printing-long]
steps = [{ id = "print", tool = "press.long", args = {} }]
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
    let counted = count(&server);
    assert_eq!((&counted["calls"], &counted["cancelled"]), (&json!(3), &json!([])));
}

#[test]
fn a_call_that_is_refused_by_its_status_was_not_made() {
    let Some(clients) = clients("an MCP server with tasks") else { return };
    let remote = Remote::of(&clients, &["mcp-tasks.mjs"]);
    let (_home, server) = printing(&remote, "");
    let failure = call(&server, "press.taken", &json!({})).unwrap_err();
    let expected = "the MCP server press refused the call: it answered with status 409";
    assert_eq!(failure, format!("Failed to execute tool: {expected}"));
}

#[test]
fn a_task_whose_call_is_given_up_is_cancelled() {
    let Some(clients) = clients("an MCP server with tasks") else { return };
    let remote = Remote::of(&clients, &["mcp-tasks.mjs"]);
    let (_home, server) = printing(&remote, "task_timeout = \"500ms\"");
    let failure = call(&server, "press.slow", &json!({})).unwrap_err();
    assert_eq!(failure, "Failed to execute tool: timed out after 500 ms");
    eventually("the cancellation", || (count(&server)["cancelled"] == json!(["t1"])).then_some(()));
}

#[test]
fn a_task_of_an_agent_is_followed_after_a_kill() {
    let Some(clients) = clients("an MCP server with tasks") else { return };
    let remote = Remote::of(&clients, &["mcp-tasks.mjs"]);
    let (home, server) = printing(&remote, "");
    let mut wire = Wire::open(server.address).unwrap();
    let body = json!({ "input": "long", "options": { "generationId": "g1" } }).to_string();
    wire.send("POST", "/agents/clerk/text", &[], Some(body.as_bytes())).unwrap();
    // it is looked at once it is noted
    eventually("a look", || (count(&server)["looks"].as_u64() > Some(0)).then_some(()));
    server.kill();
    let server = Server::start(home.greenroom(&[]));
    ready(&server, "press");
    assert_eq!(call(&server, "press.release", &json!({})), Ok(json!("released")));
    let text = text_of(&server, &json!({ "generationId": "g1" }));
    assert!(text.contains("done null"), "{text}");
    assert_eq!(count(&server)["calls"], 1);
}

#[test]
fn a_task_of_a_step_is_followed_after_a_kill_and_a_stop() {
    let Some(clients) = clients("an MCP server with tasks") else { return };
    for is_stopped in [false, true] {
        let remote = Remote::of(&clients, &["mcp-tasks.mjs"]);
        let home = Home::new(&format!(
            "server.shutdown_grace = \"10ms\"\n[mcp.press]\nurl = \"{}\"\nconcurrency = 1\n{CALLERS}",
            remote.url
        ));
        let mut server = Server::start(home.greenroom(&[]));
        ready(&server, "press");
        let mut wire = Wire::open(server.address).unwrap();
        let body = json!({ "input": {}, "options": { "executionId": "e1" } }).to_string();
        let path = "/workflows/printing-long/execute";
        wire.send("POST", path, &[], Some(body.as_bytes())).unwrap();
        eventually("a look", || (count(&server)["looks"].as_u64() > Some(0)).then_some(()));
        if is_stopped {
            server.signal("TERM");
            assert!(server.ended().success());
        } else {
            server.kill();
        }
        let server = Server::start(home.greenroom(&[]));
        ready(&server, "press");
        assert_eq!(call(&server, "press.release", &json!({})), Ok(json!("released")));
        let state = eventually("the end", || {
            let state = server.state("printing-long", "e1");
            (state["status"] != "running").then_some(state)
        });
        assert_eq!(
            (&state["status"], &state["result"]),
            (&json!("completed"), &json!("done null"))
        );
        let counted = count(&server);
        assert_eq!((&counted["calls"], &counted["cancelled"]), (&json!(1), &json!([])));
    }
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
    let counted = count(&server);
    assert_eq!((&counted["calls"], &counted["cancelled"]), (&json!(1), &json!([])));
}

#[test]
fn a_task_whose_question_is_withdrawn_is_cancelled() {
    let Some(clients) = clients("an MCP server with tasks") else { return };
    let remote = Remote::of(&clients, &["mcp-tasks.mjs"]);
    let (home, server) = printing(&remote, "");
    let waiting = suspended(&server, "print");
    let id = waiting["generationId"].as_str().unwrap();
    let path = format!("/agents/clerk/generations/{id}/cancel");
    assert_eq!(server.post(&path, &json!({})).status, 200);
    eventually("the first cancellation", || {
        (count(&server)["cancelled"] == json!(["t1"])).then_some(())
    });
    let body = json!({ "input": {}, "options": { "executionId": "e1" } });
    let executed = server.post("/workflows/printing-asked/execute", &body).data();
    assert_eq!(executed["status"], "suspended", "{executed}");
    server.kill();
    let server = Server::start(home.greenroom(&[]));
    ready(&server, "press");
    let path = "/workflows/printing-asked/executions/e1/cancel";
    assert_eq!(server.post(path, &json!({})).status, 200);
    eventually("the second cancellation", || {
        (count(&server)["cancelled"] == json!(["t1", "t2"])).then_some(())
    });
}
