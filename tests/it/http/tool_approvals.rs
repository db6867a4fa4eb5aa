//! Calls of tools that wait for people: answers, streams, chats, and the ways to answer.

use serde_json::{Value, json};

use super::upstream::events;
use support::client::{Reply, Wire};
use support::eventually;
use support::server::{Home, Server};

const CONFIG: &str = r#"
[models.offline]
provider = "rehearsal"

[[models.offline.rules]]
when = "'AFTER' in prompt"
reply = "{% for message in messages %}{{ message.role }} {% endfor %}"

[[models.offline.rules]]
when = "'TWO' in prompt and not tool_results"
tool_calls = [{ name = "refund", args = { amount = "500" } }, { name = "refund", args = { amount = "600" } }]

[[models.offline.rules]]
when = "'MIXED' in prompt and not tool_results"
tool_calls = [{ name = "refund", args = { amount = "5" } }, { name = "refund", args = { amount = "600" } }]

[[models.offline.rules]]
when = "'REFUND' in prompt and not tool_results"
tool_call = { name = "refund", args = { amount = "500" } }

[[models.offline.rules]]
when = "'PAINT' in prompt and not tool_results"
tool_call = { name = "paint", args = {} }

[[models.offline.rules]]
when = "'ASK' in prompt and not tool_results"
tool_call = { name = "ask_user", args = { question = "'Which one?'" } }

[[models.offline.rules]]
when = "tool_results and not schema"
reply = "{% for it in tool_results %}{{ it.output if it.output is defined else it.denied }};{% endfor %}"

[[models.offline.rules]]
when = "schema and tool_results"
object = { done = "true" }

[[models.offline.rules]]
when = "'DELEGATE' in prompt and tools[0].name == 'ask_clerk' and not tool_results"
tool_call = { name = "ask_clerk", args = { prompt = "'TWO'" } }

[tools.ask_clerk]
kind = "agent"
agent = "clerk"
description = "Asks the clerk"

[agents.head]
model = "offline"
tools = ["ask_clerk"]

[agents.clerk]
model = "offline"
tools = ["refund", "paint", "ask_user"]
"#;

struct Desk {
    home: Home,
    server: Server,
}

impl Desk {
    fn open() -> Self {
        let home = Home::new(CONFIG);
        let server = Server::start(home.test_server());
        Self { home, server }
    }

    fn after_a_kill(self) -> Self {
        let Self { home, server } = self;
        server.kill();
        let server = Server::start(home.test_server());
        Self { home, server }
    }

    fn post(&self, what: &str, body: &Value) -> Reply {
        let mut wire = Wire::open(self.server.address).unwrap();
        let path = format!("/agents/clerk/{what}");
        wire.send("POST", &path, &[], Some(body.to_string().as_bytes())).unwrap();
        wire.reply().unwrap()
    }

    fn generation(&self, id: &str) -> Value {
        self.server.get(&format!("/agents/clerk/generations/{id}")).data()
    }

    fn ended(&self, id: &str) -> Value {
        eventually("the generation ends", || {
            let shown = self.generation(id);
            (!["suspended", "working"].contains(&shown["status"].as_str().unwrap()))
                .then_some(shown)
        })
    }

    fn approve(&self, id: &str, body: &Value) -> Reply {
        self.post(&format!("generations/{id}/approve"), body)
    }

    /// Sends the messages of a chat; returns the chunks without the data of ids.
    fn chat(&self, messages: &Value) -> Vec<Value> {
        chunks(&self.post("chat", &json!({ "id": "c1", "messages": messages })))
    }

    fn messages(&self) -> Vec<Value> {
        let path = "/api/memory/conversations/c1/messages?agentId=clerk";
        self.server.get(path).data()["messages"].as_array().unwrap().clone()
    }

    /// Returns the arguments of calls that were made.
    fn made(&self) -> Vec<String> {
        let ledger = self.home.ledger_lines();
        let amounts = ledger.iter().map(|line| line.split(' ').nth(1).unwrap().to_owned());
        amounts.collect()
    }
}

fn chunks(reply: &Reply) -> Vec<Value> {
    let text = reply.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: {"));
    data.map(|line| serde_json::from_str(&format!("{{{line}")).unwrap()).collect()
}

fn kinds(chunks: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<_> = chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}

pub(crate) fn user(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "parts": [{ "type": "text", "text": text }] })
}

/// Answers the requests of a message: one decision for each.
pub(crate) fn decide(message: &Value, decisions: &[bool]) -> Value {
    let mut message = message.clone();
    let mut decisions = decisions.iter();
    for part in message["parts"].as_array_mut().unwrap() {
        if part["state"] == "approval-requested" {
            let Some(approved) = decisions.next() else { break };
            part["state"] = json!("approval-responded");
            part["approval"]["approved"] = json!(approved);
        }
    }
    message
}

fn code(reply: &Reply) -> (u16, &str) {
    (reply.status, reply.header("x-error-code").unwrap_or_default())
}

const SUSPENDED: [&str; 8] = [
    "start",
    "start-step",
    "tool-input-start",
    "tool-input-delta",
    "tool-input-available",
    "tool-approval-request",
    "finish-step",
    "finish",
];

#[test]
fn a_text_that_waits_says_so_and_goes_on_once_it_is_approved() {
    let desk = Desk::open();
    let reply = desk.post("text", &json!({ "input": "REFUND" }));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let shown = reply.data();
    let id = reply.header("x-generation-id").unwrap();
    assert_eq!(
        (&shown["generationId"], &shown["status"], &shown["finishReason"]),
        (&json!(id), &json!("suspended"), &json!("tool-calls"))
    );
    let ask = &shown["asks"][0];
    assert_eq!(
        (&ask["kind"], &ask["toolName"], &ask["input"], &ask["reason"]),
        (&json!("approval"), &json!("refund"), &json!({ "amount": 500 }), &json!("Refund 500"))
    );
    let recorded = desk.generation(id);
    assert_eq!((&recorded["status"], &recorded["asks"]), (&json!("suspended"), &shown["asks"]));
    let call = &ask["toolCallId"];
    let unknown = json!({ "toolCallId": "none", "approved": true });
    assert_eq!(code(&desk.approve(id, &unknown)), (404, "ask_not_found"));
    let body = json!({ "toolCallId": call, "approved": "yes" });
    assert_eq!(code(&desk.approve(id, &body)), (400, "body_invalid"));
    let bad = json!({ "toolCallId": call, "approved": true, "input": { "amount": "much" } });
    assert_eq!(code(&desk.approve(id, &bad)), (400, "answer_invalid"));
    assert_eq!(desk.made(), [""; 0]);

    let desk = desk.after_a_kill();
    let body = json!({ "toolCallId": call, "approved": true, "input": { "amount": 450 },
                       "options": { "userId": "lea" } });
    let answered = desk.approve(id, &body);
    let detail = answered.data();
    assert_eq!(answered.header("x-generation-id"), Some(id));
    assert_eq!(
        (&detail["askId"], &detail["state"], &detail["answeredBy"]["id"]),
        (&ask["askId"], &json!("answered"), &json!("lea"))
    );
    let ended = desk.ended(id);
    assert_eq!(
        (&ended["status"], &ended["asks"], &ended["steps"][0]["toolResults"][0]["output"]),
        (&json!("completed"), &Value::Null, &json!({ "refunded": 450 }))
    );
    assert_eq!(desk.made(), ["450"]);
    let late = desk.approve(id, &body);
    assert_eq!(code(&late), (409, "ask_answered"));
    assert!(late.text().contains("lea"), "{}", late.text());
    assert_eq!(code(&desk.approve(id, &unknown)), (404, "ask_not_found"));
    assert_eq!(code(&desk.approve("unknown", &body)), (404, "generation_not_found"));
}

#[test]
fn an_object_is_null_while_its_generation_waits() {
    let desk = Desk::open();
    let schema = json!({ "type": "object", "required": ["done"] });
    let reply = desk.post("object", &json!({ "input": "REFUND", "schema": schema }));
    let shown = reply.data();
    assert_eq!((&shown["object"], &shown["status"]), (&Value::Null, &json!("suspended")));
    let body = json!({ "toolCallId": shown["asks"][0]["toolCallId"], "approved": false,
                       "reason": "too much" });
    let id = shown["generationId"].as_str().unwrap();
    desk.approve(id, &body).data();
    let ended = desk.ended(id);
    assert_eq!(ended["output"], json!({ "done": true }));
    assert_eq!(ended["steps"][0]["toolResults"][0]["denied"], "refused by a person: too much");
    assert_eq!(desk.made(), [""; 0]);
}

#[test]
fn streams_end_with_what_they_wait_for() {
    let desk = Desk::open();
    let raw = events(&desk.post("stream", &json!({ "input": "REFUND" })));
    let ask = raw.iter().find(|event| event["type"] == "tool-approval-request").unwrap();
    assert_eq!((&ask["reason"], &ask["kind"]), (&json!("Refund 500"), &json!("approval")));
    assert_eq!(raw.last().unwrap()["finishReason"], "tool-calls");
    let raw = events(&desk.post("stream", &json!({ "input": "PAINT" })));
    let ask = raw.iter().find(|event| event["type"] == "ask").unwrap();
    assert_eq!((&ask["reason"], &ask["toolName"]), (&json!("Which color?"), &json!("paint")));
    let schema = json!({ "type": "object" });
    let body = json!({ "input": "REFUND", "schema": schema });
    let object = events(&desk.post("stream-object", &body));
    assert_eq!(kinds(&object), ["ask", "finish"]);
}

#[test]
fn a_chat_goes_on_with_the_answers_of_its_last_message() {
    for (approved, last, state) in [
        (true, "tool-output-available", "output-available"),
        (false, "tool-output-denied", "output-denied"),
    ] {
        let desk = Desk::open();
        let asked = desk.chat(&json!([user("u1", "REFUND")]));
        assert_eq!(kinds(&asked), SUSPENDED);
        let request = asked.iter().find(|it| it["type"] == "tool-approval-request").unwrap();
        let stored = desk.messages();
        let tool = &stored[1]["parts"][0];
        assert_eq!(tool["state"], "approval-requested");
        assert_eq!(tool["approval"], json!({ "id": request["approvalId"] }));
        assert_eq!(stored[1]["id"], asked[0]["messageId"]);

        let message = decide(&stored[1], &[approved]);
        let gone_on = desk.chat(&json!([stored[0], message]));
        let expected = [
            "start",
            last,
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish",
        ];
        assert_eq!(kinds(&gone_on), expected);
        assert_eq!(gone_on[0]["messageId"], asked[0]["messageId"]);
        assert_eq!(gone_on[1]["toolCallId"], request["toolCallId"]);
        let stored = desk.messages();
        assert_eq!(stored.len(), 2);
        let tool = &stored[1]["parts"][0];
        assert_eq!(
            (&tool["state"], &tool["approval"]["approved"]),
            (&json!(state), &json!(approved))
        );
        assert_eq!(desk.made().len(), usize::from(approved));

        let again = desk.post("chat", &json!({ "id": "c1", "messages": [stored[0], message] }));
        assert_eq!(code(&again), (409, "ask_answered"));
    }
}

#[test]
fn of_two_calls_in_one_turn_one_is_refused() {
    let desk = Desk::open();
    desk.chat(&json!([user("u1", "TWO")]));
    let stored = desk.messages();
    let half = decide(&stored[1], &[true]);
    let waits = desk.chat(&json!([half]));
    assert_eq!(kinds(&waits), ["start", "tool-approval-request", "finish"]);
    assert_eq!(waits[0]["messageId"], stored[1]["id"]);
    let reloaded = desk.messages();
    let states: Vec<_> =
        reloaded[1]["parts"].as_array().unwrap().iter().map(|part| &part["state"]).collect();
    assert_eq!(states, ["approval-responded", "approval-requested"]);
    let rest = desk.chat(&json!([decide(&reloaded[1], &[false])]));
    let results = [&rest[1]["type"], &rest[2]["type"]];
    assert_eq!(results, ["tool-output-available", "tool-output-denied"]);
    assert_eq!(desk.made(), ["500"]);
}

#[test]
fn calls_that_need_nobody_are_made_at_once() {
    let desk = Desk::open();
    let asked = desk.chat(&json!([user("u1", "MIXED")]));
    let output = asked.iter().find(|it| it["type"] == "tool-output-available").unwrap();
    assert_eq!(output["output"], json!({ "refunded": 5 }));
    assert_eq!(desk.made(), ["5"]);
    let stored = desk.messages();
    desk.chat(&json!([decide(&stored[1], &[true])]));
    assert_eq!(desk.made(), ["5", "600"]);
}

#[test]
fn questions_are_data_and_outputs_answer_them() {
    for (text, question, given) in
        [("ASK", "Which one?", json!("the left one")), ("PAINT", "Which color?", json!("blue"))]
    {
        let desk = Desk::open();
        let asked = desk.chat(&json!([user("u1", text)]));
        let ask = asked.iter().find(|it| it["type"] == "data-ask").unwrap();
        assert_eq!(
            (&ask["data"]["question"], &ask["id"]),
            (&json!(question), &ask["data"]["askId"])
        );
        let mut message = desk.messages()[1].clone();
        let parts = message["parts"].as_array_mut().unwrap();
        assert_eq!((&parts[0]["state"], &parts[1]), (&json!("input-available"), ask));
        parts[0]["state"] = json!("output-available");
        parts[0]["output"] = json!(7);
        let invalid = desk.post("chat", &json!({ "id": "c1", "messages": [message] }));
        assert_eq!(code(&invalid), (400, "answer_invalid"), "{}", invalid.text());
        message["parts"][0]["output"] = given.clone();
        let gone_on = desk.chat(&json!([message]));
        let output = if text == "ASK" { given } else { json!({ "painted": "blue" }) };
        assert_eq!(
            (&gone_on[1]["type"], &gone_on[1]["output"]),
            (&json!("tool-output-available"), &output)
        );
    }
}

#[test]
fn the_inbox_answers_for_a_chat() {
    let desk = Desk::open();
    desk.chat(&json!([user("u1", "REFUND")]));
    let ask = desk.server.get("/inbox?kind=approval").data()["asks"][0].clone();
    assert_eq!(ask["of"]["toolName"], "refund");
    let place = format!("/inbox/{}/answer", ask["askId"].as_str().unwrap());
    desk.server.post(&place, &json!({ "data": { "approved": true } })).data();
    desk.ended(ask["of"]["generationId"].as_str().unwrap());
    let shown = desk.messages();
    assert_eq!(shown[1]["parts"][0]["state"], "output-available");
    let late = desk.post(
        "chat",
        &json!({ "id": "c1", "messages": [decide(&{
        let mut stale = shown[1].clone();
        stale["parts"][0]["state"] = json!("approval-requested");
        stale
    }, &[true])] }),
    );
    assert_eq!(code(&late), (409, "ask_answered"));
    assert_eq!(desk.made(), ["500"]);
}

#[test]
fn a_new_message_withdraws_what_waits() {
    let desk = Desk::open();
    desk.chat(&json!([user("u1", "REFUND")]));
    let stored = desk.messages();
    let generation = stored[1]["metadata"]["generationId"].as_str().unwrap().to_owned();
    let went_on = desk.chat(&json!([stored[0], stored[1], user("u2", "AFTER")]));
    let text: String = went_on.iter().filter_map(|chunk| chunk["delta"].as_str()).collect();
    assert_eq!(text.trim(), "user assistant tool user");
    assert_eq!(desk.ended(&generation)["status"], "cancelled");
    let asks = desk.server.get("/inbox?state=all").data()["asks"].clone();
    assert_eq!(asks[0]["state"], "withdrawn");
    let tool = desk.messages()[1]["parts"][0].clone();
    let reason = "not approved: the user went on";
    assert_eq!(
        (&tool["state"], &tool["approval"]["reason"]),
        (&json!("output-denied"), &json!(reason))
    );
    assert_eq!(desk.made(), [""; 0]);
}

#[test]
fn a_generation_that_waits_can_be_cancelled() {
    let desk = Desk::open();
    let shown = desk.post("text", &json!({ "input": "REFUND" })).data();
    let id = shown["generationId"].as_str().unwrap();
    let cancel = format!("generations/{id}/cancel");
    assert_eq!(desk.post(&cancel, &json!({})).data()["status"], "cancelled");
    assert_eq!(desk.generation(id)["status"], "cancelled");
    assert_eq!(code(&desk.post(&cancel, &json!({}))), (400, "generation_not_running"));
    let place = format!("/inbox/{}/answer", shown["asks"][0]["askId"].as_str().unwrap());
    let late = desk.server.post(&place, &json!({ "data": { "approved": true } }));
    assert_eq!(code(&late), (409, "ask_withdrawn"));
}

#[test]
fn what_a_sub_agent_asks_is_answered_one_after_the_other() {
    let desk = Desk::open();
    let chat = |messages: Value| {
        let body = json!({ "id": "c1", "messages": messages });
        let body = body.to_string();
        let mut wire = Wire::open(desk.server.address).unwrap();
        wire.send("POST", "/agents/head/chat", &[], Some(body.as_bytes())).unwrap();
        chunks(&wire.reply().unwrap())
    };
    let stored = || {
        let path = "/api/memory/conversations/c1/messages?agentId=head";
        desk.server.get(path).data()["messages"][1].clone()
    };
    let requests = |chunks: &[Value]| -> Vec<Value> {
        let asked = chunks.iter().filter(|it| it["type"] == "tool-approval-request");
        asked.map(|it| it["approvalId"].clone()).collect()
    };
    let asked = requests(&chat(json!([user("u1", "DELEGATE")])));
    assert_eq!(asked.len(), 2, "both are shown at the call of the sub-agent");
    let message = stored();
    assert_eq!(message["parts"][0]["approval"]["id"], asked[1], "the last one counts");
    let waits = chat(json!([decide(&message, &[true])]));
    assert_eq!(requests(&waits), [asked[0].clone()]);
    let mut message = stored();
    message["parts"][0]["approval"]["id"] = asked[0].clone();
    message["parts"][0]["state"] = json!("approval-requested");
    let ended = chat(json!([decide(&message, &[false])]));
    assert_eq!(ended[1]["type"], "tool-output-available", "{ended:#?}");
    let shown = &stored()["parts"][0];
    assert_eq!((&shown["state"], &shown["approval"]), (&json!("output-available"), &Value::Null));
    let inner = desk.server.get("/agents/clerk/history").data();
    let inner = &inner["entries"][0]["steps"][0]["toolResults"];
    assert_eq!(inner[0]["denied"], "refused by a person", "inside: {inner}");
    assert_eq!(desk.made(), ["600"]);
}
