//! Routes for clients of OpenAI: who may use which model, and what survives a kill.

use serde_json::{Value, json};

use super::site::{Site, api_keys, key};
use super::upstream::{clerk, says};
use support::client::Reply;
use support::provider::Provider;

const OPEN: &str = "[faces.openai]\nworkflows = [\"add\", \"approval\"]\n";

/// Starts a site with the users `ann` of the staff and `eve`, the only one who may call the agent.
fn guarded() -> Site {
    let rule = "[[auth.rules]]\nroute = \"POST /agents/assistant/text\"\nroles = [\"admin\"]\n";
    let users = api_keys(&[("ann", "staff"), ("eve", "admin")]);
    Site::with(&format!("{OPEN}{rule}{users}"))
}

/// Sends a request with the key of a user in the place where OpenAI's clients have it.
fn send(site: &Site, who: Option<&str>, (method, path): (&str, &str), body: &Value) -> Reply {
    let bearer = who.map(|who| format!("Bearer {}", key(who)));
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
    let body = (method == "POST").then(|| body.to_string());
    site.send(method, path, &headers, body.as_deref().map(str::as_bytes))
}

fn complete(site: &Site, who: Option<&str>, model: &str, content: &str) -> Reply {
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": content }] });
    send(site, who, ("POST", "/v1/chat/completions"), &body)
}

fn models(site: &Site, who: &str) -> Vec<String> {
    let reply = send(site, Some(who), ("GET", "/v1/models"), &Value::Null).json();
    let models = reply["data"].as_array().unwrap().iter();
    models.map(|model| model["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn callers_see_and_use_the_models_that_their_roles_may_call() {
    let site = guarded();
    let workflows = ["workflow/add", "workflow/approval"];
    assert_eq!(models(&site, "ann"), workflows);
    assert_eq!(models(&site, "eve"), [&["assistant"][..], &workflows].concat());

    let rows = [
        (None, "assistant", 401, Some("invalid_api_key")),
        (Some("stranger"), "assistant", 401, Some("invalid_api_key")),
        (Some("ann"), "assistant", 403, Some("role_missing")),
        (Some("eve"), "assistant", 200, None),
        (Some("ann"), "workflow/add", 200, None),
    ];
    for (who, model, status, code) in rows {
        let reply = complete(&site, who, model, "{\"n\":1}");
        let shown = reply.json();
        assert_eq!((reply.status, shown["error"]["code"].as_str()), (status, code), "{shown}");
    }
    let reply = send(&site, Some("ann"), ("GET", "/v1/models/assistant"), &Value::Null);
    assert_eq!((reply.status, reply.json()["error"]["code"].as_str()), (403, Some("role_missing")));
}

#[test]
fn a_workflow_that_waits_is_there_after_a_kill() {
    let site = Site::with(OPEN);
    let reply = complete(&site, None, "workflow/approval", "{\"who\":\"ann\"}").json();
    assert_eq!(reply["choices"][0]["message"]["content"], "Waiting: ann asks");
    let ask = reply["greenroom"]["asks"][0]["askId"].as_str().unwrap().to_owned();
    let site = site.after_a_kill();
    let answer = json!({ "data": { "approved": true } });
    let path = format!("/inbox/{ask}/answer");
    assert_eq!(send(&site, None, ("POST", &path), &answer).status, 200);
}

#[test]
fn a_repeated_start_with_a_key_gets_the_first_answer() {
    let site = Site::with(OPEN);
    let body = json!({
        "model": "workflow/add", "messages": [{ "role": "user", "content": "{\"n\":1}" }],
    });
    let ask = |body: &Value| {
        let headers = [("content-type", "application/json"), ("idempotency-key", "k-1")];
        let body = body.to_string();
        site.send("POST", "/v1/chat/completions", &headers, Some(body.as_bytes()))
    };
    let ids = [ask(&body), ask(&body)].map(|reply| reply.json()["id"].clone());
    assert_eq!(ids[0], ids[1]);
    let mut other = body;
    other["messages"][0]["content"] = json!("{\"n\":2}");
    let refused = ask(&other);
    assert_eq!(refused.json()["error"]["code"], "idempotency_key_reused");
}

#[test]
fn a_key_begins_one_generation_of_an_agent() {
    let site = Site::with(OPEN);
    let ask = |site: &Site, key: &str, content: &str, is_stream: bool| {
        let messages = json!([{ "role": "user", "content": content }]);
        let body = json!({ "model": "assistant", "messages": messages, "stream": is_stream });
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        site.send("POST", "/v1/chat/completions", &headers, Some(body.to_string().as_bytes()))
    };
    let begun = [("k-1", false), ("k-2", true)].map(|(key, is_stream)| {
        let reply = ask(&site, key, "hello", is_stream);
        assert_eq!(reply.status, 200, "{}", reply.text());
        (key, reply.header("x-generation-id").unwrap().to_owned())
    });
    let site = site.after_a_kill();
    for (key, id) in &begun {
        for is_stream in [false, true] {
            let refused = ask(&site, key, "hello", is_stream);
            let code = refused.json()["error"]["code"].clone();
            assert_eq!((refused.status, code), (409, json!("generation_exists")), "{key}");
            assert_eq!(refused.header("x-generation-id"), Some(&**id));
            assert_eq!(refused.header("x-should-retry"), Some("false"));
        }
        let other = ask(&site, key, "bye", false);
        assert_eq!(other.json()["error"]["code"], "idempotency_key_reused");
        let first = site.get(&format!("/agents/assistant/generations/{id}")).data();
        assert_eq!(first["status"], "completed", "{first}");
    }
    let invalid = ask(&site, &"k".repeat(256), "hello", false);
    assert_eq!((invalid.status, invalid.header("x-error-code")), (400, Some("header_invalid")));
    let entries = site.get("/agents/assistant/history").data()["entries"].clone();
    assert_eq!(entries.as_array().unwrap().len(), 2, "{entries}");
}

#[test]
fn providers_are_asked_for_one_call_at_a_time() {
    let models = Provider::start([says("one"), says("two"), says("three")]);
    let options = "options = { parallel_tool_calls = false }";
    let site = Site::with(&format!("{OPEN}{}", clerk(&models, options)));
    let tool = json!({ "type": "function", "function": { "name": "map" } });
    for (parallel, with_tools) in [(json!(null), true), (json!(true), true), (json!(false), false)]
    {
        let mut body = json!({
            "model": "clerk", "messages": [{ "role": "user", "content": "hi" }],
            "parallel_tool_calls": parallel,
        });
        if with_tools {
            body["tools"] = json!([tool]);
        }
        let reply = send(&site, None, ("POST", "/v1/chat/completions"), &body);
        assert_eq!(reply.status, 200, "{}", reply.text());
    }
    let asked: Vec<_> = models.asked().iter().map(|asked| asked.body.clone()).collect();
    let sent: Vec<_> = asked.iter().map(|body| body.get("parallel_tool_calls")).collect();
    // of the agent, overridden, without tools
    assert_eq!(sent, [Some(&json!(false)), None, None]);
    let body = json!({ "model": "clerk", "messages": [], "parallel_tool_calls": "no" });
    let refused = send(&site, None, ("POST", "/v1/chat/completions"), &body);
    assert_eq!(
        (refused.status, &refused.json()["error"]["param"]),
        (400, &json!("parallel_tool_calls"))
    );
}

#[test]
fn the_routes_are_closed_until_they_are_configured() {
    let site = Site::with("");
    let reply = complete(&site, None, "assistant", "hello");
    assert_eq!((reply.status, reply.header("x-error-code")), (404, Some("not_found")));
    let document = site.send("GET", "/doc", &[], None).json();
    assert!(document["paths"]["/v1/models"].is_null());
}

#[test]
fn a_workflow_that_fails_is_not_repeated_by_clients() {
    let site = Site::with("[faces.openai]\nworkflows = \"*\"\n");
    let reply = complete(&site, None, "workflow/failing", "{}");
    assert_eq!((reply.status, reply.header("x-should-retry")), (422, Some("false")));
    assert!(reply.header("x-execution-id").is_some());
    let error = &reply.json()["error"];
    assert_eq!(error["code"], "execution_failed");
    assert!(error["message"].as_str().unwrap().starts_with("Failed to execute workflow: step "));
}

#[test]
fn what_is_not_served_under_v1_is_refused_in_the_same_form() {
    for (config, has_the_form) in [(OPEN, true), ("", false)] {
        let site = Site::with(config);
        let reply = send(&site, None, ("POST", "/v1/embeddings"), &json!({}));
        assert_eq!((reply.status, reply.header("x-error-code")), (404, Some("not_found")));
        assert_eq!(reply.json()["error"]["code"] == "not_found", has_the_form);
    }
}
