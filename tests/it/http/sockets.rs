//! WebSockets.

use std::collections::BTreeMap;
use std::net::TcpStream;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Message, WebSocket, client};

use super::site::{Site, at};
use support::PATIENCE;

pub(super) struct Socket(pub(super) WebSocket<TcpStream>);

impl Socket {
    pub(super) fn open(site: &Site, path: &str) -> Self {
        let stream = TcpStream::connect(site.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request = format!("ws://{}{path}", site.address).into_client_request().unwrap();
        Self(client(request, stream).unwrap().0)
    }

    pub(super) fn say(&mut self, text: &str) {
        self.0.send(Message::text(text)).unwrap();
    }

    /// Reads the next text, ignoring pings.
    pub(super) fn next(&mut self) -> Value {
        loop {
            match self.0.read().unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Reads the next span, ignoring log records.
    fn next_span(&mut self) -> (String, Value) {
        let mut frame = self.next();
        while frame["type"] == "OBSERVABILITY_LOG" {
            frame = self.next();
        }
        assert_eq!(
            (&frame["type"], &frame["success"]),
            (&json!("OBSERVABILITY_EVENT"), &json!(true))
        );
        assert!(frame["data"]["timestamp"].is_string(), "{frame}");
        let phase = frame["data"]["type"].as_str().unwrap().to_owned();
        (phase, frame["data"]["span"].take())
    }

    /// Reads spans until the root of this execution has ended; returns the phases by span, and the
    /// spans.
    fn trace_of(&mut self, execution: &str) -> Vec<(String, Value)> {
        let mut seen = Vec::new();
        loop {
            let (phase, span) = self.next_span();
            let is_root = span.get("parentSpanId").is_none();
            let is_last = is_root
                && phase == "span:end"
                && span["attributes"]["workflow.execution.id"] == execution;
            seen.push((phase, span));
            if is_last {
                return seen;
            }
        }
    }
}

/// Checks that every span begins and then ends, once each, in one trace, below a span that has
/// begun.
fn assert_whole(seen: &[(String, Value)]) -> BTreeMap<String, Value> {
    let mut open = BTreeMap::new();
    let mut ended = BTreeMap::new();
    for (phase, span) in seen {
        let id = span["spanId"].as_str().unwrap().to_owned();
        assert_eq!((id.len(), span["traceId"].as_str().unwrap().len()), (16, 32), "{span}");
        assert_eq!(span["traceId"], seen[0].1["traceId"], "{span}");
        if phase == "span:start" {
            if let Some(parent) = span.get("parentSpanId") {
                assert!(open.contains_key(parent.as_str().unwrap()), "no parent yet: {span}");
            }
            assert!(open.insert(id.clone(), span.clone()).is_none(), "begun twice: {span}");
        } else {
            assert!(open.contains_key(&id), "ended before it began: {span}");
            assert!(span["endTime"].is_string() && span["duration"].is_u64(), "{span}");
            assert!(ended.insert(id, span.clone()).is_none(), "ended twice: {span}");
        }
    }
    assert_eq!(open.len(), ended.len(), "spans without an end: {seen:#?}");
    ended
}

#[test]
fn the_echo_answers() {
    let site = Site::start();
    let mut socket = Socket::open(&site, "/ws");
    let hello = socket.next();
    assert_eq!((&hello["type"], &hello["success"]), (&json!("CONNECTION_TEST"), &json!(true)));
    assert!(hello["data"]["message"].is_string() && hello["data"]["timestamp"].is_string());
    for message in [json!({ "a": [1, null] }), json!("text"), json!(5), json!(null)] {
        socket.say(&message.to_string());
        assert_eq!(socket.next(), json!({ "type": "ECHO", "success": true, "data": message }));
    }
    for text in ["hello", "", "{\"a\":"] {
        socket.say(text);
        let error = socket.next();
        assert_eq!((&error["type"], &error["success"]), (&json!("ERROR"), &json!(false)));
        assert!(error["error"].is_string(), "{error}");
    }
}

/// Opens a socket of traces, which says that it is connected.
fn observer(site: &Site, query: &str) -> Socket {
    let mut socket = Socket::open(site, &format!("/ws/observability{query}"));
    assert_eq!(socket.next()["type"], "CONNECTION_SUCCESS");
    socket
}

#[test]
fn an_observer_sees_every_span_of_an_execution() {
    let site = Site::start();
    let mut socket = observer(&site, "");
    site.execute("add", "a1", &json!({ "n": 1 }));
    let ended = assert_whole(&socket.trace_of("a1"));
    let root = ended.values().find(|span| span.get("parentSpanId").is_none()).unwrap();
    assert_eq!(
        (&root["status"]["code"], &root["attributes"]["entity.id"]),
        (&json!("OK"), &json!("add"))
    );
    assert_eq!(root["attributes"]["entity.type"], "workflow");
    let steps: Vec<_> =
        ended.values().filter_map(|span| span["attributes"]["workflow.step.id"].as_str()).collect();
    for step in ["one", "two", "three"] {
        assert!(steps.contains(&step), "no span of {step}: {steps:?}");
    }

    let body = json!({ "input": {}, "options": { "executionId": "f1" } });
    site.post("/workflows/failing/execute", &body);
    let ended = assert_whole(&socket.trace_of("f1"));
    let root = ended.values().find(|span| span.get("parentSpanId").is_none()).unwrap();
    assert_eq!(root["status"]["code"], "ERROR");
    assert!(root["status"]["message"].as_str().unwrap().contains("missing"), "{root}");
}

#[test]
fn a_filter_covers_children_and_nothing_else() {
    let site = Site::start();
    let filter = "entityType=workflow&entityId=parent";
    let mut socket = Socket::open(&site, &format!("/ws/observability?{filter}"));
    let welcome = socket.next();
    assert_eq!(welcome["data"]["entityId"], "parent");
    site.execute("add", "a1", &json!({ "n": 1 }));
    site.execute("approval", "b1", &json!({ "who": "ann" }));
    site.execute("parent", "p1", &json!({ "who": "ann" }));
    let answer = json!({ "resumeData": { "approved": true } });
    site.post(&at("parent", "p1", "resume"), &answer).data();
    let seen = socket.trace_of("p1");
    let ended = assert_whole(&seen);
    let executions: std::collections::BTreeSet<_> = ended
        .values()
        .map(|span| span["attributes"]["workflow.execution.id"].as_str().unwrap())
        .collect();
    assert_eq!(executions.len(), 2, "parent and child only: {executions:?}");

    socket.say("{\"type\":\"SUBSCRIBE\",\"entityType\":\"workflow\",\"entityId\":\"add\"}");
    assert_eq!(socket.next()["type"], "SUBSCRIPTION_SUCCESS");
    site.execute("parent", "p2", &json!({ "who": "ann" }));
    site.execute("add", "a2", &json!({ "n": 1 }));
    assert_whole(&socket.trace_of("a2"));
}

#[test]
fn an_observer_of_agents_gets_no_workflows() {
    let site = Site::start();
    let mut socket = observer(&site, "?entityType=agent");
    site.execute("add", "a1", &json!({ "n": 1 }));
    let plain =
        ["{\"type\":\"SUBSCRIBE\"}", "{\"type\":\"SUBSCRIBE\",\"data\":{\"entityId\":\"add\"}}"];
    for message in plain {
        socket.say(message);
        let kept = socket.next();
        assert_eq!(
            (&kept["type"], &kept["data"]["entityType"]),
            (&json!("SUBSCRIPTION_SUCCESS"), &json!("agent"))
        );
    }
    site.execute("add", "a2", &json!({ "n": 1 }));
    socket.say("{\"type\":\"SUBSCRIBE\",\"entityType\":null}");
    let all = socket.next();
    assert_eq!(
        (&all["type"], &all["data"]),
        (&json!("SUBSCRIPTION_SUCCESS"), &json!({ "subscribed": true }))
    );
    site.execute("add", "a3", &json!({ "n": 1 }));
    assert_whole(&socket.trace_of("a3"));
    socket.say("{\"type\":\"PING\"}");
    assert_eq!(socket.next(), json!({ "type": "PONG", "success": true }));
}

#[test]
fn invalid_messages_of_observers_are_answered() {
    let site = Site::start();
    let rows = [
        ("entityType=tool", "Invalid query parameter entityType: must be agent or workflow"),
        ("entityId=", "Invalid query parameter entityId: must have 1 to 200 characters"),
        ("entityID=add", "Invalid query parameter entityID: unknown; did you mean entityId?"),
    ];
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for (query, text) in rows {
        for headers in [&upgrade[..], &[]] {
            let path = format!("/ws/observability?{query}");
            let reply = site.send("GET", &path, headers, None);
            assert_eq!((reply.status, reply.error().as_str()), (400, text));
        }
    }
    let plain = site.get("/ws");
    assert_eq!(plain.status, 426, "{}", plain.text());
    plain.error();

    let misspelt = site.send("GET", "/ws/logs?workflowID=add", &upgrade, None);
    let text = "Invalid query parameter workflowID: unknown; did you mean workflowId?";
    assert_eq!((misspelt.status, misspelt.error().as_str()), (400, text));
    let mut log = Socket::open(&site, "/ws/logs?token=x&x=1");
    assert_eq!(log.next()["type"], "initial", "clients add parameters of their own");
    for (key, what) in [
        ("workflowID", "unknown; did you mean workflowId?"),
        (
            "bogus",
            "unknown; known parameters: level, agentId, workflowId, executionId, conversationId, since, until, limit",
        ),
    ] {
        log.say(&json!({ "type": "updateFilter", "filter": { key: "x" } }).to_string());
        let mut error = log.next();
        while error["type"] == "update" {
            error = log.next();
        }
        assert_eq!(error["error"], format!("Invalid query parameter {key}: {what}"));
    }

    let mut socket = Socket::open(&site, "/ws/observability");
    socket.next();
    for text in
        ["nonsense", "[]", "{\"type\":\"NOPE\"}", "{\"type\":\"SUBSCRIBE\",\"entityType\":\"x\"}"]
    {
        socket.say(text);
        let error = socket.next();
        assert_eq!((&error["type"], &error["success"]), (&json!("ERROR"), &json!(false)), "{text}");
    }
}

#[test]
fn log_lines_of_an_execution_reach_its_observers() {
    let site = Site::start();
    let mut log = Socket::open(&site, "/ws/logs?level=warn&workflowId=failing");
    let mut traces = Socket::open(&site, "/ws/observability?entityId=failing");
    let mut others = Socket::open(&site, "/ws/observability?entityId=add");
    assert_eq!(log.next()["logs"], json!([]));
    for socket in [&mut traces, &mut others] {
        assert_eq!(socket.next()["type"], "CONNECTION_SUCCESS");
    }
    let body = json!({ "input": {}, "options": { "executionId": "f1" } });
    site.post("/workflows/failing/execute", &body);
    let frame = log.next();
    assert_eq!((&frame["type"], &frame["logs"][1]), (&json!("update"), &json!(null)), "{frame}");
    let entry = &frame["logs"][0];
    assert_eq!((&entry["level"], &entry["executionId"]), (&json!("warn"), &json!("f1")), "{frame}");
    let mut told = traces.next();
    while told["data"]["severityText"] != "WARN" {
        told = traces.next();
    }
    assert_eq!(told["type"], "OBSERVABILITY_LOG", "{told}");
    assert_eq!(told["data"]["body"], entry["msg"], "{told}");
    assert_eq!(told["data"]["attributes"]["executionId"], "f1", "{told}");
    others.say("{\"type\":\"PING\"}");
    assert_eq!(others.next()["type"], "PONG", "nothing of another workflow");

    let mut late = Socket::open(&site, "/ws/logs?executionId=f1&level=warn");
    let initial = late.next();
    assert_eq!((&initial["type"], &initial["logs"][0]["msg"]), (&json!("initial"), &entry["msg"]));
}
