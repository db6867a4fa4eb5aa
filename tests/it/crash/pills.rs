//! Expressions that exceed their limits: other requests are answered meanwhile, also after a crash,
//! and the executions fail and stay failed.
//!
//! ```text
//! cargo test --release --test it pills -- --nocapture
//! ```
//!
//! prints the latency of the other requests.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use support::client::Wire;
use support::eventually;
use support::server::{Home, Server};

const PILLS: usize = 3;
const OTHERS: usize = 200;

/// The limit of steps ends an evaluation: the busier the machine, the later, so that there is enough
/// time for the other requests during the first of three evaluations.
const CONFIG: &str = r#"
limits.expression_time_max = "30s"
[workflows.pill]
[[workflows.pill.steps]]
id = "walk"
map = "input.items | selectattr('i', 'in', input.ids) | list | length"
retry = { attempts = 3, delay = "10ms" }
[workflows.plain]
steps = [{ id = "add", map = "input.n + 1" }]
"#;

fn pill() -> Value {
    // no item is among the ids: each comparison scans all of them
    let items: Vec<Value> = (0..40_000).map(|n| json!({ "i": -1 - n })).collect();
    json!({ "items": items, "ids": (0..60_000).collect::<Vec<i32>>() })
}

/// Executes a cheap workflow so often; returns the sorted latencies.
fn others(server: &Server, times: usize) -> Vec<Duration> {
    let mut wire = Wire::open(server.address).unwrap();
    let mut took: Vec<Duration> = (0..times)
        .map(|n| {
            let body = json!({ "input": { "n": n } }).to_string();
            let json = [("content-type", "application/json")];
            let begun = Instant::now();
            wire.send("POST", "/workflows/plain/execute", &json, Some(body.as_bytes())).unwrap();
            let reply = wire.reply().unwrap();
            assert_eq!(reply.data()["result"], json!(n + 1), "{}", reply.text());
            begun.elapsed()
        })
        .collect();
    took.sort_unstable();
    took
}

fn tell(when: &str, took: &[Duration]) {
    let at = |part: usize| took[(took.len() * part / 100).min(took.len() - 1)];
    println!("{when}: p50 {:?}, p99 {:?}, longest {:?}", at(50), at(99), at(100));
}

fn status(server: &Server, id: &str) -> Value {
    server.state("pill", id)["status"].clone()
}

/// Checks that an evaluation ends the process at most twice, whatever the cause.
#[test]
fn an_execution_that_crashes_the_process_twice_is_set_aside() {
    let home = Home::new(CONFIG);
    let server = Server::start(home.test_server());
    let plain = json!({ "input": { "n": 1 } });
    let body = json!({ "input": pill(), "options": { "executionId": "pill" } }).to_string();
    let mut caller = Wire::open(server.address).unwrap();
    let json = [("content-type", "application/json")];
    caller.send("POST", "/workflows/pill/execute", &json, Some(body.as_bytes())).unwrap();
    kill_in_the_middle(server, &home);
    kill_in_the_middle(Server::start(home.test_server()), &home);

    let server = Server::start(home.test_server());
    let said = server.says("execution pill failed");
    let error =
        "set aside: the process died 2 times while it was being evaluated, at the same point";
    assert!(said.contains(error), "{said}");
    let state = server.state_when("pill", "pill", |state| state["status"] == json!("error"));
    assert_eq!(state["error"]["message"], json!(error), "{state}");
    let why = server.get("/workflows/pill/executions/pill/why").data().to_string();
    assert!(why.contains(error), "{why}");
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("\ngreenroom_executions_set_aside 1\n"), "{metrics}");
    assert_eq!(server.post("/workflows/plain/execute", &plain).data()["result"], json!(2));
}

/// Kills the process once it has marked the evaluation.
fn kill_in_the_middle(server: Server, home: &Home) {
    eventually("a mark", || {
        let files = std::fs::read_dir(home.path("")).unwrap().map(|file| file.unwrap().path());
        let mut files = files.filter(|path| path.extension().is_some_and(|it| it == "crashes"));
        let marks = std::fs::read_to_string(files.next()?).unwrap();
        // remembered crashes have a count, and follow the marks
        let is_marked = marks.contains("\"Decide\"}");
        is_marked.then_some(())
    });
    server.kill();
}

#[test]
fn other_executions_are_answered_during_costly_evaluations() {
    let home = Home::new(CONFIG);
    let server = Server::start(home.test_server());
    let ids: Vec<String> = (0..PILLS).map(|n| format!("pill-{n}")).collect();
    let input = pill();
    let start = |id: &String| {
        let body = json!({ "input": input, "options": { "executionId": id } }).to_string();
        let mut wire = Wire::open(server.address).unwrap();
        let json = [("content-type", "application/json")];
        wire.send("POST", "/workflows/pill/execute", &json, Some(body.as_bytes())).unwrap();
        wire
    };
    let callers: Vec<Wire> = ids.iter().map(start).collect();
    for id in &ids {
        server.state_when("pill", id, |state| state["status"] == json!("running"));
    }
    // one is enough: many take longer than an evaluation on a busy machine
    others(&server, 1);
    let last = &ids[PILLS - 1];
    assert_eq!(status(&server, last), json!("running"), "the others did not wait for it");
    let cancelled = server.post(&format!("/workflows/pill/executions/{last}/cancel"), &json!({}));
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    drop(callers);
    server.kill();

    let server = Server::start(home.test_server());
    others(&server, 1);
    let is_running = |id: &String| status(&server, id) == json!("running");
    assert!(ids.iter().any(is_running), "the others did not wait for those either");
    tell("beside two, after the end of the process", &others(&server, OTHERS));
    assert_eq!(status(&server, last), json!("cancelled"));
    for id in &ids[..PILLS - 1] {
        let state = server.state_when("pill", id, |state| state["status"] == json!("error"));
        let said = state["error"].to_string();
        let ends = ["takes more than 30000000 steps", "took longer than 30s"];
        assert!(ends.iter().any(|end| said.contains(end)), "{said}");
        let attempts = state["steps"][0]["attempts"].as_u64().unwrap_or(1);
        assert_eq!(attempts, 1, "{state}");
    }
}
