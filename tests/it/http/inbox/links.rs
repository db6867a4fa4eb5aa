//! Links to asks: they are made by those who may answer, and answer once, without a token.

use serde_json::{Value, json};

use crate::http::site::Site;
use crate::program::Programs as _;
use support::client::{Reply, Wire};
use support::server::{Home, Server};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

const CONFIG: &str = r#"
[inbox]
secret = "secret:TEST_INBOX_KEY"
base_url = "https://green.example/flow/"

[workflows.order]
resume_schema = { title = "An <order>", type = "object", required = ["ok"], properties = { ok = { type = "boolean" }, count = { type = "integer", maximum = 5 } } }
steps = [{ id = "review", suspend = { reason = "<b>{{ input.who }}</b>", payload = { who = "input.who" }, to = ["user:ann", "role:lead"] }, map = { ok = "resume.ok", count = "resume.count if 'count' in resume else none", by = "resumed_by.id if resumed_by else none", verified = "resumed_by.verified if resumed_by else none" } }]

[workflows.late]
steps = [{ id = "ask", suspend = { reason = "Late?", deadline = "500ms", on_timeout = { resume = "1" } }, map = "resume" }]

[workflows.free]
steps = [{ id = "ask", suspend = { reason = "Free?" }, map = "resume" }]
"#;

fn site(config: &str) -> Site {
    let home = Home::new(&format!("{CONFIG}{config}"));
    let mut command = home.greenroom(&[]);
    command.env("TEST_INBOX_KEY", SECRET);
    Site { server: Server::start(command), home }
}

/// Starts an execution that waits; returns the path of its ask.
fn asked(site: &Site, workflow: &str, id: &str) -> String {
    site.execute(workflow, id, &json!({ "who": "<script>" }));
    let asks = site.get("/inbox?limit=200").data()["asks"].clone();
    let of = asks.as_array().unwrap().iter().find(|ask| ask["of"]["executionId"] == id);
    format!("/inbox/{}", of.unwrap()["askId"].as_str().unwrap())
}

fn make(site: &Site, ask: &str, body: Value) -> Reply {
    let mut body = body;
    body["options"] = json!({ "userId": "ann" });
    site.post(&format!("{ask}/link"), &body)
}

/// Makes a link; returns its path on the server.
fn link(site: &Site, ask: &str, to: &str) -> String {
    let made = make(site, ask, json!({ "to": to })).data();
    let url = made["url"].as_str().unwrap();
    url.strip_prefix("https://green.example/flow").unwrap().to_owned()
}

/// Sends the form of a page, like a browser: without a referrer its origin is `null`.
fn submit(site: &Site, link: &str, form: &str) -> Reply {
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("origin", "null")];
    site.send("POST", link, &headers, Some(form.as_bytes()))
}

fn code(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.header("x-error-code").unwrap_or_default())
}

#[test]
fn a_link_answers_once_as_its_user() {
    let site = site("");
    let ask = asked(&site, "order", "o1");
    let link = link(&site, &ask, "user:ann");
    for _ in 0..2 {
        let page = site.send("GET", &link, &[("origin", "https://mail.example")], None);
        assert_eq!(page.status, 200);
        let policy = page.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert!(policy.ends_with("form-action 'self'; frame-ancestors 'none'"), "{policy}");
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("x-frame-options", "DENY"),
            ("x-content-type-options", "nosniff"),
        ] {
            assert_eq!(page.header(name), Some(value), "{name}");
        }
        assert_eq!(page.header("access-control-allow-origin"), None);
    }
    let page = site.get(&link).text();
    for shown in ["&lt;b&gt;&lt;script&gt;&lt;/b&gt;", "An &lt;order&gt;", "user ann"] {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    assert_eq!(site.get(&ask).data()["state"], "open", "pages change nothing");

    let rows = [
        ("", "Needed"),
        ("data.ok=perhaps", "Must be yes or no"),
        ("data.ok=true&data.count=many", "Must be a whole number"),
        ("data.ok=true&data.count=6", "6 is greater than the maximum of 5"),
    ];
    for (form, what) in rows {
        let refused = submit(&site, &link, form);
        assert_eq!(code(&refused), (400, "answer_invalid"), "{form}");
        let page = refused.text();
        let at = format!("role=\"alert\" dir=\"auto\">{what}</p>");
        assert!(page.contains(&at) && page.contains("aria-describedby"), "{form}: {page}");
    }
    let json = site.post(&link, &json!({ "data": { "ok": true } }));
    assert_eq!(code(&json), (415, "media_type_unsupported"));
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let broken = site.send("POST", &link, &form, Some(b"data.ok=\xff"));
    assert_eq!(code(&broken), (400, "request_invalid"));
    let large = site.send("POST", &link, &form, Some(&vec![b'a'; 1024 * 1024 + 1]));
    assert_eq!(code(&large), (413, "body_too_large"));
    assert_eq!(site.get(&ask).data()["state"], "open");

    let answered = submit(&site, &link, "data.ok=true&data.count=3&more=ignored");
    assert_eq!((answered.status, answered.text().contains("Answer recorded")), (200, true));
    let state = site.state_when("order", "o1", |state| state["status"] == "completed");
    let result = json!({ "ok": true, "count": 3, "by": "ann", "verified": false });
    assert_eq!(state["result"], result);
    for again in [submit(&site, &link, "data.ok=true"), site.get(&link)] {
        assert_eq!(code(&again), (409, "ask_answered"));
        assert!(again.text().contains("ann answered on "), "{}", again.text());
    }
}

const REFUNDS: &str = r#"
[models.offline]
provider = "rehearsal"

[[models.offline.rules]]
when = "'REFUND' in prompt and not tool_results"
tool_call = { name = "refund", args = { amount = "500", order = "'o-1'" } }

[[models.offline.rules]]
when = "'SPLIT' in prompt and not tool_results"
tool_call = { name = "split", args = { amounts = "[500, 600]" } }

[[models.offline.rules]]
when = "true"
reply = "done"

[tools.refund]
kind = "workflow"
workflow = "refund"
description = "Refunds an order"
approval = { reason = "Refund?", edit = true }

[tools.split]
kind = "workflow"
workflow = "split"
description = "Refunds in parts"
approval = { reason = "Split?", edit = true }

[agents.desk]
model = "offline"
tools = ["refund", "split"]

[workflows.refund]
input_schema = { type = "object", required = ["amount"], properties = { amount = { type = "integer", maximum = 800 }, order = { type = "string" } } }
steps = [{ id = "pay", map = { refunded = "data" } }]

[workflows.split]
input_schema = { type = "object", properties = { amounts = { type = "array", items = { type = "integer" } } } }
steps = [{ id = "pay", map = { refunded = "data" } }]
"#;

/// Asks the agent; returns the path of its generation and a link to what it waits for.
fn asked_by_agent(site: &Site, prompt: &str) -> (String, String) {
    let shown = site.post("/agents/desk/text", &json!({ "input": prompt })).data();
    let ask = format!("/inbox/{}", shown["asks"][0]["askId"].as_str().unwrap());
    let generation =
        format!("/agents/desk/generations/{}", shown["generationId"].as_str().unwrap());
    (generation, link(site, &ask, "user:ann"))
}

/// Waits for the end of a generation; returns the call of its first turn and its result.
fn called(site: &Site, generation: &str) -> (Value, Value) {
    support::eventually("the generation ends", || {
        let shown = site.get(generation).data();
        let step = &shown["steps"][0];
        let result = || (step["toolCalls"][0]["input"].clone(), step["toolResults"][0].clone());
        (shown["status"] == "completed").then(result)
    })
}

#[test]
fn the_arguments_of_a_call_can_be_changed_with_a_link() {
    let site = site(REFUNDS);
    let (generation, link) = asked_by_agent(&site, "REFUND");
    let page = site.get(&link).text();
    for shown in
        ["value=\"500\"", "name=\"data.order\" dir=\"auto\">\no-1</textarea>", "formnovalidate"]
    {
        assert!(page.contains(shown), "{shown} in {page}");
    }
    let rows = [
        ("data.amount=&data.order=o-2", "Needed"),
        ("data.amount=4.5&data.order=o-2", "Must be a whole number"),
        ("data.amount=900&data.order=o-2", "900 is greater than the maximum of 800"),
    ];
    for (arguments, what) in rows {
        let refused = submit(&site, &link, &format!("approved=true&{arguments}&reason=hm"));
        assert_eq!(code(&refused), (400, "answer_invalid"), "{arguments}");
        let page = refused.text();
        let typed = arguments.split(['=', '&']).nth(1).unwrap();
        let at = format!("id=\"c0-wrong\" role=\"alert\" dir=\"auto\">{what}</p>");
        for shown in [&*at, &format!("value=\"{typed}\""), "\no-2</textarea>", "\nhm</textarea>"] {
            assert!(page.contains(shown), "{shown} in {page}");
        }
    }
    let approved = submit(&site, &link, "approved=true&data.amount=450&data.order=o-1&reason=");
    assert_eq!(approved.status, 200, "{}", approved.text());
    let (input, result) = called(&site, &generation);
    let edited = json!({ "amount": 450, "order": "o-1" });
    assert_eq!((&input, &result["output"]["refunded"]), (&edited, &edited));
}

#[test]
fn a_link_sends_no_arguments_that_are_as_they_were_or_refused() {
    let site = site(REFUNDS);
    let answer = |form: &str| {
        let (generation, link) = asked_by_agent(&site, "REFUND");
        assert_eq!(submit(&site, &link, form).status, 200, "{form}");
        let (input, result) = called(&site, &generation);
        assert_eq!(input, json!({ "amount": 500, "order": "o-1" }), "{form}");
        result
    };
    let approved = answer("approved=true&data.amount=500&data.order=o-1");
    assert_eq!(approved["output"]["refunded"]["amount"], 500);
    let refused = answer("approved=false&data.amount=much&data.order=&reason=no");
    assert_eq!(refused["denied"], "refused by a person: no");
    let asks = site.get("/inbox?state=closed").data()["asks"].clone();
    for ask in asks.as_array().unwrap() {
        let detail = site.get(&format!("/inbox/{}", ask["askId"].as_str().unwrap())).data();
        assert_eq!(detail["data"].get("input"), None, "{detail}");
    }
}

#[test]
fn nested_arguments_are_changed_as_json() {
    let site = site(REFUNDS);
    let (generation, link) = asked_by_agent(&site, "SPLIT");
    let page = site.get(&link).text();
    assert!(page.contains("&quot;amounts&quot;: [\n    500,"), "{page}");
    for (typed, what) in [("%7B", "Not JSON"), ("%7B%22amounts%22%3A%22all%22%7D", "amounts: ")] {
        let refused = submit(&site, &link, &format!("approved=true&data={typed}"));
        assert_eq!(code(&refused), (400, "answer_invalid"), "{typed}");
        let at = format!("id=\"data-wrong\" role=\"alert\" dir=\"auto\">{what}");
        assert!(refused.text().contains(&at), "{}", refused.text());
    }
    let approved = submit(&site, &link, "approved=true&data=%7B%22amounts%22%3A%5B450%5D%7D");
    assert_eq!(approved.status, 200, "{}", approved.text());
    let (_, result) = called(&site, &generation);
    assert_eq!(result["output"]["refunded"], json!({ "amounts": [450] }));
}

#[test]
fn a_link_for_a_role_has_no_name_and_respects_claims() {
    let site = site("");
    let ask = asked(&site, "order", "o1");
    let link = link(&site, &ask, "role:lead");
    let claim = json!({ "options": { "userId": "ann" } });
    site.post(&format!("{ask}/claim"), &claim).data();
    let refused = submit(&site, &link, "data.ok=false");
    assert_eq!(code(&refused), (409, "ask_claimed"));
    assert!(refused.text().contains("ann is about to answer"), "{}", refused.text());
    site.post(&format!("{ask}/release"), &claim).data();
    assert_eq!(submit(&site, &link, "data.ok=false").status, 200);
    let state = site.state_when("order", "o1", |state| state["status"] == "completed");
    assert_eq!(state["result"]["by"], Value::Null);

    let ask = asked(&site, "order", "o2");
    let late = self::link(&site, &ask, "role:lead");
    let others = json!({ "to": ["user:bob"], "options": { "userId": "ann" } });
    site.post(&format!("{ask}/assign"), &others).data();
    assert_eq!(code(&submit(&site, &late, "data.ok=true")), (403, "not_assigned"));
}

#[test]
fn links_that_are_forged_late_or_closed_say_so() {
    let site = site("");
    let ask = asked(&site, "free", "f1");
    let good = link(&site, &ask, "user:bob");
    let (payload, signature) = good.split_once('.').unwrap();
    let other = link(&site, &ask, "user:eve");
    let (other, _) = other.split_once('.').unwrap();
    for bad in [
        "/inbox/link/x".to_owned(),
        "/inbox/link/.".to_owned(),
        payload.to_owned(),
        format!("{payload}.{}", signature.to_uppercase()),
        format!("{other}.{signature}"),
        format!("{good}%00"),
        format!("/inbox/link/{}", "a".repeat(3000)),
    ] {
        for reply in [site.get(&bad), submit(&site, &bad, "data=1")] {
            assert_eq!(code(&reply), (404, "link_invalid"), "{bad}");
            assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
        }
    }
    let made = make(&site, &ask, json!({ "to": "user:bob", "ttl": "1ms" })).data();
    let short = made["url"].as_str().unwrap().strip_prefix("https://green.example/flow").unwrap();
    support::eventually("the link is over", || (site.get(short).status == 410).then_some(()));
    assert_eq!(code(&submit(&site, short, "data=1")), (410, "link_expired"));
    assert_eq!(site.get(&ask).data()["state"], "open");

    assert_eq!(code(&submit(&site, &good, "data=%7B")), (400, "answer_invalid"));
    assert_eq!(submit(&site, &good, "data=%7B%22a%22%3A+1%7D").status, 200);
    let state = site.state_when("free", "f1", |state| state["status"] == "completed");
    assert_eq!(state["result"], json!({ "a": 1 }));

    let ask = asked(&site, "late", "l1");
    let late = link(&site, &ask, "user:bob");
    site.state_when("late", "l1", |state| state["status"] == "completed");
    assert_eq!(code(&site.get(&late)), (409, "ask_expired"));
    assert_eq!(code(&submit(&site, &late, "data=1")), (409, "ask_expired"));
}

#[test]
fn wrong_requests_for_a_link_are_refused() {
    let site = site("");
    let ask = asked(&site, "order", "o1");
    let rows = [
        (json!({}), 400, "body_invalid"),
        (json!({ "to": 1 }), 400, "body_invalid"),
        (json!({ "to": "ann" }), 400, "body_invalid"),
        (json!({ "to": "!self" }), 400, "body_invalid"),
        (json!({ "to": "user:" }), 400, "body_invalid"),
        (json!({ "to": "user:bob" }), 400, "body_invalid"),
        (json!({ "to": "role:staff" }), 400, "body_invalid"),
        (json!({ "to": "user:ann", "ttl": "91d" }), 400, "body_invalid"),
        (json!({ "to": "user:ann", "ttl": "0s" }), 400, "body_invalid"),
        (json!({ "to": "user:ann", "ttl": 5 }), 400, "body_invalid"),
        (json!({ "to": "user:ann", "for": "1h" }), 400, "body_invalid"),
    ];
    for (body, status, expected) in rows {
        assert_eq!(code(&make(&site, &ask, body.clone())), (status, expected), "{body}");
    }
    let free = asked(&site, "free", "f1");
    let nobody = make(&site, &free, json!({ "to": "user:../ann" }));
    let error = "Invalid request body: to: must not contain / and must not be . or ..";
    assert_eq!(nobody.error(), error);
    let by_bob = json!({ "to": "user:ann", "options": { "userId": "bob" } });
    let by_bob = site.post(&format!("{ask}/link"), &by_bob);
    assert_eq!(code(&by_bob), (403, "not_assigned"));
    let unknown = make(&site, "/inbox/ask_0", json!({ "to": "user:ann" }));
    assert_eq!(code(&unknown), (404, "ask_not_found"));
    let answer = json!({ "data": { "ok": true }, "options": { "userId": "ann" } });
    site.post(&format!("{ask}/answer"), &answer).data();
    assert_eq!(code(&make(&site, &ask, json!({ "to": "user:ann" }))), (409, "ask_answered"));
}

#[test]
fn without_a_secret_there_are_no_links() {
    let (_, workflows) = CONFIG.split_once("[workflows.order]").unwrap();
    let site = Site::with(&format!("[workflows.order]{workflows}"));
    let ask = asked(&site, "order", "o1");
    assert_eq!(code(&make(&site, &ask, json!({ "to": "user:ann" }))), (400, "links_off"));
    assert_eq!(code(&site.get("/inbox/link/a.b")), (404, "link_invalid"));
}

#[test]
fn a_link_needs_no_token_where_everything_else_does() {
    let site = site(
        "[auth]\ndefault = \"private\"\n[[auth.api_keys]]\nid = \"a\"\nhash = \"sha256:0000000000000000000000000000000000000000000000000000000000000000\"\nuser = { id = \"ann\" }\n",
    );
    assert_eq!(site.get("/inbox").status, 401);
    assert_eq!(code(&site.get("/inbox/link/a.b")), (404, "link_invalid"));
    assert_eq!(code(&submit(&site, "/inbox/link/a.b", "")), (404, "link_invalid"));
}

/// A proxy may keep the host under which people reach the page; a page of another site cannot have it.
#[test]
fn the_host_of_links_is_known_at_their_pages_alone() {
    let site = site("");
    let ask = asked(&site, "free", "f1");
    let link = link(&site, &ask, "role:any");
    let at = |method: &str, path: &str, host: &str, form: &str| {
        let mut wire = Wire::open(site.server.address).unwrap();
        let (kind, length) = ("application/x-www-form-urlencoded", form.len());
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\norigin: null\r\ncontent-type: {kind}\r\n\
             content-length: {length}\r\n\r\n{form}"
        );
        wire.write(head.as_bytes()).unwrap();
        wire.reply().unwrap()
    };
    for (path, host) in [(&*link, "evil.example"), ("/inbox", "green.example")] {
        assert_eq!(code(&at("GET", path, host, "")), (403, "host_not_allowed"), "{path} {host}");
    }
    assert_eq!(code(&at("POST", &link, "evil.example", "data=1")), (403, "host_not_allowed"));
    assert_eq!(at("GET", &link, "green.example", "").status, 200);
    assert_eq!(at("POST", &link, "green.example", "data=1").status, 200);
}
