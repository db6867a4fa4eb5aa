//! `Prefer: respond-async`: an answer before the outcome, and the outcome by its address.

use serde_json::{Value, json};

use super::site::{Site, at};
use support::client::{Reply, Wire};
use support::eventually;

/// A workflow that asks about each item, and an agent that answers with what it is asked, or after
/// an hour.
const SLOW: &str = r#"
store.passivate_after = "100ms"

[workflows.many]
steps = [{ id = "each", type = "andForEach", items = "input.items", concurrency = 100, block = "one" }]
blocks.one = [{ id = "ask", suspend = { reason = "{{ item }}?" }, map = "resume" }]

[agents.slow]
model = "slow"

[models.slow]
provider = "rehearsal"
rules = [{ when = "'wait' in prompt", delay = "1h" }]
"#;

const ASYNC: (&str, &str) = ("prefer", "respond-async");
const PATIENT: (&str, &str) = ("prefer", "respond-async, wait=600");

fn post(site: &Site, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let headers = [&[("content-type", "application/json")], headers].concat();
    site.send("POST", path, &headers, Some(body.to_string().as_bytes()))
}

/// Returns the address at which the outcome of an accepted request will be.
fn accepted(reply: &Reply) -> String {
    assert_eq!(reply.status, 202, "{}", reply.text());
    assert_eq!(reply.header("preference-applied"), Some("respond-async"));
    reply.header("location").unwrap().to_owned()
}

/// Returns what is at an address once it has this status.
fn comes_to(site: &Site, place: &str, status: &str) -> Value {
    eventually(place, || {
        let data = site.get(place).data();
        (data["status"] == status).then_some(data)
    })
}

#[test]
fn an_execution_is_accepted_once_it_is_recorded() {
    let site = Site::with(SLOW);
    let reply = post(&site, "/workflows/add/execute", &[ASYNC], &json!({ "input": { "n": 1 } }));
    let place = accepted(&reply);
    let id = reply.header("x-execution-id").unwrap();
    assert_eq!(reply.json()["data"]["executionId"], id);
    assert_eq!(place, format!("/workflows/add/executions/{id}/state"));
    assert_eq!(comes_to(&site, &place, "completed")["executionId"], id);

    let reply = post(&site, "/workflows/nap/execute", &[ASYNC], &json!({ "input": {} }));
    let (nap, data) = (accepted(&reply), reply.json()["data"].clone());
    assert_eq!((&data["status"], &data["endAt"]), (&json!("running"), &Value::Null));
    let site = site.after_a_kill();
    assert_eq!(site.get(&nap).data()["status"], "running");
}

#[test]
fn a_replay_is_accepted_once_it_is_recorded() {
    let site = Site::with(SLOW);
    post(
        &site,
        "/workflows/nap/execute",
        &[ASYNC],
        &json!({ "input": {}, "options": { "executionId": "n" } }),
    );
    let replay = |headers: &[(&str, &str)], id: &str| {
        let body = json!({ "stepId": "nap", "options": { "executionId": id } });
        post(&site, "/workflows/nap/executions/n/replay", headers, &body)
    };
    let reply = replay(&[ASYNC, ("idempotency-key", "k")], "m");
    let (place, data) = (accepted(&reply), reply.json()["data"].clone());
    assert_eq!(place, "/workflows/nap/executions/m/state");
    assert_eq!((&data["executionId"], &data["status"]), (&json!("m"), &json!("running")));
    assert_eq!(data["replayedFrom"], json!({ "executionId": "n", "stepId": "nap" }));
    assert_eq!(accepted(&replay(&[ASYNC, ("idempotency-key", "k")], "m")), place);
    let refused = replay(&[ASYNC], "m");
    assert_eq!((refused.status, refused.header("x-error-code")), (409, Some("execution_exists")));

    site.execute("add", "a", &json!({ "n": 1 }));
    let body = json!({ "stepId": "three" });
    let reply = post(&site, "/workflows/add/executions/a/replay", &[PATIENT], &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.json()["data"]["replayedFrom"]["stepId"], "three");
}

#[test]
fn an_accepted_start_is_repeated_under_its_key() {
    let site = Site::with(SLOW);
    let start = |key, prefer, body: &Value| {
        post(&site, "/workflows/approval/execute", &[("idempotency-key", key), prefer], body)
    };
    let body = json!({ "input": { "who": "ann" } });
    let first = start("k1", ASYNC, &body);
    let place = accepted(&first);
    let waited = start("k1", ("accept", "*/*"), &body).data();
    assert_eq!(waited["executionId"], first.json()["data"]["executionId"]);
    let again = start("k1", ASYNC, &body);
    assert_eq!(accepted(&again), place);
    assert_eq!(again.json()["data"], waited, "as it is by now");
    let other = start("k1", ASYNC, &json!({ "input": { "who": "eve" } }));
    assert_eq!(other.header("x-error-code"), Some("idempotency_key_reused"));
}

#[test]
fn an_outcome_that_is_there_in_time_is_the_answer() {
    let site = Site::with(SLOW);
    let run = |workflow: &str, prefer, input: &Value| {
        let path = format!("/workflows/{workflow}/execute");
        post(&site, &path, &[prefer], &json!({ "input": input }))
    };
    assert_eq!(run("add", PATIENT, &json!({ "n": 1 })).data()["status"], "completed");
    assert_eq!(run("approval", PATIENT, &json!({ "who": "a" })).data()["status"], "suspended");
    let failed = run("failing", PATIENT, &json!({}));
    assert_eq!((failed.status, failed.header("x-error-code")), (500, Some("execution_failed")));
    let place = at("failing", failed.header("x-execution-id").unwrap(), "state");
    assert_eq!(site.get(&place).data()["status"], "error");
    accepted(&run("nap", ("prefer", "wait=1, respond-async"), &json!({})));
    let text = post(&site, "/agents/slow/text", &[PATIENT], &json!({ "input": "hello" }));
    assert_eq!(text.data()["text"], "hello");
}

#[test]
fn a_repeated_start_gets_the_first_outcome_or_the_present_state() {
    let site = Site::with(SLOW);
    let start = |key, prefer| {
        let body = json!({ "input": { "who": "ann" } });
        post(&site, "/workflows/approval/execute", &[("idempotency-key", key), prefer], &body)
    };
    let first = start("k1", PATIENT).data();
    let place = at("approval", first["executionId"].as_str().unwrap(), "");
    let approved = json!({ "resumeData": { "approved": true } });
    let resumed = site.post(&format!("{place}resume"), &approved).data();
    let now = start("k1", ASYNC);
    accepted(&now);
    assert_eq!(
        (now.json()["data"].take(), &resumed["status"]),
        (resumed.clone(), &json!("completed"))
    );
    assert_eq!(
        (start("k1", PATIENT).data(), &first["status"]),
        (first.clone(), &json!("suspended"))
    );

    let place = accepted(&start("k2", ASYNC)).replace("state", "cancel");
    site.post(&place, &json!({ "reason": "enough" }));
    let now = start("k2", ASYNC);
    accepted(&now);
    let now = now.json()["data"].take();
    assert_eq!((&now["status"], &now["reason"]), (&json!("cancelled"), &json!("enough")));
    assert!(now["endAt"].is_string() && now.get("suspensions").is_none(), "{now}");
}

#[test]
fn suspensions_are_those_of_the_outcome() {
    let site = Site::with(SLOW);
    for (workflow, input, count) in
        [("pair", json!({}), 2), ("many", json!({ "items": (0..60).collect::<Vec<_>>() }), 50)]
    {
        let start = |prefer| {
            let path = format!("/workflows/{workflow}/execute");
            post(&site, &path, &[("idempotency-key", "k"), prefer], &json!({ "input": input }))
        };
        let waited = start(PATIENT).data();
        assert_eq!(waited["suspensions"].as_array().unwrap().len(), count, "{workflow}");
        let now = start(ASYNC);
        accepted(&now);
        assert_eq!(now.json()["data"], waited, "{workflow}");
    }
}

#[test]
fn a_disconnect_ends_the_wait_and_not_the_work() {
    let site = Site::with(SLOW);
    let wait = |path: &str, body: Value| {
        let mut wire = Wire::open(site.address).unwrap();
        wire.send("POST", path, &[PATIENT], Some(body.to_string().as_bytes())).unwrap();
        wire
    };
    let chosen = json!({ "input": "wait", "options": { "generationId": "g" } });
    let generation = wait("/agents/slow/text", chosen);
    let place = "/agents/slow/generations/g";
    eventually("it is recorded", || (site.get(place).status == 200).then_some(()));
    let chosen = json!({ "input": {}, "options": { "executionId": "e" } });
    let execution = wait("/workflows/nap/execute", chosen);
    let live = || {
        let text = site.get("/metrics").text();
        text.lines().find_map(|line| line.strip_prefix("greenroom_executions_live ")?.parse().ok())
    };
    eventually("it is in memory", || live().filter(|count: &u64| *count == 1));
    drop((generation, execution));
    eventually("its caller has left it", || live().filter(|count| *count == 0));
    assert_eq!(site.get(&at("nap", "e", "state")).data()["status"], "running");
    assert_eq!(site.get(place).data()["status"], "working");
}

#[test]
fn a_generation_is_accepted_once_it_is_recorded() {
    let site = Site::with(SLOW);
    let reply = post(&site, "/agents/slow/text", &[ASYNC], &json!({ "input": "hello" }));
    let place = accepted(&reply);
    let id = reply.header("x-generation-id").unwrap();
    assert_eq!(place, format!("/agents/slow/generations/{id}"));
    assert_eq!(reply.text(), "");
    let generation = comes_to(&site, &place, "completed");
    assert_eq!((&generation["output"], &generation["input"]), (&json!("hello"), &json!("hello")));
    assert_eq!(site.get(&place).header("x-trace-id"), reply.header("x-trace-id"));

    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let object = json!({ "input": "hello", "schema": schema });
    let place = accepted(&post(&site, "/agents/slow/object", &[ASYNC], &object));
    assert_eq!(comes_to(&site, &place, "completed")["output"], json!({ "name": "sample" }));

    let waits = || post(&site, "/agents/slow/text", &[ASYNC], &json!({ "input": "wait" }));
    let place = accepted(&waits());
    assert_eq!(site.get(&place).data()["status"], "working", "its client has gone");
    assert_eq!(post(&site, &format!("{place}/cancel"), &[], &json!({})).status, 200);
    assert_eq!(site.get(&place).data()["status"], "cancelled");
    let briefly = ("prefer", "respond-async, wait=1");
    let place =
        accepted(&post(&site, "/agents/slow/text", &[briefly], &json!({ "input": "wait" })));
    assert_eq!(site.get(&place).data()["status"], "working", "the wait is over, not the work");
    let place = accepted(&waits());
    let site = site.after_a_kill();
    assert_eq!(site.get(&place).data()["error"], "interrupted by a restart");
}

#[test]
fn what_cannot_begin_is_refused_at_once() {
    let site = Site::with(SLOW);
    let schema = json!({ "type": "strin" });
    let rows = [
        ("/workflows/none/execute", json!({ "input": {} }), "workflow_not_found"),
        ("/workflows/add/execute", json!({ "input": 5 }), "body_invalid"),
        ("/agents/none/text", json!({ "input": "hi" }), "agent_not_found"),
        ("/agents/slow/object", json!({ "input": "hi", "schema": schema }), "schema_invalid"),
    ];
    for (path, body, code) in rows {
        let reply = post(&site, path, &[ASYNC], &body);
        assert_eq!(reply.header("x-error-code"), Some(code), "{path}: {}", reply.text());
    }
    let unknown = site.get("/agents/slow/generations/none");
    let error = unknown.error();
    assert_eq!((unknown.status, error.as_str()), (404, "Generation none not found"));
    let body = json!({ "input": "hi", "options": { "generationId": "mine" } });
    accepted(&post(&site, "/agents/slow/text", &[ASYNC], &body));
    assert_eq!(site.get("/agents/assistant/generations/mine").status, 404, "of another agent");
}
