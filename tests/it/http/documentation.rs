//! The API document is correct: answers are checked against it.

mod frames;
mod walks;

use std::cell::RefCell;
use std::collections::BTreeSet;

use greenroom::api::catalogue::{Answer, ROUTES, Route, RouteName};
use serde_json::{Value, json};

use super::site::Site;
use support::client::Reply;
use walks::{
    walk_agents, walk_asks, walk_mcp, walk_memory, walk_observability, walk_openai, walk_system,
    walk_workflows,
};

const TOOLS: &str = r#"
[updates]
install = ["true"]

[mcp.away]
command = ["/nowhere/mcp"]

[tools.add_two]
kind = "workflow"
workflow = "add"
description = "Adds"

[[faces.mcp]]
workflows = "*"

[[faces.mcp]]
name = "ops"
workflows = ["add"]
"#;

/// An agent whose tools wait for people.
const ASKING: &str = r#"
[models.asking]
provider = "rehearsal"

[[models.asking.rules]]
when = "not tool_results"
tool_calls = [{ name = "pay", args = { n = "4" } }, { name = "ask_user", args = { question = "'Which?'" } }]

[tools.pay]
kind = "workflow"
workflow = "add"
description = "Pays"
approval = { reason = "Pay {{ args.n }}", deadline = "1h" }

[agents.cashier]
model = "asking"
tools = ["pay", "ask_user"]
"#;

/// A server, its document, and the operations called so far.
struct Documented {
    site: Site,
    document: Value,
    seen: RefCell<BTreeSet<(String, String)>>,
}

impl Documented {
    fn start() -> Self {
        Self::with(&format!("[faces.openai]\nworkflows = \"*\"\n{TOOLS}"))
    }

    fn with(config: &str) -> Self {
        let site = Site::with(config);
        let document = site.get("/doc").json();
        Self { site, document, seen: RefCell::default() }
    }

    fn get(&self, place: &str, path: &str) -> Reply {
        self.ask("GET", place, path, &[], None)
    }

    fn post(&self, place: &str, path: &str, body: &Value) -> Reply {
        self.ask("POST", place, path, &[], Some(body))
    }

    /// Sends a request and checks the answer against the operation of `place`.
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

    /// Returns the example body of the document.
    fn example(&self, place: &str) -> Value {
        let body = &self.document["paths"][place]["post"]["requestBody"];
        body["content"]["application/json"]["example"].clone()
    }
}

type Headers<'a> = &'a [(&'a str, &'a str)];

#[test]
fn every_answer_matches_the_document() {
    let documented = Documented::start();
    walk_workflows(&documented);
    walk_agents(&documented);
    walk_openai(&documented);
    walk_memory(&documented);
    walk_observability(&documented);
    walk_system(&documented);
    walk_mcp(&documented);
    for path in ["/", "/doc", "/ui", "/livez", "/readyz", "/metrics", "/observability/status"] {
        documented.get(path, path);
    }
    for file in ["swagger-ui.css", "ui.js", "favicon-32x32.png"] {
        documented.get("/ui/{file}", &format!("/ui/{file}"));
    }
    let page = documented.get("/console", "/console").text();
    let place = "/console/executions/add/x-1";
    assert_eq!(documented.get("/console/{tail}", place).text(), page);
    let mut files = page.split('"').filter(|text| text.starts_with("/console/assets/"));
    documented.get("/console/assets/{file}", files.next().unwrap());
    let seen = documented.seen.borrow();
    // A generation of the offline model ends before it can be cancelled, the stream of the inbox with
    // the server, and links need a secret.
    let elsewhere = [
        RouteName::ApproveCall,
        RouteName::CancelGeneration,
        RouteName::WatchAsks,
        RouteName::LinkToAsk,
        RouteName::ShowAskLink,
        RouteName::AnswerAskLink,
        // of servers that check tokens
        RouteName::DescribeMcp,
        RouteName::DescribeNamedMcp,
    ];
    let is_elsewhere = |row: &Route| elsewhere.contains(&row.name);
    for row in ROUTES.iter().filter(|row| row.answer != Answer::WebSocket) {
        let segment = |part: &str| match part.strip_prefix(':') {
            Some(name) => format!("{{{name}}}"),
            None if part == "*" => "{tail}".to_owned(),
            None => part.to_owned(),
        };
        let place: Vec<_> = row.path.split('/').map(segment).collect();
        let key = (row.method.as_str().to_owned(), place.join("/"));
        assert_ne!(is_elsewhere(row), seen.contains(&key), "{row}");
    }
}

#[test]
fn answers_about_generations_that_wait_match_the_document() {
    walk_asks(&Documented::with(ASKING));
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
fn unchanged_documents_are_not_sent_again() {
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
fn disabled_pages_are_404() {
    let site = Site::with("docs.ui = false\n");
    for path in ["/ui", "/ui/", "/ui/swagger-ui.css"] {
        assert_eq!(site.get(path).error(), format!("Not found: GET {path}"));
    }
    assert!(!site.get("/").text().contains("/ui"));
    let document = site.get("/doc").json();
    assert!(document["paths"]["/ui"].is_null() && document["paths"]["/doc"].is_object());
}
