//! Graceful shutdown: running steps finish, waiting callers are answered, nothing is lost.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::client::{Events, Reply, Wire};
use support::eventually;
use support::server::{Home, Server};

/// Time that requests in progress are given at a stop.
const GRACE: Duration = Duration::from_secs(60);

fn body(id: &str, input: &Value) -> String {
    json!({ "input": input, "options": { "executionId": id } }).to_string()
}

/// Sends an execute request without waiting for the answer.
fn call(server: &Server, workflow: &str, id: &str, input: &Value) -> Wire {
    let mut wire = Wire::open(server.address).unwrap();
    let path = format!("/workflows/{workflow}/execute");
    wire.send("POST", &path, &[], Some(body(id, input).as_bytes())).unwrap();
    server.state_when(workflow, id, |state| state["status"] == "running");
    wire
}

/// Sends requests on a separate connection until one is refused.
fn assert_refused_as_draining(reply: &Reply, execution: Option<&str>) {
    assert_eq!((reply.status, reply.error().as_str()), (503, "The server is shutting down"));
    assert_eq!(reply.header("x-error-code"), Some("draining"));
    assert!(reply.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    assert_eq!(reply.header("x-execution-id"), execution);
}

#[test]
fn running_steps_finish_and_waiting_callers_are_answered() {
    let home = Home::new("server.shutdown_grace = \"3s\"");
    let mut server = Server::start(home.test_server());
    let (gate, never) = (home.path("gate"), home.path("never"));
    let mut short = call(&server, "gated", "short", &json!({ "gate": gate }));
    let mut long = call(&server, "gated", "long", &json!({ "gate": never }));
    let mut asleep = call(&server, "nap", "asleep", &json!({ "n": 0, "pause": 20_000 }));
    server
        .post(
            "/workflows/approval/execute",
            &serde_json::from_str(&body("waiting", &json!({ "n": 0 }))).unwrap(),
        )
        .data();
    let mut watching = Wire::open(server.address).unwrap();
    watching.send("GET", "/workflows/gated/executions/long/stream", &[], None).unwrap();
    let mut watching = Events::read(watching).unwrap();
    watching.next().unwrap().unwrap();
    server
        .post(
            "/workflows/chain/execute",
            &serde_json::from_str(&body("done", &json!({ "n": 0 }))).unwrap(),
        )
        .data();

    let start = Instant::now();
    server.signal("TERM");
    eventually("that it is not ready", || (server.get("/readyz").status == 503).then_some(()));
    assert_eq!(server.get("/livez").status, 200);
    let new = server.send("POST", "/workflows/chain/execute", &[], Some(b"{\"input\":{}}"));
    assert_refused_as_draining(&new, None);
    let resume = server.post(
        "/workflows/approval/executions/waiting/resume",
        &json!({ "resumeData": { "approved": true } }),
    );
    assert_eq!(resume.status, 503, "{}", resume.text());
    assert_eq!(server.state("approval", "waiting")["status"], "suspended");
    home.write("gate", "");
    server.state_when("gated", "short", |it| it["steps"][0]["status"] == "completed");

    for (wire, id) in [(&mut short, "short"), (&mut long, "long"), (&mut asleep, "asleep")] {
        assert_refused_as_draining(&wire.reply().unwrap(), Some(id));
    }
    while watching.next().unwrap().is_some() {}
    assert!(server.ended().success());
    let took = start.elapsed();
    assert!((2..9).contains(&took.as_secs()), "{took:?}");

    home.write("never", "");
    let server = Server::start(home.test_server());
    for id in ["short", "long"] {
        let state = server.state_when("gated", id, |state| state["status"] == "completed");
        assert_eq!(state["result"], json!({ "n": 2 }));
    }
    assert_eq!(server.state("chain", "done")["status"], "completed");
    let path = "/workflows/approval/executions/waiting/resume";
    let resumed = server.post(path, &json!({ "resumeData": { "approved": true } })).data();
    assert_eq!(resumed["result"]["n"], 3);
    let ledger = super::ledger::read(&home.ledger());
    super::ledger::assert_sound(&ledger);
    let count = |id: &str, step: &str| ledger[&(id.to_owned(), step.to_owned())].len();
    assert_eq!((count("short", "wait"), count("short", "after")), (1, 1));
    assert_eq!((count("long", "wait"), count("long", "after")), (2, 1));
}

#[test]
fn an_idle_server_ends_at_once() {
    for signal in ["TERM", "INT"] {
        let home = Home::new(&format!("server.shutdown_grace = \"{}s\"", GRACE.as_secs()));
        let mut server = Server::start(home.test_server());
        server.post("/workflows/chain/execute", &json!({ "input": { "n": 0 } })).data();
        let start = Instant::now();
        server.signal(signal);
        assert!(server.ended().success());
        assert!(start.elapsed() < GRACE / 2, "{signal}: {:?}", start.elapsed());
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let home = Home::new(&format!("server.shutdown_grace = \"{}s\"", GRACE.as_secs()));
    let mut server = Server::start(home.test_server());
    let gate = home.path("gate");
    let mut caller = call(&server, "gated", "g1", &json!({ "gate": gate }));
    server.signal("TERM");
    server.says("SIGTERM: stopping");
    let start = Instant::now();
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(1));
    assert!(start.elapsed() < GRACE / 2, "{:?}", start.elapsed());
    assert!(caller.reply().is_err(), "the caller was answered");
    home.write("gate", "");
    let server = Server::start(home.test_server());
    let state = server.state_when("gated", "g1", |state| state["status"] == "completed");
    assert_eq!((&state["result"], &state["steps"][0]["attempts"]), (&json!({ "n": 2 }), &json!(2)));
}
