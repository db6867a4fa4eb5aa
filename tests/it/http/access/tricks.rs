//! No form of a request bypasses authorization.

use std::io::ErrorKind;

use serde_json::json;

use super::*;
use crate::http::site::at;

/// Sends a request line as it is; returns the status, 0 if the connection ends without an answer.
fn raw(site: &Site, line: &str, token: Option<&str>) -> u16 {
    let mut wire = Wire::open(site.address).unwrap();
    let token = token.map(|token| format!("authorization: {}\r\n", bearer(token)));
    let token = token.unwrap_or_default();
    let body = "{\"input\":{\"n\":1}}";
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\n{token}content-length: {length}");
    wire.write(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
    wire.head().map_or(0, |reply| reply.status)
}

fn executions(site: &Site) -> usize {
    let list = ask(site, &token("eve", &[]), "GET", "/workflows/executions", &json!({})).data();
    list["executions"].as_array().unwrap().len()
}

const TARGETS: [&str; 42] = [
    "/workflows/add/execute",
    "/%77orkflows/add/execute",
    "/workflows/%61dd/execute",
    "/workflows/add/%65xecute",
    "/workflows/add/execut%65",
    "/%2577orkflows/add/execute",
    "/workflows/add/execute?",
    "/workflows/add/execute?token=x",
    "/workflows/add/execute#x",
    "/workflows/add/execute%3f",
    "/workflows/add/execute%23",
    "/workflows/add/execute/",
    "/workflows/add/execute/.",
    "/workflows/add/execute//",
    "//workflows/add/execute",
    "/workflows//add/execute",
    "/workflows/add//execute",
    "/./workflows/add/execute",
    "/workflows/./add/execute",
    "/livez/../workflows/add/execute",
    "/workflows/x/../add/execute",
    "/workflows/x/%2e%2e/add/execute",
    "/%2e/workflows/add/execute",
    "/livez/%2e%2e/workflows/add/execute",
    "/livez%2f..%2fworkflows/add/execute",
    "/workflows%2fadd/execute",
    "/workflows/add%2fexecute",
    "/%2fworkflows/add/execute",
    "/workflows/add/execute%00",
    "/workflows/add%00/execute",
    "/workflows/add/execute%ff",
    "/workflows/%ff/execute",
    "/workflows/add/execute%20",
    "/workflows/add/execute;v=1",
    "/workflows;v=1/add/execute",
    "/WORKFLOWS/add/execute",
    "\\workflows\\add\\execute",
    "/workflows\\add/execute",
    "http://localhost/workflows/add/execute",
    "http://evil.example/workflows/add/execute",
    "HTTP://localhost//workflows/add/execute",
    "*",
];

#[test]
fn no_address_leads_around_the_gate() {
    let good = token("ann", &[]);
    for auth in ["", "default = \"private\""] {
        let site = guarded(auth);
        let mut reached = 0;
        for target in TARGETS {
            let line = format!("POST {target}");
            let without = raw(&site, &line, None);
            assert!(matches!(without, 0 | 400 | 401 | 403 | 404 | 405), "{target}: {without}");
            assert_eq!(executions(&site), reached, "{target} without a token");
            if raw(&site, &line, Some(&good)) == 200 {
                reached += 1;
                assert_eq!(without, 401, "{target}");
            }
        }
        assert!(reached >= 7, "{reached}");
    }
}

#[test]
fn a_public_pattern_opens_nothing_beside_it() {
    let site = guarded("public = [\"POST /workflows/add/execute\"]");
    for target in [
        "/workflows/whole/execute",
        "/workflows/wh%6fle/execute",
        "/workflows/add/../whole/execute",
        "/workflows/add/%2e%2e/whole/execute",
        "/workflows/add%2f..%2fwhole/execute",
        "/workflows/add%00/execute",
        "/workflows/ADD/execute",
        "/workflows/add/stream",
    ] {
        let status = raw(&site, &format!("POST {target}"), None);
        assert!(matches!(status, 401 | 404), "{target}: {status}");
    }
    assert_eq!(executions(&site), 0);
    for target in ["/workflows/add/execute", "/workflows/%61dd/execute"] {
        assert_eq!(raw(&site, &format!("POST {target}"), None), 200, "{target}");
    }
}

#[test]
fn no_method_leads_around_the_gate() {
    let site = guarded("");
    let path = "/workflows/add/execute";
    for method in ["GET", "HEAD", "OPTIONS", "PUT", "TRACE", "post", "Post", "POST\u{b}"] {
        let status = raw(&site, &format!("{method} {path}"), None);
        assert!(matches!(status, 0 | 400 | 401 | 405), "{method}: {status}");
    }
    let overridden = [("x-http-method-override", "POST"), ("x-method-override", "POST")];
    assert_eq!(site.send("GET", path, &overridden, None).status, 405);
    assert_eq!(executions(&site), 0);
}

#[test]
fn a_token_counts_only_in_its_header_or_upgrade_parameter() {
    let site = guarded("");
    let good = token("ann", &[]);
    let (bearer, basic) = (bearer(&good), format!("Basic {good}"));
    let cookie = format!("token={good}; session={good}");
    let lower = bearer.replace("Bearer", "bEARER");
    let body = Some(&b"{\"input\":{\"n\":1}}"[..]);
    let path = "/workflows/add/execute";
    let in_query = format!("{path}?token={good}");
    let upgrade = [("upgrade", "websocket"), ("connection", "upgrade")];
    let rows: [(&str, Headers<'_>, u16); 9] = [
        (path, &[("authorization", &bearer)], 200),
        (path, &[("authorization", &lower)], 200),
        (path, &[("authorization", &basic)], 401),
        (path, &[("authorization", &good)], 401),
        (path, &[("cookie", &cookie)], 401),
        (path, &[("x-api-key", &good)], 401),
        (path, &[("authorization", &bearer), ("authorization", "Bearer x")], 401),
        (&in_query, &[], 401),
        (&in_query, &upgrade, 401),
    ];
    for (path, headers, status) in rows {
        let reply = site.send("POST", path, headers, body);
        assert_eq!(reply.status, status, "{path} {headers:?}: {}", reply.text());
    }
}

#[test]
fn a_token_counts_for_one_request_of_a_connection() {
    let site = guarded("");
    let good = bearer(&token("ann", &[]));
    let body = Some(&b"{\"input\":{\"n\":1}}"[..]);
    let mut wire = Wire::open(site.address).unwrap();
    for (headers, status) in [(&[("authorization", &*good)][..], 200), (&[], 401)] {
        wire.send("POST", "/workflows/add/execute", headers, body).unwrap();
        assert_eq!(wire.reply().unwrap().status, status);
    }
}

/// Returns an answer without the parts that differ between any two answers.
fn gist(reply: &Reply) -> (u16, Vec<(String, String)>, String) {
    let headers = reply.headers.iter().filter(|(name, _)| name != "date" && name != "x-request-id");
    let mut headers: Vec<_> = headers.cloned().collect();
    headers.sort();
    (reply.status, headers, reply.text())
}

#[test]
fn refused_callers_learn_nothing_about_existing_resources() {
    let site = guarded("default = \"private\"");
    let start = json!({ "input": { "who": "ann" }, "options": { "executionId": "here" } });
    ask(&site, &token("ann", &[]), "POST", "/workflows/approval/execute", &start).data();
    let resume = json!({ "resumeData": { "approved": true } }).to_string();
    let rows = [
        ("POST", "/workflows/add/execute".to_owned(), "/workflows/nope/execute".to_owned()),
        ("POST", "/agents/assistant/text".to_owned(), "/agents/nope/text".to_owned()),
        ("POST", at("approval", "here", "resume"), at("approval", "gone", "resume")),
        ("POST", at("approval", "here", "suspend"), at("approval", "gone", "suspend")),
        ("GET", at("approval", "here", "state"), at("approval", "gone", "state")),
        ("GET", at("approval", "here", "stream"), at("approval", "gone", "stream")),
        ("GET", "/workflows/add".to_owned(), "/workflows/%00".to_owned()),
    ];
    for (method, known, unknown) in rows {
        let bodies: &[&str] = if method == "GET" { &[""] } else { &[&resume, "", "{", "[1]"] };
        for body in bodies {
            let send = |path: &str| {
                let body = (method != "GET").then_some(body.as_bytes());
                site.send(method, path, &[], body)
            };
            let (known, unknown) = (send(&known), send(&unknown));
            assert_eq!(refusal_of(&known), owned(REQUIRED));
            assert_eq!(gist(&known), gist(&unknown), "{method} with {body:?}");
        }
    }
    let state = ask(&site, &token("ann", &[]), "GET", &at("approval", "here", "state"), &json!({}));
    assert_eq!(state.data()["status"], "suspended");
}

#[test]
fn a_refusal_does_not_wait_for_a_body() {
    let site = guarded("");
    for row in ROUTES.iter().filter(|row| row.access == Access::Protected && row.method.changes()) {
        let mut wire = Wire::open(site.address).unwrap();
        let path = place(row, &visitors()[0]);
        let method = row.method.as_str();
        // A body above the limit, of a type that is not accepted, which is never sent.
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: image/png\r\n\
             content-length: 4000000000\r\n\r\n"
        );
        wire.write(head.as_bytes()).unwrap();
        let reply = wire.reply().unwrap();
        assert_eq!(refusal_of(&reply), owned(REQUIRED), "{row}");
        assert_eq!(reply.header("connection"), Some("close"), "{row}");
    }
}

#[test]
fn a_refused_request_body_is_not_read() {
    let site = guarded("rules = [{ route = \"POST /agents/*\", roles = [\"admin\"] }]");
    let expired = signed(&json!({ "sub": "ann", "exp": now() - 60 }), SECRET);
    let tokens = [None, Some("x".to_owned()), Some(expired), Some(token("ann", &[]))];
    let refused = tokens.map(|token| {
        let token = token.map(|token| format!("authorization: {}\r\n", bearer(&token)));
        let head = format!(
            "POST /agents/assistant/text HTTP/1.1\r\nhost: localhost\r\n{}\
             transfer-encoding: chunked\r\n\r\n1\r\n{{\r\n",
            token.unwrap_or_default()
        );
        let mut wire = Wire::open(site.address).unwrap();
        wire.write(head.as_bytes()).unwrap();
        let reply = wire.reply().unwrap();
        assert!(matches!(reply.status, 401 | 403), "{head}: {}", reply.status);
        assert_eq!(reply.header("connection"), Some("close"), "{head}");
        (head, wire)
    });
    for (head, mut wire) in refused {
        // The body never ends, but the connection must.
        match wire.line() {
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset),
                "{head}: {error}"
            ),
            Ok(line) => panic!("{head}: {line}"),
        }
    }
}

#[test]
fn a_browser_asks_first_without_a_token() {
    let site = guarded("default = \"private\"");
    let origin = ("origin", "http://localhost:5173");
    let asked = ("access-control-request-method", "POST");
    let with = ("access-control-request-headers", "authorization");
    for row in ROUTES.iter() {
        let path = place(row, &visitors()[0]);
        let reply = site.send("OPTIONS", &path, &[origin, asked, with], None);
        assert_eq!((reply.status, reply.header("www-authenticate")), (204, None), "{row}");
        assert_eq!(reply.header("access-control-allow-headers"), Some("authorization"), "{row}");
    }
    // The page can read the refusal.
    let refused = site.send("POST", "/workflows/add/execute", &[origin], Some(b"{}"));
    assert_eq!(refusal_of(&refused), owned(REQUIRED));
    assert_eq!(refused.header("access-control-allow-origin"), Some(origin.1));
}
