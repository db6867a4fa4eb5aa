//! `Idempotency-Key`: a repeated request takes effect once, even if its answer was lost.

use serde_json::{Value, json};

use super::site::{Site, at};
use support::client::Reply;
use support::store::Store;

fn post(site: &Site, path: &str, key: &str, body: &Value) -> Reply {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    site.send("POST", path, &headers, Some(body.to_string().as_bytes()))
}

const EXECUTE: &str = "/workflows/approval/execute";

#[test]
fn a_repeated_start_gets_the_same_answer_also_after_a_kill() {
    started_twice(Store::chosen());
}

#[test]
fn a_repeated_start_gets_the_same_answer_also_after_a_kill_on_postgres() {
    Store::postgres().into_iter().for_each(started_twice);
}

fn started_twice(store: Store) {
    let site = Site::on(store, "");
    let body = json!({ "input": { "who": "ann" } });
    let first = post(&site, EXECUTE, "k1", &body);
    let again = post(&site, EXECUTE, "k1", &body);
    assert_eq!(first.data(), again.data());
    assert_eq!(first.header("x-execution-id"), again.header("x-execution-id"));
    let other = post(&site, EXECUTE, "k1", &json!({ "input": { "who": "eve" } }));
    assert_eq!(
        (other.status, other.error().as_str()),
        (409, "Idempotency-Key was used with another body")
    );
    assert_eq!(other.header("x-error-code"), Some("idempotency_key_reused"));

    let site = site.after_a_kill();
    assert_eq!(post(&site, EXECUTE, "k1", &body).data(), first.data());
    assert_eq!(post(&site, EXECUTE, "k1", &json!({ "input": {} })).status, 409);
    assert_ne!(
        post(&site, EXECUTE, "k2", &body).data()["executionId"],
        first.data()["executionId"]
    );
    // keys are separate by workflow and by user
    assert_eq!(
        post(&site, "/workflows/add/execute", "k1", &json!({ "input": { "n": 1 } })).status,
        200
    );
    let user = json!({ "input": { "who": "ann" }, "options": { "userId": "u1" } });
    assert_eq!(post(&site, EXECUTE, "k1", &user).status, 200);
    assert_eq!(
        site.get("/workflows/approval/executions").data()["executions"].as_array().unwrap().len(),
        3
    );
}

#[test]
fn a_repeated_resume_gets_the_same_answer_also_after_a_kill() {
    let site = Site::start();
    site.execute("approval", "s1", &json!({ "who": "ann" }));
    let path = at("approval", "s1", "resume");
    let refused = post(&site, &path, "k1", &json!({ "resumeData": {} }));
    assert_eq!(refused.status, 400);
    // a refusal is not recorded: the key is free for another body
    let body = json!({ "resumeData": { "approved": true } });
    let first = post(&site, &path, "k1", &body).data();
    assert_eq!(first["status"], "completed");
    assert_eq!(post(&site, &path, "k1", &body).data(), first);
    assert_eq!(post(&site, &path, "k2", &body).status, 404);
    let site = site.after_a_kill();
    assert_eq!(post(&site, &path, "k1", &body).data(), first);
    let other = post(&site, &path, "k1", &json!({ "resumeData": { "approved": false } }));
    assert_eq!(
        (other.status, other.error().as_str()),
        (409, "Idempotency-Key was used with another body")
    );
    assert_eq!(post(&site, &path, "k2", &body).status, 404);
}

#[test]
fn the_key_is_checked_before_the_duplicate_id() {
    let site = Site::start();
    let body = json!({ "input": { "who": "ann" }, "options": { "executionId": "x1" } });
    let first = post(&site, EXECUTE, "k1", &body).data();
    assert_eq!(post(&site, EXECUTE, "k1", &body).data(), first);
    let reply = post(&site, EXECUTE, "k2", &body);
    assert_eq!((reply.status, reply.error().as_str()), (409, "Execution x1 already exists"));
    // the refusal left no record behind
    assert_eq!(post(&site, EXECUTE, "k2", &json!({ "input": { "who": "bob" } })).status, 200);
}

#[test]
fn concurrent_callers_with_one_key_start_one_execution() {
    started_by_many(Store::chosen());
}

#[test]
fn concurrent_callers_with_one_key_start_one_execution_on_postgres() {
    Store::postgres().into_iter().for_each(started_by_many);
}

fn started_by_many(store: Store) {
    let site = Site::on(store, "");
    let body = json!({ "input": { "who": "ann" } });
    let mut answers: Vec<_> = std::thread::scope(|scope| {
        let call = || post(&site, EXECUTE, "k1", &body).data()["executionId"].to_string();
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(call)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(
        site.get("/workflows/approval/executions").data()["executions"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn a_repeated_call_waits_for_the_answer_of_the_first() {
    let site = Site::start();
    let body = json!({ "input": {}, "options": { "executionId": "n1" } });
    std::thread::scope(|scope| {
        let call = || post(&site, "/workflows/nap/execute", "k1", &body);
        let first = scope.spawn(call);
        site.state_when("nap", "n1", |state| state["status"] == "running");
        let second = scope.spawn(call);
        site.post(&at("nap", "n1", "suspend"), &json!({})).data();
        let (first, second) = (first.join().unwrap().data(), second.join().unwrap().data());
        assert_eq!((&first["status"], &first), (&json!("suspended"), &second));
    });
}
