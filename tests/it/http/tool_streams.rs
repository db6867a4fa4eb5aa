//! Tools of the configuration that comes with the program: in streams, and called directly.

use serde_json::{Value, json};

use super::upstream::{events, only};
use crate::program::Programs;
use support::client::{Reply, Wire};
use support::server::{Home, Server};

fn start() -> (Home, Server) {
    let home = Home::new("");
    home.write("config.toml", include_str!("../../../config.toml"));
    let server = Server::start(home.greenroom(&["--port", "0"]));
    (home, server)
}

/// Returns rows of a prompt, the tool that it leads to, its arguments and its output.
fn rows() -> [(&'static str, &'static str, Value, Value); 2] {
    let research = "RESEARCH tea";
    [
        ("TOOL please", "add_three", json!({ "n": 4 }), json!({ "n": 7 })),
        (research, "ask_researcher", json!({ "prompt": research }), json!(research)),
    ]
}

fn ask(server: &Server, route: &str, body: &Value) -> Reply {
    let mut wire = Wire::open(server.address).unwrap();
    let path = format!("/agents/assistant/{route}");
    wire.send("POST", &path, &[], Some(body.to_string().as_bytes())).unwrap();
    wire.reply().unwrap()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_raw_stream_shows_calls_between_its_steps() {
    let (_home, server) = start();
    for (prompt, tool, input, output) in rows() {
        let events = events(&ask(&server, "stream", &json!({ "input": prompt })));
        let expected = [
            "start",
            "start-step",
            "tool-input-start",
            "tool-input-delta",
            "tool-input-end",
            "tool-call",
            "tool-result",
            "finish-step",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish",
        ];
        assert_eq!(kinds(&events), expected, "{events:#?}");
        let (call, result) = (only(&events, "tool-call"), only(&events, "tool-result"));
        assert_eq!((&call["toolName"], &call["input"]), (&json!(tool), &input));
        assert_eq!((&result["toolName"], &result["output"]), (&json!(tool), &output));
        assert_eq!(result["toolCallId"], call["toolCallId"]);
        let steps = events.iter().filter(|event| event["type"] == "finish-step");
        let reasons: Vec<_> = steps.map(|step| step["finishReason"].as_str().unwrap()).collect();
        assert_eq!(reasons, ["tool-calls", "stop"]);
    }
}

#[test]
fn a_chat_shows_calls_as_parts_of_its_message() {
    let (_home, server) = start();
    for (prompt, tool, input, output) in rows() {
        let events = events(&ask(&server, "chat", &json!({ "input": prompt })));
        let call = only(&events, "tool-input-available");
        assert_eq!((&call["toolName"], &call["input"]), (&json!(tool), &input));
        let result = only(&events, "tool-output-available");
        assert_eq!((&result["toolCallId"], &result["output"]), (&call["toolCallId"], &output));
        assert_eq!(only(&events, "finish")["messageMetadata"]["finishReason"], "stop");
    }
}

#[test]
fn an_object_is_made_after_the_calls() {
    let (_home, server) = start();
    let schema = json!({ "type": "object", "required": ["n"],
                         "properties": { "n": { "type": "integer" } } });
    for (prompt, tool, _, output) in rows() {
        let body = json!({ "input": prompt, "schema": schema });
        let events = events(&ask(&server, "stream-object", &body));
        assert_eq!(kinds(&events), ["object-delta", "object", "finish"], "{events:#?}");
        assert!(only(&events, "object")["object"]["n"].is_i64(), "{events:#?}");
        let entry = &server.get("/agents/assistant/history").data()["entries"][0];
        let result = &entry["steps"][0]["toolResults"][0];
        assert_eq!((&result["toolName"], &result["output"]), (&json!(tool), &output));
        assert_eq!(entry["output"], only(&events, "object")["object"]);
    }
}

#[test]
fn tools_are_listed_and_called_directly() {
    let (_home, server) = start();
    let tools = server.get("/tools").data();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["add_three", "ask_researcher", "refund"]);
    assert!(tools.as_array().unwrap().iter().all(|tool| tool["agents"] == json!(["assistant"])));
    for (_, tool, input, output) in rows() {
        let reply = server.post(&format!("/tools/{tool}/execute"), &json!({ "input": input }));
        let data = reply.data();
        assert_eq!((&data["toolName"], &data["result"]), (&json!(tool), &output));
        assert!(data["executionTime"].is_u64() && data["timestamp"].is_string(), "{data}");
    }
    let refusals = [
        ("nope", json!({ "input": {} }), 404, "Tool nope not found"),
        ("add_three", json!({}), 400, "Invalid request body: input: missing"),
        ("add_three", json!({ "input": {} }), 400, "Invalid tool input: n: missing"),
        (
            "add_three",
            json!({ "input": { "n": "x" } }),
            400,
            "Invalid tool input: n: \"x\" is not of type \"integer\"",
        ),
        ("ask_researcher", json!({ "input": [] }), 400, "Invalid tool input: not a JSON object"),
    ];
    for (tool, body, status, error) in refusals {
        let reply = server.post(&format!("/tools/{tool}/execute"), &body);
        assert_eq!((reply.status, reply.error().as_str()), (status, error), "{body}");
    }
}
