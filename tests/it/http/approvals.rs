//! Approvals: an answer applies to the suspension that was seen, and its author is recorded.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::site::{Site, at};
use crate::program::Programs as _;
use support::client::Reply;
use support::server::{Home, Server};

const CONFIG: &str = r#"
[workflows.letters]
input_schema = { type = "object", required = ["names"] }
steps = [{ id = "each", type = "andForEach", items = "input.names", concurrency = 3, block = "one" }]
[[workflows.letters.blocks.one]]
id = "ask"
suspend = { reason = "{{ item }}?", payload = "item" }
map = { name = "item", ok = "resume", by = "resumed_by.id if resumed_by else none", verified = "resumed_by.verified if resumed_by else none" }

[workflows.rounds]
steps = [{ id = "again", type = "andDoUntil", when = "data.ok", max_iterations = 9, block = "round" }]
[[workflows.rounds.blocks.round]]
id = "review"
suspend = { reason = "Round {{ index + 1 }}" }
map = { ok = "resume.ok" }

[workflows.late]
steps = [{ id = "ask", suspend = { reason = "?", deadline = "1ms", on_timeout = { resume = { ok = "false" } } }, map = "resume" }]

[workflows.above]
steps = [{ id = "sub", type = "andWorkflow", workflow = "letters" }]
"#;

fn site() -> Site {
    Site::with(CONFIG)
}

fn letters(site: &Site, id: &str) -> Value {
    site.execute("letters", id, &json!({ "names": ["ann", "bob", "cyd"] }))
}

fn resume(site: &Site, workflow: &str, id: &str, body: &Value) -> Reply {
    site.post(&at(workflow, id, "resume"), body)
}

/// Returns an answer to the suspension of this id.
fn answer(suspension: &Value, data: impl Into<Value>) -> Value {
    json!({ "resumeData": data.into(), "options": { "suspensionId": suspension["id"] } })
}

fn code(reply: &Reply) -> (u16, String) {
    (reply.status, reply.header("x-error-code").unwrap_or_default().to_owned())
}

#[test]
fn a_resume_names_one_of_several_waiting_steps() {
    let site = site();
    letters(&site, "l1");
    let refused = resume(&site, "letters", "l1", &json!({ "resumeData": true }));
    assert_eq!(code(&refused), (400, "step_ambiguous".to_owned()));
    assert_eq!(
        refused.error(),
        "Several steps are waiting: each[0]/ask, each[1]/ask, each[2]/ask; name one in \
         options.stepId"
    );
    let body = json!({ "resumeData": true, "options": { "stepId": "each[1]/ask" } });
    let data = resume(&site, "letters", "l1", &body).data();
    assert_eq!(data["suspensions"].as_array().unwrap().len(), 2);
    let step = site.state("letters", "l1")["steps"][2].clone();
    assert_eq!((&step["path"], &step["resumeData"]), (&json!("each[1]/ask"), &json!(true)));
}

#[test]
fn a_second_click_resumes_no_other_suspension() {
    let site = site();
    let first = site.execute("rounds", "r1", &json!({}))["suspension"].clone();
    let click = answer(&first, json!({ "ok": false }));
    let second = resume(&site, "rounds", "r1", &click).data()["suspension"].clone();
    assert_eq!(second["reason"], "Round 2");
    let refused = resume(&site, "rounds", "r1", &click);
    assert_eq!(code(&refused), (409, "suspension_passed".to_owned()));
    let (passed, now) = (first["id"].as_str().unwrap(), second["id"].as_str().unwrap());
    assert_eq!(
        refused.error(),
        format!("Suspension {passed} no longer waits; what waits now: {now} at again[1]/review")
    );
    let mut elsewhere = answer(&second, json!({ "ok": true }));
    elsewhere["options"]["stepId"] = json!("again[0]/review");
    let refused = resume(&site, "rounds", "r1", &elsewhere);
    assert_eq!(code(&refused), (400, "step_not_suspended".to_owned()), "{}", refused.text());
    resume(&site, "rounds", "r1", &answer(&second, json!({ "ok": true }))).data();
    let late = resume(&site, "rounds", "r1", &click);
    assert_eq!(code(&late), (404, "not_suspended".to_owned()));
}

#[test]
fn a_suspension_of_another_step_is_refused_with_its_place() {
    let site = site();
    let waits = letters(&site, "l1")["suspensions"].clone();
    let mut crossed = answer(&waits[0], json!(1));
    crossed["options"]["stepId"] = waits[1]["path"].clone();
    let refused = resume(&site, "letters", "l1", &crossed);
    assert_eq!(code(&refused), (409, "suspension_passed".to_owned()));
    let (id, path) = (waits[0]["id"].as_str().unwrap(), waits[0]["path"].as_str().unwrap());
    let expected = format!("Suspension {id} waits at {path}, not where options.stepId says");
    assert_eq!(refused.error(), expected);
}

#[test]
fn a_null_step_or_suspension_id_is_refused() {
    let site = site();
    site.execute("rounds", "r1", &json!({}));
    for key in ["suspensionId", "stepId"] {
        let body = json!({ "resumeData": { "ok": true }, "options": { key: null } });
        let refused = resume(&site, "rounds", "r1", &body);
        assert_eq!(code(&refused), (400, "body_invalid".to_owned()), "{}", refused.text());
    }
    assert_eq!(site.state("rounds", "r1")["status"], "suspended");
}

#[test]
fn one_of_many_concurrent_resumes_wins_for_each_suspension() {
    let site = site();
    let waits = letters(&site, "l1")["suspensions"].as_array().unwrap().clone();
    let mut replies = Vec::new();
    std::thread::scope(|scope| {
        let clicks = waits.iter().flat_map(|wait| std::iter::repeat_n(wait, 6));
        let calls: Vec<_> = clicks
            .map(|wait| scope.spawn(|| resume(&site, "letters", "l1", &answer(wait, json!(1)))))
            .collect();
        replies.extend(calls.into_iter().map(|call| call.join().unwrap()));
    });
    let won = replies.iter().filter(|reply| reply.status == 200).count();
    assert_eq!(won, 3);
    assert!(replies.iter().all(|reply| [200, 404, 409].contains(&reply.status)));
    assert_eq!(site.state("letters", "l1")["status"], "completed");
}

#[test]
fn a_suspension_has_one_id_everywhere_and_after_a_kill() {
    let site = site();
    let executed = letters(&site, "l1");
    let ids = |suspensions: &Value| -> Vec<String> {
        let all = suspensions.as_array().unwrap().iter();
        all.map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    let known = ids(&executed["suspensions"]);
    assert_eq!((known.len(), &executed["suspension"]["id"]), (3, &json!(known[0])));
    let shown = |site: &Site| {
        let state = site.state("letters", "l1");
        assert_eq!(
            (ids(&state["suspensions"]), &state["suspension"]["id"]),
            (known.clone(), &json!(known[0]))
        );
        let row = site.get("/workflows/letters/executions").data()["executions"][0].clone();
        assert_eq!(
            (ids(&row["suspensions"]), &row["suspension"]["id"]),
            (known.clone(), &json!(known[0]))
        );
        let why = site.get(&at("letters", "l1", "why")).data();
        let waits = why["waitsFor"].as_array().unwrap();
        let in_why: Vec<_> = waits.iter().map(|it| it["suspensionId"].clone()).collect();
        assert_eq!(Value::from(in_why), json!(known));
    };
    shown(&site);
    let site = site.after_a_kill();
    shown(&site);
    let names = waits_by_payload(&executed);
    let done = resume(&site, "letters", "l1", &answer(&names["bob"], json!("yes"))).data();
    assert_eq!(ids(&done["suspensions"]).len(), 2);
    let state = site.state("letters", "l1");
    let output = state["steps"].as_array().unwrap().iter().find(|it| it["path"] == "each[1]/ask");
    assert_eq!(output.unwrap()["output"]["name"], "bob", "the one that was seen");
}

fn waits_by_payload(executed: &Value) -> Value {
    let all = executed["suspensions"].as_array().unwrap().iter();
    all.map(|it| (it["payload"].as_str().unwrap().to_owned(), it.clone())).collect()
}

#[test]
fn a_suspension_of_a_child_is_resumed_once_through_either_execution() {
    let site = Site::start();
    for (by_parent, id) in [(true, "p1"), (false, "p2")] {
        let seen = site.execute("parent", id, &json!({ "who": "ann" }))["suspension"].clone();
        let child = site.state("parent", id)["steps"][0]["childExecutionId"].clone();
        let child = child.as_str().unwrap();
        assert_eq!(site.state("approval", child)["suspension"]["id"], seen["id"]);
        let click = answer(&seen, json!({ "approved": true }));
        let both = [("parent", id), ("approval", child)];
        let [first, second] = if by_parent { both } else { [both[1], both[0]] };
        assert_eq!(resume(&site, first.0, first.1, &click).status, 200);
        assert_eq!(code(&resume(&site, second.0, second.1, &click)).0, 404);
        site.server.state_when("parent", id, |state| state["status"] == "completed");
    }
}

#[test]
fn a_pause_has_an_id_and_names_its_user() {
    let site = Site::start();
    site.begin("nap", "n1", &json!({}));
    let body = json!({ "reason": "lunch", "options": { "userId": "ops" } });
    let held = site.post(&at("nap", "n1", "suspend"), &body).data()["suspension"].clone();
    let ops = json!({ "id": "ops", "verified": false });
    assert_eq!(held["suspendedBy"], ops);
    let shown = site.state("nap", "n1")["suspension"].clone();
    assert_eq!((&shown["id"], &shown["suspendedBy"]), (&held["id"], &ops));
    let wrong = json!({ "options": { "suspensionId": "0000000000000000" } });
    assert_eq!(code(&resume(&site, "nap", "n1", &wrong)).1, "suspension_passed");
    let lea = json!({ "userId": "lea", "suspensionId": held["id"] });
    let address = site.server.address;
    let lifting = std::thread::spawn(move || {
        let mut wire = support::client::Wire::open(address).unwrap();
        let body = json!({ "options": lea }).to_string();
        wire.send("POST", &at("nap", "n1", "resume"), &[], Some(body.as_bytes())).unwrap();
        wire.reply()
    });
    site.server.state_when("nap", "n1", |state| state["status"] == "running");
    let body = json!({ "options": { "userId": "eve" } });
    let cancelled = site.post(&at("nap", "n1", "cancel"), &body).data();
    assert_eq!(cancelled["cancelledBy"], json!({ "id": "eve", "verified": false }));
    assert_eq!(site.state("nap", "n1")["cancelledBy"]["id"], "eve");
    let why = site.get(&at("nap", "n1", "why")).data();
    assert_eq!(why["ended"]["cancelledBy"]["id"], "eve");
    assert_eq!(lifting.join().unwrap().unwrap().data()["status"], "cancelled");
    let stream = site.get(&at("nap", "n1", "stream"));
    let events = stream.text();
    let told = |kind: &str, key: &str| {
        let line = events.lines().find(|line| line.contains(&format!("\"type\":\"{kind}\"")));
        let data: Value = serde_json::from_str(&line.unwrap()["data: ".len()..]).unwrap();
        data[key]["id"].clone()
    };
    assert_eq!(told("workflow-resumed", "resumedBy"), "lea");
    assert_eq!(told("workflow-cancelled", "cancelledBy"), "eve");
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_known() {
    let site = site();
    letters(&site, "l1");
    let rows = [
        (
            "resume",
            json!({ "stepId": "each[1]/ask" }),
            "stepId: unknown key; did you mean options.stepId?",
        ),
        ("resume", json!({ "data": 1 }), "data: unknown key; known keys: resumeData, options"),
        (
            "resume",
            json!({ "options": { "suspension": "x" } }),
            "options.suspension: unknown key; did you mean options.suspensionId?",
        ),
        ("suspend", json!({ "reasn": "x" }), "reasn: unknown key; did you mean reason?"),
        ("cancel", json!({ "userId": "x" }), "userId: unknown key; did you mean options.userId?"),
        (
            "replay",
            json!({ "options": { "stepId": "each" } }),
            "options.stepId: unknown key; did you mean stepId?",
        ),
        (
            "replay",
            json!({ "executionId": "b" }),
            "executionId: unknown key; did you mean options.executionId?",
        ),
    ];
    for (action, body, what) in rows {
        let reply = site.post(&at("letters", "l1", action), &body);
        assert_eq!((reply.status, reply.error()), (400, format!("Invalid request body: {what}")));
    }
    assert_eq!(site.state("letters", "l1")["suspensions"].as_array().unwrap().len(), 3);
    for route in ["execute", "stream"] {
        let body = json!({ "input": { "names": [] }, "options": { "executionID": "a" } });
        let reply = site.post(&format!("/workflows/letters/{route}"), &body);
        let what = "options.executionID: unknown key; did you mean options.executionId?";
        assert_eq!(reply.error(), format!("Invalid request body: {what}"));
    }
    // Clients of agents send additional keys.
    let body = json!({ "input": "hello", "trigger": "submit", "options": { "userId": "u" } });
    assert_eq!(site.post("/agents/assistant/text", &body).status, 200);
}

#[test]
fn unknown_query_parameters_of_lists_are_refused() {
    let site = site();
    letters(&site, "l1");
    let rows = [
        ("/workflows/executions?stauts=error", "stauts: unknown; did you mean status?"),
        ("/workflows/letters/executions?user=x", "user: unknown; did you mean userId?"),
        ("/agents/assistant/history?pages=1", "pages: unknown; did you mean page?"),
        ("/observability/traces?entity=x", "entity: unknown; did you mean entityId?"),
        ("/observability/logs?traceID=x", "traceID: unknown; did you mean traceId?"),
        ("/api/logs?lvl=info", "lvl: unknown; did you mean level?"),
        ("/api/memory/conversations?ofset=1", "ofset: unknown; did you mean offset?"),
        ("/api/memory/search?q=x&limt=1", "limt: unknown; did you mean limit?"),
        (
            "/workflows/letters/executions/l1/stream?fromSequense=1",
            "fromSequense: unknown; did you mean fromSequence?",
        ),
        (
            "/workflows/executions?sort=duration",
            "sort: unknown; known parameters: status, userId, from, to, endedFrom, endedTo, replayOf, parentExecutionId, idPrefix, error, definitionHash, via, limit, cursor",
        ),
    ];
    for (path, what) in rows {
        let reply = site.get(path);
        assert_eq!((reply.status, reply.error()), (400, format!("Invalid query parameter {what}")));
    }
}

fn with_keys() -> Home {
    let mut config = "[auth]\ndefault = \"private\"\n".to_owned();
    for name in ["ann", "lea"] {
        let digest = Sha256::digest(format!("the key of {name}"));
        let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        config += &format!("[[auth.api_keys]]\nid = \"{name}\"\nhash = \"sha256:{hash}\"\n");
    }
    Home::new(&format!("{config}{CONFIG}"))
}

#[test]
fn the_approver_is_the_identity_of_the_token() {
    let home = with_keys();
    let server = Server::start(home.greenroom(&[]));
    let post = |who: &str, path: &str, body: Value| {
        let key = format!("the key of {who}");
        let headers = [("x-api-key", key.as_str()), ("content-type", "application/json")];
        server.send("POST", path, &headers, Some(body.to_string().as_bytes())).data()
    };
    let options = json!({ "executionId": "l1" });
    let body = json!({ "input": { "names": ["ann"] }, "options": options });
    post("ann", "/workflows/letters/execute", body);
    let body = json!({ "resumeData": true, "options": { "userId": "mallory" } });
    let done = post("lea", &at("letters", "l1", "resume"), body);
    let by_lea = json!([{ "name": "ann", "ok": true, "by": "lea", "verified": true }]);
    assert_eq!(done["result"], by_lea);
    let key = [("x-api-key", "the key of ann")];
    let state = server.send("GET", &at("letters", "l1", "state"), &key, None).data();
    assert_eq!(state["userId"], "ann");
    assert_eq!(state["steps"][1]["resumedBy"], json!({ "id": "lea", "verified": true }));
    let traces = server.send("GET", "/observability/traces", &key, None).data();
    let id = traces["traces"][0]["traceId"].as_str().unwrap().to_owned();
    let trace = server.send("GET", &format!("/observability/traces/{id}"), &key, None).data();
    let wait = trace["spans"].as_array().unwrap().iter().find(|span| span["name"] == "wait ask");
    assert_eq!(wait.unwrap()["attributes"]["workflow.resumed_by.id"], "lea");
}

#[test]
fn an_answer_by_deadline_is_marked() {
    let site = site();
    site.execute("late", "d1", &json!({}));
    let state = site.server.state_when("late", "d1", |state| state["status"] == "completed");
    let step = &state["steps"][0];
    assert_eq!((&step["resumedByDeadline"], step.get("resumedBy")), (&json!(true), None));
    assert_eq!(step["resumeData"], json!({ "ok": false }));
    let events = site.get(&at("late", "d1", "stream")).text();
    let resumed = events.lines().find(|line| line.contains("\"type\":\"step-resumed\"")).unwrap();
    assert!(resumed.contains("\"resumedByDeadline\":true"), "{resumed}");
    let path = format!("/observability/traces/{}", state["traceId"].as_str().unwrap());
    let trace = site.get(&path).data();
    let wait = trace["spans"].as_array().unwrap().iter().find(|span| span["name"] == "wait ask");
    assert_eq!(wait.unwrap()["attributes"]["workflow.resumed_by.deadline"], "true", "{trace}");

    // an answer of a caller without an identity
    letters(&site, "l1");
    let body = json!({ "resumeData": true, "options": { "stepId": "each[1]/ask" } });
    resume(&site, "letters", "l1", &body).data();
    let state = site.state("letters", "l1");
    let steps = state["steps"].as_array().unwrap();
    let answered: Vec<_> = steps.iter().filter(|step| step.get("resumedAt").is_some()).collect();
    assert_eq!(answered.len(), 1, "{state}");
    assert_eq!(answered[0].get("resumedByDeadline"), None);
}

#[test]
fn an_approval_through_the_parent_names_the_approver() {
    let site = site();
    site.execute("above", "p1", &json!({ "names": ["ann"] }));
    let body = json!({ "resumeData": true, "options": { "userId": "lea" } });
    assert_eq!(resume(&site, "above", "p1", &body).data()["status"], "completed");
    let state = site.state("above", "p1");
    let sub = &state["steps"][0];
    assert_eq!(sub["resumedBy"], json!({ "id": "lea", "verified": false }), "{state}");
    assert!(sub["resumedAt"].is_string(), "{sub}");
    assert_eq!(sub.get("resumeData"), None, "it is in the state of the child");
}
