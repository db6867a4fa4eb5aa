//! Requests from pages of other origins.

use greenroom::api::catalogue::Method;
use serde_json::json;

use super::site::{Site, at};

const UPGRADE: [(&str, &str); 4] = [
    ("connection", "upgrade"),
    ("upgrade", "websocket"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

const FOREIGN: [&str; 5] = [
    "https://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1.evil.example:3000",
    "file://",
];

#[test]
fn a_foreign_page_changes_nothing() {
    let site = Site::start();
    site.execute("approval", "s1", &json!({ "who": "ann" }));
    let before = site.get(&at("approval", "s1", "state")).text();
    let posts = [
        "/workflows/add/execute".to_owned(),
        "/workflows/add/stream".to_owned(),
        "/agents/assistant/text".to_owned(),
        at("approval", "s1", "resume"),
        at("approval", "s1", "suspend"),
        at("approval", "s1", "cancel"),
        "/nope".to_owned(),
    ];
    let body = json!({ "input": { "n": 1 }, "resumeData": { "approved": true } }).to_string();
    for origin in FOREIGN {
        for path in &posts {
            let headers = [("origin", origin), ("content-type", "text/plain")];
            let reply = site.send("POST", path, &headers, Some(body.as_bytes()));
            assert_eq!(
                (reply.status, reply.error().as_str()),
                (403, "Origin not allowed"),
                "{path}"
            );
            assert_eq!(reply.header("x-error-code"), Some("origin_not_allowed"));
            assert_eq!(reply.header("access-control-allow-origin"), None);
        }
        for path in ["/ws", "/ws/logs", "/ws/observability", "/ws/observability?entityType=tool"] {
            let headers = [&UPGRADE[..], &[("origin", origin)]].concat();
            let reply = site.send("GET", path, &headers, None);
            assert_eq!(
                (reply.status, reply.error().as_str()),
                (403, "Origin not allowed"),
                "{path}"
            );
        }
        for method in ["PATCH", "DELETE"] {
            let path = "/api/memory/conversations/c";
            let reply = site.send(method, path, &[("origin", origin)], None);
            assert_eq!((reply.status, reply.error().as_str()), (403, "Origin not allowed"));
        }
        let preflight = [("origin", origin), ("access-control-request-method", "POST")];
        assert_eq!(site.send("OPTIONS", &posts[0], &preflight, None).status, 403);
        // a read is answered, but the browser hides the answer from the page
        let read = site.send("GET", "/workflows", &[("origin", origin)], None);
        assert_eq!((read.status, read.header("access-control-allow-origin")), (200, None));
    }
    assert_eq!(site.get(&at("approval", "s1", "state")).text(), before);
    assert_eq!(site.get("/workflows/add/executions").data()["executions"], json!([]));
}

#[test]
fn a_page_of_this_machine_may_do_everything() {
    let site = Site::start();
    let own = format!("http://{}", site.address);
    for origin in ["http://localhost:5173", "http://127.0.0.1:3000", "http://localhost", &own] {
        let preflight = [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "content-type,idempotency-key"),
        ];
        let reply = site.send("OPTIONS", "/workflows/add/execute", &preflight, None);
        assert_eq!(reply.status, 204);
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        let methods = reply.header("access-control-allow-methods").unwrap();
        assert!(Method::ALL.iter().all(|method| methods.contains(method.as_str())), "{methods}");
        assert_eq!(
            reply.header("access-control-allow-headers"),
            Some("content-type,idempotency-key")
        );

        let body = Some(&b"{\"input\":{\"n\":1}}"[..]);
        let reply = site.send("POST", "/workflows/add/execute", &[("origin", origin)], body);
        reply.data();
        assert_eq!(reply.header("access-control-allow-origin"), Some(origin));
        let exposed = reply.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("x-execution-id, x-generation-id, x-trace-id"), "{exposed}");
        let refusal =
            site.send("POST", "/workflows/add/execute", &[("origin", origin)], Some(b"{"));
        assert_eq!(refusal.header("access-control-allow-origin"), Some(origin));

        let headers = [&UPGRADE[..], &[("origin", origin)]].concat();
        let mut wire = support::client::Wire::open(site.address).unwrap();
        wire.send("GET", "/ws", &headers, None).unwrap();
        assert_eq!(wire.head().unwrap().status, 101, "{origin}");
    }
}

#[test]
fn configured_origins_replace_the_default_ones() {
    let site = Site::with("cors.origins = [\"https://app.example\"]");
    let post = |origin| {
        let body = Some(&b"{\"input\":{\"n\":1}}"[..]);
        site.send("POST", "/workflows/add/execute", &[("origin", origin)], body).status
    };
    assert_eq!(post("https://app.example"), 200);
    assert_eq!(post("https://app.example:444"), 403);
    assert_eq!(post("http://localhost:5173"), 403);
}
