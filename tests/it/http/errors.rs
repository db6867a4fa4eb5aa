//! The form of refusals, the framework's own included: the envelope, and the problem of RFC 9457
//! for clients that accept it.

use serde_json::{Value, json};

use super::site::{Site, at};
use support::client::{Reply, Wire};

const PROBLEM: &str = "application/problem+json";
const MOODY: &str = r#"
server.body_bytes_max = 2000

[agents.moody]
model = "moody"

[models.moody]
provider = "rehearsal"
rules = [{ error = "not in the mood" }]
"#;
const UPGRADE: &str = "connection: upgrade\r\nupgrade: websocket\r\n";
const KEY: &str = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const EXECUTE: &str = "POST /workflows/add/execute";

/// Sends a request with a literal head, to which a host is added.
fn asked(site: &Site, line: &str, headers: &[u8], body: &str) -> Reply {
    let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n", body.len());
    told(site, &[head.as_bytes(), headers, b"\r\n", body.as_bytes()].concat())
}

fn told(site: &Site, bytes: &[u8]) -> Reply {
    let mut wire = Wire::open(site.address).unwrap();
    wire.write(bytes).unwrap();
    wire.reply().unwrap_or_else(|error| panic!("{}: {error}", String::from_utf8_lossy(bytes)))
}

/// Returns the headers without those of the body and those that differ in every answer.
fn lasting(reply: &Reply) -> Vec<&(String, String)> {
    let passing = [
        "date",
        "x-request-id",
        "x-generation-id",
        "x-trace-id",
        "content-length",
        "content-type",
        "allow",
    ];
    let mut headers: Vec<_> =
        reply.headers.iter().filter(|(name, _)| !passing.contains(&name.as_str())).collect();
    headers.sort();
    headers
}

fn assert_is_problem(problem: &Reply, detail: &str, what: &str) {
    assert_eq!(problem.header("content-type"), Some(PROBLEM), "{what}");
    let mut body = problem.json();
    let code = problem.header("x-error-code").unwrap();
    let title = body["title"].take();
    assert!(title.as_str().is_some_and(|title| !title.is_empty()), "{what}: {}", problem.text());
    let mut expected = json!({
        "type": format!("urn:greenroom:error:{code}"),
        "title": null,
        "status": problem.status,
        "detail": detail,
        "error": detail,
        "code": code,
        "requestId": problem.header("x-request-id").unwrap(),
    });
    for (member, name) in [("executionId", "x-execution-id"), ("generationId", "x-generation-id")] {
        if let Some(id) = problem.header(name) {
            expected[member] = json!(id);
        }
    }
    for member in ["stepId", "path", "didYouMean"] {
        if let Some(known) = body.get(member) {
            expected[member] = known.clone();
        }
    }
    assert_eq!(body, expected, "{what}");
}

#[test]
fn every_error_is_available_as_a_problem() {
    let site = Site::with(MOODY);
    site.execute("add", "done", &json!({ "n": 1 }));
    let done = Box::leak(format!("POST {}", at("add", "done", "suspend")).into_boxed_str());
    let resume = Box::leak(format!("POST {}", at("add", "done", "resume")).into_boxed_str());
    let stream = Box::leak(format!("GET {}", at("add", "no", "stream")).into_boxed_str());
    let large = format!("{{\"input\":\"{}\"}}", "x".repeat(3000));
    let upgrade = &format!("{UPGRADE}sec-websocket-version: 13\r\n{KEY}");
    let foreign = &format!("{upgrade}origin: https://evil.example\r\n");
    let old = &format!("{UPGRADE}sec-websocket-version: 12\r\n{KEY}");
    let local = "origin: http://localhost:5173\r\n";
    let rows: &[(&str, &str, &str, u16, &str)] = &[
        ("GET /nope", "", "", 404, "not_found"),
        ("GET /nope", local, "", 404, "not_found"),
        ("PUT /workflows", "", "", 405, "method_not_allowed"),
        ("GET /workflows/nope", "", "", 404, "workflow_not_found"),
        ("GET /workflows/executions?limit=0", "", "", 400, "query_invalid"),
        (EXECUTE, "", "{", 400, "json_invalid"),
        (EXECUTE, "", "[]", 400, "body_invalid"),
        (EXECUTE, "", "{\"input\":{}}", 400, "input_invalid"),
        (EXECUTE, "", &large, 413, "body_too_large"),
        (EXECUTE, "content-type: image/png\r\n", "x", 415, "media_type_unsupported"),
        (EXECUTE, "content-encoding: gzip\r\n", "x", 415, "encoding_unsupported"),
        (EXECUTE, "idempotency-key: \r\n", "{\"input\":{\"n\":1}}", 400, "header_invalid"),
        (
            EXECUTE,
            "idempotency-key: a\r\nidempotency-key: b\r\n",
            "{\"input\":{\"n\":1}}",
            400,
            "header_invalid",
        ),
        (EXECUTE, "origin: https://evil.example\r\n", "{}", 403, "origin_not_allowed"),
        ("POST /workflows/failing/execute", "", "{\"input\":{}}", 500, "execution_failed"),
        (done, "", "{}", 400, "execution_not_running"),
        (resume, local, "{}", 404, "not_suspended"),
        ("POST /workflows/nope/stream", "", "{\"input\":{}}", 404, "workflow_not_found"),
        (stream, "", "", 404, "execution_not_found"),
        ("POST /agents/moody/text", "", "{\"input\":\"a\"}", 500, "provider_error"),
        ("POST /agents/moody/object", "", "{\"input\":\"a\",\"schema\":{}}", 500, "provider_error"),
        ("GET /ws", "", "", 426, "upgrade_required"),
        ("GET /ws", old, "", 426, "upgrade_required"),
        ("GET /ws", foreign, "", 403, "origin_not_allowed"),
        ("GET /ws/observability?entityType=x", upgrade, "", 400, "query_invalid"),
        ("GET /nope", upgrade, "", 404, "not_found"),
    ];
    for (line, headers, body, status, code) in rows {
        let what = format!("{line} {headers:?} {body:.40}");
        let plain = asked(&site, line, headers.as_bytes(), body);
        let accept = format!("{headers}accept: {PROBLEM}\r\n");
        let problem = asked(&site, line, accept.as_bytes(), body);
        assert_eq!((plain.status, problem.status), (*status, *status), "{what}: {}", plain.text());
        assert_eq!(plain.header("x-error-code"), Some(*code), "{what}");
        assert_eq!(plain.header("content-type"), Some("application/json"), "{what}");
        assert!(has_vary(&plain, "accept"), "{what}");
        assert_eq!(plain.header("allow"), problem.header("allow"), "{what}");
        // The other headers do not depend on the form.
        if *code != "execution_failed" {
            assert_eq!(lasting(&plain), lasting(&problem), "{what}");
        }
        let told = plain.json();
        assert_is_problem(&problem, told["error"].as_str().unwrap(), &what);
        for member in ["stepId", "path"] {
            assert_eq!(problem.json()[member], told["data"][member], "{what}");
        }
    }
    assert_eq!(site.get("/livez").status, 200);
}

fn has_vary(reply: &Reply, on: &str) -> bool {
    reply.headers.iter().any(|(name, value)| name == "vary" && value == on)
}

#[test]
fn a_refused_host_is_available_as_a_problem() {
    let site = Site::start();
    let head =
        |accept: &str| format!("GET /workflows HTTP/1.1\r\nhost: evil.example\r\n{accept}\r\n");
    let plain = told(&site, head("").as_bytes());
    assert_eq!((plain.status, plain.error().as_str()), (403, "Host not allowed"));
    let problem = told(&site, head(&format!("accept: {PROBLEM}\r\n")).as_bytes());
    assert_is_problem(&problem, "Host not allowed", "a strange host");
}

#[test]
fn successful_answers_ignore_the_accepted_problem_type() {
    let site = Site::start();
    let accept = [("accept", PROBLEM)];
    for path in ["/workflows", "/agents", "/livez", "/"] {
        let (plain, asked) = (site.get(path), site.send("GET", path, &accept, None));
        assert_eq!((plain.status, asked.status), (200, 200), "{path}");
        assert_eq!(lasting(&plain), lasting(&asked), "{path}");
        assert_eq!(plain.header("content-type"), asked.header("content-type"), "{path}");
        assert_eq!(plain.body, asked.body, "{path}");
        assert!(!has_vary(&asked, "accept"), "{path}");
    }
}

#[test]
fn accept_selects_the_shape_of_errors() {
    let site = Site::start();
    let rows: [(&[u8], bool); 14] = [
        (b"", false),
        (b"accept:\r\n", false),
        (b"accept: */*\r\n", false),
        (b"accept: text/event-stream\r\n", false),
        (b"accept: application/problem+json;q=0\r\n", false),
        (b"accept: application/json, application/problem+json;q=0.9\r\n", false),
        (b"accept: application/problem+json, application/json\r\n", true),
        (b"accept: application/json\r\naccept: application/problem+json\r\n", true),
        (b"accept: text/html, application/problem+json;q=0.1\r\n", true),
        (b"accept: APPLICATION/PROBLEM+JSON\r\n", true),
        (b"accept: \xff\xfeapplication/problem+json, and more\r\n", false),
        (b"accept: \xff\xfe\r\naccept: application/problem+json\r\n", true),
        (b"accept: application/problem+json;q=much, application/json\r\n", false),
        (b"accept: ,,,;;;===\"application/problem+json\r\n", false),
    ];
    for (accept, is_problem) in rows {
        let shown = String::from_utf8_lossy(accept).into_owned();
        let reply = asked(&site, "GET /nope", accept, "");
        assert_eq!((reply.status, reply.header("x-error-code")), (404, Some("not_found")));
        if is_problem {
            assert_is_problem(&reply, "Not found: GET /nope", &shown);
        } else {
            assert_eq!(reply.error(), "Not found: GET /nope", "{shown}");
        }
    }
}

#[test]
fn an_answer_to_head_has_no_body() {
    let site = Site::start();
    for (path, status) in [("/nope", 404), ("/agents/nope", 404), ("/workflows/add/execute", 405)] {
        for accept in ["*/*", PROBLEM] {
            let mut wire = Wire::open(site.address).unwrap();
            wire.send("HEAD", path, &[("accept", accept)], None).unwrap();
            let head = wire.head().unwrap();
            assert_eq!(head.status, status, "{path}");
            assert!(head.header("x-error-code").is_some(), "{path}");
            let expected = if accept == PROBLEM { PROBLEM } else { "application/json" };
            assert_eq!(head.header("content-type"), Some(expected), "{path}");
            // A body would be read as the beginning of the next answer.
            wire.send("GET", "/livez", &[], None).unwrap();
            assert_eq!(wire.reply().unwrap().text(), "ok\n", "{path}");
        }
    }
}

#[test]
fn framework_errors_use_the_envelope() {
    let site = Site::start();
    let long = format!("GET /{}", "x".repeat(40_000));
    let not_found = |path: &str| format!("Not found: {path}");
    /// Returns status line, headers and body.
    type Row<'a> = (&'a str, &'a [u8], &'a str, u16, &'a str, String);
    let rows: &[Row<'_>] = &[
        (&long, b"", "", 404, "not_found", not_found(&long)),
        ("GET /%ff%00", b"", "", 404, "not_found", not_found("GET /%ff%00")),
        ("OPTIONS *", b"", "", 404, "not_found", not_found("OPTIONS *")),
        (
            "GET /workflows/executions?limit=%ff&%zz&=&&",
            b"",
            "",
            400,
            "query_invalid",
            "Invalid query parameter %zz: unknown; known parameters: status, userId, from, to, endedFrom, endedTo, replayOf, parentExecutionId, idPrefix, error, definitionHash, via, limit, cursor"
                .to_owned(),
        ),
        (
            "POST /workflows",
            b"x-http-method-override: GET\r\nx-method-override: GET\r\n",
            "{}",
            405,
            "method_not_allowed",
            "Method POST is not allowed here".to_owned(),
        ),
        (
            "TRACE /workflows",
            b"",
            "",
            405,
            "method_not_allowed",
            "Method TRACE is not allowed here".to_owned(),
        ),
        (
            EXECUTE,
            b"expect: a-miracle\r\n",
            "{}",
            400,
            "body_invalid",
            "Invalid request body: input: missing".to_owned(),
        ),
        (
            EXECUTE,
            b"x-odd: \xff\xfe\r\nauthorization: \xff\r\nx-request-id: \xff\r\n",
            "{}",
            400,
            "body_invalid",
            "Invalid request body: input: missing".to_owned(),
        ),
        (
            EXECUTE,
            b"content-type: \xff\r\n",
            "{}",
            415,
            "media_type_unsupported",
            "Content type \u{fffd} is not supported, send application/json".to_owned(),
        ),
    ];
    for (line, headers, body, status, code, text) in rows {
        let reply = asked(&site, line, headers, body);
        let what = format!("{line:.60} {:?}", String::from_utf8_lossy(headers));
        assert_eq!((reply.status, reply.header("x-error-code")), (*status, Some(*code)), "{what}");
        assert_eq!(&reply.error(), text, "{what}");
        assert!(reply.header("x-request-id").is_some_and(|id| id.is_ascii()), "{what}");
    }
}

#[test]
fn a_compressed_body_is_refused_as_such() {
    let site = Site::start();
    let good = "{\"input\":{\"n\":1}}";
    for coding in ["gzip", "br", "deflate, gzip", "aes128gcm", "x"] {
        let header = format!("content-encoding: {coding}\r\n");
        for line in [EXECUTE, "POST /workflows/add/stream", "POST /agents/assistant/text"] {
            let reply = asked(&site, line, header.as_bytes(), good);
            assert_eq!(reply.status, 415, "{line} {coding}");
            let text =
                format!("Content encoding {coding} is not supported, send the body as it is");
            assert_eq!(reply.error(), text);
            assert_eq!(reply.header("x-error-code"), Some("encoding_unsupported"));
            assert_eq!(reply.header("accept-encoding"), Some("identity"));
            assert_eq!(reply.header("connection"), Some("close"));
        }
    }
    let plain = asked(&site, EXECUTE, b"content-encoding: identity\r\n", good);
    assert_eq!(plain.data()["result"], json!({ "n": 4 }));
}

#[test]
fn a_plain_request_to_a_websocket_gets_426() {
    let site = Site::start();
    let how = "This route is a WebSocket: send Connection: Upgrade and Upgrade: websocket";
    let version = "This route is a WebSocket: send Sec-WebSocket-Version: 13";
    let key = "Invalid header Sec-WebSocket-Key: must be sent";
    let thirteen = "sec-websocket-version: 13\r\n";
    let rows = [
        (String::new(), 426, how),
        ("upgrade: websocket\r\n".to_owned() + thirteen + KEY, 426, how),
        ("connection: upgrade\r\nupgrade: h2c\r\n".to_owned() + thirteen + KEY, 426, how),
        ("connection: upgrade\r\nupgrade: websocket, x\r\n".to_owned() + thirteen + KEY, 426, how),
        ("connection: upgrade\r\nupgrade: websockets\r\n".to_owned() + thirteen + KEY, 426, how),
        (UPGRADE.to_owned() + KEY, 426, version),
        (UPGRADE.to_owned() + "sec-websocket-version: 12\r\n" + KEY, 426, version),
        (UPGRADE.to_owned() + "sec-websocket-version: 8\r\n" + KEY, 426, version),
        (UPGRADE.to_owned() + "sec-websocket-version: 7\r\n" + KEY, 426, version),
        (UPGRADE.to_owned() + thirteen, 400, key),
    ];
    for path in ["/ws", "/ws/logs", "/ws/observability"] {
        for (headers, status, text) in &rows {
            let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
            let reply = told(&site, head.as_bytes());
            let what = format!("{path} {headers:?}");
            assert_eq!((reply.status, reply.error().as_str()), (*status, *text), "{what}");
            let code = if *status == 426 { "upgrade_required" } else { "header_invalid" };
            assert_eq!(reply.header("x-error-code"), Some(code), "{what}");
            let offer = (*status == 426).then_some("websocket");
            assert_eq!(reply.header("upgrade"), offer, "{what}");
            assert_eq!(reply.header("sec-websocket-version"), offer.map(|_| "13"), "{what}");
        }
    }
    // The refused upgrade leaves the connection open.
    let mut wire = Wire::open(site.address).unwrap();
    wire.send("GET", "/ws", &[], None).unwrap();
    let refusal = wire.reply().unwrap();
    assert_eq!((refusal.status, refusal.header("connection")), (426, Some("upgrade")));
    wire.send("GET", "/livez", &[], None).unwrap();
    assert_eq!(wire.reply().unwrap().text(), "ok\n");
}

/// Requests refused by the HTTP parser get no envelope, and end the connection.
#[test]
fn malformed_http_gets_an_empty_response() {
    let site = Site::start();
    let long = format!("GET /{}", "x".repeat(66_000));
    let rows: &[(&str, &str, u16)] = &[
        (&long, "host: localhost\r\n", 400),
        ("GET /n\u{e9}", "host: localhost\r\n", 400),
        ("GET /livez", "", 400),
        (EXECUTE, "host: localhost\r\ntransfer-encoding: gzip, chunked\r\n", 400),
        ("GET /livez", &format!("host: localhost\r\n{}", "a: b\r\n".repeat(200)), 431),
    ];
    for (line, headers, status) in rows {
        let bytes = format!("{line} HTTP/1.1\r\n{headers}accept: {PROBLEM}\r\n\r\n");
        let reply = told(&site, bytes.as_bytes());
        let what = format!("{line:.40} {headers:.80}");
        assert_eq!((reply.status, reply.body.len()), (*status, 0), "{what}");
        assert_eq!(reply.header("connection"), Some("close"), "{what}");
        assert_eq!(reply.header("x-error-code"), None, "{what}");
    }
    assert_eq!(site.get("/workflows").data()[0]["id"].take(), Value::from("add"));
}
