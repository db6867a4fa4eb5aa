//! The program of `examples/sessions.rs`, called as its comments describe.

use serde_json::{Value, json};

use super::orders::start_example;
use support::client::Reply;
use support::server::{Home, Server};

fn start() -> (Home, Server) {
    let home = Home::new(super::site::CONFIG);
    let server = start_example(&home, "sessions");
    (home, server)
}

fn login(server: &Server, user: &str, password: &str) -> Reply {
    server.post("/login", &json!({ "user": user, "password": password }))
}

/// Signs in; returns the `Cookie` header of the session.
fn sign_in(server: &Server, user: &str, password: &str) -> String {
    let reply = login(server, user, password);
    assert_eq!(reply.status, 200, "{}", reply.text());
    let cookie = reply.header("set-cookie").unwrap().to_owned();
    let (pair, attributes) = cookie.split_once("; ").unwrap();
    assert_eq!(attributes, "Path=/; HttpOnly; SameSite=Lax; Max-Age=28800");
    assert_eq!(pair.len(), "session=".len() + 32, "{pair}");
    pair.to_owned()
}

fn ask(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let json = [("content-type", "application/json")];
    let bytes = body.to_string();
    let body = (!body.is_null()).then_some(bytes.as_bytes());
    server.send(method, path, &[headers, &json].concat(), body)
}

#[test]
fn a_session_begins_with_a_password_and_ends_with_a_logout() {
    let (_home, server) = start();
    let me = |headers: &[(&str, &str)]| ask(&server, "GET", "/me", headers, &Value::Null);
    assert_eq!((me(&[]).status, me(&[]).error().as_str()), (401, "Authentication required"));

    for (user, password) in [("ann", "wrong"), ("nobody", "open sesame"), ("", "")] {
        let wrong = login(&server, user, password);
        assert_eq!((wrong.status, wrong.error().as_str()), (401, "Wrong user or password"));
        assert_eq!(wrong.header("set-cookie"), None);
    }
    let cookie = sign_in(&server, "ann", "open sesame");
    assert_ne!(cookie, sign_in(&server, "ann", "open sesame"), "a separate id");
    let own = [("cookie", cookie.as_str())];
    assert_eq!(me(&own).json(), json!({ "id": "ann", "roles": ["staff"] }));

    let out = ask(&server, "POST", "/logout", &own, &Value::Null);
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    let old = me(&own);
    assert_eq!((old.status, old.error().as_str()), (401, "Invalid token: no such session"));
    let forged = me(&[("cookie", "session=0")]);
    assert_eq!((forged.status, forged.header("x-error-code")), (401, Some("token_invalid")));
}

#[test]
fn routes_and_tools_know_the_signed_in_user() {
    let (_home, server) = start();
    let people = [
        ("ann", "open sesame", "Your reports: [7,9]", 200, 404),
        ("ben", "let me in", "Your reports: [8]", 404, 200),
    ];
    for (user, password, told, seven, eight) in people {
        let cookie = sign_in(&server, user, password);
        let own = [("cookie", cookie.as_str())];
        for (number, status) in [(7, seven), (8, eight), (70, 404)] {
            let path = format!("/reports/{number}");
            let reply = ask(&server, "GET", &path, &own, &Value::Null);
            assert_eq!(reply.status, status, "{user} {path}: {}", reply.text());
            if status == 404 {
                assert_eq!(reply.error(), format!("There is no report {number}"));
            }
        }
        // claims in a body are ignored
        let body = json!({ "input": "mine?",
            "options": { "userId": "eve", "context": { "user": { "id": "eve" } } } });
        let reply = ask(&server, "POST", "/agents/clerk/text", &own, &body);
        assert_eq!(reply.data()["text"], told);
        let direct =
            ask(&server, "POST", "/tools/my_reports/execute", &own, &json!({ "input": {} }));
        let numbers = told.trim_start_matches("Your reports: ");
        assert_eq!(direct.data()["result"].to_string(), numbers);
    }
    let nobody = ask(&server, "POST", "/agents/clerk/text", &[], &json!({ "input": "mine?" }));
    assert_eq!((nobody.status, nobody.header("www-authenticate")), (401, Some("Bearer")));
    assert_eq!(server.get("/agents").status, 200, "public in the table");
}

#[test]
fn foreign_pages_cannot_use_the_cookie() {
    let (_home, server) = start();
    let cookie = sign_in(&server, "ann", "open sesame");
    let foreign = [("cookie", cookie.as_str()), ("origin", "https://evil.example")];
    for (path, body) in [
        ("/logout", Value::Null),
        ("/login", json!({ "user": "ann", "password": "open sesame" })),
        ("/agents/clerk/text", json!({ "input": "mine?" })),
    ] {
        let reply = ask(&server, "POST", path, &foreign, &body);
        assert_eq!((reply.status, reply.error().as_str()), (403, "Origin not allowed"), "{path}");
    }
    // a read is answered, but without a header that lets the page see it
    let read = ask(&server, "GET", "/me", &foreign, &Value::Null);
    assert_eq!(read.header("access-control-allow-origin"), None);
    let upgrade = [("upgrade", "websocket"), ("connection", "upgrade")];
    let socket = ask(&server, "GET", "/ws", &[&foreign[..], &upgrade].concat(), &Value::Null);
    assert_eq!(socket.status, 403);
    assert_eq!(ask(&server, "GET", "/me", &foreign[..1], &Value::Null).status, 200);
}

#[test]
fn invalid_bodies_of_an_added_route_are_refused_in_the_envelope() {
    let (_home, server) = start();
    let rows = [
        ("application/json", "{", "Invalid JSON: EOF while parsing an object at line 1 column 1"),
        (
            "application/json",
            "{\"user\":\"ann\"}",
            "Invalid request body: missing field `password` at line 1 column 14",
        ),
        ("text/plain", "{}", "Content type text/plain is not supported, send application/json"),
    ];
    for (kind, body, text) in rows {
        let headers = [("content-type", kind)];
        let reply = server.send("POST", "/login", &headers, Some(body.as_bytes()));
        let status = if kind == "text/plain" { 415 } else { 400 };
        assert_eq!((reply.status, reply.error().as_str()), (status, text), "{body}");
    }
    let untyped = server.send("POST", "/login", &[], Some(b"{}"));
    assert_eq!(untyped.error(), "Content type none is not supported, send application/json");
    let put = server.send("PUT", "/login", &[], None);
    assert_eq!((put.status, put.header("allow")), (405, Some("POST")));
    let landing = server.get("/").text();
    assert!(landing.contains("<code>/reports/:id</code>") && landing.contains("End the session"));
}
