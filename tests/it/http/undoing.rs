//! Compensations that fail and ask a person, over HTTP.

use serde_json::{Value, json};

use super::site::at;
use support::server::{Home, Server};
use support::store::Store;

const CONFIG: &str = r#"
[workflows.booking]
steps = [
    { id = "hold", run = "work", compensate = { run = "panic", retry = { attempts = 1 } } },
    { id = "charge", map = "fail('no money')" },
]
"#;

fn asks(server: &Server, kind: &str) -> Vec<Value> {
    let data = server.get(&format!("/inbox?kind={kind}")).data();
    data["asks"].as_array().unwrap().clone()
}

#[test]
fn a_compensation_that_a_person_skips_is_shown_as_skipped() {
    drill(Store::chosen());
}

#[test]
fn a_compensation_that_a_person_skips_is_shown_as_skipped_on_postgres() {
    Store::postgres().into_iter().for_each(drill);
}

fn drill(store: Store) {
    let home = Home::on(store, CONFIG);
    let server = Server::start(home.test_server());
    let body = json!({ "input": { "n": 1 }, "options": { "executionId": "b1" } });
    let waits = server.post("/workflows/booking/execute", &body).data();
    assert_eq!(waits["status"], "suspended");
    let warned = server.says("the compensation of hold failed");
    assert!(warned.contains("waits for an answer"), "{warned}");
    let [ask] = &asks(&server, "compensation")[..] else { panic!("one ask") };
    assert_eq!(
        (&ask["kind"], &ask["of"]["path"]),
        (&json!("compensation"), &json!("hold:compensate"))
    );
    assert_eq!(asks(&server, "function"), [] as [Value; 0]);
    let metrics = server.get("/metrics").text();
    for series in
        ["greenroom_asks{kind=\"compensation\"} 1\n", "greenroom_asks{kind=\"function\"} 0\n"]
    {
        assert!(metrics.contains(series), "{series} in {metrics}");
    }

    let answer = json!({ "data": { "action": "skip" }, "options": { "userId": "eve" } });
    let id = ask["askId"].as_str().unwrap();
    server.post(&format!("/inbox/{id}/answer"), &answer).data();
    server.state_when("booking", "b1", |state| state["status"] == "error");
    shown(&server);
    server.kill();
    let server = Server::start(home.test_server());
    shown(&server);
    server.kill();
}

/// Checks what the state, the events and `why` say of the compensation.
fn shown(server: &Server) {
    let state = server.state("booking", "b1");
    let counts =
        ["completed", "skipped", "remaining"].map(|key| state["compensation"][key].clone());
    assert_eq!(counts, [json!(0), json!(1), json!(0)], "{state:#}");
    let steps = state["steps"].as_array().unwrap();
    let undone = steps.iter().find(|step| step["path"] == "hold:compensate").unwrap();
    assert_eq!((&undone["status"], &undone["resumedBy"]["id"]), (&json!("skipped"), &json!("eve")));

    let events = server.events("booking", "b1", 0, state["lastSequence"].as_u64().unwrap());
    let events = events.iter().map(|event| event.json());
    let ended = events.into_iter().find(|event| event["type"] == "compensation-complete").unwrap();
    assert_eq!(ended["skipped"], true, "{ended}");

    let ended = &server.get(&at("booking", "b1", "why")).data()["ended"];
    let message = ended["message"].as_str().unwrap();
    assert!(message.ends_with("; the compensation of hold was skipped by eve"), "{message}");
    let [skipped] = &ended["skippedCompensations"].as_array().unwrap()[..] else {
        panic!("one was skipped: {ended}")
    };
    assert_eq!((&skipped["path"], &skipped["by"]["id"]), (&json!("hold"), &json!("eve")));

    let refused = server.post(&at("booking", "b1", "replay"), &json!({}));
    let text =
        "A person skipped the compensation of hold; name a step in stepId; possible steps: hold";
    assert_eq!((refused.status, &refused.json()["error"]), (400, &json!(text)));
}
