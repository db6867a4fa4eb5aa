//! Tests of messages, by example.

use greenroom_actors::domain::ids::ExecutionId;

use crate::api::error::Recorded;

use super::*;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn modern(method: &str, more: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{META}{more}}}}}"#)
}

fn headers<'a>(version: &'a str, method: &'a str, name: &'a str) -> Headers<'a> {
    let given = |text: &'a str| Some(text).filter(|text| !text.is_empty());
    Headers { version: given(version), method: given(method), name: given(name) }
}

fn refusal(headers: Headers<'_>, body: &str) -> (u16, i32, String) {
    let Err(refusal) = Message::read(headers, body.as_bytes()) else {
        panic!("{body} was accepted")
    };
    (refusal.status, refusal.code, refusal.message)
}

fn request(headers: Headers<'_>, body: &str) -> Request {
    match Message::read(headers, body.as_bytes()) {
        Ok(Message::Request(request)) => request,
        other => panic!("{body}: {other:?}"),
    }
}

#[test]
fn what_is_no_message_is_refused() {
    let deep = "[".repeat(200);
    let rows = [
        ("{", -32700, "Invalid JSON: EOF while parsing an object at line 1 column 1"),
        (&deep, -32700, "Invalid JSON: recursion limit exceeded at line 1 column 129"),
        ("[]", -32600, "Invalid request: must be one message; batches are not supported"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            -32600,
            "Invalid request: must be one message; batches are not supported",
        ),
        ("5", -32600, "Invalid request: must be one message; batches are not supported"),
        ("{}", -32600, "Invalid request: jsonrpc must be \"2.0\""),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, "Invalid request: method is missing"),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            -32600,
            "Invalid request: method must be a string",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
            -32600,
            "Invalid request: params must be an object",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32600,
            "Invalid request: id must be a string or a whole number",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            -32600,
            "Invalid request: id must be a string or a whole number",
        ),
    ];
    for (body, code, message) in rows {
        let refused = refusal(Headers::default(), body);
        assert_eq!(refused, (400, code, message.to_owned()), "for {body}");
    }
}

#[test]
fn refusals_have_the_id_if_it_can_be_read() {
    for (body, id) in [
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, json!("a")),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, Value::Null),
    ] {
        let refused = Message::read(Headers::default(), body.as_bytes()).unwrap_err();
        assert_eq!(refused.id, id, "{body}");
    }
}

#[test]
fn notifications_and_responses_have_no_answer() {
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
    ] {
        let read = Message::read(Headers::default(), body.as_bytes());
        assert_eq!(read, Ok(Message::Unanswered), "{body}");
    }
}

#[test]
fn headers_have_to_say_what_the_body_says() {
    let call = modern("tools/call", r#","name":"workflow_a""#);
    let list = modern("tools/list", "");
    let coded = "=?base64?d29ya2Zsb3dfYQ==?=";
    for (version, method, name, body) in [
        (MODERN, "tools/call", "workflow_a", &call),
        (MODERN, "tools/call", coded, &call),
        (MODERN, "tools/list", "", &list),
        (MODERN, "tools/list", "anything", &list),
    ] {
        request(headers(version, method, name), body);
    }
    let rows = [
        (
            "2025-11-25",
            "tools/call",
            "workflow_a",
            "MCP-Protocol-Version is not the version in _meta",
        ),
        ("", "tools/call", "workflow_a", "MCP-Protocol-Version is missing"),
        (MODERN, "", "workflow_a", "Mcp-Method is missing"),
        (MODERN, "tools/list", "workflow_a", "Mcp-Method is not the method of the request"),
        (MODERN, "tools/call", "", "Mcp-Name is missing"),
        (MODERN, "tools/call", "workflow_b", "Mcp-Name is not params.name"),
        (MODERN, "tools/call", "=?base64?%%?=", "Mcp-Name is not valid Base64"),
    ];
    for (version, method, name, what) in rows {
        let refused = refusal(headers(version, method, name), &call);
        assert_eq!(refused, (400, -32020, format!("Header mismatch: {what}")));
    }
}

#[test]
fn only_known_versions_are_spoken() {
    let future = modern("tools/list", "").replace("2026-07-28", "2027-01-01");
    let refused =
        Message::read(headers("2027-01-01", "tools/list", ""), future.as_bytes()).unwrap_err();
    assert_eq!((refused.status, refused.code), (400, -32022));
    let data = refused.data.unwrap();
    assert_eq!((&data["supported"], &data["requested"]), (&json!([MODERN]), &json!("2027-01-01")));
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    assert_eq!(refusal(headers("2020-01-01", "", ""), list).1, -32022);
    assert_eq!(refusal(headers(MODERN, "", ""), list).1, -32602, "no _meta");
    let initialize = r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#;
    assert_eq!(refusal(headers(MODERN, "", ""), initialize).1, -32020);
    for version in LEGACY.into_iter().chain([""]) {
        assert!(request(headers(version, "", ""), list).is_legacy(), "{version}");
        assert!(request(headers(version, "", ""), initialize).is_legacy(), "{version}");
    }
}

#[test]
fn requests_say_what_their_client_can_do() {
    let abilities = |capabilities: &str| {
        let whole = format!("\"io.modelcontextprotocol/clientCapabilities\":{capabilities}");
        let empty = "\"io.modelcontextprotocol/clientCapabilities\":{}";
        let body = modern("tools/list", "").replace(empty, &whole);
        Message::read(headers(MODERN, "tools/list", ""), body.as_bytes()).map(|read| match read {
            Message::Request(request) => {
                (request.abilities().shows_forms, request.abilities().follows_tasks)
            }
            Message::Unanswered => panic!("{body}"),
        })
    };
    let tasks = format!(r#"{{"extensions":{{"{TASKS}":{{}}}}}}"#);
    let rows = [
        ("{}", (false, false)),
        (r#"{"elicitation":{}}"#, (true, false)),
        (r#"{"elicitation":{"form":{}}}"#, (true, false)),
        (r#"{"elicitation":{"url":{}}}"#, (false, false)),
        (&tasks, (false, true)),
    ];
    for (capabilities, expected) in rows {
        assert_eq!(abilities(capabilities), Ok(expected), "{capabilities}");
    }
    assert_eq!(abilities("5").unwrap_err().code, -32602);
}

#[test]
fn unknown_methods_are_not_found_where_the_protocol_says_so() {
    let new = request(headers(MODERN, "tools/fly", ""), &modern("tools/fly", ""));
    let old = request(Headers::default(), r#"{"jsonrpc":"2.0","id":7,"method":"tools/fly"}"#);
    assert_eq!((new.unknown_method().status, old.unknown_method().status), (404, 200));
    let body = old.unknown_method().body();
    let expected = json!({ "jsonrpc": "2.0", "id": 7, "error": {
        "code": -32601, "message": "Method not found: tools/fly" } });
    assert_eq!(body, expected);
}

#[test]
fn refusals_of_the_service_say_what_they_are_about() {
    let execution = ExecutionId::trusted("x-1");
    let read = request(Headers::default(), r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
    for (refusal, code, named) in [
        (
            ApiError::Draining { recorded: Some(Recorded::Execution(execution)) },
            -32603,
            Some("x-1"),
        ),
        (ApiError::Draining { recorded: None }, -32603, None),
        (ApiError::KeyReused, -32600, None),
    ] {
        let refused = read.refused(&refusal);
        let unread = Refusal::unread(&refusal);
        assert_eq!((refused.id.clone(), unread.id.clone()), (json!(7), Value::Null));
        assert_eq!(unread, Refusal { id: Value::Null, ..refused.clone() });
        assert_eq!((refused.code, refused.status), (code, refusal.status()), "{refusal}");
        assert_eq!(refused.detail("executionId").as_deref(), named, "{refusal}");
        assert_eq!(refused.detail("code").as_deref(), Some(refusal.code().as_str()));
        let seconds = refusal.retry_after_s().map(|seconds| seconds.to_string());
        assert_eq!(refused.detail("retryAfter"), seconds);
        let about = refused.about("execution", "x-2");
        assert_eq!(about.detail("executionId").as_deref(), named.or(Some("x-2")), "{refusal}");
    }
}
