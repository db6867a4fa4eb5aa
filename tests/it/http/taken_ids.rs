//! Ids that the server derives, and that a caller has taken before.

use greenroom_actors::domain::hash::short_hash;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::{derived_execution_id, slot_of};
use serde_json::json;

use super::site::{ADD_TOOL, Site};

const ORDER: &str = r#"
[workflows.order]
steps = [{ id = "charge", tool = "add", args = { n = "input.n" } }]
"#;

#[test]
fn the_tool_of_a_step_does_not_take_the_result_of_another_execution() {
    let site = Site::with(&format!("{ADD_TOOL}{ORDER}"));
    let named_after = short_hash(&["o-1/charge"]);
    // also the workflow of the tool, and the same input
    site.execute("add", &named_after, &json!({ "n": 100 }));

    let done = site.execute("order", "o-1", &json!({ "n": 1 }));
    assert_eq!(done["result"], json!({ "n": 4 }), "{done}");
    let runs = site.get("/workflows/add/executions").data();
    assert_eq!(runs["executions"].as_array().unwrap().len(), 2, "{runs}");
}

#[test]
fn ids_of_executions_that_undo_others_cannot_be_taken() {
    let site = Site::start();
    let slot = slot_of(&ExecutionId::trusted("o-1"));
    let derived = derived_execution_id(&["o-1", "charge:compensate", "1"], slot);
    let body = json!({ "input": { "n": 1 }, "options": { "executionId": derived.as_str() } });
    for route in ["execute", "stream"] {
        let reply = site.server.post(&format!("/workflows/add/{route}"), &body);
        let error = reply.json()["error"].as_str().unwrap().to_owned();
        assert_eq!(reply.status, 400, "{error}");
        assert!(error.contains("options.executionId: must not be a UUID of version 8"), "{error}");
    }
}
