//! The configuration that comes with the program, used as its comments describe.

use serde_json::json;

use crate::program::Programs;
use support::client::{Event, Events, Wire};
use support::server::{Home, Server};

const SHIPPED: &str = include_str!("../../../config.toml");

fn start() -> (Home, Server) {
    let home = Home::new("");
    home.write("config.toml", SHIPPED);
    let server = Server::start(home.greenroom(&["--port", "0"]));
    (home, server)
}

#[test]
fn it_is_sound() {
    let home = Home::new("");
    home.write("config.toml", SHIPPED);
    let output = home.run(home.greenroom(&["check"]));
    assert_eq!(output.stdout, b"config.toml: ok, 6 workflows, 2 agents, 3 tools\n");
}

#[test]
fn noop3_adds_three() {
    let (_home, server) = start();
    let reply = server.post("/workflows/noop3/execute", &json!({ "input": { "n": 1 } }));
    assert_eq!(reply.data()["result"], json!({ "n": 4 }));
    let reply = server.post("/workflows/noop3/execute", &json!({ "input": { "n": 1.5 } }));
    assert!(reply.error().starts_with("Input validation failed: n: "), "{}", reply.text());
}

#[test]
fn a_newsletter_needs_a_valid_time() {
    let (_home, server) = start();
    let execute = |at: &str| {
        let input = json!({ "topics": ["x"], "at": at });
        server.post("/workflows/newsletter/execute", &json!({ "input": input }))
    };
    for at in ["tomorrow", "", "2026-11-22"] {
        let refused = execute(at);
        assert_eq!(refused.status, 400, "for {at:?}");
        let text = format!("Input validation failed: at: {at:?} is not a \"date-time\"");
        assert_eq!(refused.error(), text);
    }
    assert_eq!(execute("2026-11-22T08:00:00Z").data()["status"], "suspended");
}

#[test]
fn expenses_are_approved() {
    let (home, server) = start();
    let execute = |server: &Server, amount: u32, id: &str| {
        let body = json!({ "input": { "employee": "Ann", "amount": amount },
            "options": { "executionId": id } });
        server.post("/workflows/expense-approval/execute", &body).data()
    };
    let small = execute(&server, 20, "small");
    assert_eq!(small["result"], json!({ "status": "paid", "amount": 20, "by": "policy" }));
    for id in ["yes", "no"] {
        let large = execute(&server, 900, id);
        assert_eq!(large["status"], "suspended");
        assert_eq!(large["suspension"]["reason"], "Ann asks for 900");
    }
    server.kill();
    let server = Server::start(home.greenroom(&["--port", "0"]));
    let resume = |id: &str, data: serde_json::Value| {
        let path = format!("/workflows/expense-approval/executions/{id}/resume");
        server.post(&path, &json!({ "resumeData": data }))
    };
    assert_eq!(
        resume("yes", json!({ "approved": "of course" })).error(),
        "Resume data validation failed: approved: \"of course\" is not of type \"boolean\""
    );
    let yes = resume("yes", json!({ "approved": true, "by": "Bob" })).data();
    assert_eq!(yes["result"], json!({ "status": "paid", "amount": 900, "by": "Bob" }));
    let no = resume("no", json!({ "approved": false })).data();
    assert_eq!(no["result"], json!({ "status": "refused", "amount": 900, "by": "manager" }));
    let steps = server.state("expense-approval", "no")["steps"].clone();
    let of = |id: &str| steps.as_array().unwrap().iter().find(|step| step["stepId"] == id).cloned();
    assert_eq!(of("post").unwrap()["status"], "skipped");
    assert!(of("write").unwrap()["output"]["text"].as_str().unwrap().contains("was refused"));
}

#[test]
fn the_letter_is_streamed_while_it_is_written() {
    let (_home, server) = start();
    let body = json!({ "input": { "employee": "Ann", "amount": 20 },
        "options": { "executionId": "e1" } });
    let mut wire = Wire::open(server.address).unwrap();
    let bytes = body.to_string();
    wire.send("POST", "/workflows/expense-approval/stream", &[], Some(bytes.as_bytes())).unwrap();
    let mut reading = Events::read(wire).unwrap();
    let events: Vec<_> = std::iter::from_fn(|| reading.next().unwrap()).collect();
    let (progress, recorded): (Vec<_>, Vec<_>) =
        events.iter().cloned().partition(|event| event.kind() == "step-progress");

    let numbers: Vec<_> = recorded.iter().map(|event| event.id).collect();
    assert_eq!(numbers, (1..=recorded.len() as u64).collect::<Vec<_>>());
    assert_eq!(
        server.events("expense-approval", "e1", 0, u64::MAX),
        recorded,
        "progress is not replayed"
    );
    let place = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted);
    let of_write = |kind: &'static str| {
        move |event: &Event| event.kind() == kind && event.json()["from"] == "write"
    };
    let first = place(&of_write("step-progress")).expect("the agent says something");
    assert!(place(&of_write("step-start")).unwrap() < first);
    let end = place(&of_write("step-complete")).unwrap();
    assert!(events[end..].iter().all(|event| event.kind() != "step-progress"));

    let said: Vec<_> = progress.iter().map(|event| event.json()["event"].clone()).collect();
    let kinds: Vec<_> = said.iter().map(|said| said["type"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("start", "finish"));
    let words: String = said.iter().filter_map(|said| said["delta"].as_str()).collect();
    assert_eq!(words, events[end].json()["output"]["text"].as_str().unwrap());
    for event in &progress {
        let data = event.json();
        assert_eq!((event.id, &data["executionId"]), (0, &json!("e1")));
        assert_eq!(
            (&data["from"], &data["path"]),
            (&json!("write"), &json!("checks/letter/write"))
        );
        assert!(data["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')), "{data}");
    }
    let state = server.state("expense-approval", "e1");
    assert_eq!(state["usage"], events[end].json()["output"]["usage"]);
    let other = json!({ "input": { "n": 1 }, "options": { "executionId": "n1" } });
    server.post("/workflows/noop3/execute", &other).data();
    assert_eq!(server.state("noop3", "n1").get("usage"), None, "no agent, no usage");
}

#[test]
fn a_trip_uses_every_container() {
    let (_home, server) = start();
    let body =
        json!({ "input": { "city": "Rome", "nights": 2 }, "options": { "executionId": "t1" } });
    let data = server.post("/workflows/trip/execute", &body).data();
    assert_eq!(
        data["result"],
        json!({ "city": "Rome", "price": 430, "carrier": "rail", "days_off": 5,
            "summary": "2 nights in Rome for 430, by rail." })
    );
    let state = server.state("trip", "t1");
    let steps = state["steps"].as_array().unwrap();
    let of = |id: &str| steps.iter().find(|step| step["stepId"] == id).unwrap();
    assert_eq!(of("road-answers")["status"], "cancelled");
    let child = of("days")["childExecutionId"].as_str().unwrap();
    assert_eq!(server.state("noop3", child)["parentExecutionId"], "t1");
}

#[test]
fn a_reminder_keeps_its_sleep_after_a_kill() {
    let (home, server) = start();
    let body = json!({ "input": { "text": "tea" }, "options": { "executionId": "r1" } });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut wire = support::client::Wire::open(server.address).unwrap();
            let bytes = body.to_string();
            wire.send("POST", "/workflows/reminder/execute", &[], Some(bytes.as_bytes())).unwrap();
            assert!(wire.reply().is_err(), "answered before the kill");
        });
        server.state_when("reminder", "r1", |state| state["status"] == "running");
        server.signal("KILL");
    });
    let server = Server::start(home.greenroom(&["--port", "0"]));
    let state = server.state_when("reminder", "r1", |state| state["status"] == "completed");
    assert_eq!(state["result"], json!({ "reminder": "tea" }));
    let at = |time: &serde_json::Value| {
        let text = time.as_str().unwrap();
        let seconds = |range: std::ops::Range<usize>| text[range].parse::<f64>().unwrap();
        seconds(11..13) * 3600.0 + seconds(14..16) * 60.0 + seconds(17..23)
    };
    let slept = (at(&state["endAt"]) - at(&state["startAt"])).rem_euclid(86_400.0);
    assert!((5.0..10.0).contains(&slept), "{slept} s");
}

#[test]
fn its_agent_rehearses() {
    let (_home, server) = start();
    let reply = server.post("/agents/assistant/text", &json!({ "input": "Hello" }));
    assert_eq!(reply.data()["text"], "Hello! This is a rehearsal: Hello");
}
