//! Calls over real sockets.

mod server;

use std::env::VarError;
use std::sync::Arc;

use greenroom_actors::agent::tool::ToolContext;
use greenroom_actors::domain::call::{HttpCall, UnresolvedTemplate, UrlTemplate};
use greenroom_actors::domain::definition::Mapping;
use greenroom_actors::domain::expression::CompiledMapping;
use greenroom_actors::domain::failure::ErrorClass;
use greenroom_actors::domain::trace::{EntityType, TraceOrigin};
use serde_json::{Map, json};

use self::server::{Request, Server, answer};
use super::*;
use crate::adapters::tools::OutgoingHost;

const CANARY: &str = "canary-5e1f\"7";
const BYTES_MAX: usize = 1000;
const REQUEST_BYTES_MAX: usize = 2000;

fn config(method: HttpMethod, url: &str) -> HttpCall {
    HttpCall {
        method,
        url: UrlTemplate::compile(url).unwrap(),
        headers: vec![("authorization".into(), unresolved("Bearer secret:CANARY"))],
        query: Vec::new(),
        body: None,
    }
}

fn unresolved(source: &str) -> UnresolvedTemplate {
    UnresolvedTemplate::compile(source).unwrap()
}

fn calls(hosts: &[&str]) -> HttpCalls {
    let hosts: Vec<OutgoingHost> = hosts.iter().map(|host| host.parse().unwrap()).collect();
    HttpCalls {
        outgoing: Outgoing::new(&hosts).unwrap(),
        secrets: SecretLookup::new(|name| match name {
            "CANARY" => Ok(CANARY.to_owned()),
            _ => Err(VarError::NotPresent),
        }),
        request_bytes_max: REQUEST_BYTES_MAX,
        answer_bytes_max: BYTES_MAX,
    }
}

fn tool(config: HttpCall, hosts: &[&str]) -> HttpTool {
    HttpTool::new("test", config, calls(hosts))
}

fn context() -> ToolContext {
    let context = json!({ "tenant": "t1", "user": { "id": "u1" } });
    let mut made = ToolContext::for_test();
    made.tool_call_id = Arc::from("c1");
    made.context = Arc::new(context.as_object().cloned().unwrap_or_default());
    made.idempotency_key = "g1/c 1\u{7}é".to_owned();
    made
}

async fn call(tool: &HttpTool, args: Value) -> Result<Value, String> {
    let outcome = tool.call(args, &context()).await;
    let shown = format!("{tool:?} {outcome:?}");
    assert!(!shown.contains("canary"), "{shown}");
    outcome.map_err(|failure| failure.message)
}

#[tokio::test]
async fn a_failure_has_a_class_and_a_retry_pause() {
    let busy = b"HTTP/1.1 503 x\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n".to_vec();
    let refused = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/", listener.local_addr().unwrap())
    };
    let missing = Some(ErrorClass::http(404));
    let broken = Some(ErrorClass::of(ErrorKind::Response));
    for (bytes, class, retry_after_ms) in [
        (answer(404, "text/plain", "no"), missing, None),
        (busy, Some(ErrorClass::http(503)), Some(7000)),
        (answer(200, "application/json", "{"), broken, None),
        (Vec::new(), Some(ErrorClass::of(ErrorKind::Connection)), None),
    ] {
        let server = Server::start(move |_| bytes.clone());
        let tool = tool(config(HttpMethod::Post, &server.url), &[]);
        let failure = tool.call(json!({}), &context()).await.unwrap_err();
        assert_eq!((failure.class, failure.retry_after_ms), (class, retry_after_ms), "{failure}");
    }
    let tool = tool(config(HttpMethod::Post, &refused), &[]);
    let failure = tool.call(json!({}), &context()).await.unwrap_err();
    assert_eq!(failure.class, Some(ErrorClass::of(ErrorKind::Connection)), "{failure}");
}

#[tokio::test]
async fn a_call_passes_its_trace_on_unless_the_configuration_sets_another() {
    let server = Server::start(|_| answer(200, "application/json", "{}"));
    let root = Arc::from("clerk");
    let trace = Trace::of("g1", EntityType::Agent, &root, TraceOrigin::New);
    let span = trace.span(&["g1", "turn", "0", "call", "0"]);
    let mut context = context();
    context.trace = Some(trace.below(span));
    let plain = config(HttpMethod::Get, &server.url);
    let mut other = plain.clone();
    other.headers.push(("traceparent".into(), unresolved("own")));
    for config in [plain, other] {
        tool(config, &[]).call(json!({}), &context).await.unwrap();
    }
    let expected = format!("00-{}-{span}-01", trace.id);
    let seen = server.seen();
    let seen: Vec<_> = seen.iter().map(|request| request.header("traceparent")).collect();
    assert_eq!(seen, [Some(expected.as_str()), Some("own")]);
}

#[tokio::test]
async fn a_call_has_the_configured_url_headers_and_body() {
    let server = Server::start(|_| answer(200, "application/json", r#"{"ok":[1]}"#));
    let url = format!("{}/orders/{{{{ args.id }}}}?fixed=1", server.url);
    let mut get = config(HttpMethod::Get, &url);
    let expression = |it: &str| CompiledMapping::compile(&Mapping(json!(it))).unwrap();
    get.query = vec![
        ("tag".into(), expression("args.tags")),
        ("none".into(), expression("args.none | default(none)")),
        ("tenant".into(), expression("context.tenant ~ user.id")),
    ];
    let args = json!({ "id": "a/b", "tags": ["x y", 2] });
    assert_eq!(call(&tool(get, &[]), args.clone()).await, Ok(json!({ "ok": [1] })));

    let post = config(HttpMethod::Post, &url);
    let _ = call(&tool(post, &[]), args.clone()).await;
    let mut delete = config(HttpMethod::Delete, &url);
    delete.body = Some(CompiledMapping::compile(&Mapping(json!({ "n": "1 + 1" }))).unwrap());
    let _ = call(&tool(delete, &[]), args.clone()).await;
    let delete = config(HttpMethod::Delete, &url);
    let _ = call(&tool(delete, &[]), args.clone()).await;

    let seen = server.seen();
    let heads: Vec<_> = seen.iter().map(|it| format!("{} {}", it.method, it.target)).collect();
    assert_eq!(
        heads,
        [
            "GET /orders/a%2Fb?fixed=1&tag=x+y&tag=2&tenant=t1u1",
            "POST /orders/a%2Fb?fixed=1",
            "DELETE /orders/a%2Fb?fixed=1",
            "DELETE /orders/a%2Fb?fixed=1",
        ]
    );
    let bearer = format!("Bearer {CANARY}");
    for request in &seen {
        assert_eq!(request.header("authorization"), Some(bearer.as_str()));
        assert_eq!(request.header("idempotency-key"), Some("g1/c 1%07%C3%A9"));
    }
    let bodies: Vec<_> = seen.iter().map(|request| request.body.clone()).collect();
    assert_eq!(bodies, ["", &args.to_string(), r#"{"n":2}"#, ""]);
    assert_eq!(seen[1].header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn answers_are_read_within_their_limits() {
    let long = "x".repeat(BYTES_MAX);
    let endless = "x".repeat(50 << 20);
    let words = "word ".repeat(200);
    let shown = &words[..499];
    let json = "application/json; charset=utf-8";
    for (status, content_type, body, expected) in [
        (200, json, "[1]", Ok(json!([1]))),
        (200, "application/problem+json", "{}", Ok(json!({}))),
        (200, "text/plain", "{}", Ok(json!("{}"))),
        (204, "text/plain", "", Ok(json!(null))),
        (200, json, "{", Err("the answer is invalid JSON".to_owned())),
        (200, json, &"[".repeat(900), Err("the answer is invalid JSON".to_owned())),
        (200, "text/plain", &long, Ok(json!(long))),
        (200, "text/plain", &endless, Err(format!("the answer is larger than {BYTES_MAX} bytes"))),
        (404, "text/plain", "no such\n  order", Err("HTTP 404: no such order".to_owned())),
        (500, "text/html", &words, Err(format!("HTTP 500: {shown}"))),
        (502, "text/plain", &endless, Err(format!("HTTP 502: {}", &endless[..500]))),
        (304, "text/plain", "", Err("HTTP 304".to_owned())),
    ] {
        let bytes = answer(status, content_type, body);
        let server = Server::start(move |_| bytes.clone());
        let tool = tool(config(HttpMethod::Get, &server.url), &[]);
        assert_eq!(call(&tool, json!({})).await, expected);
    }
    let server = Server::start(|_| b"HTTP/1.1 200 x\r\ncontent-length: 1\r\n\r\n\xff".to_vec());
    let tool = tool(config(HttpMethod::Get, &server.url), &[]);
    assert_eq!(call(&tool, json!({})).await, Err("the answer is not UTF-8".to_owned()));
}

#[tokio::test]
async fn secrets_are_removed_from_answers() {
    let echo = |status, first: &'static str| {
        move |request: &Request| {
            let body = json!({ "you sent": request.header("authorization") }).to_string();
            answer(status, "application/json", &body.replace("canary", &format!("{first}anary")))
        }
    };
    let removed = Ok(json!({ "you sent": "Bearer [secret]" }));
    let refused = Err(r#"HTTP 401: {"you sent":"Bearer [secret]"}"#.to_owned());
    for (status, first, expected) in [
        (200, "c", removed.clone()),
        (401, "c", refused.clone()),
        (200, r"\u0063", removed),
        (401, r"\u0063", refused),
    ] {
        let server = Server::start(echo(status, first));
        let tool = tool(config(HttpMethod::Get, &server.url), &[]);
        assert_eq!(call(&tool, json!({})).await, expected);
    }
}

#[tokio::test]
async fn errors_show_nothing_that_is_shaped_like_a_secret_and_results_do() {
    let text = "bad: password=x1 ghp_0123456789";
    let error = "HTTP 400: bad: password=[redacted] [redacted]";
    for (status, expected) in [(200, Ok(json!(text))), (400, Err(error.to_owned()))] {
        let server = Server::start(move |_| answer(status, "text/plain", text));
        let tool = tool(config(HttpMethod::Get, &server.url), &[]);
        assert_eq!(call(&tool, json!({})).await, expected);
    }
}

#[tokio::test]
async fn a_host_chosen_by_data_must_be_public_or_allowed() {
    let server = Server::start(|_| answer(200, "text/plain", "inside"));
    let port = server.port();
    let refused = |host: &str| Err(format!("calls to {host} are not allowed"));
    let inside = Ok(json!("inside"));
    let local = format!("http://localhost:{port}/");
    let literal = format!("http://127.0.0.1:{port}/");
    let mapped = format!("http://[::ffff:127.0.0.1]:{port}/");
    for (url, hosts, expected) in [
        (local.as_str(), &[][..], refused("localhost")),
        (&literal, &[], refused("127.0.0.1")),
        (&mapped, &[], refused("[::ffff:7f00:1]")),
        (&local, &["localhost"], inside.clone()),
        (&literal, &["127.0.0.1"], inside.clone()),
        (&local, &["127.0.0.1"], inside.clone()),
        (&literal, &["localhost"], refused("127.0.0.1")),
    ] {
        let seen = server.seen().len();
        let tool = tool(config(HttpMethod::Get, "{{ args.url }}"), hosts);
        assert_eq!(call(&tool, json!({ "url": url })).await, expected, "{url} with {hosts:?}");
        let is_called = server.seen().len() > seen;
        assert_eq!(is_called, expected.is_ok(), "{url} with {hosts:?}");
    }
    // a host that the operator wrote is allowed, and does not allow it for data
    let calls = calls(&[]);
    let own = HttpTool::new("own", config(HttpMethod::Get, &local), calls.clone());
    assert_eq!(call(&own, json!({})).await, inside);
    let other = config(HttpMethod::Get, "{{ args.url }}");
    let other = HttpTool::new("other", other, calls.clone());
    assert_eq!(call(&other, json!({ "url": local })).await, refused("localhost"));
}

#[tokio::test]
async fn redirects_are_checked_hop_by_hop() {
    let inner = Server::start(|_| answer(200, "text/plain", "inside"));
    let inner_url = inner.url.clone();
    let secret_url = format!("{inner_url}/?k={CANARY}");
    let outer = Server::start(move |request| {
        let to = match request.target.as_str() {
            "/own" => "/end",
            "/secret" => secret_url.as_str(),
            "/loop" => "/loop",
            "/inside" => inner_url.as_str(),
            "/file" => "file:///etc/passwd",
            "/user" => "http://a:b@127.0.0.1/",
            "/nowhere" => "http://",
            _ => return answer(200, "text/plain", "end"),
        };
        let status = if request.method == "PUT" { 307 } else { 302 };
        let head = format!(
            "HTTP/1.1 {status} x\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
        head.into_bytes()
    });
    let refused = || Err("calls to 127.0.0.1 are not allowed".to_owned());
    let with_secret = || Err("redirected to another origin with a secret of the call".to_owned());
    for (path, hosts, expected) in [
        ("/own", &[][..], Ok(json!("end"))),
        ("/inside", &[], refused()),
        ("/inside", &["127.0.0.1"], Ok(json!("inside"))),
        ("/secret", &["127.0.0.1"], with_secret()),
        ("/loop", &[], Err("redirected more than 5 times".to_owned())),
        ("/nowhere", &[], Err("redirected to an invalid URL".to_owned())),
    ] {
        for method in [HttpMethod::Get, HttpMethod::Post, HttpMethod::Put] {
            let tool = tool(config(method, &format!("{}{path}", outer.url)), hosts);
            assert_eq!(call(&tool, json!({ "a": 1 })).await, expected, "{method:?} {path}");
        }
    }
    for path in ["/file", "/user"] {
        let tool = tool(config(HttpMethod::Get, &format!("{}{path}", outer.url)), &["127.0.0.1"]);
        let error = call(&tool, json!({})).await.unwrap_err();
        assert!(error.starts_with("redirected to a bad url: "), "{error}");
    }
    let seen = inner.seen();
    let requests: Vec<_> = seen.iter().map(|it| (it.method.as_str(), it.body.as_str())).collect();
    assert_eq!(requests, [("GET", ""), ("GET", ""), ("PUT", r#"{"a":1}"#)]);
    for request in &seen {
        assert_eq!(
            (request.header("authorization"), request.header("idempotency-key")),
            (None, None)
        );
    }
    let own = outer.seen().into_iter().filter(|request| request.target == "/end");
    assert!(own.into_iter().all(|request| request.header("authorization").is_some()));
}

fn closed_early(server: &Server) -> String {
    format!("{} closed the connection early", server.url.trim_start_matches("http://"))
}

#[tokio::test]
async fn a_call_that_cannot_be_sent_has_a_reason() {
    let closed = {
        let server = Server::start(|_| Vec::new());
        server.url.clone()
    };
    let cut = Server::start(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab".to_vec());
    for (url, expected) in [
        (cut.url.as_str(), &*closed_early(&cut)),
        (&format!("{}/{{{{ args.id }}}}", cut.url), "url: undefined value in `args.id`"),
        (&closed, closed.trim_start_matches("http://")),
    ] {
        let tool = tool(config(HttpMethod::Get, url), &[]);
        let error = call(&tool, json!({})).await.unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let mut with_header = config(HttpMethod::Get, &cut.url);
    with_header.headers.push(("x-a".into(), unresolved("{{ args.a }}")));
    let error = call(&tool(with_header, &[]), json!({ "a": "b\r\nx: y" })).await.unwrap_err();
    assert_eq!(error, "header x-a: contains a character that no header can hold");
}

#[tokio::test]
async fn every_failure_of_a_server_has_its_text() {
    let refusing = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let early = Server::start(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab".to_vec());
    let silent = Server::start(|_| Vec::new());
    let rubbish = Server::start(|_| b"\x00\xffSSH-2.0\r\n\r\n".to_vec());
    for (url, expected) in [
        (
            format!("http://{refusing}/pay?key=private"),
            format!("{refusing} cannot be reached: it refuses the connection"),
        ),
        (
            "http://unknown.invalid/".to_owned(),
            "unknown.invalid cannot be reached: its name has no address".to_owned(),
        ),
        (early.url.clone(), closed_early(&early)),
        (silent.url.clone(), closed_early(&silent)),
        (rubbish.url.clone(), closed_early(&rubbish)),
    ] {
        let tool = tool(config(HttpMethod::Get, &url), &[]);
        assert_eq!(call(&tool, json!({})).await, Err(expected), "{url}");
    }
}

#[tokio::test]
async fn a_request_is_limited_and_its_secrets_must_exist() {
    let server = Server::start(|_| answer(200, "text/plain", ""));
    let post = tool(config(HttpMethod::Post, &server.url), &[]);
    let overhead = 200;
    let fits = "x".repeat(REQUEST_BYTES_MAX - overhead);
    assert_eq!(call(&post, json!(fits)).await, Ok(json!(null)));
    let large = call(&post, json!("x".repeat(REQUEST_BYTES_MAX))).await;
    assert_eq!(large, Err(format!("the request is larger than {REQUEST_BYTES_MAX} bytes")));
    let mut missing = config(HttpMethod::Get, &server.url);
    missing.headers.push(("x-key".into(), unresolved("secret:NOT_THERE")));
    let refused = call(&tool(missing, &[]), json!({})).await;
    assert_eq!(refused, Err("the environment variable NOT_THERE is not set".to_owned()));
    assert_eq!(server.seen().len(), 1, "refused calls are not sent");
}

#[tokio::test]
async fn a_tool_is_a_function_for_the_runtime() {
    let server = Server::start(|_| answer(200, "text/plain", "hello"));
    let function = tool(config(HttpMethod::Get, &server.url), &[]).into_function();
    let nothing = Value::Object(Map::new());
    assert_eq!(function(nothing, context()).await, Ok(json!("hello")));
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let function = tool(config(HttpMethod::Get, &url), &[]).into_function();
    for begun in [&b""[..], b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab"] {
        let call = tokio::spawn(function(json!({}), context()));
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).await.unwrap();
        stream.write_all(begun).await.unwrap();
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        let mut rest = Vec::new();
        // either the end or a reset
        let _ = stream.read_to_end(&mut rest).await;
    }
}
