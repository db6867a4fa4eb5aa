//! The program of `examples/desk.rs`, called as its comments describe.

use serde_json::{Value, json};

use super::orders::start_example;
use support::server::Home;

#[test]
fn the_desk_is_an_agent_in_addition_to_the_configured_ones() {
    let home = Home::new(super::site::CONFIG);
    let server = start_example(&home, "desk");
    let agents = server.get("/agents").data();
    let desk = agents.as_array().unwrap().iter().find(|agent| agent["id"] == "desk").unwrap();
    assert_eq!(desk["name"], "Service desk");
    let reply = server.post("/agents/desk/text", &json!({ "input": "hello" }));
    assert_eq!(reply.data()["text"], "hello");
}

#[test]
fn the_desk_acts_by_the_callers_identity() {
    let home = Home::new(super::site::CONFIG);
    let server = start_example(&home, "desk");
    let staff = json!({ "role": "staff" });
    let none = "tool refund is not available; there are: order_status";
    // prompt, context, output or error of the only tool call
    let rows = [
        ("where is order 7", json!({}), Ok(json!({ "status": "on its way" }))),
        ("where is order 8", json!({}), Err("there is no order 8")),
        ("refund 20", json!({}), Err(none)),
        ("refund 20", json!({ "role": "guest" }), Err(none)),
        ("refund 20", staff.clone(), Ok(json!(20))),
        ("refund 100", staff.clone(), Ok(json!(100))),
        ("refund 101", staff.clone(), Err("ask your manager")),
        ("refund 2000", staff, Err("ask your manager")),
    ];
    for (prompt, context, expected) in rows {
        let body = json!({ "input": prompt, "options": { "context": context } });
        let reply = server.post("/agents/desk/text", &body);
        let generation = reply.header("x-generation-id").unwrap().to_owned();
        let data = reply.data();
        let result = &data["toolResults"][0];
        match expected {
            Ok(expected) => {
                let output = &result["output"];
                let is_paid = output.get("paid").is_some();
                assert_eq!(if is_paid { &output["paid"] } else { output }, &expected, "{data}");
                if is_paid {
                    let call = result["toolCallId"].as_str().unwrap();
                    assert_eq!(output["receipt"], format!("{generation}/{call}"));
                }
            }
            Err(expected) => {
                assert_eq!((&result["error"], &data["text"]), (&json!(expected), &json!(expected)));
            }
        }
        // the hook at the end runs if the tool was called
        if result["error"] == Value::Null {
            let line = server.says(&format!("generation {generation}: "));
            assert!(line.contains("gave Output"), "{line}");
        }
    }
}

#[test]
fn tools_in_rust_are_called_directly_without_an_agent() {
    let home = Home::new(super::site::CONFIG);
    let server = start_example(&home, "desk");
    let call = |tool: &str, input: Value| {
        server.post(&format!("/tools/{tool}/execute"), &json!({ "input": input }))
    };
    let paid = call("refund", json!({ "amount": 5 })).data();
    assert_eq!(paid["result"]["paid"], 5);
    let gone = call("order_status", json!({ "order": "8" }));
    assert_eq!(
        (gone.status, gone.error().as_str()),
        (500, "Failed to execute tool: there is no order 8")
    );
    let nothing = call("refund", json!({ "amount": 0 }));
    assert!(nothing.status == 400 && nothing.error().starts_with("Invalid tool input: amount: "));
}
