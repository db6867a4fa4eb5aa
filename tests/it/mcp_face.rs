//! The face for clients of MCP: its own clients in Node.js, access, tasks, and what clients keep.

mod access;
mod answers;
pub(crate) mod conformance;
mod doors;
pub(crate) mod fixtures;
mod listening;
mod pages;
mod stopping;
mod tasks;
mod tools;

use std::process::Command;

use serde_json::{Value, json};

use crate::clients::run;
use crate::program::Programs as _;
use support::client::{Events, Reply, Wire};
use support::server::{Home, Server};
use support::store::Store;

const CONFIG: &str = include_str!("../clients/mcp/server.toml");
const KEY: &str = "0123456789abcdef0123456789abcdef";
const MODERN: &str = "2026-07-28";

/// A server with the faces, and its folder.
struct Site {
    home: Home,
    server: Server,
}

impl Site {
    fn start() -> Self {
        Self::with(Home::new(CONFIG))
    }

    fn with(home: Home) -> Self {
        let server = Server::start(command(&home));
        Self { home, server }
    }

    /// Kills the server and starts it again.
    fn killed(self) -> Self {
        self.server.kill();
        Self::with(self.home)
    }

    /// Sends a request that describes itself, and returns the message that answers it.
    fn ask(&self, method: &str, params: &Value, abilities: &Value) -> Value {
        self.ask_as(&[], method, params, abilities).json()
    }

    fn ask_as(
        &self,
        more: &[(&str, &str)],
        method: &str,
        params: &Value,
        abilities: &Value,
    ) -> Reply {
        self.send("/mcp", more, (method, params, abilities))
    }

    /// Sends a request to another face.
    fn ask_at(&self, path: &str, method: &str, params: &Value, abilities: &Value) -> Value {
        self.send(path, &[], (method, params, abilities)).json()
    }

    fn send(
        &self,
        path: &str,
        more: &[(&str, &str)],
        (method, params, abilities): (&str, &Value, &Value),
    ) -> Reply {
        let (headers, body) = modern(method, params, abilities);
        let mut headers: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
        headers.extend_from_slice(more);
        self.server.send("POST", path, &headers, Some(body.as_bytes()))
    }

    /// Calls a tool and returns its result.
    fn call(&self, name: &str, arguments: &Value, abilities: &Value) -> Value {
        let params = json!({ "name": name, "arguments": arguments });
        self.ask("tools/call", &params, abilities)["result"].clone()
    }
}

fn command(home: &Home) -> Command {
    let mut command = home.greenroom(&[]);
    command.env("TEST_MCP_KEY", KEY);
    command
}

/// Returns the headers and the body of a request that describes itself.
fn modern(
    method: &str,
    params: &Value,
    abilities: &Value,
) -> (Vec<(&'static str, String)>, String) {
    let mut params = params.clone();
    for (key, value) in
        [("protocolVersion", json!(MODERN)), ("clientCapabilities", abilities.clone())]
    {
        params["_meta"][format!("io.modelcontextprotocol/{key}")] = value;
    }
    let name = ["name", "taskId", "uri"].iter().find_map(|key| params[*key].as_str());
    let mut headers = vec![
        ("content-type", "application/json".to_owned()),
        ("accept", "application/json, text/event-stream".to_owned()),
        ("mcp-protocol-version", MODERN.to_owned()),
        ("mcp-method", method.to_owned()),
    ];
    headers.extend(name.map(|name| ("mcp-name", name.to_owned())));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    (headers, body.to_string())
}

fn forms() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// Returns the key and the state of the only question of a result.
fn question(result: &Value) -> (String, String) {
    assert_eq!(result["resultType"], "input_required", "{result}");
    let requests = result["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1, "{result}");
    let key = requests.keys().next().unwrap().clone();
    (key, result["requestState"].as_str().unwrap().to_owned())
}

/// Returns the repetition of a call with the answer to its question.
fn answer_to(call: (&str, &Value), (key, state): &(String, String), content: &Value) -> Value {
    let (name, arguments) = call;
    json!({
        "name": name, "arguments": arguments, "requestState": state,
        "inputResponses": { key: { "action": "accept", "content": content } },
    })
}

#[test]
fn clients_of_mcp_work_unchanged() {
    run("MCP's own clients", "mcp", CONFIG, &[]);
}

#[test]
fn a_server_without_faces_has_no_address_for_them() {
    let server = Server::start(Home::new("").greenroom(&[]));
    for path in ["/mcp", "/mcp/ops/mcp"] {
        assert_eq!(server.post(path, &json!({})).status, 404, "{path}");
    }
}

#[test]
fn faces_with_names_have_their_own_address() {
    let site = Site::start();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let names = |path: &str| {
        let tools = site.server.post(path, &list).json()["result"]["tools"].clone();
        tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("/mcp/ops/mcp"), ["workflow_greet"]);
    assert!(names("/mcp").len() > 5);
    let long = "x".repeat(201);
    for name in ["other", "%ff", "%2F", "%2f..", "%00", "%0A", "%", "%2E%2E", &long] {
        let reply = site.server.post(&format!("/mcp/{name}/mcp"), &list);
        assert_eq!(
            (reply.status, reply.header("x-error-code")),
            (404, Some("not_found")),
            "{name}"
        );
        let described = format!("/.well-known/oauth-protected-resource/mcp/{name}/mcp");
        assert_eq!(site.server.get(&described).status, 404, "{name}");
    }
    assert_eq!(names("/mcp/%6Fps/mcp"), ["workflow_greet"]);
    for method in ["GET", "DELETE"] {
        let reply = site.server.send(method, "/mcp", &[], None);
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{method}");
    }
}

#[test]
fn what_is_no_request_is_refused_in_the_words_of_the_protocol() {
    let site = Site::start();
    let json = ("content-type", "application/json");
    let refused = |headers: &[(&str, &str)], body: &[u8]| {
        let reply = site.server.send("POST", "/mcp", headers, Some(body));
        let error = reply.json()["error"].clone();
        (reply.status, error["code"].as_i64().unwrap())
    };
    assert_eq!(refused(&[json], b"{"), (400, -32700));
    assert_eq!(refused(&[json], b"[]"), (400, -32600));
    assert_eq!(refused(&[("content-type", "text/csv")], b"a,b"), (415, -32600));
    assert_eq!(refused(&[json], " ".repeat((1 << 20) + 1).as_bytes()), (413, -32600));
    let reply = site.ask_as(&[], "tools/fly", &json!({}), &json!({}));
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (404, &json!(-32601)));
    let old = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/fly" });
    let reply = site.server.post("/mcp", &old);
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (200, &json!(-32601)));
    let (_, body) = modern("tools/list", &json!({}), &json!({}));
    assert_eq!(refused(&[json, ("mcp-method", "tools/list")], body.as_bytes()), (400, -32020));
    let other = body.replace(MODERN, "2030-01-01");
    assert_eq!(refused(&[json], other.as_bytes()), (400, -32022));
    let notified = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let reply = site.server.post("/mcp", &notified);
    assert_eq!((reply.status, reply.text()), (202, String::new()));
    let discovered = site.ask("server/discover", &json!({}), &json!({}))["result"].clone();
    assert_eq!(discovered["supportedVersions"], json!([MODERN]));
}

#[test]
fn foreign_pages_are_refused() {
    let site = Site::start();
    let origin = [("origin", "https://evil.example")];
    assert_eq!(site.ask_as(&origin, "tools/list", &json!({}), &json!({})).status, 403);
    let origin = [("origin", "http://localhost:5173")];
    assert_eq!(site.ask_as(&origin, "tools/list", &json!({}), &json!({})).status, 200);
}

#[test]
fn a_question_outlives_the_server_and_has_one_answer() {
    let site = Site::with(Home::on(Store::Sqlite, CONFIG));
    let call = ("workflow_expense", &json!({ "amount": 5 }));
    let asked = question(&site.call(call.0, call.1, &forms()));
    let site = site.killed();
    let yes = answer_to(call, &asked, &json!({ "approved": true }));
    let no = answer_to(call, &asked, &json!({ "approved": false }));
    let first = site.ask("tools/call", &yes, &forms());
    assert_eq!(first["result"]["structuredContent"]["approved"], true, "{first}");
    // a lost race: the current state
    let second = site.ask("tools/call", &no, &forms());
    assert_eq!(second["result"]["structuredContent"], first["result"]["structuredContent"]);
}

#[test]
fn states_that_were_not_made_for_the_same_call_are_refused() {
    let site = Site::start();
    let arguments = json!({ "amount": 5, "for": { "a": 1, "b": 2 } });
    let (key, state) = question(&site.call("workflow_expense", &arguments, &forms()));
    let refused = |call: (&str, &Value), state: &str| {
        let asked = (key.clone(), state.to_owned());
        let params = answer_to(call, &asked, &json!({ "approved": true }));
        site.ask("tools/call", &params, &forms())["error"]["code"].clone()
    };
    for (name, arguments, state) in [
        ("workflow_expense", &arguments, ""),
        ("workflow_expense", &arguments, "e30.e30"),
        ("workflow_expense", &arguments, &state[1..]),
        ("workflow_greet", &arguments, &state),
        ("workflow_expense", &json!({}), &state),
        ("workflow_expense", &json!({ "amount": 500 }), &state),
    ] {
        assert_eq!(refused((name, arguments), state), -32602, "{name} {arguments} {state}");
    }
    // without the answer it is asked again, in whatever order the arguments are repeated
    let reordered = json!({ "for": { "b": 2, "a": 1 }, "amount": 5 });
    let again =
        json!({ "name": "workflow_expense", "arguments": reordered, "requestState": state });
    let again = site.ask("tools/call", &again, &forms());
    assert_eq!(question(&again["result"]).0, key);
}

#[test]
fn what_clients_keep_of_one_face_is_nothing_to_another() {
    let twin =
        "[[faces.mcp]]\nname = \"twin\"\nworkflows = \"*\"\nsecret = \"secret:TEST_MCP_KEY\"\n";
    let site = Site::with(Home::new(&format!("{twin}{CONFIG}")));
    let call = ("workflow_expense", &json!({ "amount": 5 }));
    let asked = question(&site.call(call.0, call.1, &forms()));
    let answer = answer_to(call, &asked, &json!({ "approved": true }));
    let refused = site.ask_at("/mcp/twin/mcp", "tools/call", &answer, &forms());
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let task = site.call(call.0, call.1, &tasks)["taskId"].clone();
    let refused = site.ask_at("/mcp/twin/mcp", "tasks/get", &json!({ "taskId": task }), &tasks);
    assert_eq!(refused["error"]["message"], "Invalid params: unknown task");
    assert_eq!(site.ask("tools/call", &answer, &forms())["result"]["resultType"], "complete");
}

#[test]
fn what_is_unknown_is_repeated_shortened() {
    let site = Site::start();
    let name = "x".repeat(1000);
    let refused = site.ask("tools/call", &json!({ "name": name, "arguments": {} }), &forms());
    let expected = format!("Invalid params: unknown tool: {}", &name[..128]);
    assert_eq!(refused["error"]["message"], expected);
    let refused = site.ask(&name, &json!({}), &forms());
    let expected = format!("Method not found: {}", &name[..128]);
    assert_eq!(refused["error"]["message"], expected);
    let refused = site.ask("resources/read", &json!({ "uri": name }), &forms());
    let expected = format!("Resource not found: {}", &name[..128]);
    assert_eq!(refused["error"]["message"], expected);
}

#[test]
fn a_call_whose_client_leaves_is_cancelled() {
    let site = Site::start();
    let leave = |headers: &[(&str, String)], body: &str| {
        let before = count(&site, "running");
        let mut wire = Wire::open(site.server.address).unwrap();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
        wire.send("POST", "/mcp", &headers, Some(body.as_bytes())).unwrap();
        support::eventually("it runs", || (count(&site, "running") > before).then_some(()));
    };
    let params = json!({ "name": "workflow_slow", "arguments": {} });
    // to older clients a lost connection means nothing
    let old = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    leave(&[("content-type", "application/json".to_owned())], &old.to_string());
    let (headers, body) = modern("tools/call", &params, &json!({}));
    leave(&headers, &body);
    support::eventually("it is cancelled", || (count(&site, "cancelled") == 1).then_some(()));
    // with events
    let params =
        json!({ "name": "workflow_slow", "arguments": {}, "_meta": { "progressToken": 1 } });
    let (headers, body) = modern("tools/call", &params, &json!({}));
    leave(&headers, &body);
    support::eventually("it is cancelled", || (count(&site, "cancelled") == 2).then_some(()));
    assert_eq!(count(&site, "running"), 1);
}

fn count(site: &Site, status: &str) -> u64 {
    let counts = site.server.get("/workflows/executions/counts?workflowId=slow");
    if counts.status == 404 {
        return 0;
    }
    counts.data()["total"][status].as_u64().unwrap_or_default()
}

#[test]
fn progress_comes_before_the_result() {
    let site = Site::start();
    let params = json!({
        "name": "workflow_greet", "arguments": { "who": "Ada" }, "_meta": { "progressToken": "p" },
    });
    let (headers, body) = modern("tools/call", &params, &json!({}));
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
    let mut wire = Wire::open(site.server.address).unwrap();
    wire.send("POST", "/mcp", &headers, Some(body.as_bytes())).unwrap();
    let mut events = Events::read(wire).unwrap();
    let mut all = Vec::new();
    while let Some(event) = events.next().unwrap() {
        all.push(event.json());
    }
    let result = all.pop().unwrap();
    assert_eq!(result["result"]["structuredContent"]["letters"], 10);
    assert!(!all.is_empty());
    for (index, progress) in all.iter().enumerate() {
        assert_eq!(progress["method"], "notifications/progress");
        let expected = (&json!("p"), &json!(index + 1));
        assert_eq!(
            (&progress["params"]["progressToken"], &progress["params"]["progress"]),
            expected
        );
    }
}
