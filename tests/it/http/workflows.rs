//! Successful executions.

use serde_json::{Value, json};

use super::site::{Site, at};

fn is_time(value: &Value) -> bool {
    let text = value.as_str().unwrap_or_default();
    text.len() == 24 && text.ends_with('Z') && text.as_bytes()[19] == b'.'
}

#[test]
fn execute_answers_the_result() {
    let site = Site::start();
    let data = site.execute("add", "a1", &json!({ "n": 4 }));
    let (start, end) = (data["startAt"].clone(), data["endAt"].clone());
    assert!(is_time(&start) && is_time(&end), "{data}");
    assert_eq!(
        data,
        json!({ "executionId": "a1", "startAt": start, "endAt": end, "status": "completed",
            "result": { "n": 7 } })
    );
    // another type of input, accepted by the schema
    assert_eq!(site.execute("whole", "w1", &json!(5))["result"], 5);
    // no content type, and plain text that is JSON
    for headers in [&[][..], &[("content-type", "text/plain")]] {
        let reply =
            site.send("POST", "/workflows/add/execute", headers, Some(b"{\"input\":{\"n\":1}}"));
        assert_eq!(reply.data()["result"], json!({ "n": 4 }));
        assert!(reply.header("x-execution-id").is_some_and(|id| id.len() >= 32));
    }
}

#[test]
fn the_schema_decides_about_inputs_that_are_no_objects() {
    // the schema, an input that it admits, and one that it refuses
    let rows = [
        ("{ enum = [\"ab\", \"b\"] }", json!("ab"), Some(json!("c"))),
        ("{ const = 5 }", json!(5), Some(json!({}))),
        ("{ anyOf = [{ type = \"string\" }, { type = \"object\" }] }", json!("a"), Some(json!(1))),
        (
            "{ \"$ref\" = \"#/$defs/s\", \"$defs\" = { s = { type = \"string\" } } }",
            json!("a"),
            Some(json!(1)),
        ),
        ("{ not = { type = \"object\" } }", json!([1]), Some(json!({}))),
        ("{ allOf = [{ type = \"string\" }] }", json!("a"), Some(json!({}))),
        ("{ items = { type = \"integer\" } }", json!([1]), Some(json!(["a"]))),
        ("{ minLength = 2 }", json!("ab"), Some(json!("a"))),
        ("{}", json!(null), None),
    ];
    let workflow = |(n, row): (usize, &(&str, Value, Option<Value>))| {
        let (schema, ..) = row;
        format!(
            "[workflows.w{n}]\ninput_schema = {schema}\nsteps = [{{ id = \"same\", map = \"data\" }}]\n"
        )
    };
    let site = Site::with(&rows.iter().enumerate().map(workflow).collect::<String>());
    for (n, (schema, admitted, refused)) in rows.into_iter().enumerate() {
        let done = site.execute(&format!("w{n}"), &format!("e{n}"), &admitted);
        assert_eq!(done["result"], admitted, "{schema}");
        let Some(refused) = refused else { continue };
        let path = format!("/workflows/w{n}/execute");
        let reply = site.post(&path, &json!({ "input": refused }));
        assert_eq!((reply.status, reply.header("x-error-code")), (400, Some("input_invalid")));
        assert!(reply.error().starts_with("Input validation failed: "), "{}", reply.error());
    }
}

#[test]
fn user_conversation_and_context_are_kept_with_an_execution() {
    let site = Site::start();
    let body = json!({ "input": { "who": "ann" }, "more": 1, "options": { "executionId": "c1",
        "userId": "u1", "conversationId": "k1", "context": { "tier": "gold" } } });
    let path = "/workflows/approval/execute";
    let headers = [("x-request-id", "r-1")];
    let reply = site.send("POST", path, &headers, Some(body.to_string().as_bytes()));
    assert_eq!(reply.header("x-request-id"), Some("r-1"));
    let data = reply.data();
    assert_eq!(
        (&data["status"], &data["endAt"], &data["result"]),
        (&json!("suspended"), &json!(null), &json!(null))
    );
    let suspension = &data["suspension"];
    assert_eq!(
        (&suspension["reason"], &suspension["suspendedStepIndex"]),
        (&json!("ann asks"), &json!(0))
    );
    assert!(is_time(&suspension["suspendedAt"]), "{data}");

    let site = site.after_a_kill();
    let state = site.state("approval", "c1");
    let expected = [
        ("executionId", json!("c1")),
        ("id", json!("c1")),
        ("workflowId", json!("approval")),
        ("status", json!("suspended")),
        ("startAt", data["startAt"].clone()),
        ("createdAt", data["startAt"].clone()),
        ("endAt", json!(null)),
        ("input", json!({ "who": "ann" })),
        ("context", json!({ "tier": "gold", "userId": "u1", "conversationId": "k1" })),
        ("result", json!(null)),
        ("error", json!(null)),
        ("userId", json!("u1")),
        ("conversationId", json!("k1")),
        ("parentExecutionId", json!(null)),
    ];
    for (name, value) in expected {
        assert_eq!(state[name], value, "{name} of {state}");
    }
    let suspension = &state["suspension"];
    assert_eq!((&suspension["stepIndex"], &suspension["stepId"]), (&json!(0), &json!("ask")));
    assert_eq!(suspension["payload"], json!({ "who": "ann" }));
    assert!(is_time(&suspension["deadline"]) && is_time(&state["updatedAt"]), "{state}");
    assert_eq!(state["definitionHash"].as_str().unwrap().len(), 64);
    assert_eq!(state["steps"][0]["status"], "suspended");

    let path = at("approval", "c1", "resume");
    let resumed = site.post(&path, &json!({ "resumeData": { "approved": true } }));
    assert_eq!(resumed.header("x-execution-id"), Some("c1"));
    let resumed = resumed.data();
    assert_eq!(resumed["status"], "completed");
    assert_eq!(resumed["result"], json!({ "approved": true, "who": "ann" }));
    assert!(is_time(&resumed["endAt"]) && resumed.get("suspension").is_none(), "{resumed}");
    let state = site.state("approval", "c1");
    assert_eq!((&state["result"], &state["endAt"]), (&resumed["result"], &resumed["endAt"]));
    assert!(state.get("suspension").is_none(), "{state}");
    assert_eq!(state["steps"][0]["output"], json!({ "approved": true }));
}

#[test]
fn a_caller_can_pause_and_resume_an_execution() {
    let site = Site::start();
    site.begin("nap", "n1", &json!({}));
    assert_eq!(site.state("nap", "n1")["status"], "running");
    let suspended = site.post(&at("nap", "n1", "suspend"), &json!({ "reason": "lunch" })).data();
    let at_time = suspended["suspension"]["suspendedAt"].clone();
    assert!(is_time(&at_time));
    let state = site.state("nap", "n1");
    let id = &state["suspension"]["id"];
    assert_eq!(
        suspended,
        json!({ "executionId": "n1", "status": "suspended",
            "suspension": { "id": id, "suspendedAt": at_time, "reason": "lunch" } })
    );
    assert_eq!(state["suspension"]["reason"], "lunch");
    assert_eq!(
        (&state["suspension"]["stepId"], &state["suspension"]["stepIndex"]),
        (&json!("nap"), &json!(0))
    );

    site.begin("nap", "n2", &json!({}));
    let without_words = site.send("POST", &at("nap", "n2", "suspend"), &[], None).data();
    assert_eq!(without_words["suspension"]["reason"], "Suspended on request");
}

#[test]
fn the_waiting_caller_is_answered_at_a_suspend_and_a_cancel() {
    let site = Site::start();
    for (id, action, status) in [("x1", "suspend", "suspended"), ("x2", "cancel", "cancelled")] {
        let answer = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| site.execute("nap", id, &json!({})));
            site.state_when("nap", id, |state| state["status"] == "running");
            let reason = json!({ "reason": "enough" });
            let done = site.post(&at("nap", id, action), &reason).data();
            assert_eq!((&done["executionId"], &done["status"]), (&json!(id), &json!(status)));
            if action == "cancel" {
                assert!(is_time(&done["cancelledAt"]) && done["reason"] == "enough", "{done}");
            }
            waiting.join().unwrap()
        });
        assert_eq!((&answer["status"], &answer["result"]), (&json!(status), &json!(null)));
    }
    let cancelled = site.state("nap", "x2");
    assert!(is_time(&cancelled["endAt"]), "{cancelled}");
    assert_eq!(cancelled["steps"][0]["status"], "cancelled");
}

#[test]
fn a_suspended_execution_can_be_cancelled_and_its_branches_resumed_by_name() {
    let site = Site::start();
    site.execute("approval", "s1", &json!({ "who": "ann" }));
    site.post(&at("approval", "s1", "cancel"), &json!({})).data();
    assert_eq!(site.state("approval", "s1")["status"], "cancelled");

    let data = site.execute("pair", "p1", &json!({}));
    assert_eq!(data["suspension"]["stepId"], "l");
    assert_eq!(data["suspension"]["reason"], "Suspended at step l");
    let state = site.state("pair", "p1");
    let waiting: Vec<_> =
        state["suspensions"].as_array().unwrap().iter().map(|it| it["path"].clone()).collect();
    assert_eq!(waiting, ["both/left/l", "both/right/r"]);
    let path = at("pair", "p1", "resume");
    let body = json!({ "resumeData": 2, "options": { "stepId": "r" } });
    let half = site.post(&path, &body).data();
    assert_eq!(
        (&half["status"], &half["suspension"]["stepId"]),
        (&json!("suspended"), &json!("l"))
    );
    let again = site.post(&path, &body);
    assert_eq!((again.status, again.error().as_str()), (400, "Step r is not suspended"));
    let whole = site.post(&path, &json!({ "resumeData": 1 })).data();
    assert_eq!(whole["result"], json!([{ "l": 1 }, { "r": 2 }]));
}

#[test]
fn parent_and_child_are_resumed_once_through_either() {
    let site = Site::start();
    let answer = json!({ "resumeData": { "approved": true } });
    for (id, through_child) in [("f1", true), ("f2", false)] {
        let data = site.execute("parent", id, &json!({ "who": "ann" }));
        assert_eq!(
            (&data["status"], &data["suspension"]["stepId"]),
            (&json!("suspended"), &json!("child"))
        );
        let child = site.state("parent", id)["steps"][0]["childExecutionId"].clone();
        let child = child.as_str().unwrap();
        assert_eq!(site.state("approval", child)["parentExecutionId"], id);
        let wrong = site.post(&at("parent", id, "resume"), &json!({ "resumeData": {} }));
        assert_eq!(wrong.error(), "Resume data validation failed: approved: missing");
        let path = if through_child {
            at("approval", child, "resume")
        } else {
            at("parent", id, "resume")
        };
        assert_eq!(site.post(&path, &answer).data()["status"], "completed");
        let parent = site.state_when("parent", id, |state| state["status"] == "completed");
        assert_eq!(parent["result"], json!({ "approved": true, "who": "ann" }));
        for path in [at("approval", child, "resume"), at("parent", id, "resume")] {
            assert_eq!(site.post(&path, &answer).status, 404, "{path}");
        }
    }
}

#[test]
fn workflows_are_listed_and_described() {
    let site = Site::start();
    let list = site.get("/workflows").data();
    let ids: Vec<_> = list.as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
    assert_eq!(ids, ["add", "approval", "failing", "nap", "pair", "parent", "whole"]);
    let of_nap = |list: &Value| list[3]["status"].clone();
    assert_eq!(of_nap(&list), "idle");
    site.begin("nap", "n1", &json!({}));
    assert_eq!(of_nap(&site.get("/workflows").data()), "running");
    assert_eq!(site.get("/workflows/nap").data()["status"], "running");

    let detail = site.get("/workflows/pair").data();
    assert_eq!(
        (&detail["stepsCount"], &detail["inputSchema"]),
        (&json!(1), &json!({ "type": "object" }))
    );
    assert_eq!((&detail["suspendSchema"], &detail["resumeSchema"]), (&json!(null), &json!(null)));
    assert_eq!(detail["steps"][0]["type"], "andAll");
    assert_eq!(detail["steps"][0]["steps"][1]["id"], "r");
    let text = site.get("/workflows/approval").text();
    assert!(!text.contains("resume.approved") && !text.contains("asks"), "{text}");
}

#[test]
fn agents_answer() {
    let site = Site::start();
    let agents = site.get("/agents").data();
    assert_eq!((&agents[0]["id"], &agents[0]["status"]), (&json!("assistant"), &json!("idle")));
    assert_eq!(site.get("/agents/assistant").data()["model"], "offline");
    let reply = site.post("/agents/assistant/text", &json!({ "input": "say it" }));
    assert!(reply.header("x-generation-id").is_some());
    let data = reply.data();
    assert_eq!((&data["text"], &data["finishReason"]), (&json!("say it"), &json!("stop")));
    assert!(data["usage"]["totalTokens"].as_u64().is_some_and(|count| count > 0), "{data}");
}

#[test]
fn pages_and_probes_answer() {
    let site = Site::start();
    assert!(site.get("/").text().contains("/workflows"));
    assert_eq!(site.get("/livez").text(), "ok\n");
    assert_eq!((site.get("/readyz").status, site.get("/readyz").text().as_str()), (200, "ready\n"));
}
