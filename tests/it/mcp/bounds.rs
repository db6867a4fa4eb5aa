//! Bounds of what servers send: the size of a message, and the number of tools.

use serde_json::{Value, json};
use support::provider::{Asked, Deed, Provider, whole};
use support::server::{Home, Server};

use super::scripted::sized;
use super::{Site, call, ready};
use crate::program::Programs as _;

const INTERRUPTED: &str = "Failed to execute tool: the call was interrupted; it may have happened";
/// Largest message, which lists of tools fit into.
const MAX: usize = 20_000;

#[test]
fn a_message_of_a_program_is_bounded() {
    let site = Site::start(&format!("message_bytes_max = {MAX}\n"));
    let fits = site.call("sized", &json!({ "n": MAX })).unwrap();
    assert!(fits.as_str().unwrap().len() > MAX - 200);
    assert_eq!(site.call("sized", &json!({ "n": MAX + 1 })), Err(INTERRUPTED.to_owned()));
    site.server.says(&format!("it sent a message of over {MAX} bytes"));
    assert_eq!(site.call("sum", &json!({ "n": 1 })), Ok(json!({ "sum": 2 })));
}

/// A server over HTTP with the tool `sized`, whose answers are documents or streams.
fn over_http(asked: &Asked) -> Vec<Deed> {
    let Some(method) = asked.body["method"].as_str() else { return whole(405, &[], "") };
    let (id, params) = (&asked.body["id"], &asked.body["params"]);
    if id.is_null() {
        return whole(202, &[], "");
    }
    let answered = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let answer = match method {
        "initialize" => {
            answered(json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                             "serverInfo": { "name": "web", "version": "1" } }))
        }
        "tools/list" => {
            let schema = json!({ "type": "object" });
            answered(json!({ "tools": [{ "name": "sized", "inputSchema": schema }] }))
        }
        "tools/call" => sized(id, &params["arguments"]),
        _ => {
            let error = json!({ "code": -32601, "message": "unknown" });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    };
    whole(200, &[("content-type", "application/json")], &answer.to_string())
}

#[test]
fn a_message_over_http_is_bounded() {
    let web = Provider::choosing(over_http);
    let home = Home::new(&format!(
        "[mcp.web]\nurl = \"{}\"\nmessage_bytes_max = {MAX}\n\
         restart = {{ delay = \"10ms\", max_delay = \"50ms\" }}\n",
        web.base_url()
    ));
    let server = Server::start(home.greenroom(&[]));
    ready(&server, "web");
    let fits = call(&server, "web.sized", &json!({ "n": MAX })).unwrap();
    assert!(fits.as_str().unwrap().len() > MAX - 200);
    let refused = call(&server, "web.sized", &json!({ "n": MAX + 1 }));
    assert_eq!(refused, Err(INTERRUPTED.to_owned()));
    call(&server, "web.sized", &json!({ "n": 200 })).unwrap();
}

#[test]
fn the_number_of_tools_is_bounded() {
    let tools = |site: &Site| -> Vec<Value> {
        site.status_when("own", |_| true)["tools"].as_array().unwrap().clone()
    };
    let all = tools(&Site::start(""));
    for less in [0, 1] {
        let max = all.len() - less;
        // one that cannot be used would be beyond the bound as well
        let lines = format!("tools = [\"*\", \"!loose\"]\ntools_max = {max}\n");
        let site = Site::start(&lines);
        assert_eq!(tools(&site), all[..max]);
        let status = site.status_when("own", |_| true);
        let why = format!("the server has over {max} tools (tools_max)");
        let left_out = status["leftOut"].as_array().unwrap().iter();
        let left_out: Vec<_> = left_out.filter(|it| it["reason"] == *why).collect();
        assert_eq!(left_out.len(), less, "{status}");
    }
}
