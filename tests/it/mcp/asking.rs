//! Servers that ask people during a call: asks of agents and of steps, answered after kills of our own
//! server.

use serde_json::{Value, json};
use support::eventually;
use support::server::{Home, Server};

use super::Site;
use super::real::{Remote, clients};
use super::{call, ready};
use crate::program::Programs as _;

/// Asks the agent `clerk`; returns the generation, which has to be suspended.
pub(super) fn suspended(server: &Server, prompt: &str) -> Value {
    let answer = server.post("/agents/clerk/text", &json!({ "input": prompt })).data();
    assert_eq!(answer["status"], "suspended", "{answer}");
    answer
}

/// Returns the only open ask, as it is answered.
pub(super) fn open_ask(server: &Server) -> Value {
    eventually("an open ask", || {
        let asks = server.get("/inbox").data();
        let [ask] = asks["asks"].as_array().unwrap().as_slice() else { return None };
        let id = ask["askId"].as_str().unwrap();
        Some(server.get(&format!("/inbox/{id}")).data())
    })
}

/// Answers an ask; returns the status.
pub(super) fn answer(server: &Server, ask: &Value, data: &Value) -> u16 {
    let path = format!("/inbox/{}/answer", ask["askId"].as_str().unwrap());
    server.post(&path, &json!({ "data": data })).status
}

/// Returns the text of a generation once it has ended.
pub(super) fn text_of(server: &Server, generation: &Value) -> String {
    let id = generation["generationId"].as_str().unwrap();
    eventually("the generation ends", || {
        let shown = server.get(&format!("/agents/clerk/generations/{id}")).data();
        (shown["status"] == "completed").then(|| shown.to_string())
    })
}

#[test]
fn an_older_server_that_asks_is_called_again_with_the_answer() {
    for (data, expected) in [
        (json!({ "sure": true }), r#""sure":true"#),
        (json!({ "action": "decline" }), r#""action":"decline""#),
    ] {
        let site = Site::start("on_input = { to = [\"user:ann\"], deadline = \"1h\" }\n");
        let waiting = suspended(&site.server, "ask");
        let ask = open_ask(&site.server);
        assert_eq!((&ask["kind"], &ask["reason"]), (&json!("input"), &json!("own asks: Sure?")));
        assert_eq!((&ask["to"], &ask["canDecline"]), (&json!(["user:ann"]), &json!(true)));
        assert_eq!(ask["form"][0]["name"], "sure", "{ask}");
        assert!(ask["deadline"].is_string(), "{ask}");
        site.noted("cancelled");
        let site = site.after_a_kill();
        assert_eq!(open_ask(&site.server)["askId"], ask["askId"]);
        let path = format!("/inbox/{}/answer", ask["askId"].as_str().unwrap());
        for (user, data, status) in [
            ("bob", &json!({ "sure": true }), 403),
            ("ann", &json!({ "sure": "yes" }), 400),
            ("ann", &json!({ "sure": true, "more": 1 }), 400),
            ("ann", &data, 200),
        ] {
            let body = json!({ "data": data, "options": { "userId": user } });
            assert_eq!(site.server.post(&path, &body).status, status, "{user}: {data}");
        }
        let text = text_of(&site.server, &waiting);
        assert!(text.replace('\\', "").contains(expected), "{text}");
        let noted = std::fs::read_to_string(site.home.path("asked")).unwrap();
        assert_eq!(noted.lines().filter(|line| *line == "ask").count(), 2, "{noted}");
    }
}

#[test]
fn a_server_whose_questions_are_refused_cannot_ask() {
    let site = Site::start("on_input = \"refuse\"\n");
    let said = site.call("ask", &json!({})).unwrap_err();
    assert_eq!(said, "Failed to execute tool: this client cannot ask a person");
}

#[test]
fn calls_whose_questions_cannot_be_told_apart_are_made_again_one_by_one() {
    let site = Site::start("");
    let begin = json!({ "input": { "who": [1, 2, 3] }, "options": { "executionId": "e1" } });
    let executed = site.server.post("/workflows/voting/execute", &begin).data();
    assert_eq!(executed["status"], "suspended", "{executed}");
    let asks = eventually("three asks", || {
        let asks = site.server.get("/inbox").data()["asks"].as_array().unwrap().clone();
        (asks.len() == 3).then_some(asks)
    });
    for ask in &asks {
        let sure = ask["of"]["path"] != "all[1]/vote";
        assert_eq!(answer(&site.server, ask, &json!({ "sure": sure })), 200);
    }
    let state = site.server.state_when("voting", "e1", |state| state["status"] != "running");
    let said = |sure: bool| json!({ "action": "accept", "content": { "sure": sure } }).to_string();
    assert_eq!(state["result"], json!([said(true), said(false), said(true)]), "{state}");
}

#[test]
fn a_page_that_a_call_needs_first_is_asked_for() {
    for (data, status, expected) in
        [("done", "completed", "sign is done"), ("declined", "completed", "sign is done")]
    {
        let site = Site::start("");
        let begin = json!({ "input": {}, "options": { "executionId": "e1" } });
        let executed = site.server.post("/workflows/signing/execute", &begin).data();
        assert_eq!(executed["status"], "suspended", "{executed}");
        let page = open_ask(&site.server);
        let reason = page["reason"].as_str().unwrap();
        assert!(reason.contains("https://sign.example/in"), "{reason}");
        assert_eq!(answer(&site.server, &page, &json!(data)), 200);
        let state = site.server.state_when("signing", "e1", |it| it["status"] == status);
        assert_eq!(state["result"], expected);
    }
}

#[test]
fn a_step_suspends_until_the_question_of_its_server_is_answered() {
    let Some(clients) = clients("an MCP server that asks") else { return };
    let remote = Remote::start(&clients, "reject");
    let (home, server) = booking(&remote);
    let begin = json!({ "input": { "film": "Alien" }, "options": { "executionId": "e1" } });
    let executed = server.post("/workflows/evening/execute", &begin).data();
    assert_eq!(executed["status"], "suspended", "{executed}");
    let page = open_ask(&server);
    assert_eq!((&page["kind"], &page["of"]["stepId"]), (&json!("function"), &json!("book")));
    assert_eq!(answer(&server, &page, &json!("done")), 200);
    let seats = open_ask(&server);
    assert_eq!((&seats["form"][0]["name"], &seats["canDecline"]), (&json!("seats"), &json!(true)));
    server.kill();
    let server = start(&home);
    assert_eq!(answer(&server, &seats, &json!({ "seats": 0 })), 400);
    assert_eq!(answer(&server, &seats, &json!({ "seats": 2 })), 200);
    let state = server.state_when("evening", "e1", |state| state["status"] == "completed");
    let expected = json!({
        "payment": { "action": "accept" },
        "seats": { "action": "accept", "content": { "seats": 2 } },
    });
    let result = state["result"].as_str().unwrap().strip_prefix("Alien: ").unwrap();
    assert_eq!(serde_json::from_str::<Value>(result).unwrap(), expected);
    for path in ["/workflows/evening/executions/e1/state", "/workflows/evening/executions/e1/why"] {
        assert!(!server.get(path).text().contains("s3aled"), "{path}");
    }
}

const BOOKING: &str = r#"
[models.offline]
provider = "rehearsal"
rules = [
    { when = "tool_results", reply = "it said {{ tool_results[-1] }}" },
    { tool_call = { name = "cinema.book", args = { film = "'Alien'" } } },
]

[agents.clerk]
model = "offline"
tools = ["cinema.book"]

[workflows.evening]
steps = [{ id = "book", tool = "cinema.book", args = { film = "input.film" } }]
"#;

/// Starts a server that uses a cinema.
fn booking(remote: &Remote) -> (Home, Server) {
    let home = Home::new(&format!(
        "[mcp.cinema]\nurl = \"{}\"\nheaders = {{ authorization = \"Bearer secret:MCP_TOKEN\" }}\n\
         restart = {{ delay = \"10ms\", max_delay = \"50ms\" }}\n{BOOKING}",
        remote.url
    ));
    let server = start(&home);
    (home, server)
}

fn start(home: &Home) -> Server {
    let mut command = home.greenroom(&[]);
    command.env("MCP_TOKEN", "t0ken-of-the-test");
    let server = Server::start(command);
    ready(&server, "cinema");
    server
}

#[test]
fn all_questions_of_a_server_are_answered_with_its_state() {
    let Some(clients) = clients("an MCP server that asks") else { return };
    let remote = Remote::start(&clients, "reject");
    let (home, server) = booking(&remote);
    let direct = call(&server, "cinema.book", &json!({ "film": "Alien" })).unwrap_err();
    assert!(direct.contains("the tool has to ask a person"), "{direct}");
    let waiting = suspended(&server, "book");
    let page = open_ask(&server);
    let reason = "cinema asks to open https://pay.example/1 (at pay.example; the server is at \
                  127.0.0.1): Pay";
    assert_eq!(page["reason"], reason);
    assert_eq!(page["schema"]["enum"], json!(["done", "declined"]));
    let opened = json!({ "url": "https://pay.example/1", "serverHost": "127.0.0.1" });
    assert_eq!(page["schema"]["openPage"], opened);
    assert_eq!(answer(&server, &page, &json!("done")), 200);
    let seats = open_ask(&server);
    assert_eq!(seats["reason"], "cinema asks: How many seats for Alien?");
    let state = server
        .get(&format!("/agents/clerk/generations/{}", waiting["generationId"].as_str().unwrap()));
    for shown in [&seats.to_string(), &page.to_string(), &state.text()] {
        assert!(!shown.contains("s3aled"), "{shown}");
    }
    server.kill();
    let server = start(&home);
    assert_eq!(answer(&server, &seats, &json!({ "seats": 10 })), 400);
    assert_eq!(answer(&server, &seats, &json!({ "seats": 2 })), 200);
    let text = text_of(&server, &waiting);
    for expected in ["Alien: ", "accept", "seats", "payment"] {
        assert!(text.contains(expected), "{text}");
    }
}
