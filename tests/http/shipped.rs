//! The configuration that comes with the program, run as its comments say.

use serde_json::json;

use super::rig::server::{Home, Server};
use super::site::Programs;

const SHIPPED: &str = include_str!("../../config.toml");

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
    assert_eq!(output.stdout, b"config.toml: ok, 4 workflows, 2 agents, 2 tools\n");
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
fn a_trip_takes_everything_at_once() {
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
fn a_reminder_sleeps_over_a_kill() {
    let (home, server) = start();
    let body = json!({ "input": { "text": "tea" }, "options": { "executionId": "r1" } });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut wire = super::rig::client::Wire::open(server.address).unwrap();
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
