//! Clients that never read: they cost little, delay no other client, and are disconnected.

use std::fmt::Write as _;
use std::io::Write as _;
use std::net::TcpStream;

use serde_json::json;
use socket2::{Domain, Socket as RawSocket, Type};

use super::site::CONFIG;
use super::watchers::memory;
use crate::program::Programs;
use support::client::{Events, Wire};
use support::eventually;
use support::server::{Home, Server};

/// Steps of the large execution; its record has `TEXT_BYTES` for each of them.
const STEPS: usize = 300;
const TEXT_BYTES: usize = 10_000;
/// Long timeouts, so that stalled clients are not disconnected on a slow machine.
const PATIENT: &str = "limits.subscriber_stall = \"10m\"\nserver.write_timeout = \"10m\"\n";
const STREAM: &str = "/workflows/large/executions/e/stream";

/// A server with a finished execution that has a record of some megabytes.
fn with_a_large_execution(config: &str) -> (Home, Server) {
    let mut workflow = "[workflows.large]\n".to_owned();
    for step in 0..STEPS {
        let step = format!("{{ id = \"s{step}\", map = {{ text = \"data.text\" }} }}");
        let start = if workflow.ends_with('\n') { "steps = [" } else { ", " };
        write!(workflow, "{start}{step}").unwrap();
    }
    let home = Home::new(&format!("{config}\n{CONFIG}\n{workflow}]\n"));
    let server = Server::start(home.greenroom(&[]));
    let input = json!({ "text": "x".repeat(TEXT_BYTES) });
    let body = json!({ "input": input, "options": { "executionId": "e" } });
    let done = server.post("/workflows/large/execute", &body).data();
    assert_eq!(done["status"], "completed");
    (home, server)
}

/// Sends a request over a connection with small buffers, and reads nothing.
fn ask(server: &Server, path: &str) -> TcpStream {
    let raw = RawSocket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    raw.set_recv_buffer_size(4096).unwrap();
    raw.connect(&server.address.into()).unwrap();
    let mut stream = TcpStream::from(raw);
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    stream
}

#[test]
fn clients_that_never_read_cost_little_and_slow_no_other() {
    const READERS: u32 = 200;
    const EACH_MAX: usize = 200 * 1024;
    let (_home, server) = with_a_large_execution(PATIENT);
    let body = json!({ "input": { "n": 1 } });
    let execute = |times: usize| {
        let mut wire = Wire::open(server.address).unwrap();
        for _ in 0..times {
            let body = body.to_string();
            wire.send("POST", "/workflows/add/execute", &[], Some(body.as_bytes())).unwrap();
            assert_eq!(wire.reply().unwrap().data()["status"], "completed");
        }
    };
    // Warm up first: the memory of the first read and executions does not count.
    let all = server.events("large", "e", 0, u64::MAX);
    execute(100);
    let before = memory(&server);
    let silent: Vec<_> = (0..READERS).map(|_| ask(&server, STREAM)).collect();
    eventually("all of them", || {
        (server.figure("greenroom_sse_subscribers") == Some(f64::from(READERS))).then_some(())
    });
    execute(300);
    let grown = memory(&server).saturating_sub(before);
    let most = READERS as usize * EACH_MAX;
    assert!(grown < most, "{READERS} readers that do not read cost {grown} bytes");
    for stream in silent.into_iter().step_by(50) {
        let mut events = Events::read(Wire::of(stream)).unwrap();
        let read: Vec<_> = std::iter::from_fn(|| events.next().unwrap()).collect();
        assert_eq!(read, all, "a late reader misses nothing");
    }
}

#[test]
fn long_answers_that_are_not_read_cost_about_their_text() {
    const READERS: u32 = 40;
    const WORDS: usize = 150_000;
    const EACH_MAX: usize = 4 * WORDS * "word ".len();
    let talker = format!(
        "[models.talks]\nprovider = \"mock\"\nrules = [{{ reply = \"{{{{ 'word ' * {WORDS} }}}}\" }}]\n\
         [agents.talker]\nmodel = \"talks\"\n"
    );
    let limits = "limits.subscribers_bytes_max = 4000000\n";
    let home = Home::new(&format!("{limits}{PATIENT}{CONFIG}\n{talker}"));
    let server = Server::start(home.greenroom(&[]));
    let ask = || {
        let mut wire = Wire::open(server.address).unwrap();
        wire.send("POST", "/agents/talker/stream", &[], Some(br#"{"input":"talk"}"#)).unwrap();
        wire
    };
    // warm up: the memory of the first answer does not count
    let mut events = Events::read(ask()).unwrap();
    let said: Vec<_> = std::iter::from_fn(|| events.next().unwrap()).collect();
    assert!(said.len() > WORDS && said.last().unwrap().kind() == "finish");
    let before = memory(&server);
    let silent: Vec<_> = (0..READERS).map(|_| ask()).collect();
    eventually("answers that wait", || {
        let unread = server.figure("greenroom_unread_bytes{what=\"streams\"}");
        unread.filter(|bytes| *bytes > f64::from(READERS) * 32_000.0)
    });
    let grown = memory(&server).saturating_sub(before);
    let most = READERS as usize * EACH_MAX;
    assert!(grown < most, "{READERS} answers of which nothing is read cost {grown} bytes");
    drop(silent);
}

#[test]
fn a_subscriber_that_reads_nothing_is_disconnected() {
    let (_home, server) = with_a_large_execution("limits.subscriber_stall = \"300ms\"\n");
    let _silent: Vec<_> = (0..5).map(|_| ask(&server, STREAM)).collect();
    server.says("it read nothing for");
    eventually("the end of their streams", || {
        (server.figure("greenroom_sse_subscribers") == Some(0.0)).then_some(())
    });
}

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    let config = "server.write_timeout = \"300ms\"\nserver.keep_alive = \"10m\"\n";
    let (_home, server) = with_a_large_execution(config);
    let state = "/workflows/large/executions/e/state";
    let paths = [state, "/doc", "/ui/swagger-ui-bundle.js", STREAM];
    let _silent: Vec<_> = paths.iter().map(|path| ask(&server, path)).collect();
    // This request's own connection.
    eventually("the end of their connections", || {
        (server.figure("greenroom_http_connections") == Some(1.0)).then_some(())
    });
}

#[test]
fn a_reading_client_misses_nothing_with_the_smallest_buffers() {
    let (_home, server) = with_a_large_execution("limits.subscribers_bytes_max = 1000\n");
    let read = server.events("large", "e", 0, u64::MAX);
    assert_eq!(read.len(), 2 * STEPS + 3);
}

#[test]
fn unread_answers_leave_room_for_streams() {
    // More than the state takes, but less than the state and a part of a generation together.
    let limits = format!("limits.subscribers_bytes_max = 3300000\n{PATIENT}");
    let (_home, server) = with_a_large_execution(&limits);
    let state = "/workflows/large/executions/e/state";
    let _silent = ask(&server, state);
    let unread = |what: &str| server.figure(&format!("greenroom_unread_bytes{{what=\"{what}\"}}"));
    eventually("an answer that waits", || unread("answers").filter(|bytes| *bytes > 3e6));
    let refused = server.get(state);
    assert_eq!(refused.header("x-error-code"), Some("at_capacity"), "{}", refused.text());
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    server.says("refusing new large answers");
    assert_eq!(server.figure("greenroom_refused_total{what=\"bytes\"}"), Some(1.0));

    let read = server.events("large", "e", 0, u64::MAX);
    assert_eq!(read.len(), 2 * STEPS + 3);
    let words = "word ".repeat(200_000);
    let mut wire = Wire::open(server.address).unwrap();
    let body = json!({ "input": words }).to_string();
    wire.send("POST", "/agents/assistant/stream", &[], Some(body.as_bytes())).unwrap();
    let mut events = Events::read(wire).unwrap();
    let said: Vec<_> = std::iter::from_fn(|| events.next().unwrap()).collect();
    assert_eq!(said.last().unwrap().kind(), "finish");
    eventually("nothing that waits for a stream", || unread("streams").filter(|it| *it == 0.0));
}

#[test]
fn unread_streams_leave_room_for_others() {
    const SILENT: u32 = 60;
    let limits = format!("limits.subscribers_bytes_max = 4000000\n{PATIENT}");
    let (_home, server) = with_a_large_execution(&limits);
    let all = server.events("large", "e", 0, u64::MAX);
    let silent: Vec<_> = (0..SILENT).map(|_| ask(&server, STREAM)).collect();
    eventually("all of them", || {
        (server.figure("greenroom_sse_subscribers") == Some(f64::from(SILENT))).then_some(())
    });
    assert_eq!(server.events("large", "e", 0, u64::MAX), all, "a reader receives everything");
    for stream in silent.into_iter().step_by(20) {
        let mut events = Events::read(Wire::of(stream)).unwrap();
        let read: Vec<_> = std::iter::from_fn(|| events.next().unwrap()).collect();
        assert_eq!(read, all, "a late reader misses nothing");
    }
}

#[test]
fn bodies_that_arrive_are_limited_together() {
    let config = format!("limits.requests_bytes_max = 200000\n{PATIENT}{CONFIG}");
    let home = Home::new(&config);
    let server = Server::start(home.greenroom(&[]));
    let held = || server.figure("greenroom_request_body_bytes");
    let input = json!({ "who": "x".repeat(100_000) });
    let waits = server.post("/workflows/approval/execute", &json!({ "input": input })).data();
    assert_eq!((waits["status"].as_str(), held()), (Some("suspended"), Some(0.0)));
    let begin = |path: &str| {
        let mut wire = Wire::open(server.address).unwrap();
        let head = "host: localhost\r\ncontent-length: 1000000\r\n\r\n";
        let part = "1".repeat(100_000);
        wire.write(format!("POST {path} HTTP/1.1\r\n{head}{part}").as_bytes()).unwrap();
        wire
    };
    let silent = [begin("/workflows/approval/execute"), begin("/tools/none/execute")];
    eventually("bodies that arrive", || held().filter(|bytes| *bytes > 134_000.0));
    let refused = begin("/agents/assistant/text").reply().unwrap();
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    server.says("refusing new request bodies");
    let small = json!({ "input": { "who": "ann" } });
    assert_eq!(server.post("/workflows/approval/execute", &small).status, 200);
    drop(silent);
    eventually("nothing held", || held().filter(|bytes| *bytes == 0.0));
}
