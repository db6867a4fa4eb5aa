//! The program of `examples/fulfilment.rs`, called as its comments describe.

use serde_json::{Value, json};

use super::orders::start_example;
use super::site::at;
use support::client::{Events, Wire};
use support::server::{Home, Server};

fn order(items: &[(&str, u32)], id: &str) -> Value {
    let items: Vec<_> =
        items.iter().map(|(sku, count)| json!({ "sku": sku, "count": count })).collect();
    json!({ "input": { "items": items }, "options": { "executionId": id } })
}

/// Reads the progress of the crane until a value satisfies a condition.
fn crane_until(server: &Server, wire: Wire, is_enough: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut events = Events::read(wire).unwrap();
    let mut said = Vec::new();
    while let Some(event) = events.next().unwrap() {
        let event = event.json();
        if event["type"] == "step-progress" && event["from"] == "load" {
            said.push(event["event"].clone());
        }
        if is_enough(&event) {
            return said;
        }
    }
    panic!("the stream ended with {said:?}: {:?}", server.get("/workflows/executions").text())
}

fn stream(server: &Server, method: &str, path: &str, body: Option<&Value>) -> Wire {
    let mut wire = Wire::open(server.address).unwrap();
    let body = body.map(Value::to_string);
    let json = [("content-type", "application/json")];
    wire.send(method, path, &json, body.as_ref().map(|body| body.as_bytes())).unwrap();
    wire
}

#[test]
fn items_are_packed_and_loaded() {
    let home = Home::new(super::site::CONFIG);
    let server = start_example(&home, "fulfilment");
    let body = order(&[("lamp", 2), ("sofa", 1)], "small");
    let wire = stream(&server, "POST", "/workflows/fulfil/stream", Some(&body));
    let said = crane_until(&server, wire, |event| event["type"] == "workflow-result");
    let expected: Vec<_> = (1..=3).map(|n| json!({ "loaded": n, "of": 3 })).collect();
    assert_eq!(said, expected);
    let parcels = json!([{ "sku": "lamp", "count": 2 }, { "sku": "sofa", "count": 1 }]);
    let state = server.state("fulfil", "small");
    assert_eq!(state["result"], json!({ "parcels": parcels, "loaded": 3 }));
}

#[test]
fn a_large_item_needs_an_approval_and_can_be_replayed() {
    let home = Home::new(super::site::CONFIG);
    let server = start_example(&home, "fulfilment");
    let body = order(&[("lamp", 2), ("sofa", 90)], "sofas");
    let asked = server.post("/workflows/fulfil/execute", &body).data();
    let suspension = &asked["suspension"];
    assert_eq!(suspension["reason"], "90 x sofa: how many may go?");
    assert_eq!(suspension["payload"], json!({ "sku": "sofa", "wanted": 90 }));
    // the lamps are packed at the same time
    let waits = server.get(&at("fulfil", "sofas", "why")).data()["waitsFor"].clone();
    let wait = waits.as_array().unwrap().iter().find(|wait| wait["kind"] == "resume").unwrap();
    assert_eq!(
        (&wait["path"], &wait["movedBy"][0]["by"]),
        (&json!("parcels[1]/much/ask/allot"), &json!("resume"))
    );
    // two steps wait: a resume has to name one
    let answer =
        |count: u32| json!({ "resumeData": { "count": count }, "options": { "stepId": "allot" } });
    let resume = at("fulfil", "sofas", "resume");
    assert_eq!(server.post(&resume, &answer(0)).status, 400);
    assert_eq!(server.post(&resume, &answer(9)).data()["result"]["loaded"], 11);
    let again = server.post(&at("fulfil", "sofas", "replay"), &json!({ "stepId": "load" })).data();
    let copy = again["executionId"].as_str().unwrap();
    let state = server.state_when("fulfil", copy, |state| state["status"] == "completed");
    assert_eq!(state["result"]["loaded"], 11);
}

#[test]
fn the_crane_stops_when_its_order_is_cancelled() {
    let home = Home::new(super::site::CONFIG);
    let server = start_example(&home, "fulfilment");
    server.post("/workflows/fulfil/execute", &order(&[("nail", 21)], "nails")).data();
    let wire = stream(&server, "GET", &at("fulfil", "nails", "stream"), None);
    let resume = at("fulfil", "nails", "resume");
    let answer = json!({ "resumeData": { "count": 1_000_000 } });
    let resumed = stream(&server, "POST", &resume, Some(&answer));
    crane_until(&server, wire, |event| event["type"] == "step-progress");
    let reason = json!({ "reason": "the ship has left" });
    server.post(&at("fulfil", "nails", "cancel"), &reason).data();
    server.says("nails: the crane stopped at ");
    assert_eq!(server.state("fulfil", "nails")["status"], "cancelled");
    drop(resumed);
}
