//! Replays over HTTP.

use serde_json::{Value, json};

use super::site::{Site, at};
use crate::program::Programs;
use support::server::{Home, Server};

fn replay(server: &Server, workflow: &str, id: &str, body: &Value) -> Value {
    server.post(&at(workflow, id, "replay"), body).data()
}

#[test]
fn a_replay_takes_earlier_outputs_and_names_its_original() {
    let site = Site::start();
    site.execute("add", "a", &json!({ "n": 4 }));
    let body = json!({ "stepId": "three", "options": { "executionId": "b" } });
    let reply = site.post(&at("add", "a", "replay"), &body);
    assert_eq!(reply.header("x-execution-id"), Some("b"));
    let data = reply.data();
    assert_eq!((&data["executionId"], &data["result"]), (&json!("b"), &json!({ "n": 7 })));
    assert_eq!(data["replayedFrom"], json!({ "executionId": "a", "stepId": "three" }));

    let site = site.after_a_kill();
    let (first, second) = (site.state("add", "a"), site.state("add", "b"));
    assert_eq!(second["replayedFrom"], json!({ "executionId": "a", "stepId": "three" }));
    assert_eq!(first["replayedFrom"], json!(null));
    assert_eq!(second["definitionHash"], first["definitionHash"]);
    assert_ne!(second["traceId"], first["traceId"]);
    assert_eq!(second["steps"][0], first["steps"][0], "as it was recorded then");
    let types: Vec<_> = site
        .events("add", "b", 0, u64::MAX)
        .iter()
        .map(|event| (event.json()["type"].clone(), event.json()["from"].clone()))
        .collect();
    let told = ["workflow-start", "step-start", "step-complete", "workflow-complete"];
    assert_eq!(types.iter().map(|(kind, _)| kind).take(4).collect::<Vec<_>>(), told);
    assert_eq!(types[1].1, "three");

    // another input, which goes to the first step
    let again = json!({ "stepId": "one", "input": { "n": 10 } });
    assert_eq!(replay(&site, "add", "b", &again)["result"], json!({ "n": 13 }));
}

#[test]
fn a_replay_can_supply_the_answer_of_a_waiting_step() {
    let site = Site::start();
    site.execute("approval", "a", &json!({ "who": "ann" }));
    let answer = |data: Value| json!({ "stepId": "ask", "resumeData": data });
    let done = replay(&site, "approval", "a", &answer(json!({ "approved": true })));
    assert_eq!(done["result"], json!({ "approved": true, "who": "ann" }));
    let waits = replay(&site, "approval", "a", &json!({ "stepId": "ask" }));
    assert_eq!(
        (&waits["status"], &waits["suspension"]["reason"]),
        (&json!("suspended"), &json!("ann asks"))
    );
    assert_eq!(site.state("approval", "a")["status"], "suspended", "the original waits on");

    let refused = site.post(&at("approval", "a", "replay"), &answer(json!({ "approved": 1 })));
    assert_eq!(refused.status, 400);
    assert!(
        refused.error().starts_with("Resume data validation failed: approved: "),
        "{}",
        refused.error()
    );
}

/// A workflow that fails after a step whose compensation then runs.
const ORDERED: &str = r#"
[workflows.ordered]
steps = [
    { id = "sort", map = 1 },
    { id = "hold", map = 2, compensate = { workflow = "freed", input = 2 } },
    { id = "close", map = "data.missing.thing" },
]

[workflows.freed]
steps = [{ id = "free", map = "data" }]
"#;

#[test]
fn a_replay_without_a_step_begins_before_what_was_undone() {
    let site = Site::with(ORDERED);
    let body = json!({ "input": {}, "options": { "executionId": "o" } });
    site.post("/workflows/ordered/execute", &body);
    let ended = site.get(&at("ordered", "o", "why")).data()["ended"].clone();
    assert_eq!(ended["replayFrom"], json!(["sort", "hold"]), "{ended}");
    let preview = json!({ "action": "replay", "executionIds": ["o"], "dryRun": true });
    assert_eq!(site.post("/workflows/executions/bulk", &preview).data()["matched"], 1);
    let failed =
        site.post(&at("ordered", "o", "replay"), &json!({ "options": { "executionId": "p" } }));
    assert_eq!(failed.header("x-execution-id"), Some("p"), "{}", failed.text());
    let from = json!({ "executionId": "o", "stepId": "hold" });
    assert_eq!(site.state("ordered", "p")["replayedFrom"], from);
}

#[test]
fn refusals_of_replays_name_the_problem() {
    let site = Site::start();
    site.execute("add", "a", &json!({ "n": 1 }));
    site.execute("pair", "p", &json!({}));
    site.execute("approval", "w", &json!({ "who": "ann" }));
    let rows = [
        ("add", "a", json!({ "stepId": "elephant" }), 400, "Step elephant not found"),
        (
            "pair",
            "p",
            json!({ "stepId": "l" }),
            400,
            "Cannot replay from step l; possible steps: both",
        ),
        (
            "approval",
            "w",
            json!({ "stepId": "after" }),
            400,
            "Cannot replay from step after; possible steps: ask",
        ),
        (
            "add",
            "a",
            json!({ "stepId": "one", "resumeData": null }),
            400,
            "Step one does not suspend; remove resumeData",
        ),
        (
            "add",
            "a",
            json!({}),
            400,
            "No step failed; name one in stepId; possible steps: one, two, three",
        ),
        (
            "add",
            "a",
            json!({ "stepId": 5 }),
            400,
            "Invalid request body: stepId: invalid type: integer `5`, expected a string",
        ),
        (
            "add",
            "a",
            json!({ "stepId": "one", "options": { "executionId": ".." } }),
            400,
            "Invalid request body: options.executionId: must be 1 to 128 of the characters \
             A-Z a-z 0-9 . _ : - and not only dots",
        ),
        (
            "add",
            "a",
            json!({ "stepId": "one", "options": { "executionId": "w" } }),
            409,
            "Execution w already exists",
        ),
        ("add", "none", json!({}), 404, "Execution none not found"),
        ("approval", "a", json!({ "stepId": "ask" }), 404, "Execution a not found"),
    ];
    for (workflow, id, body, status, text) in rows {
        let reply = site.post(&at(workflow, id, "replay"), &body);
        assert_eq!((reply.status, reply.error()), (status, text.to_owned()), "{workflow} {body}");
        let about = if status == 409 { Some("w") } else { (status != 404).then_some(id) };
        assert_eq!(reply.header("x-execution-id"), about, "{workflow} {body}");
    }
}

#[test]
fn another_input_of_a_replay_is_one_that_the_workflow_takes() {
    let site = Site::start();
    site.execute("add", "a", &json!({ "n": 1 }));
    site.execute("pair", "p", &json!({}));
    let rows = [
        ("add", "a", "three", json!({ "n": "x" }), "Input validation failed: n: "),
        ("pair", "p", "both", json!([1]), "Input validation failed: must be an object"),
    ];
    for (workflow, id, step, input, expected) in rows {
        let body = json!({ "stepId": step, "input": input });
        let refused = site.post(&at(workflow, id, "replay"), &body);
        assert_eq!(refused.status, 400);
        assert!(refused.error().starts_with(expected), "{}", refused.error());
    }
}

#[test]
fn a_key_of_a_replay_gives_the_first_answer_again_also_after_a_kill() {
    let mut site = Site::start();
    site.execute("add", "a", &json!({ "n": 1 }));
    let body = json!({ "stepId": "two" }).to_string();
    let headers = [("idempotency-key", "k1"), ("content-type", "application/json")];
    let mut ids = Vec::new();
    for _ in 0..2 {
        let reply = site.send("POST", &at("add", "a", "replay"), &headers, Some(body.as_bytes()));
        ids.push(reply.data()["executionId"].clone());
        site = site.after_a_kill();
    }
    assert_eq!(ids[0], ids[1]);
    let other = json!({ "stepId": "one" }).to_string();
    let reply = site.send("POST", &at("add", "a", "replay"), &headers, Some(other.as_bytes()));
    assert_eq!(
        (reply.status, reply.error()),
        (409, "Idempotency-Key was used with another body".to_owned())
    );
}

#[test]
fn finished_steps_are_not_repeated_by_a_replay_even_after_a_kill() {
    let home = Home::new("");
    let server = Server::start(home.test_server());
    let gate = home.path("gate");
    let input = json!({ "gate": gate });
    std::fs::write(&gate, "").unwrap();
    let body = json!({ "input": input, "options": { "executionId": "a" } });
    server.post("/workflows/gated/execute", &body).data();
    std::fs::remove_file(&gate).unwrap();

    // the replay begins with the gate, and the server is killed before it
    let address = server.address;
    let waiting = std::thread::spawn(move || {
        let mut wire = support::client::Wire::open(address).unwrap();
        let body = json!({ "stepId": "wait", "options": { "executionId": "b" } }).to_string();
        let path = at("gated", "a", "replay");
        wire.send("POST", &path, &[], Some(body.as_bytes())).unwrap();
        wire.reply()
    });
    server.state_when("gated", "b", |state| state["steps"][0]["status"] == "running");
    server.kill();
    assert!(waiting.join().unwrap().is_err(), "no answer");
    let server = Server::start(home.test_server());
    std::fs::write(&gate, "").unwrap();
    let state = server.state_when("gated", "b", |state| state["status"] == "completed");
    assert_eq!(state["result"], server.state("gated", "a")["result"]);
    assert_eq!(state["replayedFrom"]["executionId"], "a");

    // the workflow has been removed from the files: the pinned definition is used
    server.kill();
    let server = Server::start(home.greenroom(&[]));
    let body = json!({ "stepId": "after", "options": { "executionId": "c" } }).to_string();
    let mut wire = support::client::Wire::open(server.address).unwrap();
    let path = at("gated", "b", "replay");
    wire.send("POST", &path, &[], Some(body.as_bytes())).unwrap();
    server.state_when("gated", "c", |state| state["steps"][0]["status"] == "completed");
    let why = server.get(&at("gated", "c", "why")).data();
    assert_eq!(why["waitsFor"][0]["message"], "function work is not registered");
    let ledger = home.ledger_lines();
    assert!(!ledger.iter().any(|line| line.starts_with("c wait")), "{ledger:?}");
}

#[test]
fn a_replay_runs_the_current_definition_for_the_original_user() {
    let home = Home::new(
        "[workflows.sums]\nsteps = [{ id = \"first\", map = \"input.n\" }, { id = \"sum\", map = \
         \"data.no.such\" }]\n",
    );
    let mut server = Server::start(home.greenroom(&[]));
    let options = json!({ "executionId": "a", "userId": "customer", "conversationId": "c" });
    let body = json!({ "input": { "n": 4 }, "options": options });
    assert_eq!(server.post("/workflows/sums/execute", &body).status, 500);
    server.kill();
    let written = std::fs::read_to_string(home.path("config.toml")).unwrap();
    let mended = written.replace("data.no.such", "data + 1");
    home.write("config.toml", &mended);
    server = Server::start(home.greenroom(&[]));
    let path = at("sums", "a", "replay");
    let again = |body: Value| server.post(&path, &body);
    assert_eq!(again(json!({})).status, 500, "the original definition fails as before");
    let unknown = again(json!({ "definition": "newest" })).error();
    assert!(unknown.starts_with("Invalid request body: definition: unknown variant"), "{unknown}");
    let options = json!({ "executionId": "b", "userId": "ops" });
    let done = again(json!({ "definition": "current", "options": options })).data();
    assert_eq!(done["result"], 5);
    let state = server.state("sums", "b");
    assert_eq!((&state["userId"], &state["conversationId"]), (&json!("customer"), &json!("c")));
    assert_eq!(state["replayedBy"], json!({ "id": "ops", "verified": false }));
    assert_eq!(state["replayedFrom"], json!({ "executionId": "a", "stepId": "sum" }));
    server.kill();
    home.write("config.toml", &mended.replace("\"first\"", "\"start\""));
    server = Server::start(home.greenroom(&[]));
    let reply = server.post(&path, &json!({ "definition": "current" }));
    assert_eq!(reply.status, 409);
    assert_eq!(
        reply.error(),
        "The record does not match the current definition: step 1 was first (andThen) and is \
         now start (andThen)"
    );
    server.kill();
}
