//! Malformed bytes: each gets an answer or the end of its connection, and the server answers the
//! next caller.

use std::io::{self, Read};
use std::net::Shutdown;

use serde_json::json;

use super::site::Site;
use support::client::{Reply, Wire};

/// Sends bytes and nothing after them; returns the statuses of all answers.
fn said(site: &Site, bytes: &[u8]) -> Vec<u16> {
    let mut wire = Wire::open(site.address).unwrap();
    wire.write(bytes).unwrap();
    match wire.stream.get_ref().shutdown(Shutdown::Write) {
        // The server has already closed the connection.
        Err(error) if error.kind() == std::io::ErrorKind::NotConnected => {}
        ended => ended.unwrap(),
    }
    let answer = rest(&mut wire).unwrap();
    let text = String::from_utf8_lossy(&answer);
    text.match_indices("HTTP/1.").map(|(at, _)| text[at + 9..at + 12].parse().unwrap()).collect()
}

/// Reads until the server ends the connection.
fn rest(wire: &mut Wire) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match wire.stream.read_to_end(&mut bytes) {
        // a reset is an end as well: the server did not read everything
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
        Ok(_) | Err(_) => Ok(bytes),
    }
}

fn execute(site: &Site, body: &[u8]) -> Reply {
    site.send("POST", "/workflows/add/execute", &[], Some(body))
}

const GOOD: &str = "{\"input\":{\"n\":1}}";

/// Sends each request and checks the statuses. If none is expected, the connection may just end.
fn harmless(rows: Vec<(&str, Vec<u8>, &[u16])>) {
    let site = Site::start();
    for (name, bytes, expected) in rows {
        let statuses = said(&site, &bytes);
        for status in &statuses {
            assert!(expected.contains(status), "{name}: {statuses:?}");
        }
        assert!(!statuses.is_empty() || !expected.contains(&200), "{name}: no answer");
        assert_eq!(site.get("/livez").text(), "ok\n", "after {name}");
    }
    assert_eq!(execute(&site, GOOD.as_bytes()).data()["result"], json!({ "n": 4 }));
}

#[test]
fn malformed_heads_are_refused_and_harm_no_other_client() {
    let line = |text: &str| format!("{text}\r\nhost: localhost\r\n\r\n").into_bytes();
    let many = "a: b\r\n".repeat(200);
    let long = format!("a: {}\r\n", "b".repeat(10_000));
    let huge = format!("a: {}\r\n", "b".repeat(300_000));
    harmless(vec![
        ("nothing", Vec::new(), &[]),
        ("noise", b"\x00\x01\xff\xfe\r\n\r\n".to_vec(), &[400]),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(), &[400]),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), &[400, 404, 405, 505]),
        ("a single line", b"hello\r\n\r\n".to_vec(), &[400]),
        ("no version", line("GET /livez"), &[400]),
        ("an odd version", line("GET /livez HTTP/9.9"), &[400, 505]),
        ("a space too much", line("GET  /livez HTTP/1.1"), &[400]),
        ("a target with a control character", line("GET /li\x01vez HTTP/1.1"), &[400]),
        (
            "a long target",
            line(&format!("GET /{} HTTP/1.1", "x".repeat(70_000))),
            &[400, 404, 414, 431],
        ),
        ("a header without a name", line("GET /livez HTTP/1.1\r\n: x"), &[400]),
        ("a header with a bad name", line("GET /livez HTTP/1.1\r\na b: x"), &[400]),
        ("a folded header", line("GET /livez HTTP/1.1\r\na: x\r\n  y"), &[400]),
        ("many headers", line(&format!("GET /livez HTTP/1.1\r\n{}", many.trim_end())), &[400, 431]),
        ("a long header", line(&format!("GET /livez HTTP/1.1\r\n{}", long.trim_end())), &[200]),
        (
            "a huge header",
            line(&format!("GET /livez HTTP/1.1\r\n{}", huge.trim_end())),
            &[400, 431],
        ),
        ("a cut head", b"GET /livez HTTP/1.1\r\nhost".to_vec(), &[400, 408]),
        (
            "another host",
            b"GET http://evil.example/livez HTTP/1.1\r\nhost: localhost\r\n\r\n".to_vec(),
            &[200],
        ),
        ("an old version", b"GET /livez HTTP/1.0\r\n\r\n".to_vec(), &[200]),
        (
            "two at once",
            [line("GET /livez HTTP/1.1"), line("GET /readyz HTTP/1.1")].concat(),
            &[200],
        ),
    ]);
}

#[test]
fn malformed_framing_is_refused_and_harms_no_other_client() {
    let post = |headers: &str, body: &str| {
        let head = "POST /workflows/add/execute HTTP/1.1\r\nhost: localhost\r\n";
        format!("{head}{headers}\r\n{body}").into_bytes()
    };
    harmless(vec![
        ("two lengths", post("content-length: 17\r\ncontent-length: 5\r\n", GOOD), &[400]),
        ("a signed length", post("content-length: +17\r\n", GOOD), &[400]),
        ("a negative length", post("content-length: -1\r\n", GOOD), &[400]),
        (
            "a length and chunks",
            post("content-length: 17\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n"),
            &[400],
        ),
        ("an unknown coding", post("transfer-encoding: zip\r\n", GOOD), &[400, 501]),
        ("a chunk without a size", post("transfer-encoding: chunked\r\n", "zz\r\n"), &[400]),
        ("a huge chunk", post("transfer-encoding: chunked\r\n", "fffffffffffffffff\r\n"), &[400]),
        ("a body cut short", post("content-length: 50\r\n", GOOD), &[400, 408]),
        ("a chunk cut short", post("transfer-encoding: chunked\r\n", "11\r\n{\"in"), &[400, 408]),
        (
            "a continuation of nothing",
            post("expect: 100-continue\r\ncontent-length: 17\r\n", GOOD),
            &[100, 200],
        ),
    ]);
}

#[test]
fn a_smuggled_request_is_not_served() {
    let site = Site::start();
    let inner = "POST /workflows/add/execute HTTP/1.1\r\nhost: localhost\r\ncontent-length: 17\r\n\r\n{\"input\":{\"n\":1}}";
    let outer = format!(
        "POST /nope HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{inner}",
        inner.len()
    );
    assert_eq!(said(&site, outer.as_bytes()), [404]);
    assert_eq!(site.get("/workflows/add/executions").data()["executions"], json!([]));
}

#[test]
fn bodies_are_limited_in_size() {
    let site = Site::start();
    let text = "Request body is larger than 1048576 bytes";
    let of = |length: usize| {
        let frame = "{\"input\":{\"n\":1},\"x\":\"\"}";
        let filler = "y".repeat(length - frame.len());
        format!("{{\"input\":{{\"n\":1}},\"x\":\"{filler}\"}}").into_bytes()
    };
    assert_eq!(execute(&site, &of(1_048_576)).status, 200);
    // the declared length alone is too large: no body is read
    let mut wire = Wire::open(site.address).unwrap();
    let head = "POST /workflows/add/execute HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1048577\r\n\r\n{";
    wire.write(head.as_bytes()).unwrap();
    let reply = wire.reply().unwrap();
    assert_eq!((reply.status, reply.error().as_str()), (413, text));
    assert_eq!(reply.header("x-error-code"), Some("body_too_large"));
    assert_eq!(reply.header("connection"), Some("close"));
    // chunks do not declare a total
    let mut wire = Wire::open(site.address).unwrap();
    let head = "POST /workflows/add/execute HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = [format!("{:x}\r\n", 1_048_577).as_bytes(), &of(1_048_577), b"\r\n"].concat();
    wire.write(&[head.as_bytes(), &chunk].concat()).unwrap();
    let reply = wire.reply().unwrap();
    assert_eq!((reply.status, reply.error().as_str()), (413, text));
    assert_eq!(site.get("/livez").status, 200);
}

#[test]
fn a_slow_body_is_interrupted() {
    let site = Site::with("server.body_timeout = \"200ms\"");
    for head in
        ["content-length: 50\r\n\r\n{\"in", "transfer-encoding: chunked\r\n\r\n4\r\n{\"in\r\n"]
    {
        let mut wire = Wire::open(site.address).unwrap();
        let request = format!("POST /workflows/add/execute HTTP/1.1\r\nhost: localhost\r\n{head}");
        wire.write(request.as_bytes()).unwrap();
        let reply = wire.reply().unwrap();
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (408, "Request body was not received in time")
        );
        assert_eq!(reply.header("x-error-code"), Some("body_too_slow"));
        assert_eq!(rest(&mut wire).unwrap(), b"", "the connection has ended");
        assert_eq!(site.get("/livez").status, 200);
    }
}

#[test]
fn unread_bodies_are_not_waited_for() {
    let site = Site::start();
    let rows = [
        ("POST /nope", "", 404),
        ("PUT /workflows", "", 405),
        ("GET /livez", "", 200),
        ("POST /workflows/add/execute", "origin: https://evil.example\r\n", 403),
        ("POST /workflows/add/execute", "content-type: image/png\r\n", 415),
    ];
    for (request, headers, status) in rows {
        let mut wire = Wire::open(site.address).unwrap();
        let head = format!("{request} HTTP/1.1\r\nhost: localhost\r\n{headers}");
        let chunk = "transfer-encoding: chunked\r\n\r\n4\r\n{\"in\r\n";
        wire.write(format!("{head}{chunk}").as_bytes()).unwrap();
        assert_eq!(wire.reply().unwrap().status, status, "{request}");
        assert_eq!(rest(&mut wire).unwrap(), b"", "{request}: the connection has ended");
    }
    let mut wire = Wire::open(site.address).unwrap();
    let headers = "host: localhost\r\naccept-encoding: gzip\r\ncontent-length: 2\r\n\r\n";
    wire.write(format!("GET /doc HTTP/1.1\r\n{headers}").as_bytes()).unwrap();
    let reply = wire.reply().unwrap();
    assert_eq!((reply.status, reply.header("content-encoding")), (200, Some("gzip")));
    assert_eq!(reply.header("connection"), Some("close"));
}

#[test]
fn deep_and_broken_json_is_refused() {
    let site = Site::start();
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!("{{\"input\":{{\"n\":1,\"x\":{open}{close}}}}}").into_bytes()
    };
    assert_eq!(execute(&site, &nested(100)).status, 200);
    for depth in [129, 1_000, 500_000] {
        let reply = execute(&site, &nested(depth));
        assert_eq!(reply.status, 400, "{depth}");
        let error = reply.error();
        assert!(error.starts_with("Invalid JSON: recursion limit exceeded"), "{error}");
    }
    let broken: [&[u8]; 6] = [
        b"{\"input\":{\"n\":1,\"x\":\"\xff\"}}",
        b"\xff\xfe{\0}\0",
        b"{\"input\":{\"n\":1,\"x\":\"\xc0\xaf\"}}",
        b"{\"input\":{\"n\":1,\"x\":\"\xed\xa0\x80\"}}",
        b"{\"input\":{\"n\":1,\"x\":\"\n\"}}",
        b"{'input':{'n':1}}",
    ];
    for body in broken {
        let reply = execute(&site, body);
        assert_eq!((reply.status, reply.header("x-error-code")), (400, Some("json_invalid")));
        reply.error();
    }
    assert_eq!(site.get("/livez").status, 200);
}

#[test]
fn unusual_texts_are_returned_unchanged() {
    let site = Site::start();
    let odd = json!({ "who": "\u{0}\u{1}\r\n\u{1b}[31m\u{202e}</script>{{ 7 * 7 }}\u{10ffff}" });
    site.execute("approval", "odd", &odd);
    assert_eq!(site.state("approval", "odd")["input"], odd);
    let site = site.after_a_kill();
    assert_eq!(site.state("approval", "odd")["input"], odd);
    let events = site.events("approval", "odd", 0, 3);
    assert_eq!(events[1].json()["payload"], odd);
}

#[test]
fn a_client_that_sends_garbage_over_a_websocket_is_disconnected() {
    let site = Site::start();
    let head = "GET /ws HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
        sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let masked = |first: u8, length: u8| vec![first, 0x80 | length, 0, 0, 0, 0];
    let rows: [(&str, Vec<u8>, u16); 6] = [
        ("a reserved opcode", masked(0x83, 0), 1002),
        ("reserved bits", masked(0xf1, 0), 1002),
        ("no mask", vec![0x81, 1, b'1'], 1002),
        ("a continuation of nothing", masked(0x80, 0), 1002),
        ("text that is no UTF-8", [masked(0x81, 1), vec![0xff]].concat(), 1007),
        (
            "a huge frame",
            vec![0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
            1009,
        ),
    ];
    for (name, frame, code) in rows {
        let mut wire = Wire::open(site.address).unwrap();
        wire.write(head.as_bytes()).unwrap();
        assert_eq!(wire.head().unwrap().status, 101);
        wire.write(&frame).unwrap();
        let rest = rest(&mut wire).unwrap_or_else(|error| panic!("{name}: {error}"));
        // the last message is a close frame: its length, two bytes of code, a text
        let close = rest.iter().rposition(|byte| *byte == 0x88).map(|at| &rest[at + 2..]);
        let close = close.unwrap_or_else(|| panic!("{name}: no close in {rest:?}"));
        assert_eq!(u16::from_be_bytes([close[0], close[1]]), code, "{name}");
        assert_eq!(site.get("/livez").status, 200, "after {name}");
    }
}
