//! Many sockets at once: those that read get everything, and the others cost little memory.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use socket2::{Domain, Socket as RawSocket, Type};
use tokio_tungstenite::tungstenite::client;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::sockets::Socket;
use support::PATIENCE;
use support::client::{Event, Wire};
use support::server::{Home, Server};

const EXECUTIONS: usize = 2_000;
const CALLERS: usize = 8;
/// Sockets that never read.
const IDLE: usize = 200;
/// Minimum number of events per execution: three steps and the root.
const EVENTS_EACH: usize = 8;
/// Maximum memory of one socket, its share of the common queue included.
const BYTES_EACH_MAX: usize = 64 * 1024;

/// Selects the executions of these tests.
const OF_CHAINS: &str = "/ws/observability?entityId=chain";

/// Opens a socket with minimal buffers.
fn open(server: &Server) -> Socket {
    open_at(server, OF_CHAINS)
}

fn open_at(server: &Server, path: &str) -> Socket {
    let raw = RawSocket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    raw.set_recv_buffer_size(4096).unwrap();
    raw.connect(&server.address.into()).unwrap();
    let stream = TcpStream::from(raw);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("ws://{}{path}", server.address);
    let mut socket = Socket(client(request.into_client_request().unwrap(), stream).unwrap().0);
    assert_eq!(socket.next()["type"], "CONNECTION_SUCCESS");
    socket
}

/// Executes `chain` from several callers, once for each number, which is the execution's id.
fn execute(server: &Server, numbers: Range<usize>) {
    let next = AtomicUsize::new(numbers.start);
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let mut wire = Wire::open(server.address).unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= numbers.end {
                        return;
                    }
                    let id = number.to_string();
                    let body = json!({ "input": { "n": 0 }, "options": { "executionId": id } });
                    let path = "/workflows/chain/execute";
                    wire.send("POST", path, &[], Some(body.to_string().as_bytes())).unwrap();
                    assert_eq!(wire.reply().unwrap().data()["status"], "completed");
                }
            });
        }
    });
}

/// Name of the step that began or ended; `None` for the execution.
type Step = (&'static str, String);

/// Returns the next begin or end of a step. A busy machine has steps that block their thread, which is
/// logged between them.
fn next_step(socket: &mut Socket) -> (String, Step) {
    loop {
        let frame = socket.next();
        if frame["type"] != "OBSERVABILITY_LOG" {
            return step_of_span(&frame);
        }
    }
}

fn step_of_span(frame: &Value) -> (String, Step) {
    assert_eq!(frame["type"], "OBSERVABILITY_EVENT", "{frame}");
    let phase = if frame["data"]["type"] == "span:start" { "start" } else { "end" };
    let attributes = &frame["data"]["span"]["attributes"];
    let execution = attributes["workflow.execution.id"].as_str().unwrap();
    let step = attributes["workflow.step.id"].as_str().unwrap_or_default();
    (execution.to_owned(), (phase, step.to_owned()))
}

fn step_of_event(event: &Event) -> Option<Step> {
    let step = || event.json()["from"].as_str().unwrap().to_owned();
    match event.kind().as_str() {
        "workflow-start" => Some(("start", String::new())),
        "step-start" => Some(("start", step())),
        "step-complete" => Some(("end", step())),
        "workflow-complete" => Some(("end", String::new())),
        "workflow-result" => None,
        other => panic!("{other}"),
    }
}

/// Returns the events of an execution in its stream.
fn streamed(server: &Server, execution: &str) -> Vec<Step> {
    let events = server.events("chain", execution, 0, u64::MAX);
    events.iter().filter_map(step_of_event).collect()
}

#[test]
fn a_watcher_sees_what_the_stream_shows_in_its_order() {
    let home = Home::new("");
    let server = Server::start(home.test_server());
    let _idle: Vec<_> = (0..20).map(|_| open(&server)).collect();
    let mut socket = open(&server);
    let watcher = std::thread::spawn(move || {
        let mut seen: BTreeMap<String, Vec<Step>> = BTreeMap::new();
        let mut ended = 0;
        while ended < EXECUTIONS {
            let (execution, step) = next_step(&mut socket);
            ended += usize::from(step == ("end", String::new()));
            seen.entry(execution).or_default().push(step);
        }
        seen
    });
    execute(&server, 0..EXECUTIONS);
    let seen = watcher.join().unwrap();
    assert_eq!(seen.len(), EXECUTIONS);
    for (execution, steps) in seen {
        assert_eq!(steps, streamed(&server, &execution), "{execution}");
        assert_eq!(steps.len(), EVENTS_EACH);
        assert_eq!(server.state("chain", &execution)["status"], "completed");
    }
}

/// Returns the resident memory of the server, in bytes.
pub(super) fn memory(server: &Server) -> usize {
    let path = format!("/proc/{}/status", server.child.id());
    let status = std::fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn sockets_that_never_read_cost_little_and_get_the_number_of_missed_events() {
    let limits = "limits.subscriber_queue = 1000\nlimits.subscriber_stall = \"10m\"\n";
    let home = Home::new(limits);
    let server = Server::start(home.test_server());
    // memory of the first executions is not counted
    execute(&server, 0..200);
    let mut idle: Vec<_> = (0..IDLE).map(|_| open(&server)).collect();
    let before = memory(&server);
    let executions = 10_000 / EVENTS_EACH;
    execute(&server, 200..200 + executions);
    let grown = memory(&server).saturating_sub(before);
    assert!(grown < IDLE * BYTES_EACH_MAX, "{IDLE} sockets that do not read cost {grown} bytes");
    for socket in idle.iter_mut().take(5) {
        let (mut heard, mut missed) = (0, 0);
        while heard + missed < executions * EVENTS_EACH {
            let frame = socket.next();
            match frame["type"].as_str().unwrap() {
                "DROPPED" => missed += usize::try_from(frame["count"].as_u64().unwrap()).unwrap(),
                _ => heard += 1,
            }
        }
        assert_eq!(heard + missed, executions * EVENTS_EACH);
        assert!(missed > 0 && heard > 0, "{heard} received, {missed} missed");
    }
}

#[test]
fn recent_events_are_replayed_on_request() {
    let home = Home::new("");
    let server = Server::start(home.test_server());
    execute(&server, 0..30);
    let told = |query: &str, count: usize| {
        let mut socket = open_at(&server, &format!("{OF_CHAINS}&{query}"));
        let told: Vec<_> = (0..count).map(|_| next_step(&mut socket)).collect();
        socket.say("{\"type\":\"PING\"}");
        assert_eq!(socket.next()["type"], "PONG", "{query}: nothing else");
        told
    };
    for query in
        ["since=2020-01-01T00:00:00Z&limit=240", "limit=1000", "limit=240&entityType=workflow"]
    {
        let mut by_execution: BTreeMap<String, Vec<Step>> = BTreeMap::new();
        for (execution, step) in told(query, 30 * EVENTS_EACH) {
            by_execution.entry(execution).or_default().push(step);
        }
        for (execution, steps) in by_execution {
            assert_eq!(steps, streamed(&server, &execution), "{query} {execution}");
        }
    }
    assert_eq!(told("limit=5", 5).len(), 5);
    for query in [
        "since=2999-01-01T00:00:00Z",
        "since=2999-01-01",
        "limit=9&entityType=agent",
        "entityType=workflow",
    ] {
        assert!(told(query, 0).is_empty());
    }
    for query in ["since=now", "limit=0", "limit=1001", "limit="] {
        assert_eq!(server.get(&format!("/ws/observability?{query}")).status, 400, "{query}");
    }
}

#[test]
fn recorded_and_live_events_join_without_gaps_or_repeats() {
    let home = Home::new("");
    let server = Server::start(home.test_server());
    // all of them fit into the requested replay, whenever the socket is opened
    let executions = 100;
    let read_all = |begun: usize| {
        server.state_when("chain", &begun.to_string(), |_| true);
        let mut socket = open_at(&server, &format!("{OF_CHAINS}&limit=1000"));
        let mut seen: BTreeMap<String, Vec<Step>> = BTreeMap::new();
        for _ in 0..executions * EVENTS_EACH {
            let (execution, step) = next_step(&mut socket);
            seen.entry(execution).or_default().push(step);
        }
        seen
    };
    let seen: Vec<_> = std::thread::scope(|scope| {
        let readers = [0, 20, 40, 60, 80].map(|begun| {
            scope.spawn({
                let read_all = &read_all;
                move || read_all(begun)
            })
        });
        execute(&server, 0..executions);
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    for (execution, steps) in seen.into_iter().flatten() {
        assert_eq!(steps, streamed(&server, &execution), "{execution}");
    }
}

#[test]
fn a_socket_that_never_reads_is_disconnected() {
    let limits = "limits.subscriber_queue = 100\nlimits.subscriber_stall = \"400ms\"\n";
    let home = Home::new(limits);
    let server = Server::start(home.test_server());
    let mut socket = open(&server);
    execute(&server, 0..500);
    server.says("they read nothing for");
    let ended = std::iter::from_fn(|| socket.0.read().ok()).count();
    assert!(ended < 500 * EVENTS_EACH, "it received everything: {ended}");
}
