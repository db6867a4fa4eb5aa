//! The API document says what the server does: answers are checked against it.

mod frames;

use std::cell::RefCell;
use std::collections::BTreeSet;

use greenroom::api::catalogue::{Answer, ROUTES, Route, RouteName};
use serde_json::{Value, json};

use super::rig::client::Reply;
use super::site::{Site, at};

const TOOLS: &str = r#"
[updates]
install = ["true"]

[tools.add_two]
kind = "workflow"
workflow = "add"
description = "Adds"
"#;

/// A server, its document, and what of it was seen.
struct Documented {
    site: Site,
    document: Value,
    seen: RefCell<BTreeSet<(String, String)>>,
}

impl Documented {
    fn start() -> Self {
        let site = Site::with(TOOLS);
        let document = site.get("/doc").json();
        Self { site, document, seen: RefCell::default() }
    }

    fn get(&self, place: &str, path: &str) -> Reply {
        self.ask("GET", place, path, &[], None)
    }

    fn post(&self, place: &str, path: &str, body: &Value) -> Reply {
        self.ask("POST", place, path, &[], Some(body))
    }

    /// Asks, and checks the answer against the operation of `place`.
    fn ask(
        &self,
        method: &str,
        place: &str,
        path: &str,
        headers: Headers<'_>,
        body: Option<&Value>,
    ) -> Reply {
        let bytes = body.map(Value::to_string);
        let bytes = bytes.as_ref().map(String::as_bytes);
        let reply = self.site.send(method, path, headers, bytes);
        self.check(method, place, &reply);
        reply
    }

    fn check(&self, method: &str, place: &str, reply: &Reply) {
        let what = format!("{method} {place}: {} {}", reply.status, reply.text());
        let operation = &self.document["paths"][place][method.to_ascii_lowercase()];
        let response = self.resolved(&operation["responses"][reply.status.to_string()]);
        assert!(response.is_object(), "not documented: {what}");
        for (name, header) in response["headers"].as_object().unwrap() {
            let is_required = self.resolved(header)["required"] == true;
            assert!(!is_required || reply.header(name).is_some(), "{name} is missing: {what}");
        }
        if reply.status < 300 {
            self.seen.borrow_mut().insert((method.to_owned(), place.to_owned()));
        }
        if reply.body.is_empty() {
            return;
        }
        let kind = reply.header("content-type").unwrap().split(';').next().unwrap();
        let content = &response["content"][kind];
        assert!(content.is_object(), "{kind} is not documented: {what}");
        match kind {
            "application/json" | "application/problem+json" => {
                self.validate(&content["schema"], &reply.json(), &what);
                if let Some(code) = reply.header("x-error-code")
                    && kind == "application/json"
                {
                    assert!(content["examples"][code].is_object(), "{code}: {what}");
                }
            }
            "text/event-stream" => {
                let text = reply.text();
                let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
                let data = &content["schema"]["properties"]["data"];
                let (own, is_chat) = match data["anyOf"].as_array() {
                    Some(kinds) => (&kinds[0], true),
                    None => (data, false),
                };
                for line in lines.filter(|line| !(is_chat && *line == "[DONE]")) {
                    let event = serde_json::from_str(line).unwrap();
                    self.validate(&own["contentSchema"], &event, &what);
                }
            }
            _ => {}
        }
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(target) => self.document.pointer(target.trim_start_matches('#')).unwrap(),
            None => value,
        }
    }

    fn validate(&self, schema: &Value, value: &Value, what: &str) {
        assert!(schema.is_object(), "no schema: {what}");
        let mut schema = schema.clone();
        schema["components"] = self.document["components"].clone();
        let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        if let Err(error) = schema.validate(value) {
            panic!("{error} at {}: {what}", error.instance_path());
        }
    }

    /// The body that the document gives as an example.
    fn example(&self, place: &str) -> Value {
        let body = &self.document["paths"][place]["post"]["requestBody"];
        body["content"]["application/json"]["example"].clone()
    }
}

type Headers<'a> = &'a [(&'a str, &'a str)];

const EXECUTION: &str = "/workflows/{id}/executions/{executionId}";
const CONVERSATION: &str = "/api/memory/conversations/{id}";

fn walk_workflows(documented: &Documented) {
    let execute = "/workflows/{id}/execute";
    let options = |id: &str| json!({ "executionId": id, "userId": "ada" });
    let start = |id| json!({ "input": { "n": 1, "who": "Ada" }, "options": options(id) });
    documented.post("/workflows/add/execute", "/workflows/add/execute", &start("x-1"));
    let example = documented.example("/workflows/add/execute");
    documented.post("/workflows/add/execute", "/workflows/add/execute", &example);
    documented.post(execute, "/workflows/approval/execute", &start("x-2"));
    documented.post(execute, "/workflows/pair/execute", &start("x-3"));
    documented.post(execute, "/workflows/parent/execute", &start("x-4"));
    assert_eq!(documented.post(execute, "/workflows/failing/execute", &start("x-5")).status, 500);
    assert_eq!(documented.post(execute, "/workflows/add/execute", &start("x-1")).status, 409);
    documented.post("/workflows/{id}/stream", "/workflows/add/stream", &start("x-6"));
    documented.post("/workflows/add/stream", "/workflows/add/stream", &start("x-7"));
    documented.post("/workflows/{id}/stream", "/workflows/failing/stream", &start("x-8"));
    documented.site.begin("nap", "x-9", &json!({}));
    let state = format!("{EXECUTION}/state");
    for (workflow, id) in [
        ("add", "x-1"),
        ("approval", "x-2"),
        ("pair", "x-3"),
        ("parent", "x-4"),
        ("failing", "x-5"),
    ] {
        documented.get(&state, &at(workflow, id, "state"));
    }
    documented.get("/workflows/executions", "/workflows/executions?limit=3&status=suspended");
    documented.get("/workflows/{id}/executions", "/workflows/add/executions?userId=ada");
    let suspend = format!("{EXECUTION}/suspend");
    documented.post(&suspend, &at("nap", "x-9", "suspend"), &json!({ "reason": "later" }));
    assert_eq!(documented.post(&suspend, &at("add", "x-1", "suspend"), &json!({})).status, 400);
    let resume = format!("{EXECUTION}/resume");
    let approved = json!({ "resumeData": { "approved": true } });
    let typed = "/workflows/approval/executions/{executionId}/resume";
    let refused = json!({ "resumeData": { "approved": 1 } });
    assert_eq!(documented.post(typed, &at("approval", "x-2", "resume"), &refused).status, 400);
    documented.post(typed, &at("approval", "x-2", "resume"), &approved);
    assert_eq!(documented.post(&resume, &at("approval", "x-2", "resume"), &approved).status, 404);
    documented.post(&resume, &at("parent", "x-4", "resume"), &approved);
    let left = json!({ "resumeData": 1, "options": { "stepId": "l" } });
    documented.post(&resume, &at("pair", "x-3", "resume"), &left);
    let cancel = format!("{EXECUTION}/cancel");
    documented.post(&cancel, &at("nap", "x-9", "cancel"), &json!({ "reason": "enough" }));
    let stream = format!("{EXECUTION}/stream");
    for (workflow, id) in [("add", "x-1"), ("approval", "x-2"), ("failing", "x-5"), ("nap", "x-9")]
    {
        documented.get(&stream, &at(workflow, id, "stream"));
    }
    documented.get("/workflows", "/workflows");
    for id in ["add", "approval", "pair", "parent"] {
        documented.get("/workflows/{id}", &format!("/workflows/{id}"));
    }
}

fn walk_agents(documented: &Documented) {
    for what in ["text", "stream", "object", "stream-object", "chat"] {
        let place = format!("/agents/{{id}}/{what}");
        let mut body = documented.example(&place);
        assert_eq!(
            documented.post(&place, &format!("/agents/assistant/{what}"), &body).status,
            200
        );
        body["options"] = json!({ "userId": "ada", "conversationId": "tea", "topP": 0.5 });
        assert_eq!(
            documented.post(&place, &format!("/agents/assistant/{what}"), &body).status,
            200
        );
        body["options"] = json!({ "topP": 5 });
        assert_eq!(
            documented.post(&place, &format!("/agents/assistant/{what}"), &body).status,
            400
        );
        assert_eq!(documented.post(&place, &format!("/agents/nobody/{what}"), &body).status, 404);
    }
    let place = "/agents/{id}/stream-object";
    let body = documented.example(place);
    let text = documented.post(place, "/agents/assistant/stream-object?format=text", &body);
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    let attach = "/agents/{id}/chat/{conversationId}/stream";
    assert_eq!(documented.get(attach, "/agents/assistant/chat/tea/stream").status, 204);
    documented.get("/agents/{id}/history", "/agents/assistant/history?limit=3&page=1");
    let refused = documented.get("/agents/{id}/history", "/agents/assistant/history?limit=0");
    assert_eq!(refused.status, 400);
    documented.get("/agents", "/agents");
    documented.get("/agents/{id}", "/agents/assistant");
    let cancel = "/agents/{id}/generations/{generationId}/cancel";
    let path = "/agents/assistant/generations/none/cancel";
    assert_eq!(documented.post(cancel, path, &json!({})).status, 404);
    documented.get("/tools", "/tools");
    let call = "/tools/add_two/execute";
    documented.post(call, call, &documented.example(call));
    documented.post("/tools/{name}/execute", call, &documented.example(call));
    assert_eq!(documented.post(call, call, &json!({ "input": { "n": "x" } })).status, 400);
}

fn walk_memory(documented: &Documented) {
    let all = "/api/memory/conversations";
    let body = documented.example(all);
    assert_eq!(documented.post(all, all, &body).status, 201);
    documented.get(all, "/api/memory/conversations?userId=ada&limit=5&offset=0");
    let tea = |what: &str| format!("/api/memory/conversations/tea{what}?userId=ada");
    documented.get(CONVERSATION, &tea(""));
    let title = json!({ "title": "Tea", "metadata": { "a": 1 } });
    documented.ask("PATCH", CONVERSATION, &tea(""), &[], Some(&title));
    let messages = documented.get(&format!("{CONVERSATION}/messages"), &tea("/messages"));
    assert!(!messages.data()["messages"].as_array().unwrap().is_empty());
    let memory = format!("{CONVERSATION}/working-memory");
    documented.post(&memory, &tea("/working-memory"), &json!({ "content": { "likes": "tea" } }));
    documented.get(&memory, &tea("/working-memory"));
    let clone = format!("{CONVERSATION}/clone");
    let copy = json!({ "newId": "tea-2" });
    assert_eq!(documented.post(&clone, &tea("/clone"), &copy).status, 201);
    assert_eq!(documented.post(&clone, &tea("/clone"), &copy).status, 409);
    let search = "/api/memory/search";
    let found = documented.get(search, "/api/memory/search?userId=ada&q=hello");
    assert_ne!(found.data()["count"], 0);
    assert_eq!(documented.get(search, search).status, 400);
    documented.ask("DELETE", CONVERSATION, &tea(""), &[], None);
    assert_eq!(documented.get(CONVERSATION, &tea("")).status, 404);
    let user = "/api/memory/users/{userId}";
    documented.ask("DELETE", user, "/api/memory/users/ada", &[], None);
}

fn walk_observability(documented: &Documented) {
    let parent: Headers<'_> =
        &[("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")];
    let execute = "/workflows/{id}/execute";
    let body = json!({ "input": { "n": 1 } });
    let reply = documented.ask("POST", execute, "/workflows/add/execute", parent, Some(&body));
    let trace_id = reply.header("x-trace-id").unwrap();
    let traces = "/observability/traces";
    let page = documented.get(traces, "/observability/traces?limit=1").data();
    let cursor = page["nextCursor"].as_str().unwrap();
    documented.get(traces, &format!("{traces}?entityType=agent&cursor={cursor}"));
    assert_eq!(documented.get(traces, "/observability/traces?limit=101").status, 400);
    let trace = documented.get("/observability/traces/{traceId}", &format!("{traces}/{trace_id}"));
    let trace = trace.data();
    let span_id = trace["spans"][0]["spanId"].as_str().unwrap();
    documented.get("/observability/spans/{spanId}", &format!("/observability/spans/{span_id}"));
    for (place, path) in [
        ("/observability/traces/{traceId}/logs", format!("{traces}/{trace_id}/logs")),
        ("/observability/spans/{spanId}/logs", format!("/observability/spans/{span_id}/logs")),
        ("/observability/logs", "/observability/logs?severityText=DEBUG&limit=5".to_owned()),
        ("/api/logs", "/api/logs?level=trace&limit=5".to_owned()),
    ] {
        documented.get(place, &path);
        let other = if path.contains('?') { "&" } else { "?" };
        assert_eq!(documented.get(place, &format!("{path}{other}cursor=x")).status, 400);
    }
    for place in ["/observability/traces/{traceId}", "/observability/spans/{spanId}"] {
        let path = place.replace("{traceId}", "x").replace("{spanId}", "x");
        assert_eq!(documented.get(place, &path).status, 404);
        assert_eq!(documented.get(&format!("{place}/logs"), &format!("{path}/logs")).status, 404);
    }
}

fn walk_system(documented: &Documented) {
    documented.get("/updates", "/updates");
    let updates = "/updates";
    assert_eq!(documented.post(updates, updates, &documented.example(updates)).status, 201);
    let own = json!({ "packageName": "greenroom" });
    assert_eq!(documented.post(updates, updates, &own).status, 201);
    let other = json!({ "packageName": "left-pad" });
    assert_eq!(documented.post(updates, updates, &other).status, 404);
    let keys = "/setup-observability";
    assert_eq!(documented.post(keys, keys, &documented.example(keys)).status, 200);
    let through: Headers<'_> = &[("x-forwarded-for", "10.0.0.1")];
    for place in [updates, keys] {
        let body = documented.example(place);
        assert_eq!(documented.ask("POST", place, place, through, Some(&body)).status, 403);
    }
    for place in ["/ws", "/ws/logs", "/ws/observability"] {
        assert_eq!(documented.get(place, place).status, 426);
        let headers: Headers<'_> =
            &[("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-version", "13")];
        assert_eq!(documented.ask("GET", place, place, headers, None).status, 400);
    }
    for place in ["/doc", "/ui"] {
        let known: Headers<'_> = &[("if-none-match", "*")];
        assert_eq!(documented.ask("GET", place, place, known, None).status, 304);
    }
    assert_eq!(documented.get("/ui", "/ui/").status, 308);
}

#[test]
fn every_answer_is_as_the_document_says() {
    let documented = Documented::start();
    walk_workflows(&documented);
    walk_agents(&documented);
    walk_memory(&documented);
    walk_observability(&documented);
    walk_system(&documented);
    for path in ["/", "/doc", "/ui", "/livez", "/readyz", "/metrics", "/observability/status"] {
        documented.get(path, path);
    }
    for file in ["swagger-ui.css", "swagger-initializer.js", "favicon-32x32.png"] {
        documented.get("/ui/{file}", &format!("/ui/{file}"));
    }
    let seen = documented.seen.borrow();
    // A generation of the offline model is over before it can be cancelled.
    let is_elsewhere = |row: &Route| row.name == RouteName::CancelGeneration;
    for row in ROUTES.iter().filter(|row| row.answer != Answer::WebSocket) {
        let segment = |part: &str| match part.strip_prefix(':') {
            Some(name) => format!("{{{name}}}"),
            None => part.to_owned(),
        };
        let place: Vec<_> = row.path.split('/').map(segment).collect();
        let key = (row.method.as_str().to_owned(), place.join("/"));
        assert_ne!(is_elsewhere(row), seen.contains(&key), "{row}");
    }
}

#[test]
fn every_refusal_of_a_body_is_documented() {
    let documented = Documented::start();
    let place = "/workflows/{id}/execute";
    let large = vec![b' '; 1024 * 1024 + 1];
    let csv: Headers<'_> = &[("content-type", "text/csv")];
    let strange: Headers<'_> = &[("origin", "https://elsewhere.example")];
    let key: Headers<'_> = &[("idempotency-key", "a b")];
    let good: &[u8] = br#"{"input":{"n":1}}"#;
    let coded: Headers<'_> = &[("content-encoding", "gzip")];
    let problem: Headers<'_> = &[("accept", "application/problem+json")];
    let rows: [(Headers<'_>, &[u8], u16); 10] = [
        (&[], b"", 400),
        (&[], b"{", 400),
        (&[], b"[]", 400),
        (&[], br#"{"input":{}}"#, 400),
        (key, good, 400),
        (strange, good, 403),
        (&[], &large, 413),
        (csv, b"a,b", 415),
        (coded, good, 415),
        (problem, br#"{"input":{}}"#, 400),
    ];
    for (headers, body, status) in rows {
        let reply = documented.site.send("POST", "/workflows/add/execute", headers, Some(body));
        assert_eq!(reply.status, status, "{}", reply.text());
        documented.check("POST", place, &reply);
    }
    let missing = documented.post(place, "/workflows/none/execute", &json!({ "input": {} }));
    assert_eq!(missing.status, 404);
}

#[test]
fn what_is_known_is_not_sent_again() {
    let site = Site::start();
    for path in ["/doc", "/ui", "/ui/swagger-ui.css"] {
        let first = site.get(path);
        let tag = first.header("etag").unwrap();
        let weak = format!("\"other\", W/{tag}");
        for known in [tag, &weak, "*"] {
            let second = site.send("GET", path, &[("if-none-match", known)], None);
            assert_eq!((second.status, second.header("etag")), (304, Some(tag)), "{path} {known}");
        }
        let other = site.send("GET", path, &[("if-none-match", "\"other\"")], None);
        assert_eq!((other.status, other.body == first.body), (200, true), "{path}");
    }
}

#[test]
fn the_pages_are_found_with_and_without_a_slash() {
    let site = Site::start();
    let page = site.get("/ui");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let slash = site.get("/ui/");
    assert_eq!((slash.status, slash.header("location")), (308, Some("../ui")));
    let links: Vec<String> = page
        .text()
        .split(['"', '\''])
        .filter(|it| it.starts_with("ui/"))
        .map(str::to_owned)
        .collect();
    assert!(links.len() > 5, "{links:?}");
    for link in links {
        assert_eq!(site.get(&format!("/{link}")).status, 200, "{link}");
    }
    let missing = site.get("/ui/swagger-ui.js");
    assert_eq!(missing.error(), "Not found: GET /ui/swagger-ui.js");
    let post = site.post("/ui/", &json!({}));
    assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn pages_that_are_switched_off_are_not_there() {
    let site = Site::with("docs.ui = false\n");
    for path in ["/ui", "/ui/", "/ui/swagger-ui.css"] {
        assert_eq!(site.get(path).error(), format!("Not found: GET {path}"));
    }
    assert!(!site.get("/").text().contains("/ui"));
    let document = site.get("/doc").json();
    assert!(document["paths"]["/ui"].is_null() && document["paths"]["/doc"].is_object());
}
