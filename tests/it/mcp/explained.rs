//! `why` of steps whose agents call tools of MCP servers.

use serde_json::{Value, json};
use support::eventually;

use super::Site;

const KEEPER: &str = r#"concurrency = 1

[models.keeper]
provider = "rehearsal"
rules = [
    { when = "'ask' in prompt", tool_call = { name = "own.ask", args = {} } },
    { tool_call = { name = "own.stay", args = {} } },
]

[agents.keeper]
model = "keeper"
tools = ["own.ask", "own.stay"]

[workflows.keeping]
steps = [{ id = "keep", type = "andAgent", agent = "keeper", prompt = "{{ input.what }}" }]
"#;

/// Starts an execution, and returns what it waits for once its agent calls a tool in this stage.
fn awaited(site: &Site, id: &str, what: &str, (kind, stage): (&str, &str)) -> Value {
    let body = json!({ "input": { "what": what }, "options": { "executionId": id } }).to_string();
    let headers = [("content-type", "application/json"), ("prefer", "respond-async")];
    let path = "/workflows/keeping/execute";
    assert_eq!(site.server.send("POST", path, &headers, Some(body.as_bytes())).status, 202);
    let awaited = eventually(stage, || {
        let why = site.server.get(&format!("/workflows/keeping/executions/{id}/why")).data();
        let awaited = why["waitsFor"][0].clone();
        let is_there = awaited["kind"] == kind && awaited["calls"][0]["stage"] == stage;
        is_there.then_some(awaited)
    });
    let state = site.server.state("keeping", id);
    assert_eq!(awaited["generationId"], state["steps"][0]["generationId"], "{awaited}");
    assert!(awaited["calls"][0]["toolCallId"].is_string(), "{awaited}");
    awaited
}

#[test]
fn the_calls_of_the_agent_of_a_step_are_named_with_what_they_wait_for() {
    let site = Site::start(KEEPER);
    let asks = awaited(&site, "asks", "ask", ("asks", "asks"));
    assert_eq!(asks["calls"][0]["tool"], "own.ask");
    assert_eq!(asks["asks"].as_array().unwrap().len(), 1, "{asks}");

    let works = awaited(&site, "works", "stay", ("step", "works"));
    site.noted("stay");
    assert_eq!(works["message"], "attempt 1 runs an agent that calls the tool own.stay");
    assert!(works["calls"][0]["since"].is_string(), "{works}");

    let queued = awaited(&site, "queued", "stay", ("step", "queued"));
    let doing = "waits for a place among the concurrent calls of the tool own.stay";
    assert_eq!(queued["message"], format!("attempt 1 runs an agent that {doing}"));
    assert_eq!(queued["calls"][0]["message"], doing);
}
