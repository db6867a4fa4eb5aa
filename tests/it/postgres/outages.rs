//! Answers to callers while the database is away.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use support::client::{Reply, Wire};
use support::eventually;
use support::postgres::Server as Database;
use support::proxy::Proxy;
use support::server::{Home, Server};

use super::super::program::Programs as _;

/// The nap is long enough for its end to meet an outage.
const CONFIG: &str = "
[[workflows.napping.steps]]
id = \"nap\"
type = \"andSleep\"
duration = \"1s\"
[[workflows.napping.steps]]
id = \"after\"
map = \"'awake'\"

[limits]
heartbeat = \"50ms\"

[agents.helper]
model = \"offline\"

[models.offline]
provider = \"rehearsal\"
";

/// Long enough for what is expected to happen before.
const NEVER: &str = "10m";

fn server(database: &Database, patience: &str) -> (Home, Server) {
    let home = Home::new("");
    let url = database.fresh_url();
    home.write(
        "config.toml",
        &format!(
            "[server]\nport = 0\n[store]\nurl = \"{url}\"\npatience = \"{patience}\"\n{CONFIG}"
        ),
    );
    let server = Server::start(home.greenroom(&["serve"]));
    (home, server)
}

fn execute(server: &Server, id: &str) -> Reply {
    let body = json!({ "input": {}, "options": { "executionId": id } });
    server.post("/workflows/napping/execute", &body)
}

/// Stops the database while the execution naps, and returns when the server knows.
fn stop_during_the_nap(database: &Database, server: &Server, id: &str) {
    let path = format!("/workflows/napping/executions/{id}/state");
    eventually("the start", || (server.get(&path).status == 200).then_some(()));
    database.stop_immediate();
    eventually("the outage", || (server.get("/readyz").status == 503).then_some(()));
}

#[test]
fn a_caller_gets_a_late_answer_after_a_short_outage() {
    let Some(database) = Database::start() else { return };
    let (_home, server) = server(&database, NEVER);
    thread::scope(|scope| {
        let caller = scope.spawn(|| execute(&server, "one"));
        stop_during_the_nap(&database, &server, "one");
        database.start_again();
        let reply = caller.join().unwrap();
        assert_eq!((reply.status, &reply.data()["result"]), (200, &json!("awake")));
    });
}

#[test]
fn callers_learn_of_a_long_outage_and_their_executions_continue_after_it() {
    let Some(database) = Database::start() else { return };
    let (_home, server) = server(&database, "2s");
    thread::scope(|scope| {
        let caller = scope.spawn(|| execute(&server, "one"));
        stop_during_the_nap(&database, &server, "one");

        let refused = execute(&server, "two");
        assert_eq!(refused.status, 503, "{}", refused.text());
        assert_eq!(refused.header("retry-after"), Some("1"));
        assert_eq!(refused.header("x-execution-id"), None, "nothing of it is recorded");

        let reply = caller.join().unwrap();
        assert_eq!(reply.status, 503, "{}", reply.text());
        assert_eq!(reply.header("x-execution-id"), Some("one"));
    });
    database.start_again();
    server.state_when("napping", "one", |state| state["status"] == "completed");
    assert_eq!(server.get("/workflows/napping/executions/two/state").status, 404);
}

#[test]
fn an_agent_is_not_asked_while_its_answer_cannot_be_recorded() {
    let Some(database) = Database::start() else { return };
    let (_home, server) = server(&database, "1s");
    database.stop_immediate();
    eventually("the outage", || (server.get("/readyz").status == 503).then_some(()));
    for path in ["/agents/helper/text", "/agents/helper/stream"] {
        let reply = server.post(path, &json!({ "input": "Hello" }));
        assert_eq!(reply.status, 503, "{path}: {}", reply.text());
    }
}

#[test]
fn a_server_can_be_stopped_while_its_database_is_away() {
    let Some(database) = Database::start() else { return };
    let (home, mut server) = server(&database, "2s");
    thread::scope(|scope| {
        let caller = scope.spawn(|| execute(&server, "one"));
        stop_during_the_nap(&database, &server, "one");
        assert_eq!(caller.join().unwrap().status, 503);
    });
    let begun = Instant::now();
    server.signal("TERM");
    server.ended();
    server.says("closed the store while writes wait for the database (1): none of them was ackn");
    // the time in which everything else may end is 10 s
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    database.start_again();
    let server = Server::start(home.greenroom(&["serve"]));
    server.state_when("napping", "one", |state| state["status"] == "completed");
}

#[test]
fn the_host_in_use_is_logged_when_it_changes() {
    let Some(database) = Database::shared() else { return };
    let url = database.fresh_url();
    let (first, second) = (Proxy::to(database.port()), Proxy::to(database.port()));
    let [a, b] = [&first, &second].map(|proxy| format!("127.0.0.1:{}", proxy.port()));
    let url = first.through(&url).replace(&a, &format!("{a},{b}"));
    let server = Server::start(Home::at(&url, "").greenroom(&["serve"]));
    server.says(&format!("the database is used at {a}"));
    first.refuse();
    first.cut();
    server.says(&format!("the database is now used at {b}, no longer at {a}"));
    second.refuse();
    second.cut();
    first.resume();
    server.says(&format!("the database is now used at {a}, no longer at {b}"));
}

#[test]
fn open_streams_stay_during_an_outage() {
    let Some(database) = Database::start() else { return };
    let (_home, server) = server(&database, "1s");
    let open = |method, path, body: Option<&[u8]>| {
        let mut wire = Wire::open(server.address).unwrap();
        let headers = [("content-type", "application/json")];
        wire.send(method, path, &headers, body).unwrap();
        assert_eq!(wire.head().unwrap().status, 200, "{path}");
        wire
    };
    let body = json!({ "input": {}, "options": { "executionId": "one" } }).to_string();
    let starting = open("POST", "/workflows/napping/stream", Some(body.as_bytes()));
    let path = "/workflows/napping/executions/one/stream";
    let mut streams = [starting, open("GET", path, None)];
    for stream in &mut streams {
        read_upto(stream, "step-start");
    }
    stop_during_the_nap(&database, &server, "one");
    // reads wait for the patience
    let read = "/workflows/napping/executions/unknown/state";
    assert_eq!(server.get(read).status, 503);
    for stream in &mut streams {
        read_upto(stream, ": keep-alive");
    }
    database.start_again();
    for stream in &mut streams {
        read_upto(stream, "workflow-complete");
    }
}

/// Reads a stream until it has this text.
fn read_upto(stream: &mut Wire, part: &str) {
    let mut text = String::new();
    while !text.contains(part) {
        let chunk = stream.chunk().unwrap().unwrap_or_else(|| panic!("it has ended: {text}"));
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}
