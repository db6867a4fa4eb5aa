//! Steps that leave the process (HTTP calls, programs, tools), successful and failing.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::program::Programs;
use support::client::Wire;
use support::listener::{Request, Watched, hold, listen};
use support::server::{Home, Server};
use support::store::Store;

const ANSWER_BYTES_MAX: usize = 5000;
const REQUEST_BYTES_MAX: usize = 3000;
const CANARY: &str = "canary-8e1f47a2";

/// A server whose paths name its behaviour.
struct Upstream {
    address: SocketAddr,
    seen: Arc<Watched<Vec<Request>>>,
    /// Bytes of `/large` that the client accepted.
    taken: Arc<Watched<Option<usize>>>,
}

impl Upstream {
    fn start() -> Self {
        let seen = Arc::new(Watched::<Vec<Request>>::default());
        let taken = Arc::new(Watched::<Option<usize>>::default());
        let (noted, told) = (Arc::clone(&seen), Arc::clone(&taken));
        let address = listen(move |mut stream| {
            let Some(request) = Request::read(&mut stream) else { return };
            noted.change(|seen| seen.push(request.clone()));
            let path = request.path.split('?').next().unwrap_or_default();
            let json = |body: &str| answer("200 OK", "application/json", body);
            let bytes = match path {
                "/text" => answer("200 OK", "text/plain", "a text"),
                "/empty" => answer("204 No Content", "text/plain", ""),
                "/echo" => json(&json!({ "you": request.header("authorization") }).to_string()),
                "/500" => answer("500 Oops", "text/plain", "no\n  luck"),
                "/404" => answer("404 Not Found", "text/plain", ""),
                "/loop" => redirect("/loop"),
                "/private" => {
                    let port = stream.get_ref().local_addr().unwrap().port();
                    redirect(&format!("http://localhost:{port}/text"))
                }
                "/broken" => json("{\"a\":"),
                "/cut" => b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab".to_vec(),
                "/large" => {
                    let sent = flood(stream.get_mut());
                    told.change(|taken| *taken = Some(sent));
                    return;
                }
                "/hang" => return hold(&mut stream),
                "/slow" => {
                    let _ = stream
                        .get_mut()
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\na");
                    return hold(&mut stream);
                }
                _ => json(&json!({ "path": path }).to_string()),
            };
            let _ = stream.get_mut().write_all(&bytes);
        });
        Self { address, seen, taken }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn answer(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: {content_type}");
    format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

fn redirect(location: &str) -> Vec<u8> {
    let head = "HTTP/1.1 302 x\r\nconnection: close\r\ncontent-length: 0\r\nlocation: ";
    format!("{head}{location}\r\n\r\n").into_bytes()
}

/// Writes a body of 100 MB until the client disconnects.
fn flood(stream: &mut std::net::TcpStream) -> usize {
    let length = 100 << 20;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    let portion = [b'x'; 1 << 16];
    let mut sent = 0;
    if stream.write_all(head.as_bytes()).is_ok() {
        while sent < length && stream.write_all(&portion).is_ok() {
            sent += portion.len();
        }
    }
    sent
}

/// Returns a workflow of one step.
fn workflow(name: &str, step: &str) -> String {
    format!("[[workflows.{name}.steps]]\nid = \"call\"\n{step}\n")
}

fn get(url: &str) -> String {
    format!("http = {{ url = \"{url}\" }}")
}

fn script(text: &str) -> String {
    format!("command = {{ argv = [\"/bin/sh\", \"-c\", '''{text}'''] }}")
}

fn limits() -> String {
    format!(
        "[limits]\nhttp_answer_bytes_max = {ANSWER_BYTES_MAX}\n\
         http_request_bytes_max = {REQUEST_BYTES_MAX}\ncommand_output_bytes_max = 2000\n"
    )
}

fn begin(server: &Server, workflow: &str, id: &str, input: &Value) -> Wire {
    let mut wire = Wire::open(server.address).unwrap();
    let body = json!({ "input": input, "options": { "executionId": id } }).to_string();
    let path = format!("/workflows/{workflow}/execute");
    wire.send("POST", &path, &[("content-type", "application/json")], Some(body.as_bytes()))
        .unwrap();
    wire
}

fn execute(server: &Server, workflow: &str, id: &str, input: &Value) -> Value {
    begin(server, workflow, id, input).reply().unwrap();
    server.state(workflow, id)
}

fn message(state: &Value) -> &str {
    assert_eq!(state["status"], "error", "{state}");
    assert_eq!(state["error"]["stepId"], "call", "{state}");
    state["error"]["message"].as_str().unwrap()
}

#[test]
fn a_call_has_its_values_and_hides_its_secrets() {
    let upstream = Upstream::start();
    let url = upstream.url("/orders/{{ input.id }}");
    let headers = "{ authorization = \"Bearer secret:LEDGER_TOKEN\", x-a = \"{{ data.n }}\" }";
    let post = format!(
        "http = {{ method = \"POST\", url = \"{url}\", headers = {headers}, \
         query = {{ n = \"data.n\", none = \"none\" }}, body = {{ id = \"input.id\" }} }}"
    );
    let echo = format!("http = {{ url = \"{}\", headers = {headers} }}", upstream.url("/echo"));
    let config = [limits(), workflow("book", &post), workflow("echo", &echo)].concat();
    let home = Home::on(Store::Sqlite, &config);
    let mut command = home.greenroom(&["--log", "debug"]);
    command.env("LEDGER_TOKEN", CANARY);
    let server = Server::start(command);
    let input = json!({ "id": "a/b c", "n": 7 });
    let booked = execute(&server, "book", "b1", &input);
    assert_eq!(booked["result"], json!({ "path": "/orders/a%2Fb%20c" }), "{booked}");
    let echoed = execute(&server, "echo", "b2", &input);
    assert_eq!(echoed["result"], json!({ "you": "Bearer [secret]" }));
    let seen = upstream.seen.lock().clone();
    assert_eq!(seen[0].path, "/orders/a%2Fb%20c?n=7");
    assert_eq!(seen[0].body, br#"{"id":"a/b c"}"#);
    let bearer = format!("Bearer {CANARY}");
    for (name, expected) in [
        ("authorization", bearer.as_str()),
        ("x-a", "7"),
        ("idempotency-key", "b1/call"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(seen[0].header(name), Some(expected), "{name}");
    }
    let trace = server.get("/workflows/book/executions/b1/state");
    let trace_id = trace.header("x-trace-id").unwrap();
    let parent = seen[0].header("traceparent").unwrap();
    assert_eq!(parent.split('-').nth(1), Some(trace_id));
    for path in [
        "/workflows/book",
        "/workflows/book/executions/b1/state",
        "/workflows/echo/executions/b2/state",
        "/doc",
        &format!("/observability/traces/{trace_id}"),
    ] {
        let told = server.get(path).text();
        assert!(!told.contains(CANARY) && !told.contains("LEDGER_TOKEN"), "{path}: {told}");
    }
    let detail = server.get("/workflows/book").text();
    assert!(!detail.contains(&upstream.address.to_string()), "{detail}");
    let store = std::fs::read(home.path("store.db")).unwrap();
    let stored = String::from_utf8_lossy(&store);
    assert!(!stored.contains(CANARY));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_kind_of_failure_has_its_error_and_affects_no_other() {
    let upstream = Upstream::start();
    let refusing = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let url = |path: &str| get(&upstream.url(path));
    let timed = |call: &str| format!("{call}\ntimeout = \"100ms\"");
    let checked = |call: &str| format!("{call}\noutput_schema = {{ type = \"integer\" }}");
    let huge = format!("http = {{ method = \"POST\", url = \"{}\" }}", upstream.url("/ok"));
    let data_host = "http = { url = \"{{ input.url }}\" }";
    let cases = [
        ("h500", url("/500"), "HTTP 500: no luck"),
        ("h404", url("/404"), "HTTP 404"),
        ("loop", url("/loop"), "redirected more than 5 times"),
        ("private", url("/private"), "calls to localhost are not allowed"),
        ("guarded", data_host.to_owned(), "calls to 127.0.0.1 are not allowed"),
        ("large", url("/large"), "the answer is larger than 5000 bytes"),
        ("broken", url("/broken"), "the answer is invalid JSON"),
        ("cut", url("/cut"), " closed the connection early"),
        ("hang", timed(&url("/hang")), "timed out after 100 ms"),
        ("slow", timed(&url("/slow")), "timed out after 100 ms"),
        (
            "nobody",
            get("http://nobody.invalid/"),
            "nobody.invalid cannot be reached: its name has no address",
        ),
        (
            "refusing",
            get(&format!("http://{refusing}/")),
            " cannot be reached: it refuses the connection",
        ),
        ("huge", huge, "the request is larger than 3000 bytes"),
        ("wrong", checked(&url("/text")), "output validation failed: \"a text\" is not of type"),
        (
            "absent",
            "command = { argv = [\"/nowhere/x\"] }".to_owned(),
            "the program x does not exist",
        ),
        ("sleeps", timed(&script("sleep 1000")), "timed out after 100 ms"),
        ("floods", script("yes"), "printed more than 2000 bytes"),
        (
            "complains",
            script("yes no | head -c 100000 >&2; exit 1"),
            "the program exited with code 1: no no",
        ),
        ("one", script("echo bad luck >&2; exit 1"), "the program exited with code 1: bad luck"),
        ("killed", script("kill -9 $$"), "the program was ended by signal 9"),
        ("words", script("echo words"), "the program's output is not JSON"),
        ("shape", checked(&script("echo true")), "output validation failed: true is not of type"),
    ];
    let mut config = limits();
    for (name, step, _) in &cases {
        config += &workflow(name, step);
    }
    config += &workflow("ok", &url("/ok"));
    config += &workflow("text", &url("/text"));
    config += &workflow("empty", &url("/empty"));
    config += &workflow("cat", "command = { argv = [\"cat\"] }");
    let home = Home::new(&config);
    let server = Server::start(home.greenroom(&[]));
    let input = json!({ "url": upstream.url("/ok"), "text": "x".repeat(REQUEST_BYTES_MAX) });
    // all concurrently, with successful executions in between
    let begun: Vec<_> = cases
        .iter()
        .map(|(name, ..)| {
            let wire = begin(&server, name, name, &input);
            assert_eq!(
                execute(&server, "ok", &format!("ok-{name}"), &json!({}))["status"],
                "completed"
            );
            wire
        })
        .collect();
    for ((name, _, expected), mut wire) in cases.iter().zip(begun) {
        assert_eq!(wire.reply().unwrap().status, 500, "{name}");
        let state = server.state(name, name);
        let message = message(&state);
        assert!(message.contains(expected), "{name}: {message}");
    }
    for (name, expected) in
        [("text", json!("a text")), ("empty", json!(null)), ("cat", json!({ "n": 1 }))]
    {
        assert_eq!(
            execute(&server, name, &format!("fine-{name}"), &json!({ "n": 1 }))["result"],
            expected,
            "{name}"
        );
    }
    // no more was read than the limit and what the sockets buffer
    let taken = upstream.taken.wait(Option::is_some).unwrap();
    assert!(taken < 50 << 20, "{taken} bytes of 100 MB were taken");
}

#[test]
fn a_call_without_a_timeout_uses_the_default_limit() {
    let upstream = Upstream::start();
    let config = [
        "[limits]\ncall_timeout = \"100ms\"\n".to_owned(),
        workflow("server", &get(&upstream.url("/hang"))),
        workflow("program", &script("sleep 1000")),
    ];
    let home = Home::new(&config.concat());
    let server = Server::start(home.greenroom(&[]));
    for name in ["server", "program"] {
        assert_eq!(message(&execute(&server, name, name, &json!({}))), "timed out after 100 ms");
    }
}

#[test]
fn a_tool_can_be_the_body_of_a_step() {
    let tool = "[tools.shout]\nkind = \"command\"\ndescription = \"d\"\n\
                parameters = { type = \"object\", required = [\"text\"], \
                properties = { text = { type = \"string\" } } }\n\
                argv = [\"/bin/sh\", \"-c\", \"cat; test $GREENROOM_IDEMPOTENCY_KEY = t1/call\"]\n";
    let config = [
        tool.to_owned(),
        workflow("named", "tool = \"shout\"\nargs = { text = \"input.word\" }"),
        workflow("plain", "tool = \"shout\""),
    ];
    let home = Home::new(&config.concat());
    let server = Server::start(home.greenroom(&[]));
    let named = execute(&server, "named", "t1", &json!({ "word": "a" }));
    assert_eq!(named["result"], json!({ "text": "a" }), "{named}");
    let failed = execute(&server, "named", "t2", &json!({ "word": "a" }));
    assert_eq!(message(&failed), "the program exited with code 1");
    let wrong = execute(&server, "plain", "t3", &json!({ "word": "a" }));
    let told = message(&wrong);
    assert!(told.starts_with("invalid arguments: "), "{told}");
    let direct = server.post("/tools/shout/execute", &json!({ "input": { "text": "b" } }));
    assert_eq!(direct.status, 500, "its key is another");
}

#[test]
fn an_interrupted_call_is_repeated_with_its_idempotency_key() {
    let seen = Arc::new(Watched::<Vec<Request>>::default());
    let noted = Arc::clone(&seen);
    let address = listen(move |mut stream| {
        let Some(request) = Request::read(&mut stream) else { return };
        let count = noted.change(|seen| {
            seen.push(request);
            seen.len()
        });
        if count == 1 {
            return hold(&mut stream);
        }
        let _ = stream.get_mut().write_all(&answer("200 OK", "application/json", "{\"n\":1}"));
    });
    // the first attempt runs until the server is killed
    let text = "echo $GREENROOM_ATTEMPT $GREENROOM_IDEMPOTENCY_KEY >>ledger; \
                if [ $GREENROOM_ATTEMPT = 1 ]; then while kill -0 $PPID; do sleep 0.05; done; fi; \
                echo 1";
    let config = [
        workflow("server", &format!("http = {{ method = \"PUT\", url = \"http://{address}/\" }}")),
        workflow("program", &script(text)),
    ];
    let home = Home::new(&config.concat());
    let server = Server::start(home.greenroom(&[]));
    drop(begin(&server, "server", "k1", &json!({})));
    drop(begin(&server, "program", "k2", &json!({})));
    assert_eq!(seen.wait(|seen| !seen.is_empty()).len(), 1);
    let ledger = || std::fs::read_to_string(home.path("ledger")).unwrap_or_default();
    support::eventually("the program's line", || ledger().ends_with('\n').then_some(()));
    server.kill();
    let server = Server::start(home.greenroom(&[]));
    let is_over = |state: &Value| state["status"] == "completed";
    assert_eq!(server.state_when("server", "k1", is_over)["result"], json!({ "n": 1 }));
    assert_eq!(server.state_when("program", "k2", is_over)["result"], json!(1));
    let keys: Vec<_> =
        seen.lock().iter().map(|it| it.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!(keys, [Some("k1/call".to_owned()), Some("k1/call".to_owned())]);
    assert_eq!(ledger(), "1 k2/call\n2 k2/call\n");
}

#[test]
fn a_missing_secret_prevents_the_start() {
    let step = "http = { url = \"https://a.example\", headers = { a = \"secret:NO_SUCH_KEY\" } }";
    let home = Home::new(&workflow("w", step));
    let output = home.run(home.greenroom(&[]));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    let expected = "workflows.w.steps.call.http.headers.a: the environment variable NO_SUCH_KEY is \
                    not set";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn a_closed_keep_alive_connection_costs_no_attempt() {
    let seen = Arc::new(Watched::<Vec<Request>>::default());
    let noted = Arc::clone(&seen);
    let address = listen(move |mut stream| {
        // one answer per connection; a second request on it is read but not answered
        for answer in [Some("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7"), None] {
            let Some(request) = Request::read(&mut stream) else { return };
            noted.change(|seen| seen.push(request));
            let Some(answer) = answer else { return };
            let _ = stream.get_mut().write_all(answer.as_bytes());
        }
    });
    let call = format!("http = {{ method = \"POST\", url = \"http://{address}/\" }}");
    let home = Home::new(&workflow("pay", &call));
    let server = Server::start(home.greenroom(&[]));
    for id in ["p1", "p2", "p3"] {
        assert_eq!(execute(&server, "pay", id, &json!({}))["result"], "7", "{id}");
    }
    let seen = seen.lock();
    let keys: Vec<_> = seen.iter().map(|request| request.header("idempotency-key")).collect();
    let (p1, p2, p3) = (Some("p1/call"), Some("p2/call"), Some("p3/call"));
    assert_eq!(keys, [p1, p2, p2, p3], "a connection that was made for a repetition is not kept");
}
