//! Traces of the real program, before and after a kill.

use serde_json::{Value, json};

use super::site::Site;
use support::store::Store;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: [(&str, &str); 1] =
    [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];

fn begin(site: &Site, path: &str, headers: &[(&str, &str)], body: &Value) -> String {
    let reply = site.send("POST", path, headers, Some(body.to_string().as_bytes()));
    reply.header("x-trace-id").unwrap_or_else(|| panic!("{path}: {}", reply.text())).to_owned()
}

/// Returns all answers about these traces.
fn told(site: &Site, traces: &[String]) -> Vec<Value> {
    let mut told = vec![site.get("/observability/traces").data()];
    for id in traces {
        let trace = site.get(&format!("/observability/traces/{id}")).data();
        for span in trace["spans"].as_array().unwrap() {
            let id = span["spanId"].as_str().unwrap();
            assert_eq!(&site.get(&format!("/observability/spans/{id}")).data(), span);
        }
        told.push(trace);
    }
    told
}

#[test]
fn a_trace_is_the_same_after_a_kill() {
    traced(Store::chosen());
}

#[test]
fn a_trace_is_the_same_after_a_kill_on_postgres() {
    Store::postgres().into_iter().for_each(traced);
}

fn traced(store: Store) {
    let site = Site::on(store, "");
    let input = json!({ "input": { "n": 1, "who": "Ada" } });
    let traces = [
        begin(&site, "/workflows/add/execute", &[], &input),
        begin(&site, "/workflows/parent/execute", &[], &input),
        begin(&site, "/workflows/failing/execute", &PARENT, &input),
        begin(&site, "/agents/assistant/text", &[], &json!({ "input": "hello" })),
    ];
    assert_eq!(traces[2], TRACE);
    let before = told(&site, &traces);
    assert_eq!(before[0]["traces"].as_array().unwrap().len(), traces.len());
    // The child's execution is below the step of its parent.
    let root = &before[2]["tree"][0];
    assert_eq!(before[2]["tree"].as_array().unwrap().len(), 1);
    let child = &root["children"][0]["children"][0];
    assert_eq!(child["name"], "invoke_workflow approval");
    assert_ne!(
        child["attributes"]["workflow.execution.id"],
        root["attributes"]["workflow.execution.id"]
    );

    let site = site.after_a_kill();
    assert_eq!(told(&site, &traces), before);
}
