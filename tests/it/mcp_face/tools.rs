//! Registered tools of a face: what they return, and what they ask.

use serde_json::{Value, json};

use super::fixtures::FIXTURES;
use super::{Site, answer_to, forms, question};
use crate::mcp;
use support::server::{Home, Server};

const ROUNDS: &str = "test_input_required_result_multi_round";

/// A server with the tools of the conformance suite, and rules for one of them.
fn site() -> Site {
    let home = Home::new("");
    let mut command = home.test_server();
    command.env(FIXTURES, "1");
    Site { server: Server::start(command), home }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[test]
fn parts_of_a_result_are_json_to_others() {
    let site = site();
    let parts = site.call("test_multiple_content_types", &json!({}), &json!({}));
    let kinds: Vec<_> = parts["content"].as_array().unwrap().iter().map(|it| &it["type"]).collect();
    assert_eq!(kinds, ["text", "image", "resource"]);
    assert_eq!(parts.get("structuredContent"), None);
    let direct = site
        .server
        .post("/tools/test_multiple_content_types/execute", &json!({ "input": {} }))
        .data();
    assert_eq!(direct["result"], json!({ "type": "content", "content": parts["content"] }));
}

#[test]
fn a_tool_asks_through_the_client_as_often_as_it_needs() {
    let site = site();
    let call = (ROUNDS, &json!({}));
    let first = question(&site.call(call.0, call.1, &forms()));
    let answer = |asked: &(String, String), content: &Value| {
        site.ask("tools/call", &answer_to(call, asked, content), &forms())["result"].clone()
    };
    // an answer of another form is asked for again
    let wrong = answer(&first, &json!({ "name": 5 }));
    assert_eq!(question(&wrong).0, first.0);
    let message = wrong["inputRequests"]["step1"]["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("name: 5 is not of type \"string\""), "{message}");
    let second = question(&answer(&first, &json!({ "name": "Ada" })));
    assert_eq!((first.0.as_str(), second.0.as_str()), ("step1", "step2"));
    let done = answer(&second, &json!({ "color": "blue" }));
    assert_eq!(text(&done), "\"Ada\" likes \"blue\"");
    // the state of the first question has no answer to the second
    let params = answer_to(call, &(second.0, first.1), &json!({ "color": "blue" }));
    let again = site.ask("tools/call", &params, &forms())["result"].clone();
    assert_eq!(question(&again).0, "step1");
}

#[test]
fn a_tool_of_an_mcp_server_gets_what_the_client_was_asked() {
    for (answer, expected) in [
        (json!({ "action": "accept", "content": { "sure": true } }), r#""sure":true"#),
        (json!({ "action": "decline" }), r#""action":"decline""#),
    ] {
        let calls = mcp::Site::start("[[faces.mcp]]\ntools = [\"own.ask\"]\n");
        let site = Site { home: calls.home, server: calls.server };
        let (key, state) = question(&site.call("own.ask", &json!({}), &forms()));
        let answered = json!({
            "name": "own.ask", "arguments": {}, "requestState": state,
            "inputResponses": { key: answer },
        });
        let done = site.ask("tools/call", &answered, &forms())["result"].clone();
        assert!(text(&done).contains(expected), "{done}");
        let made = std::fs::read_to_string(site.home.path("asked")).unwrap();
        assert_eq!(made.lines().filter(|line| *line == "ask").count(), 2, "{made}");
    }
}

#[test]
fn a_question_that_cannot_be_shown_or_is_declined_ends_the_call() {
    let site = site();
    let hidden = site.call(ROUNDS, &json!({}), &json!({}));
    assert_eq!(hidden["isError"], true);
    assert!(text(&hidden).ends_with("Step 1: What is your name?"), "{hidden}");
    let (key, state) = question(&site.call(ROUNDS, &json!({}), &forms()));
    let declined = json!({
        "name": ROUNDS, "arguments": {}, "requestState": state,
        "inputResponses": { key: { "action": "decline" } },
    });
    let declined = site.ask("tools/call", &declined, &forms())["result"].clone();
    assert_eq!(declined["isError"], true);
    assert!(text(&declined).contains("did not answer"), "{declined}");
}

#[test]
fn a_tool_that_runs_a_workflow_is_one() {
    let site = site();
    let tasks = json!({
        "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let id = site.call("multi_input", &json!({}), &tasks)["taskId"].clone();
    let now = || site.ask("tasks/get", &json!({ "taskId": id }), &tasks)["result"].clone();
    let asked = |task: &Value| {
        task["inputRequests"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    let keys = asked(&now());
    assert_eq!(keys.len(), 2);
    let answer = |key: &str, content: Value| {
        let responses = json!({ key: { "action": "accept", "content": content } });
        site.ask("tasks/update", &json!({ "taskId": id, "inputResponses": responses }), &tasks)
    };
    let wrong = answer(&keys[0], json!({ "confirm": 1 }));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert!(answer(&keys[0], json!({ "confirm": true })).get("error").is_none());
    assert_eq!(asked(&now()), keys[1..]);
    assert!(answer("ask_unknown", json!(5)).get("error").is_none(), "ignored");
    // a client that shows no forms is not asked
    let blind = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let unseen = site.ask("tasks/get", &json!({ "taskId": id }), &blind)["result"].clone();
    assert_eq!((&unseen["status"], unseen.get("inputRequests")), (&json!("working"), None));
    assert!(answer(&keys[1], json!({ "confirm": true })).get("error").is_none());
    let done =
        support::eventually("it ends", || Some(now()).filter(|task| task["status"] == "completed"));
    assert_eq!(done["result"]["structuredContent"], json!([true, true]));
    // the arguments are those of the tool, not of its workflow
    let failed = site.call("test_headers", &json!({ "region": 5 }), &json!({}));
    assert_eq!(failed, Value::Null, "the header is missing");
}

#[test]
fn headers_that_repeat_arguments_agree_with_them() {
    let site = site();
    let params = json!({ "name": "test_headers", "arguments": { "region": "eu" } });
    let call = |headers: &[(&str, &str)]| site.ask_as(headers, "tools/call", &params, &json!({}));
    for headers in [&[][..], &[("mcp-param-region", "us")]] {
        let refused = call(headers);
        assert_eq!((refused.status, &refused.json()["error"]["code"]), (400, &json!(-32020)));
    }
    assert_eq!(text(&call(&[("mcp-param-region", "eu")]).json()["result"]), "eu");
}
