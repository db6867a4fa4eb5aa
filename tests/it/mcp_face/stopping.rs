//! Calls while the server stops, and calls that are repeated.

use serde_json::{Value, json};

use super::{CONFIG, Site, count, forms, modern};
use support::client::{Reply, Wire};
use support::eventually;
use support::server::Home;
use support::store::Store;

/// Calls a tool with a key.
fn keyed(site: &Site, key: &str, name: &str, arguments: &Value) -> Reply {
    let params = json!({ "name": name, "arguments": arguments });
    site.ask_as(&[("idempotency-key", key)], "tools/call", &params, &forms())
}

fn begin(site: &Site, more: &[(&str, &str)]) -> Wire {
    let params = json!({ "name": "workflow_slow", "arguments": {} });
    let (headers, body) = modern("tools/call", &params, &json!({}));
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
    headers.extend_from_slice(more);
    let mut wire = Wire::open(site.server.address).unwrap();
    wire.send("POST", "/mcp", &headers, Some(body.as_bytes())).unwrap();
    eventually("it runs", || (count(site, "running") == 1).then_some(()));
    wire
}

#[test]
fn a_call_that_the_stop_interrupts_names_its_execution_and_can_be_repeated() {
    let config = format!("server.shutdown_grace = \"1s\"\n{CONFIG}");
    let mut site = Site::with(Home::on(Store::Sqlite, &config));
    let mut wire = begin(&site, &[("idempotency-key", "k1")]);
    site.server.signal("TERM");
    let reply = wire.reply().unwrap();
    assert_eq!((reply.status, reply.header("x-error-code")), (503, Some("draining")));
    assert!(reply.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    let execution = reply.header("x-execution-id").unwrap().to_owned();
    let error = reply.json()["error"].clone();
    assert_eq!(error["code"], -32603, "{error}");
    assert_eq!(error["data"]["code"], "draining", "{error}");
    assert_eq!(error["data"]["executionId"], execution.as_str(), "{error}");
    assert!(site.server.ended().success());
    let site = Site::with(site.home);
    // the same execution, which does not end with the connection of a client that repeats
    drop(begin(&site, &[("idempotency-key", "k1")]));
    let path = format!("/workflows/slow/executions/{execution}/cancel");
    assert_eq!(site.server.post(&path, &json!({})).status, 200);
    let repeated = keyed(&site, "k1", "workflow_slow", &json!({})).json()["result"].clone();
    assert_eq!(repeated["_meta"]["greenroom/executionId"], execution.as_str(), "{repeated}");
    assert_eq!(count(&site, "cancelled"), 1);
}

#[test]
fn a_key_starts_one_execution() {
    let site = Site::start();
    let who = json!({ "who": "Ada" });
    let id = |reply: Reply| reply.json()["result"]["_meta"]["greenroom/executionId"].clone();
    let first = id(keyed(&site, "k1", "workflow_greet", &who));
    assert!(first.is_string());
    assert_eq!(id(keyed(&site, "k1", "workflow_greet", &who)), first);
    assert_ne!(id(keyed(&site, "k2", "workflow_greet", &who)), first);
    let reused = keyed(&site, "k1", "workflow_greet", &json!({ "who": "Bob" }));
    assert_eq!(
        (reused.status, reused.header("x-error-code")),
        (409, Some("idempotency_key_reused"))
    );
    assert_eq!(reused.json()["error"]["data"]["code"], "idempotency_key_reused");
    let invalid = keyed(&site, "a b", "workflow_greet", &who);
    assert_eq!((invalid.status, invalid.header("x-error-code")), (400, Some("header_invalid")));
}
