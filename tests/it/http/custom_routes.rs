//! Configured routes to workflows, agents and files.

use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::site::CONFIG;
use crate::program::Programs;
use support::client::{Events, Reply, Wire};
use support::server::{Home, Server};

const KEY: (&str, &str) = ("x-api-key", "the-key-of-ann-0123456789abcdef");

const ROUTES: &str = r#"
[[routes]]
path = "/orders"
workflow = "add"
summary = "Adds <three>"

[[routes]]
path = "/hooks/orders"
workflow = "add"
body = "input"

[[routes]]
path = "/hooks/numbers"
workflow = "whole"
body = "input"

[[routes]]
path = "/orders/live"
workflow = "add"
answer = "stream"

[[routes]]
path = "/ask"
agent = "assistant"

[[routes]]
path = "/ask/stream"
agent = "assistant"
answer = "stream"

[[routes]]
path = "/ask/chat"
agent = "assistant"
answer = "chat"

[[routes]]
path = "/ask/object"
agent = "assistant"
answer = "object"

[[routes]]
path = "/ask/stream-object"
agent = "assistant"
answer = "stream-object"

[[routes]]
path = "/page"
static = "site/index.html"

[[routes]]
path = "/site/*"
static = "site"
"#;

const AUTH: &str = r#"
[auth]
public = ["GET /site/*"]
[[auth.api_keys]]
id = "ann"
hash = "sha256:20402f5aa0ee87265a3fa557b9fa3848d81875e11a1f70cfff806c9fd8078888"
"#;

fn start(auth: &str) -> (Home, Server) {
    let home = Home::new(&format!("{auth}\n{CONFIG}\n{ROUTES}"));
    for folder in ["site/css", "site/.hidden", "site/empty", "outside"] {
        std::fs::create_dir_all(home.path(folder)).unwrap();
    }
    for (file, text) in [
        ("site/index.html", "<p>home"),
        ("site/css/a b.css", "p{}"),
        ("site/css/index.html", "<p>styles"),
        ("site/data.bin", "0123456789"),
        ("site/.env", "SECRET=1"),
        ("site/.hidden/a.txt", "hidden"),
        ("site/outside.txt", "inside"),
        ("outside/secret.txt", "secret"),
    ] {
        home.write(file, text);
    }
    symlink(home.path("outside"), home.path("site/out")).unwrap();
    symlink(home.path("outside/secret.txt"), home.path("site/out.txt")).unwrap();
    symlink(home.path("site/.env"), home.path("site/env.txt")).unwrap();
    symlink(home.path("site/css"), home.path("site/styles")).unwrap();
    symlink(home.path("site/loop"), home.path("site/loop")).unwrap();
    let server = Server::start(home.greenroom(&[]));
    (home, server)
}

fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let json = [("content-type", "application/json")];
    let body = body.to_string();
    server.send("POST", path, &[headers, &json].concat(), Some(body.as_bytes()))
}

#[test]
fn an_added_route_to_a_workflow_answers_like_the_built_in_one() {
    let (_home, server) = start("");
    let body = json!({ "input": { "n": 1 }, "options": { "executionId": "x1", "userId": "u" } });
    let reply = post(&server, "/orders", &[], &body);
    assert_eq!(reply.header("x-execution-id"), Some("x1"));
    assert_eq!(reply.data()["result"], json!({ "n": 4 }));
    assert_eq!(server.state("add", "x1")["userId"], "u");
    let wrong = post(&server, "/orders", &[], &json!({ "input": { "n": "x" } }));
    assert_eq!(wrong.status, 400);
    assert!(wrong.error().starts_with("Input validation failed: n: "), "{}", wrong.text());

    // keys are shared between both routes of a workflow
    let key = [("idempotency-key", "k1")];
    let first = post(&server, "/orders", &key, &json!({ "input": { "n": 5 } }));
    let again = post(&server, "/workflows/add/execute", &key, &json!({ "input": { "n": 5 } }));
    assert_eq!(first.data()["executionId"], again.data()["executionId"]);

    let mut wire = Wire::open(server.address).unwrap();
    let body = json!({ "input": { "n": 1 } }).to_string();
    wire.send("POST", "/orders/live", &[], Some(body.as_bytes())).unwrap();
    let mut events = Events::read(wire).unwrap();
    assert!(events.head.header("x-execution-id").is_some());
    let kinds: Vec<_> =
        std::iter::from_fn(|| events.next().unwrap()).map(|event| event.kind()).collect();
    assert_eq!(
        (kinds[0].as_str(), kinds.last().unwrap().as_str()),
        ("workflow-start", "workflow-result")
    );
}

#[test]
fn the_body_of_a_webhook_is_the_input() {
    let (_home, server) = start("");
    let key = [("idempotency-key", "delivery-1")];
    let body = json!({ "n": 1, "options": { "executionId": "mine" } });
    let first = post(&server, "/hooks/orders", &key, &body);
    let data = first.data();
    assert_eq!(data["result"], json!({ "n": 4 }));
    let id = data["executionId"].as_str().unwrap();
    assert_ne!(id, "mine");
    assert_eq!(server.state("add", id)["input"], body);
    assert_eq!(post(&server, "/hooks/orders", &key, &body).data()["executionId"], id);
    let other = post(&server, "/hooks/orders", &key, &json!({ "n": 2 }));
    assert_eq!((other.status, other.header("x-error-code")), (409, Some("idempotency_key_reused")));
    assert_eq!(post(&server, "/hooks/numbers", &[], &json!(7)).data()["result"], 7);
    let rows = [
        ("/hooks/orders", "[1]", "Invalid request body: must be an object"),
        ("/hooks/orders", "", "Invalid JSON: EOF while parsing a value at line 1 column 0"),
    ];
    for (path, body, text) in rows {
        let reply = server.send("POST", path, &[], Some(body.as_bytes()));
        assert_eq!((reply.status, reply.error().as_str()), (400, text));
    }
}

#[test]
fn an_added_route_to_an_agent_answers_like_the_built_in_one() {
    let (_home, server) = start("");
    let said = post(&server, "/ask", &[], &json!({ "input": "hello" }));
    assert!(said.header("x-generation-id").is_some());
    assert_eq!(said.data()["text"], "hello");
    let schema = json!({ "type": "object", "required": ["n"],
        "properties": { "n": { "type": "integer" } } });
    let body = json!({ "input": "a number", "schema": schema });
    let object = post(&server, "/ask/object", &[], &body);
    assert!(object.data()["n"].is_i64(), "{}", object.text());
    for (path, body, part) in [
        ("/ask/stream", json!({ "input": "hello" }), "\"finish\""),
        ("/ask/chat", json!({ "input": "hello" }), "data: [DONE]"),
        ("/ask/stream-object", body, "\"n\""),
    ] {
        let reply = post(&server, path, &[], &body);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert!(reply.text().contains(part), "{path}: {}", reply.text());
    }
    let wrong = post(&server, "/ask", &[], &json!({}));
    assert_eq!(wrong.error(), "Invalid request body: input: missing");
}

#[test]
fn files_are_served_with_their_types_and_validators() {
    let (home, server) = start("");
    let rows = [
        ("/page", "<p>home", "text/html; charset=utf-8"),
        ("/site/", "<p>home", "text/html; charset=utf-8"),
        ("/site/index.html", "<p>home", "text/html; charset=utf-8"),
        ("/site/css/", "<p>styles", "text/html; charset=utf-8"),
        ("/site/styles/", "<p>styles", "text/html; charset=utf-8"),
        ("/site/css/a%20b.css", "p{}", "text/css; charset=utf-8"),
        ("/site/data.bin", "0123456789", "application/octet-stream"),
        ("/site/data.bin?v=1", "0123456789", "application/octet-stream"),
    ];
    for (path, text, kind) in rows {
        let reply = server.get(path);
        assert_eq!((reply.status, reply.text().as_str()), (200, text), "{path}");
        assert_eq!(reply.header("content-type"), Some(kind), "{path}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(reply.header("x-request-id").is_some());
    }
    let folder = server.get("/site/css");
    assert_eq!((folder.status, folder.header("location")), (308, Some("/site/css/")));

    let whole = server.get("/site/data.bin");
    let etag = whole.header("etag").unwrap();
    assert_eq!(server.send("GET", "/site/data.bin", &[("if-none-match", etag)], None).status, 304);
    let part = server.send("GET", "/site/data.bin", &[("range", "bytes=2-4")], None);
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    let none = server.send("GET", "/site/data.bin", &[("range", "bytes=20-")], None);
    assert_eq!((none.status, none.error().as_str()), (416, "The file has no such part"));
    assert_eq!(none.header("content-range"), Some("bytes */10"));
    let changed = server.send("GET", "/site/data.bin", &[("if-match", "\"x\"")], None);
    assert_eq!((changed.status, changed.error().as_str()), (412, "The file has changed"));

    // new files and changes are served
    home.write("site/new.txt", "new");
    home.write("site/index.html", "<p>changed");
    assert_eq!(server.get("/site/new.txt").text(), "new");
    assert_eq!(server.get("/page").text(), "<p>changed");
    std::fs::remove_file(home.path("site/index.html")).unwrap();
    assert_eq!((server.get("/page").status, server.get("/site/").status), (404, 404));
}

#[test]
fn head_is_answered_like_get_without_the_file() {
    let (home, server) = start("");
    let mut wire = Wire::open(server.address).unwrap();
    for path in ["/page", "/site/data.bin", "/site/css"] {
        wire.send("HEAD", path, &[], None).unwrap();
        let head = wire.head().unwrap();
        let whole = server.get(path);
        assert_eq!(head.status, whole.status, "{path}");
        assert_eq!(head.header("content-length"), whole.header("content-length"), "{path}");
        assert_eq!(head.header("content-type"), whole.header("content-type"), "{path}");
    }
    // no body was left on the connection
    wire.send("GET", "/site/data.bin", &[], None).unwrap();
    assert_eq!(wire.reply().unwrap().text(), "0123456789");
    wire.send("HEAD", "/site/data.bin", &[("range", "bytes=2-4")], None).unwrap();
    let part = wire.head().unwrap();
    assert_eq!((part.status, part.header("content-length")), (206, Some("3")));
    // however large a file is, HEAD reads nothing of it
    let huge = std::fs::File::create(home.path("site/huge.bin")).unwrap();
    huge.set_len(1 << 38).unwrap();
    wire.send("HEAD", "/site/huge.bin", &[], None).unwrap();
    assert_eq!(wire.head().unwrap().header("content-length"), Some("274877906944"));
    wire.send("GET", "/page", &[], None).unwrap();
    assert_eq!(wire.reply().unwrap().text(), "<p>home");
}

#[test]
fn nothing_outside_the_folder_is_served() {
    let (home, server) = start("");
    let long = format!("/site/{}", "x".repeat(300));
    let paths = [
        "/site/gone.html",
        "/site/empty/",
        "/site/data.bin/",
        "/site/data.bin/x",
        "/site/.env",
        "/site/%2eenv",
        "/site/.hidden/a.txt",
        "/site/env.txt",
        "/site/out.txt",
        "/site/out/secret.txt",
        "/site/loop",
        "/site/../outside/secret.txt",
        "/site/%2e%2e/outside/secret.txt",
        "/site/..%2foutside/secret.txt",
        "/site/%2e%2e%2foutside%2fsecret.txt",
        "/site/css/../../outside/secret.txt",
        "/site/css/%2E%2E/%2E%2E/outside/secret.txt",
        "/site/..%5coutside%5csecret.txt",
        "/site/data.bin%00.html",
        "/site/%ff",
        "/site//data.bin",
        "/site//outside/secret.txt",
        "/site//etc/passwd",
        "/site/%2fetc%2fpasswd",
        "/site",
        long.as_str(),
    ];
    for path in paths {
        let reply = server.get(path);
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
        assert_eq!(reply.error(), format!("Not found: GET {path}"), "{path}");
    }
    let folder = home.path("").display().to_string();
    assert!(!server.get("/").text().contains(&folder));
    // the same with an absolute address in the request line
    let mut wire = Wire::open(server.address).unwrap();
    let line =
        "GET http://localhost/site/%2e%2e/outside/secret.txt HTTP/1.1\r\nhost: localhost\r\n\r\n";
    wire.write(line.as_bytes()).unwrap();
    assert_eq!(wire.reply().unwrap().status, 404);
}

#[test]
fn added_routes_are_protected_until_they_are_listed() {
    let (_home, server) = start(AUTH);
    let body = json!({ "input": { "n": 1 }, "options": { "userId": "eve" } });
    for path in ["/orders", "/hooks/orders", "/orders/live", "/ask", "/ask/chat"] {
        let reply = post(&server, path, &[], &body);
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (401, "Authentication required"),
            "{path}"
        );
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    }
    assert_eq!(server.get("/page").status, 401);
    assert_eq!(server.send("GET", "/page", &[KEY], None).text(), "<p>home");
    assert_eq!(server.get("/site/data.bin").text(), "0123456789", "listed as public");

    let reply = post(&server, "/orders", &[KEY], &body).data();
    let id = reply["executionId"].as_str().unwrap();
    assert_eq!(server.state("add", id)["userId"], "ann", "the key says who it is");
    let hook = post(&server, "/hooks/orders", &[KEY], &json!({ "n": 1 })).data();
    assert_eq!(server.state("add", hook["executionId"].as_str().unwrap())["userId"], "ann");
}

#[test]
fn added_routes_are_routes_like_others() {
    let (_home, server) = start("");
    for (path, allow) in
        [("/orders", "POST"), ("/ask", "POST"), ("/page", "GET, HEAD"), ("/site/x", "GET, HEAD")]
    {
        let reply = server.send("PUT", path, &[], None);
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{path}");
    }
    assert_eq!(server.get("/orders").error(), "Method GET is not allowed here");
    let foreign = [("origin", "https://evil.example")];
    let reply = post(&server, "/orders", &foreign, &json!({ "input": { "n": 1 } }));
    assert_eq!(reply.error(), "Origin not allowed");
    let landing = server.get("/").text();
    for part in ["<code>/hooks/orders</code>", "Adds &lt;three&gt;", "<code>/site/*</code>"] {
        assert!(landing.contains(part), "{part} is not in {landing}");
    }
}

#[test]
fn a_path_in_use_prevents_the_start() {
    let home = Home::new(CONFIG);
    let rows = [
        (
            "/workflows/add/execute",
            "routes[0].path: POST /workflows/add/execute would be answered by POST /workflows/:id/execute",
        ),
        (
            "/workflows/mine",
            "routes[0].path: POST /workflows/mine would be answered by GET /workflows/:id",
        ),
        ("/ui/x", "routes[0].path: POST /ui/x would be answered by GET /ui/:file"),
        ("/a//b", "routes[0].path: must not have `//`"),
    ];
    let config = std::fs::read_to_string(home.path("config.toml")).unwrap();
    for (path, expected) in rows {
        home.write(
            "bad.toml",
            &format!("{config}\n[[routes]]\npath = \"{path}\"\nworkflow = \"add\"\n"),
        );
        for command in ["check", "serve"] {
            let output = home.run(home.greenroom(&[command, "--config", "bad.toml"]));
            let screen = if command == "check" { output.stdout } else { output.stderr };
            let screen = String::from_utf8(screen).unwrap();
            assert_eq!(output.status.code(), Some(1), "{path}: {screen}");
            assert!(screen.trim_end().ends_with(expected), "{path}: {screen}");
            assert!(screen.starts_with("bad.toml:"), "{path}: {screen}");
        }
    }
    let twice = "[[routes]]\npath = \"/a\"\nworkflow = \"add\"\n";
    home.write("bad.toml", &format!("{config}\n{twice}{twice}"));
    let output = home.run(home.greenroom(&["check", "--config", "bad.toml"]));
    let screen = String::from_utf8(output.stdout).unwrap();
    assert!(screen.contains("routes[1].path: POST /a would be answered by POST /a"), "{screen}");
}
