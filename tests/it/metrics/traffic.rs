//! A sample of everything that is counted, failures included.

use serde_json::{Value, json};

use support::eventually;
use support::server::Server;

pub(super) const CONFIG: &str = r#"
store.passivate_after = "50ms"

[models.offline]
provider = "rehearsal"

[[models.offline.rules]]
when = "'TOOL' in prompt and not tool_results"
tool_call = { name = "add_three", args = { n = "4" } }

[[models.offline.rules]]
when = "'ERROR' in prompt"
error = "the model is not in the mood"

[tools.add_three]
kind = "workflow"
workflow = "add"
description = "Adds 3 to n"

[mcp.away]
command = ["/nowhere/mcp"]

[agents.assistant]
model = "offline"
tools = ["add_three", "away.look"]

[workflows.add]
steps = [{ id = "add", map = { n = "data.n + 3" } }]

[workflows.failing]
steps = [{ id = "bad", map = { x = "data.missing.thing" }, retry = { attempts = 2, delay = "1ms" } }]

[workflows.approval]
steps = [{ id = "ask", map = { approved = "resume.approved" }, suspend = { deadline = "48h" } }]

[workflows.nap]
steps = [{ id = "nap", type = "andSleep", duration = "20ms" }, { id = "after", map = 1 }]

[workflows.asking]
steps = [{ id = "ask", type = "andAgent", agent = "assistant", prompt = "Hello" }]
"#;

/// Runs one of each to its end.
pub(super) fn drive(server: &Server) {
    let rows = [
        ("/workflows/add/execute", json!({ "input": { "n": 1 } }), 200),
        ("/workflows/failing/execute", json!({ "input": {} }), 500),
        ("/workflows/nap/execute", json!({ "input": {} }), 200),
        ("/workflows/asking/execute", json!({ "input": {} }), 200),
        ("/workflows/nobody/execute", json!({ "input": {} }), 404),
        ("/agents/assistant/text", json!({ "input": "TOOL" }), 200),
        ("/agents/assistant/text", json!({ "input": "ERROR" }), 500),
        ("/tools/away.look/execute", json!({ "input": {} }), 500),
        ("/agents/assistant/stream", json!({ "input": "Hello" }), 200),
        ("/nowhere", json!({}), 404),
    ];
    for (path, body, status) in rows {
        let reply = server.post(path, &body);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
    }
    approve_late(server);
}

/// Resumes an execution that was unloaded.
fn approve_late(server: &Server) {
    let before = left_memory(server);
    let asked = server.post("/workflows/approval/execute", &json!({ "input": {} })).data();
    assert_eq!(asked["status"], "suspended");
    eventually("an execution that leaves memory", || (left_memory(server) > before).then_some(()));
    let id = asked["executionId"].as_str().unwrap();
    let path = format!("/workflows/approval/executions/{id}/resume");
    let resumed = server.post(&path, &json!({ "resumeData": { "approved": true } }));
    assert_eq!(resumed.status, 200, "{}", resumed.text());
    assert_eq!(resumed.data()["status"], Value::from("completed"));
}

fn left_memory(server: &Server) -> u64 {
    let metrics = server.get("/metrics").text();
    let name = "greenroom_executions_passivated_total ";
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|count| count.parse().ok()).expect(name)
}
