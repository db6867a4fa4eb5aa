//! Steps that are Rust functions, and their effects on the server.

use serde_json::{Value, json};

use super::site::at;
use crate::program::Programs;
use support::server::{Home, Server};

fn start() -> (Home, Server) {
    let home = Home::new("");
    let server = Server::start(home.test_server());
    (home, server)
}

fn execute(server: &Server, workflow: &str, id: &str, input: &Value) -> u16 {
    let body = json!({ "input": input, "options": { "executionId": id } });
    server.post(&format!("/workflows/{workflow}/execute"), &body).status
}

#[test]
fn a_panic_is_a_failed_step_of_that_execution_only() {
    let (_home, server) = start();
    for n in 0..20 {
        assert_eq!(execute(&server, "panicking", &format!("p{n}"), &json!({})), 500);
        assert_eq!(execute(&server, "chain", &format!("c{n}"), &json!({ "n": 0 })), 200);
    }
    let state = server.state("panicking", "p19");
    assert_eq!((&state["status"], &state["error"]["stepId"]), (&json!("error"), &json!("fall")));
    assert_eq!(server.state("chain", "c19")["result"]["n"], 3);
}

#[test]
fn a_retry_sees_its_number_and_keeps_its_key() {
    let (home, server) = start();
    assert_eq!(execute(&server, "flaky", "f2", &json!({ "fails": 2 })), 200);
    assert_eq!(server.state("flaky", "f2")["result"], json!({ "attempt": 3 }));
    assert_eq!(execute(&server, "flaky", "f3", &json!({ "fails": 3 })), 500);
    assert_eq!(server.state("flaky", "f3")["error"]["message"], "attempt 3 failed");
    let ledger = home.ledger_lines();
    let lines: Vec<_> = ledger.iter().filter(|line| line.starts_with("f2 ")).collect();
    assert_eq!(lines, ["f2 try 1 f2/try", "f2 try 2 f2/try", "f2 try 3 f2/try"]);
    let errors: Vec<_> = server
        .events("flaky", "f2", 0, u64::MAX)
        .iter()
        .map(support::client::Event::json)
        .filter(|event| event["type"] == "step-error")
        .map(|event| (event["attempt"].clone(), event["willRetry"].clone()))
        .collect();
    assert_eq!(errors, [(json!(1), json!(true)), (json!(2), json!(true))]);
}

#[test]
fn a_function_may_ask() {
    let (home, server) = start();
    assert_eq!(execute(&server, "asking", "q1", &json!({ "question": "why?" })), 200);
    server.kill();
    let server = Server::start(home.test_server());
    let state = server.state("asking", "q1");
    let suspension = &state["suspension"];
    assert_eq!(
        (&suspension["reason"], &suspension["payload"]),
        (&json!("asked"), &json!({ "question": "why?" }))
    );
    let body = json!({ "resumeData": ["because"] });
    let data = server.post(&at("asking", "q1", "resume"), &body).data();
    assert_eq!(data["result"], json!({ "answer": ["because"] }));
}

#[test]
fn a_step_that_crashes_the_server_fails_after_three_attempts() {
    let home = Home::new("");
    let body = json!({ "input": {}, "options": { "executionId": "a1" } }).to_string();
    let mut server = Server::start(home.test_server());
    execute(&server, "approval", "other", &json!({ "n": 0 }));
    let mut wire = support::client::Wire::open(server.address).unwrap();
    wire.send("POST", "/workflows/aborting/execute", &[], Some(body.as_bytes())).unwrap();
    assert!(wire.reply().is_err(), "the step did not abort");
    server.ended();
    // two restarts run it again, and each time it aborts the server, during the start or soon after
    for _ in 0..2 {
        let output = home.run(home.test_server());
        assert!(!output.status.success(), "{output:?}");
    }
    let server = Server::start(home.test_server());
    let state = server.state_when("aborting", "a1", |state| state["status"] == "error");
    let error = json!({ "message": "interrupted 3 times", "stepId": "crash", "path": "crash",
        "kind": "interrupted" });
    assert_eq!(state["error"], error);
    let ledger = home.ledger_lines();
    let lines: Vec<_> = ledger.iter().filter(|line| line.starts_with("a1 ")).collect();
    assert_eq!(lines, ["a1 crash 1 a1/crash", "a1 crash 2 a1/crash", "a1 crash 3 a1/crash"]);
    assert_eq!(server.state("approval", "other")["status"], "suspended");
    assert_eq!(execute(&server, "chain", "c1", &json!({ "n": 0 })), 200);
}
