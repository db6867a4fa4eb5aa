//! Tools of MCP servers: called directly, by agents and by steps, while the servers behave and while
//! they do not.

mod asking;
mod away;
mod bounds;
mod changing;
mod cluster;
mod conformance;
mod explained;
mod files;
mod measured;
mod oauth;
mod permitted;
mod real;
mod scripted;
mod tasks;

use serde_json::{Value, json};
use support::client::{Events, Wire};
use support::eventually;
use support::server::{Home, Server};

pub(crate) use self::conformance::drive_if_asked;
pub(crate) use self::scripted::serve_if_asked;
use crate::program::Programs as _;

/// Agents and workflows that call tools of the server `own`.
const CALLERS: &str = r#"
[models.offline]
provider = "rehearsal"
rules = [
    { when = "tool_results", reply = "it said {{ tool_results[-1] }}" },
    { when = "'sum' in prompt", tool_call = { name = "own.sum", args = { n = "41" } } },
    { when = "'die' in prompt", tool_call = { name = "own.die", args = {} } },
    { when = "'ask' in prompt", tool_call = { name = "own.ask", args = {} } },
]

[agents.clerk]
model = "offline"
tools = ["own.sum", "own.die", "own.ask"]

[workflows.adding]
steps = [{ id = "add", tool = "own.sum", args = { n = "input.n" } }]

[workflows.reporting]
steps = [{ id = "report", tool = "own.report", args = {} }]

[workflows.staying]
steps = [{ id = "stay", tool = "own.stay", args = {} }]

[workflows.voting]
steps = [{ id = "all", type = "andForEach", items = "input.who", concurrency = 3, block = "one" }]
blocks.one = [{ id = "vote", tool = "own.vote", args = { n = "item" } }]

[workflows.signing]
steps = [{ id = "sign", tool = "own.sign", args = {} }]

[workflows.reading]
steps = [{ id = "read", tool = "own.stay_once", args = {} }]
"#;

/// A server with the scripted MCP server `own`.
pub(crate) struct Site {
    pub(crate) home: Home,
    pub(crate) server: Server,
}

impl Site {
    /// Starts a server with further lines for `own`, and waits until that is connected.
    pub(crate) fn start(lines: &str) -> Self {
        let home = Home::new("");
        let own = scripted::config("own", "good", &home.path("asked"));
        home.configure(&format!("{own}{lines}\n{CALLERS}"));
        let server = Server::start(home.greenroom(&[]));
        let site = Self { home, server };
        ready(&site.server, "own");
        site
    }

    /// Kills the server, and starts it again.
    pub(super) fn after_a_kill(self) -> Self {
        let Self { home, server } = self;
        server.kill();
        let server = Server::start(home.greenroom(&[]));
        let site = Self { home, server };
        ready(&site.server, "own");
        site
    }

    /// Waits for a state of an MCP server.
    pub(super) fn status_when(&self, name: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
        status_when(&self.server, name, is_expected)
    }

    /// Calls a tool of `own`; returns the result, or the text of the failure.
    pub(super) fn call(&self, tool: &str, input: &Value) -> Result<Value, String> {
        call(&self.server, &format!("own.{tool}"), input)
    }

    /// Waits until the scripted server has noted something.
    pub(super) fn noted(&self, what: &str) {
        eventually(what, || {
            let noted = std::fs::read_to_string(self.home.path("asked")).unwrap_or_default();
            noted.lines().any(|line| line == what).then_some(())
        });
    }
}

/// Waits for a state of an MCP server.
fn status_when(server: &Server, name: &str, is_expected: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("the state of {name}"), || {
        let statuses = server.get("/tools/mcp").data();
        let statuses = statuses.as_array().unwrap();
        statuses.iter().find(|status| status["name"] == name && is_expected(status)).cloned()
    })
}

/// Waits until a server is connected and its tools are registered.
fn ready(server: &Server, name: &str) -> Value {
    let status = status_when(server, name, |status| status["state"] == "ready");
    let own = status["tools"].as_array().unwrap().iter().map(|tool| tool.as_str().unwrap());
    let own: Vec<_> = own.map(str::to_owned).collect();
    eventually(&format!("the tools of {name}"), || {
        let registered = server.get("/tools").data();
        let registered = registered.as_array().unwrap();
        let is_placeholder =
            |tool: &Value| tool["description"].as_str().unwrap().contains("not connected yet");
        let is_known = |name: &String| {
            registered.iter().any(|tool| tool["name"] == **name && !is_placeholder(tool))
        };
        own.iter().all(is_known).then_some(())
    });
    status
}

/// Calls a tool; returns the result, or the text of the failure.
fn call(server: &Server, tool: &str, input: &Value) -> Result<Value, String> {
    let reply = server.post(&format!("/tools/{tool}/execute"), &json!({ "input": input }));
    match reply.status {
        200 => Ok(reply.data()["result"].clone()),
        _ => Err(reply.error()),
    }
}

/// Returns the names of the registered tools.
fn tool_names(server: &Server) -> Vec<String> {
    let tools = server.get("/tools").data();
    let tools = tools.as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn tools_are_called_directly_by_agents_and_by_steps() {
    let site = Site::start("");
    let said = site.call("echo", &json!({ "n": 1 })).unwrap();
    let said: Value = serde_json::from_str(said.as_str().unwrap()).unwrap();
    assert_eq!(said, json!({ "arguments": { "n": 1 }, "hasKey": true }));
    assert_eq!(site.call("sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
    let answer = site.server.post("/agents/clerk/text", &json!({ "input": "the sum, please" }));
    assert!(answer.data()["text"].as_str().unwrap().contains("42"), "{answer:?}");
    let trace = answer.header("x-trace-id").unwrap();
    let trace = site.server.get(&format!("/observability/traces/{trace}")).data();
    let mut spans = trace["spans"].as_array().unwrap().iter();
    let span = spans.find(|span| span["name"] == "execute_tool own.sum").unwrap();
    for (name, expected) in [
        ("gen_ai.tool.name", "own.sum"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2025-11-25"),
        ("network.transport", "pipe"),
    ] {
        assert_eq!(span["attributes"][name], expected, "{span}");
    }
    let input = json!({ "input": { "n": 2 } });
    let executed = site.server.post("/workflows/adding/execute", &input).data();
    assert_eq!(executed["result"], json!({ "sum": 3 }), "{executed}");
    let path =
        format!("/workflows/adding/executions/{}/state", executed["executionId"].as_str().unwrap());
    let trace = site.server.get(&path).data()["traceId"].clone();
    let trace =
        site.server.get(&format!("/observability/traces/{}", trace.as_str().unwrap())).data();
    let mut spans = trace["spans"].as_array().unwrap().iter();
    let span = spans.find(|span| span["name"] == "step add").unwrap();
    for (name, expected) in [
        ("gen_ai.tool.name", "own.sum"),
        ("mcp.method.name", "tools/call"),
        ("network.transport", "pipe"),
    ] {
        assert_eq!(span["attributes"][name], expected, "{span}");
    }
    let status = site.status_when("own", |_| true);
    assert_eq!((&status["calls"], &status["failures"]), (&json!(4), &json!(0)));
    assert_eq!(status["protocol"], "2025-11-25");
}

#[test]
fn progress_of_the_call_of_a_step_reaches_subscribers() {
    let site = Site::start("");
    let mut wire = Wire::open(site.server.address).unwrap();
    let body = json!({ "input": {} }).to_string();
    wire.send("POST", "/workflows/reporting/stream", &[], Some(body.as_bytes())).unwrap();
    let mut events = Events::read(wire).unwrap();
    let progress = std::iter::from_fn(|| events.next().unwrap())
        .find(|event| event.kind() == "step-progress")
        .expect("the server reports progress");
    let progress = progress.json();
    let message = &"sorted ".repeat(100)[..500];
    let expected = json!({ "progress": 1, "total": 4, "message": message });
    assert_eq!((&progress["path"], &progress["event"]), (&json!("report"), &expected));
}

#[test]
fn failures_reach_the_caller_in_words() {
    let site = Site::start("timeout = \"10s\"");
    for (tool, expected) in [
        ("fail", "Failed to execute tool: the printer burns password=[redacted] [redacted]"),
        ("refuse", "Failed to execute tool: n is too small password=[redacted] [redacted]"),
        (
            "ask",
            "Failed to execute tool: the tool has to ask a person; only calls of agents and steps can \
             wait for the answer",
        ),
    ] {
        assert_eq!(site.call(tool, &json!({})), Err(expected.to_owned()), "{tool}");
    }
    // what a tool says about itself is no failure of its server, and a question is none
    let status = site.status_when("own", |status| status["calls"] == 3);
    assert_eq!(status["failures"], 1, "{status}");
    let invalid = site.call("sum", &json!({ "n": "one" })).unwrap_err();
    assert!(invalid.starts_with("Invalid tool input: n"), "{invalid}");
}

#[test]
fn tools_that_cannot_be_used_are_listed_with_the_reason() {
    let site = Site::start("tools = [\"*\", \"!refuse\"]\n");
    let status = site.status_when("own", |_| true);
    let left_out = status["leftOut"].as_array().unwrap().iter();
    let left_out: Vec<_> =
        left_out.map(|it| (it["name"].as_str().unwrap(), it["reason"].as_str().unwrap())).collect();
    let long = "long".repeat(20);
    let expected = [
        ("refuse", "`tools` leaves it out"),
        ("echo", "the server has two tools of this name"),
        ("not a name", "its name is not"),
        (long.as_str(), "its name is not"),
        ("loose", "its schema cannot be used"),
    ];
    assert_eq!(left_out.len(), expected.len(), "{left_out:?}");
    for ((name, reason), (of, part)) in left_out.iter().zip(expected) {
        assert!(*name == of && reason.starts_with(part), "{name}: {reason}");
    }
    let names = tool_names(&site.server);
    assert!(names.contains(&"own.sum".to_owned()) && !names.contains(&"own.refuse".to_owned()));
}

#[test]
fn a_changed_list_is_read_again() {
    let site = Site::start("");
    let grown = || tool_names(&site.server).contains(&"own.grown".to_owned());
    assert!(!grown());
    site.call("grow", &json!({})).unwrap();
    eventually("the tool", || grown().then_some(()));
    assert_eq!(site.call("grown", &json!({})), Ok(json!("grown is done")));
}

#[test]
fn calls_of_agents_wait_for_an_approval() {
    let site = Site::start("approval = [\"sum\"]");
    let answer = site.server.post("/agents/clerk/text", &json!({ "input": "the sum, please" }));
    let asks = site.server.get("/inbox").data();
    assert_eq!(asks["asks"].as_array().map(Vec::len), Some(1), "{answer:?}\n{asks}");
}

#[test]
fn a_name_in_approval_that_the_server_does_not_have_guards_all_tools() {
    let site = Site::start("approval = [\"summ\"]");
    let answer = site.server.post("/agents/clerk/text", &json!({ "input": "the sum, please" }));
    let asks = site.server.get("/inbox").data();
    assert_eq!(asks["asks"].as_array().map(Vec::len), Some(1), "{answer:?}\n{asks}");
    let status = site.status_when("own", |_| true);
    let unmatched = json!([{ "key": "approval", "pattern": "summ" }]);
    assert_eq!(status["unmatched"], unmatched, "{status}");
}

#[test]
fn a_call_that_is_given_up_is_cancelled_at_the_server() {
    let site = Site::start("timeout = \"100ms\"");
    let failure = site.call("hang", &json!({})).unwrap_err();
    assert_eq!(failure, "Failed to execute tool: timed out after 100 ms");
    let status = site.status_when("own", |status| status["failures"] == 1);
    assert_eq!(status["calls"], 1, "{status}");
    site.noted("cancelled");
    assert_eq!(site.call("sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
}
