//! The program of `examples/orders.rs`, called as its comments describe.

use std::process::Command;

use serde_json::{Value, json};

use support::server::{Home, Server};

/// Returns the path of the example, which `cargo test` builds but names in no variable.
pub(crate) fn start_example(home: &Home, name: &str) -> Server {
    let tests = std::env::current_exe().unwrap();
    let target = tests.parent().and_then(|deps| deps.parent()).unwrap();
    let program = target.join("examples").join(name);
    assert!(program.exists(), "not built: cargo build --example {name}");
    let mut command = Command::new(program);
    command.args(["--port", "0"]).current_dir(home.path(""));
    Server::start(command)
}

fn execute(server: &Server, id: &str, item: &str, quantity: u32) -> Value {
    let body = json!({ "input": { "item": item, "quantity": quantity },
        "options": { "executionId": id } });
    server.post("/workflows/order/execute", &body).json()
}

#[test]
fn orders_are_priced_approved_and_paid() {
    let home = Home::new(super::site::CONFIG);
    let server = start_example(&home, "orders");
    let small = execute(&server, "lamps", "lamp", 2);
    let receipt = "receipt for lamps/pay";
    assert_eq!(
        small["data"]["result"],
        json!({ "status": "paid", "total": 80, "receipt": receipt })
    );
    let large = execute(&server, "sofas", "sofa", 3);
    assert_eq!(large["data"]["suspension"]["reason"], "3 x sofa for 2700");
    assert_eq!(execute(&server, "ship", "ship", 1)["error"], "Failed to execute workflow");
    assert_eq!(server.state("order", "ship")["error"]["message"], "ship is not for sale");
    server.kill();

    let server = start_example(&home, "orders");
    let answer = json!({ "resumeData": { "approved": true } });
    let paid = server.post("/workflows/order/executions/sofas/resume", &answer).data();
    assert_eq!(
        (&paid["result"]["status"], &paid["result"]["total"]),
        (&json!("paid"), &json!(2700))
    );
    let steps = server.state("order", "sofas")["steps"].clone();
    assert_eq!((&steps[2]["stepId"], &steps[2]["attempts"]), (&json!("pay"), &json!(2)));
    // the configured workflows are there too
    assert_eq!(server.get("/workflows").data().as_array().unwrap().len(), 8);
}
