//! An order fails in its third line, and the server is killed at every event of it: the reservations
//! of the other lines are released, each under one key, in reverse.

use serde_json::{Value, json};

use super::ledger::{self, Line};
use support::client::{Events, Wire};
use support::server::{Home, Server};
use support::store::Store;

const CONFIG: &str = r#"
limits.crash_attempts = 1000

[[workflows.order.steps]]
id = "lines"
type = "andForEach"
items = "input.lines"
block = "line"

[[workflows.order.blocks.line]]
id = "check"
map = "data if data.stock else data.sold_out.line"

[[workflows.order.blocks.line]]
id = "reserve"
run = "work"
compensate = { run = "work", retry = { attempts = 1000, delay = "1ms" } }
"#;

const RELEASES: [&str; 2] = ["lines[1]/reserve:compensate", "lines[0]/reserve:compensate"];

#[test]
fn reservations_are_released_once_in_reverse_wherever_the_server_is_killed() {
    drill(Store::chosen());
}

#[test]
fn reservations_are_released_once_in_reverse_wherever_the_server_is_killed_on_postgres() {
    Store::postgres().into_iter().for_each(drill);
}

fn drill(store: Store) {
    let home = Home::on(store, CONFIG);
    let mut kills = 0;
    loop {
        let id = format!("order-{kills}");
        let server = Server::start(home.test_server());
        let was_killed = run_until(server, &id, kills + 1);
        let server = Server::start(home.test_server());
        let state = server.state_when("order", &id, |state| state["status"] == "error");
        assert_eq!(state["compensation"]["completed"], 2, "{id}: {state:#}");
        assert_eq!(state["compensation"]["remaining"], 0, "{id}: {state:#}");
        check_releases(&home, &id);
        check_events(&server, &id);
        server.kill();
        if !was_killed {
            break;
        }
        kills += 1;
    }
    println!("killed at {kills} events");
    assert!(kills > 10, "the drill has drilled little: {kills}");
}

/// Starts an order, and kills the server after so many events; returns false if there are fewer.
fn run_until(server: Server, id: &str, events_max: usize) -> bool {
    let mut wire = Wire::open(server.address).unwrap();
    let line = |stock: bool| json!({ "n": 0, "stock": stock, "pause": 2 });
    let lines: Vec<Value> = [true, true, false].map(line).to_vec();
    let body = json!({ "input": { "lines": lines }, "options": { "executionId": id } }).to_string();
    wire.send("POST", "/workflows/order/stream", &[], Some(body.as_bytes())).unwrap();
    let mut events = Events::read(wire).unwrap();
    let mut read = 0;
    while read < events_max && events.next().unwrap().is_some() {
        read += 1;
    }
    server.kill();
    read == events_max
}

/// Checks that each reservation was released under one key, the newest first.
fn check_releases(home: &Home, id: &str) {
    let mut ledger = ledger::read(&home.ledger());
    ledger.retain(|(execution, _), _| execution == id);
    ledger::assert_sound(&ledger);
    let of = |step: &str| -> &Vec<Line> { &ledger[&(id.to_owned(), step.to_owned())] };
    let released = ledger.keys().filter(|(_, step)| step.ends_with(":compensate")).count();
    assert_eq!(released, RELEASES.len(), "{id}: {ledger:#?}");
    let [second, first] = RELEASES.map(of);
    let reserved = of("lines[1]/reserve");
    assert!(reserved.last().unwrap().at < second[0].at, "{id}: released before it was reserved");
    assert!(second.last().unwrap().at < first[0].at, "{id}: not released in reverse");
    assert!(second.iter().any(|line| line.ended.is_some()), "{id}: {second:?}");
    assert!(first.iter().any(|line| line.ended.is_some()), "{id}: {first:?}");
}

/// Checks that the events have one completed compensation of each line, before the error.
fn check_events(server: &Server, id: &str) {
    let last = server.state("order", id)["lastSequence"].as_u64().unwrap();
    let events = server.events("order", id, 0, last);
    let kinds = ["compensation-complete", "workflow-compensating", "workflow-error"];
    let told: Vec<String> = events
        .iter()
        .map(|event| event.json())
        .filter(|event| kinds.contains(&event["type"].as_str().unwrap()))
        .map(|event| format!("{} {}", event["type"].as_str().unwrap(), event["path"]))
        .collect();
    let [second, first] = RELEASES.map(|path| format!("compensation-complete \"{path}\""));
    let expected =
        ["workflow-compensating null".to_owned(), second, first, "workflow-error null".to_owned()];
    assert_eq!(told, expected, "{id}");
}
