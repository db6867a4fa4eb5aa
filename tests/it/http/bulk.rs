//! Bulk operations: one request for many executions.

use serde_json::{Value, json};

use super::site::{Site, at};
use support::client::Reply;
use support::eventually;

const BULK: &str = "/workflows/executions/bulk";
const STATE: &str = "/workflows/greenroom.bulk/executions";

fn bulk(site: &Site, query: &str, body: &Value) -> Reply {
    site.post(&format!("{BULK}{query}"), body)
}

fn result(site: &Site, query: &str, body: &Value) -> Value {
    let data = bulk(site, query, body).data();
    assert_eq!(data["status"], "completed", "{data}");
    data["result"].clone()
}

fn counts(matched: u64, done: u64, skipped: u64) -> Value {
    json!({ "matched": matched, "done": done, "skipped": skipped, "failed": 0, "children": 0, "compensating": 0, "failures": [] })
}

#[test]
fn an_operation_changes_what_its_query_selects() {
    let site = Site::start();
    for n in 0..3 {
        site.begin("nap", &format!("n{n}"), &json!({}));
        site.execute("approval", &format!("w{n}"), &json!({ "who": "ann" }));
        site.post("/workflows/failing/execute", &json!({ "input": {} }));
    }
    let preview =
        bulk(&site, "?workflowId=nap", &json!({ "action": "cancel", "dryRun": true })).data();
    assert_eq!((&preview["matched"], &preview["isComplete"]), (&json!(3), &json!(true)));
    assert_eq!(preview["executions"][0]["workflowId"], "nap");
    assert_eq!(site.get(&at("nap", "n0", "state")).data()["status"], "running", "nothing changes");

    assert_eq!(result(&site, "?status=running", &json!({ "action": "suspend" })), counts(3, 3, 0));
    let paused = site.get(&at("nap", "n1", "state")).data()["suspension"].clone();
    assert_eq!(paused["pause"], true, "{paused}");
    assert_eq!(result(&site, "?status=suspended", &json!({ "action": "resume" })), counts(6, 3, 3));
    let why = json!({ "action": "cancel", "reason": "enough", "options": { "userId": "ops" } });
    assert_eq!(result(&site, "?from=2026-01-01", &why), counts(6, 6, 0));
    let cancelled = site.get(&at("approval", "w1", "state")).data();
    assert_eq!(cancelled["cancelledBy"]["id"], "ops", "{cancelled}");
    let failed = result(&site, "?error=missing", &json!({ "action": "replay" }));
    assert_eq!(failed, counts(3, 3, 0));
    let selected = "?workflowId=failing&status=error&to=2026-01-01";
    let current = json!({ "action": "replay", "definition": "current", "again": true });
    assert_eq!(result(&site, selected, &current), counts(0, 0, 0));
    let total = eventually("the replays have failed as well", || {
        let counted = site.get("/workflows/executions/counts?workflowId=failing").data();
        (counted["total"]["error"] == 6).then_some(counted["total"]["all"].clone())
    });
    assert_eq!(total, 6);
}

#[test]
fn an_operation_is_an_execution_that_survives_a_kill() {
    let site = Site::start();
    for n in 0..250 {
        site.begin("nap", &format!("n{n}"), &json!({}));
    }
    let body = json!({ "action": "cancel", "options": { "executionId": "all-naps" } });
    let headers = [("content-type", "application/json"), ("prefer", "respond-async")];
    let path = format!("{BULK}?workflowId=nap");
    let accepted = site.send("POST", &path, &headers, Some(body.to_string().as_bytes()));
    assert_eq!(accepted.status, 202, "{}", accepted.text());
    let place = format!("{STATE}/all-naps/state");
    assert_eq!(accepted.header("location"), Some(&*place));
    let site = site.after_a_kill();
    eventually("it ends", || (site.get(&place).data()["status"] == "completed").then_some(()));
    let counted = site.get("/workflows/executions/counts?workflowId=nap").data();
    assert_eq!(counted["total"]["cancelled"], 250);
    let listed = site.get(STATE).data();
    assert_eq!(listed["executions"][0]["executionId"], "all-naps");

    let shown = site.get("/workflows/greenroom.bulk").data();
    assert_eq!(shown["steps"][0]["type"], "andDoUntil", "its graph can be shown");
    let workflows = site.get("/workflows").data();
    assert!(!workflows.to_string().contains("greenroom.bulk"), "but it is not offered");
    for (method, path) in [
        ("POST", "/workflows/greenroom.bulk/execute"),
        ("POST", "/workflows/greenroom.bulk/executions/all-naps/replay"),
    ] {
        let headers = [("content-type", "application/json")];
        let refused = site.send(method, path, &headers, Some(b"{\"stepId\":\"all\"}"));
        assert_eq!(refused.status, 404, "{path}: {}", refused.text());
    }
}

#[test]
fn named_executions_are_taken_and_unknown_ones_are_failures() {
    let site = Site::start();
    site.execute("approval", "w0", &json!({ "who": "ann" }));
    site.execute("add", "a0", &json!({ "n": 1 }));
    let body = json!({ "action": "cancel", "executionIds": ["w0", "a0", "none", "w0"] });
    let key = [("content-type", "application/json"), ("idempotency-key", "k1")];
    let send = || site.send("POST", BULK, &key, Some(body.to_string().as_bytes())).data();
    let first = send();
    let failures = json!([{ "executionId": "none", "message": "execution not found" }]);
    let expected = json!({ "matched": 2, "done": 1, "skipped": 1, "failed": 1, "children": 0, "compensating": 0, "failures": failures });
    assert_eq!(first["result"], expected);
    assert_eq!(send()["executionId"], first["executionId"], "repeated with its key");
    let other = json!({ "action": "suspend", "executionIds": ["w0"] }).to_string();
    let refused = site.send("POST", BULK, &key, Some(other.as_bytes()));
    assert_eq!(refused.header("x-error-code"), Some("idempotency_key_reused"));
    let key = [("content-type", "application/json"), ("idempotency-key", "k2")];
    let select = |query: &str| {
        site.send("POST", &format!("{BULK}{query}"), &key, Some(b"{\"action\":\"cancel\"}"))
    };
    assert_eq!(select("?workflowId=nap").data()["status"], "completed");
    let refused = select("?workflowId=approval");
    assert_eq!(
        refused.header("x-error-code"),
        Some("idempotency_key_reused"),
        "of other executions"
    );
}

#[test]
fn a_selection_is_needed_and_checked() {
    let site = Site::start();
    let many: Vec<String> = (0..1_001).map(|n| format!("e{n}")).collect();
    for (query, body, refusal) in [
        ("", json!({ "action": "cancel" }), "Invalid request: executions are selected either"),
        (
            "?status=running",
            json!({ "action": "cancel", "executionIds": ["a"] }),
            "Invalid request: executions are selected either",
        ),
        ("?limit=5", json!({ "action": "cancel" }), "Invalid query parameter limit: unknown"),
        (
            "?state=error",
            json!({ "action": "replay" }),
            "Invalid query parameter state: unknown; did",
        ),
        ("?status=error", json!({ "action": "retry" }), "Invalid request body: action: unknown"),
        (
            "?status=error",
            json!({ "action": "cancel", "reason": "r".repeat(4_097) }),
            "Invalid request body: reason: must be at most 4096 bytes",
        ),
        ("?status=error", json!({}), "Invalid request body: action: missing"),
        (
            "",
            json!({ "action": "cancel", "executionIds": many }),
            "Invalid request body: executionIds:",
        ),
        (
            "",
            json!({ "action": "cancel", "executionIds": ["a", "a", "b/c"] }),
            "Invalid request body: executionIds[2]:",
        ),
        (
            "?status=error",
            json!({ "action": "cancel", "definition": "current" }),
            "Invalid request body: definition: is only for replay",
        ),
        (
            "?status=error",
            json!({ "action": "resume", "again": true }),
            "Invalid request body: again: is only for replay",
        ),
        (
            "?status=error",
            json!({ "action": "replay", "reason": "late" }),
            "Invalid request body: reason: is only for suspend and cancel",
        ),
        (
            "?status=error",
            json!({ "action": "cancel", "dryrun": true }),
            "Invalid request body: dryrun: unknown",
        ),
    ] {
        let refused = bulk(&site, query, &body);
        let error = refused.json()["error"].as_str().unwrap().to_owned();
        assert_eq!(refused.status, 400, "{query} {error}");
        assert!(error.starts_with(refusal), "{query}: {error}");
    }
}
