//! Log lines, as an operator reads them.

use serde_json::{Value, json};

use super::orders::start_example;
use super::site::CONFIG;
use crate::program::Programs as _;
use support::server::{Home, Server};

/// Returns the first line of the log that contains a text.
fn line(server: &Server, part: &str) -> Value {
    let line = server.says(part);
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn json_logs_have_an_object_with_ids_on_each_line() {
    let home = Home::new(&format!("logs.format = \"json\"\n{CONFIG}"));
    let server = start_example(&home, "orders");
    let order = |id: &str, item: &str| {
        let body = json!({ "input": { "item": item, "quantity": 1 },
            "options": { "executionId": id, "userId": "ann [forged]", "conversationId": "c1" } });
        server.post("/workflows/order/execute", &body)
    };
    order("lamps", "lamp");
    order("ships", "ship\n{\"level\":\"error\"}");

    let paying = line(&server, "paying");
    assert_eq!((&paying["level"], &paying["target"]), (&json!("info"), &json!("orders")));
    assert_eq!(paying["message"], "paying lamps/pay");
    assert_eq!(paying["attributes"], json!({ "attempt": 1 }));
    let failed = line(&server, "execution ships failed");
    assert_eq!(failed["level"], "warn");
    let of_step = &failed["attributes"];
    let start = format!("execution ships failed at step {}: ", of_step["step"].as_str().unwrap());
    assert!(failed["message"].as_str().unwrap().starts_with(&start), "{failed}");
    assert_eq!(of_step["kind"], "function", "{failed}");
    for (record, id) in [(&paying, "lamps"), (&failed, "ships")] {
        assert_eq!((&record["executionId"], &record["workflowId"]), (&json!(id), &json!("order")));
        assert_eq!(record["userId"], "ann [forged]");
        assert_eq!(record["conversationId"], "c1");
        assert_eq!(record["traceId"].as_str().map(str::len), Some(32));
        assert_eq!(record["spanId"].as_str().map(str::len), Some(16));
        assert!(record["timestamp"].as_str().unwrap().ends_with('Z'));
    }
}

#[test]
fn text_logs_have_short_ids() {
    let home = Home::new(CONFIG);
    let server = start_example(&home, "orders");
    let body = json!({ "input": { "item": "lamp", "quantity": 1 },
        "options": { "executionId": "lamps", "userId": "ann" } });
    server.post("/workflows/order/execute", &body);
    let paying = server.says("paying");
    assert!(
        paying.contains(
            " INFO  orders] paying lamps/pay attempt=1 workflow=order execution=lamps user=ann"
        ),
        "{paying}"
    );
}

#[test]
fn requests_are_logged_at_debug_level() {
    let home = Home::new(CONFIG);
    let server = Server::start(home.greenroom(&["--log", "warn,greenroom=debug"]));
    let headers = [("x-request-id", "r-1")];
    server.send("GET", "/workflows/executions?status=running&userId=canary", &headers, None);
    let told = server.says("/workflows/executions: 200");
    assert!(told.contains("GET /workflows/executions: 200 duration_ms="), "{told}");
    assert!(told.ends_with(" request=r-1") && !told.contains("canary"), "{told}");
}
