//! Several servers over one database.

mod nodes;
mod versions;

use std::collections::BTreeSet;
use std::net::TcpStream;

use serde_json::{Value, json};
use support::client::{Events, Reply, Wire};
use support::postgres::Server as Database;
use support::server::{Home, Server};
use support::{PATIENCE, eventually};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use super::program::Programs as _;

/// Asks once, and ends with the answer.
const WORKFLOW: &str = "
[[workflows.asking.steps]]
id = \"ask\"
map = \"resume\"
suspend = { deadline = \"1h\" }

[[workflows.napping.steps]]
id = \"nap\"
type = \"andSleep\"
duration = \"4s\"

[[workflows.dozing.steps]]
id = \"doze\"
type = \"andSleep\"
duration = \"1h\"
";

/// Lease with which the slots of a killed server are soon taken over.
const SHORT: &str = "1200ms";

/// Lease that no busy machine makes a server lose. One that is stopped hands its slots over at once.
const LONG: &str = "30s";

/// Returns a folder with the configuration of a member by this name.
fn home(url: &str, name: &str, lease: &str) -> Home {
    let home = Home::new("");
    let config = format!(
        "[server]\nport = 0\nname = \"{name}\"\nshutdown_grace = \"2s\"\n\
         [store]\nurl = \"{url}\"\n\
         [cluster]\nlisten = \"127.0.0.1:0\"\nlease = \"{lease}\"\n{WORKFLOW}"
    );
    home.write("config.toml", &config);
    home
}

fn start(home: &Home) -> Server {
    Server::start(home.greenroom(&["serve"]))
}

/// Returns members of a new cluster, with their folders.
pub(super) fn members<const N: usize>(names: [&str; N]) -> Option<[(Home, Server); N]> {
    members_leasing(SHORT, names)
}

fn members_leasing<const N: usize>(lease: &str, names: [&str; N]) -> Option<[(Home, Server); N]> {
    let url = Database::shared()?.fresh_url();
    Some(names.map(|name| {
        let home = home(&url, name, lease);
        let server = start(&home);
        (home, server)
    }))
}

fn execute(server: &Server, workflow: &str, id: &str) {
    let reply = execute_with_key(server, workflow, id);
    assert_eq!(reply.status, 200, "{}", reply.text());
}

fn resume(server: &Server, id: &str) -> Reply {
    let path = format!("/workflows/asking/executions/{id}/resume");
    server.post(&path, &json!({ "resumeData": "yes" }))
}

/// Resumes an execution, which ends.
fn complete(server: &Server, id: &str) {
    let path = format!("/workflows/asking/executions/{id}/resume");
    let reply = send_with_key(server, &path, id, &json!({ "resumeData": "yes" }));
    assert_eq!(reply.status, 200, "{id}: {}", reply.text());
    assert_eq!(reply.data()["status"], "completed", "{id}");
}

#[test]
fn any_server_takes_any_request() {
    let Some(members) = members_leasing(LONG, ["a", "b", "c"]) else { return };
    let server = |number: usize| &members[number % 3].1;
    for number in 0..12 {
        let id = format!("order-{number}");
        execute(server(number), "asking", &id);
        let state = server(number + 1).state("asking", &id);
        assert_eq!(state["status"], "suspended", "{state}");
        complete(server(number + 2), &id);
        assert_eq!(resume(server(number), &id).status, 404, "it is suspended no longer");
        assert_eq!(server(number + 1).state("asking", &id)["status"], "completed");
    }
}

#[test]
fn what_a_killed_server_was_doing_continues_elsewhere() {
    let Some([(_, a), (_, b), (_, c)]) = members(["a", "b", "c"]) else { return };
    let ids: Vec<_> = (0..9).map(|number| format!("e-{number}")).collect();
    for (id, server) in ids.iter().zip([&a, &b, &c].into_iter().cycle()) {
        execute(server, "asking", id);
    }
    std::thread::scope(|scope| {
        // some of these are executed by the server that is killed; their callers wait at another
        let naps = (0..8).map(|number| {
            let b = &b;
            scope.spawn(move || execute_with_key(b, "napping", &format!("nap-{number}")))
        });
        let naps: Vec<_> = naps.collect();
        for number in 0..8 {
            let runs = |state: &Value| state["status"] == "running";
            c.state_when("napping", &format!("nap-{number}"), runs);
        }
        a.kill();
        for id in &ids {
            // sent on when it has an owner again
            complete(&c, id);
        }
        for nap in naps {
            let reply = nap.join().unwrap();
            assert_eq!(reply.status, 200, "{}", reply.text());
            assert_eq!(reply.data()["status"], "completed");
        }
    });
    for number in 0..8 {
        let id = format!("nap-{number}");
        let numbers = |server: &Server| -> Vec<u64> {
            server.events("napping", &id, 0, u64::MAX).iter().map(|event| event.id).collect()
        };
        let seen = numbers(&b);
        assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>(), "{id}");
        assert_eq!(seen, numbers(&c), "{id}");
    }
}

fn execute_with_key(server: &Server, workflow: &str, id: &str) -> Reply {
    let body = json!({ "input": {}, "options": { "executionId": id } });
    send_with_key(server, &format!("/workflows/{workflow}/execute"), id, &body)
}

/// Sends a call until it is taken: a server that a busy machine keeps from renewing its lease refuses
/// calls for a moment.
fn send_with_key(server: &Server, path: &str, key: &str, body: &Value) -> Reply {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    eventually("a server takes the call", || {
        let reply = server.send("POST", path, &headers, Some(body.to_string().as_bytes()));
        (reply.status != 503).then_some(reply)
    })
}

#[test]
fn a_server_that_stops_leaves_nothing_behind() {
    let Some([(_, mut a), (_, b)]) = members(["a", "b"]) else { return };
    for number in 0..6 {
        execute(&a, "asking", &format!("e-{number}"));
    }
    a.signal("TERM");
    for number in 0..6 {
        complete(&b, &format!("e-{number}"));
    }
    assert!(a.ended().success());
}

#[test]
fn a_stream_continues_while_its_owner_is_killed() {
    let Some([(_, a), (_, b), (_, c)]) = members(["a", "b", "c"]) else { return };
    let ids: Vec<_> = (0..6).map(|number| format!("streamed-{number}")).collect();
    // read at c, whichever server owns them
    let streams = ids.iter().map(|id| {
        execute(&b, "asking", id);
        let mut wire = Wire::open(c.address).unwrap();
        let path = format!("/workflows/asking/executions/{id}/stream?fromSequence=0");
        wire.send("GET", &path, &[], None).unwrap();
        let mut events = Events::read(wire).unwrap();
        let first = events.next().unwrap().unwrap();
        assert_eq!(first.id, 1, "{id}");
        (id, events)
    });
    let streams: Vec<_> = streams.collect();
    a.kill();
    for (id, mut events) in streams {
        complete(&b, id);
        let mut numbers = vec![1];
        while let Some(event) = events.next().unwrap() {
            numbers.push(event.id);
        }
        let seen: Vec<_> =
            b.events("asking", id, 0, u64::MAX).iter().map(|event| event.id).collect();
        assert_eq!(numbers, seen, "{id}: neither a gap nor a repeat");
    }
}

#[test]
fn a_server_for_itself_does_not_start_beside_others() {
    let Some(url) = Database::shared().map(Database::fresh_url) else { return };
    let member = home(&url, "a", SHORT);
    let _running = start(&member);
    let alone = Home::at(&url, WORKFLOW);
    let said = alone.run(alone.greenroom(&["serve"]));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("`listen` under [cluster]") && said.contains("(a)"), "{said}");
}

/// Opens a socket with the spans of all servers.
fn observe(server: &Server) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let url = format!("ws://{}/ws/observability?entityId=asking", server.address);
    client(url.into_client_request().unwrap(), stream).unwrap().0
}

/// Reads until these executions have ended.
fn read_ends(socket: &mut WebSocket<TcpStream>, mut ids: BTreeSet<String>) {
    while !ids.is_empty() {
        let Message::Text(text) = socket.read().unwrap() else { continue };
        let frame: Value = serde_json::from_str(&text).unwrap();
        let (kind, span) = (&frame["data"]["type"], &frame["data"]["span"]);
        if kind == "span:end" && span.get("parentSpanId").is_none() {
            ids.remove(span["attributes"]["workflow.execution.id"].as_str().unwrap());
        }
    }
}

#[test]
fn every_server_shows_the_spans_of_all() {
    let Some(members) = members_leasing(LONG, ["a", "b", "c"]) else { return };
    let mut sockets: Vec<_> = members.iter().map(|(_, server)| observe(server)).collect();
    for (_, server) in &members {
        // its own, and those of the two others
        eventually("the others observe it", || {
            let metrics = server.get("/metrics");
            metrics.text().contains("greenroom_observers 3\n").then_some(())
        });
    }
    let ids: BTreeSet<_> = (0..12).map(|number| format!("seen-{number}")).collect();
    for (id, (_, server)) in ids.iter().zip(members.iter().cycle()) {
        execute(server, "asking", id);
        complete(server, id);
    }
    for socket in &mut sockets {
        read_ends(socket, ids.clone());
    }
}

#[test]
fn callers_that_wait_for_executions_of_any_server_are_answered_when_theirs_stops() {
    let Some([(_a, a), (_b, b)]) = members_leasing(LONG, ["a", "b"]) else { return };
    let ids: Vec<String> = (0..12).map(|number| format!("doze-{number}")).collect();
    let mut waiting: Vec<_> = ids
        .iter()
        .map(|id| {
            let mut wire = Wire::open(b.address).unwrap();
            let body = json!({ "input": {}, "options": { "executionId": id } }).to_string();
            wire.send("POST", "/workflows/dozing/execute", &[], Some(body.as_bytes())).unwrap();
            wire
        })
        .collect();
    for id in &ids {
        eventually("its start", || {
            let path = format!("/workflows/dozing/executions/{id}/state");
            (a.get(&path).status == 200).then_some(())
        });
    }
    b.signal("TERM");
    for (id, wire) in ids.iter().zip(&mut waiting) {
        let reply = wire.reply().expect("it is answered before its connection is closed");
        assert_eq!((reply.status, reply.header("x-execution-id")), (503, Some(&**id)));
        assert!(reply.header("retry-after").is_some(), "{reply:?}");
    }
}
