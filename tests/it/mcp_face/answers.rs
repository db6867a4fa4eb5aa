//! Answers in forms, and clients that leave after them.

use serde_json::{Value, json};

use super::{CONFIG, Site, answer_to, forms, modern, question};
use support::client::Wire;
use support::eventually;
use support::server::Home;

/// A workflow that takes its time after the answer, and one with the name of the answer to another.
const MORE: &str = r#"
[workflows.later]
resume_schema = { type = "object", required = ["ok"], properties = { ok = { type = "boolean" } } }
steps = [{ id = "ask", suspend = { reason = "Go on?" }, map = "resume" }, { id = "nap", type = "andSleep", duration = "1h" }]

[workflows.word_resume]
steps = [{ id = "one", map = "1" }]
"#;

fn claim(site: &Site, ask: &str, what: &str) {
    let body = json!({ "options": { "userId": "lea" } });
    let reply = site.server.post(&format!("/inbox/{ask}/{what}"), &body);
    assert_eq!(reply.status, 200, "{}", reply.text());
}

#[test]
fn a_claim_of_another_user_keeps_forms_away() {
    let site = Site::start();
    let call = ("workflow_expense", &json!({ "amount": 5 }));
    let asked = question(&site.call(call.0, call.1, &forms()));
    claim(&site, &asked.0, "claim");
    let yes = answer_to(call, &asked, &json!({ "approved": true }));
    let refused = site.ask("tools/call", &yes, &forms())["result"].clone();
    assert_eq!(refused["isError"], true, "{refused}");
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("lea is about to answer ask "), "{text}");
    let repeated = json!({ "name": call.0, "arguments": call.1, "requestState": asked.1 });
    let waiting = site.ask("tools/call", &repeated, &forms())["result"].clone();
    let content = &waiting["structuredContent"];
    assert_eq!(content["ask"]["mayAnswer"], false, "{waiting}");
    claim(&site, &asked.0, "release");
    let done = site.ask("tools/call", &yes, &forms())["result"].clone();
    assert_eq!(done["structuredContent"]["approved"], true, "{done}");
}

#[test]
fn a_client_that_leaves_after_its_answer_cancels_the_execution() {
    let site = Site::with(Home::new(&format!("{CONFIG}{MORE}")));
    let call = ("workflow_later", &json!({}));
    let asked = question(&site.call(call.0, call.1, &forms()));
    for progress in [false, true] {
        let asked =
            if progress { question(&site.call(call.0, call.1, &forms())) } else { asked.clone() };
        let mut params = answer_to(call, &asked, &json!({ "ok": true }));
        if progress {
            params["_meta"] = json!({ "progressToken": 1 });
        }
        let (headers, body) = modern("tools/call", &params, &forms());
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
        let mut wire = Wire::open(site.server.address).unwrap();
        wire.send("POST", "/mcp", &headers, Some(body.as_bytes())).unwrap();
        let counts = |status: &str| {
            let counts = site.server.get("/workflows/executions/counts?workflowId=later").data();
            counts["total"][status].as_u64().unwrap_or_default()
        };
        eventually("it continues", || (counts("running") == 1).then_some(()));
        drop(wire);
        let before = u64::from(progress);
        eventually("it is cancelled", || (counts("cancelled") == before + 1).then_some(()));
    }
}

#[test]
fn a_workflow_with_the_name_of_an_answer_is_not_advised() {
    let advice = |config: &str| {
        let site = Site::with(Home::new(config));
        let waiting = site.call("workflow_word", &json!({}), &Value::Object(Default::default()));
        waiting["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert!(advice(CONFIG).contains("call workflow_word_resume with"));
    let text = advice(&format!("{CONFIG}{MORE}"));
    assert!(text.ends_with("It is answered in the inbox."), "{text}");
}
