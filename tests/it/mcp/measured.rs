//! Metrics of calls of MCP servers, by how the calls end.

use serde_json::json;
use support::eventually;
use support::server::Server;

use super::{Site, call};

/// Further callers of `own`.
const CALLERS: &str = r#"
[workflows.hurried]
steps = [{ id = "hang", tool = "own.hang", args = {}, timeout = "200ms" }]

[mcp.absent]
command = ["/nowhere/mcp"]

[workflows.absent]
steps = [{ id = "call", tool = "absent.call", args = {} }]
"#;

/// Returns the value of a series, which is an integer.
fn value(server: &Server, series: &str) -> Option<u64> {
    let metrics = server.get("/metrics").text();
    let mut lines = metrics.lines();
    lines.find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

fn ended(server: &Server, name: &str, outcome: &str) -> Option<u64> {
    let series = format!("greenroom_mcp_calls_total{{server=\"{name}\",outcome=\"{outcome}\"}}");
    value(server, &series)
}

#[test]
fn calls_are_counted_by_how_they_end() {
    let site = Site::start(CALLERS);
    let server = &site.server;
    for outcome in ["completed", "timed_out"] {
        assert_eq!(ended(server, "own", outcome), Some(0), "{outcome} exists from the start");
    }
    site.call("sum", &json!({ "n": 1 })).unwrap();
    for tool in ["fail", "refuse", "die"] {
        site.call(tool, &json!({})).unwrap_err();
    }
    call(server, "absent.call", &json!({})).unwrap_err();
    let said = server.says("tool absent.call: a direct call failed: the MCP server absent is not");
    assert!(said.contains(" request="), "{said}");
    let hurried = server.post("/workflows/hurried/execute", &json!({ "input": {} }));
    assert_eq!(hurried.status, 500, "{}", hurried.text());
    let asked = server.post("/workflows/signing/execute", &json!({ "input": {} })).data();
    assert_eq!(asked["status"], "suspended");

    let body = json!({ "input": {}, "options": { "executionId": "s1" } }).to_string();
    let headers = [("content-type", "application/json"), ("prefer", "respond-async")];
    let path = "/workflows/staying/execute";
    assert_eq!(server.send("POST", path, &headers, Some(body.as_bytes())).status, 202);
    site.noted("stay");
    let cancel = "/workflows/staying/executions/s1/cancel";
    assert_eq!(server.post(cancel, &json!({})).status, 200);

    for (outcome, expected) in [
        ("completed", 1),
        ("tool_error", 1),
        ("failed", 1),
        ("asked", 1),
        ("timed_out", 1),
        ("cancelled", 1),
        ("interrupted", 1),
    ] {
        let is_expected = || (ended(server, "own", outcome) == Some(expected)).then_some(());
        eventually(outcome, is_expected);
    }
    assert_eq!(ended(server, "absent", "failed"), Some(1));
    let count = "greenroom_mcp_call_duration_seconds_count{server=\"own\"}";
    assert_eq!(value(server, count), Some(7));
    let status = site.status_when("own", |_| true);
    assert_eq!((&status["calls"], &status["failures"]), (&json!(7), &json!(4)));
}
