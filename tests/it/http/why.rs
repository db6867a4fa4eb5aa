//! `why` over HTTP.

use serde_json::{Value, json};

use super::site::{Site, at};
use crate::program::Programs;
use support::eventually;
use support::server::{Home, Server};
use support::store::Store;

fn why(server: &Server, workflow: &str, id: &str) -> Vec<Value> {
    let data = server.get(&at(workflow, id, "why")).data();
    assert_eq!((&data["executionId"], &data["workflowId"]), (&json!(id), &json!(workflow)));
    data["waitsFor"].as_array().unwrap().clone()
}

/// Waits until the metric has a value.
fn stuck(server: &Server, count: u32) {
    let line = format!("greenroom_executions_stuck {count}");
    eventually(&line, || {
        let metrics = server.get("/metrics").text();
        metrics.lines().any(|said| said == line).then_some(())
    });
}

fn movers(awaited: &Value) -> Vec<&str> {
    let movers = awaited["movedBy"].as_array().unwrap();
    movers.iter().map(|mover| mover["by"].as_str().unwrap()).collect()
}

#[test]
fn every_wait_is_explained_before_and_after_a_kill() {
    let mut site = Site::start();
    site.execute("approval", "a", &json!({ "who": "ann" }));
    site.execute("pair", "p", &json!({}));
    site.execute("parent", "c", &json!({ "who": "ben" }));
    site.execute("add", "done", &json!({ "n": 1 }));
    site.begin("nap", "n", &json!({}));
    site.begin("nap", "held", &json!({}));
    site.post(&at("nap", "held", "suspend"), &json!({ "reason": "lunch" })).data();
    for _ in 0..2 {
        let [asks] = &why(&site, "approval", "a")[..] else { panic!("one wait") };
        let expected = [
            ("kind", json!("resume")),
            ("stepId", json!("ask")),
            ("path", json!("ask")),
            ("message", json!("waits for a resume: ann asks")),
            ("payload", json!({ "who": "ann" })),
        ];
        for (name, value) in expected {
            assert_eq!(asks[name], value, "{name} of {asks}");
        }
        let state = site.state("approval", "a");
        let suspension = &state["suspension"];
        assert_eq!(
            (&asks["since"], &asks["until"]),
            (&suspension["suspendedAt"], &suspension["deadline"])
        );
        assert_eq!(asks["resumeSchema"]["required"], json!(["approved"]));
        assert_eq!(movers(asks), ["resume", "time"]);
        assert_eq!(
            (&asks["movedBy"][0]["executionId"], &asks["movedBy"][0]["stepId"]),
            (&json!("a"), &json!("ask"))
        );

        let both: Vec<_> = why(&site, "pair", "p").iter().map(|it| it["path"].clone()).collect();
        assert_eq!(both, ["both/left/l", "both/right/r"]);

        let [child] = &why(&site, "parent", "c")[..] else { panic!("one wait") };
        let known = &site.state("parent", "c")["steps"][0]["childExecutionId"];
        assert_eq!((&child["kind"], &child["child"]["executionId"]), (&json!("child"), known));
        assert_eq!(child["child"]["status"], "suspended");
        assert_eq!(child["child"]["suspension"]["stepId"], "ask");
        // the child's own deadline can continue it too
        assert_eq!(child["until"], child["child"]["suspension"]["deadline"]);
        assert_eq!(movers(child), ["child", "resume", "resume", "time"]);

        let [sleeps] = &why(&site, "nap", "n")[..] else { panic!("one wait") };
        assert_eq!((&sleeps["kind"], &sleeps["path"]), (&json!("sleep"), &json!("nap")));
        assert!(sleeps["until"].as_str() > sleeps["since"].as_str(), "{sleeps}");
        assert_eq!(movers(sleeps), ["time"]);

        let held = why(&site, "nap", "held");
        let kinds: Vec<_> = held.iter().map(|it| it["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["hold", "sleep"]);
        assert_eq!(held[0]["message"], "paused: lunch");
        assert!(held[0]["movedBy"][0].get("stepId").is_none(), "{}", held[0]);

        assert_eq!(why(&site, "add", "done"), [json!(null); 0]);
        assert_eq!(site.get(&at("add", "done", "why")).data()["status"], "completed");
        site = site.after_a_kill();
    }
    // the suggested resume works
    let data = json!({ "resumeData": { "approved": true }, "options": { "stepId": "ask" } });
    assert_eq!(site.post(&at("approval", "a", "resume"), &data).data()["status"], "completed");
    assert_eq!(why(&site, "approval", "a"), [json!(null); 0]);
}

#[test]
fn a_running_body_and_a_missing_function_have_different_causes() {
    explained(Store::chosen());
}

#[test]
fn a_running_body_and_a_missing_function_have_different_causes_on_postgres() {
    Store::postgres().into_iter().for_each(explained);
}

fn explained(store: Store) {
    let home = Home::on(store, "limits.watchdog_every = \"1s\"");
    let server = Server::start(home.test_server());
    let gate = home.path("gate");
    let body = json!({ "input": { "gate": gate }, "options": { "executionId": "g" } });
    let mut wire = support::client::Wire::open(server.address).unwrap();
    wire.send("POST", "/workflows/gated/stream", &[], Some(body.to_string().as_bytes())).unwrap();
    assert_eq!(wire.head().unwrap().status, 200);
    let [works] = &why(&server, "gated", "g")[..] else { panic!("one wait") };
    assert_eq!((&works["kind"], &works["attempt"]), (&json!("step"), &json!(1)));
    assert_eq!((movers(works), works.get("until")), (vec!["step"], None));
    server.kill();

    // another program over the same store, which lacks the function
    let server = Server::start(home.greenroom(&[]));
    let [missing] = &why(&server, "gated", "g")[..] else { panic!("one wait") };
    assert_eq!(missing["kind"], "missing");
    assert_eq!(missing["message"], "function gate is not registered");
    assert_eq!(movers(missing), ["server"]);
    stuck(&server, 1);
    let status = server.get("/observability/status").data();
    let cause = "function gate is not registered";
    let item = json!({ "workflowId": "gated", "executionId": "g", "cause": cause });
    assert_eq!(status["stuck"]["executions"], json!([item]));
    let told = eventually("that the log reports it", || {
        let logs = server.get("/api/logs?executionId=g&level=warn").data();
        let logs = logs.as_array().unwrap().clone();
        logs.into_iter().find(|it| it["msg"].as_str().unwrap().contains("is stuck"))
    });
    assert_eq!(told["workflowId"], "gated", "{told}");
    let body = json!({ "reason": "it has no owner" });
    server.post(&at("gated", "g", "cancel"), &body).data();
    stuck(&server, 0);
}

#[test]
fn why_of_an_unknown_execution_is_404() {
    let site = Site::start();
    site.execute("add", "a", &json!({ "n": 1 }));
    for (workflow, id) in [("add", "b"), ("nap", "a"), ("nothing", "a"), ("add", "%00")] {
        let reply = site.get(&at(workflow, id, "why"));
        assert_eq!(reply.status, 404, "{workflow} {id}");
    }
    assert_eq!(site.get(&at("add", "b", "why")).error(), "Execution b not found");
    let reply = site.post(&at("add", "a", "why"), &json!({}));
    assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, HEAD")));
}
