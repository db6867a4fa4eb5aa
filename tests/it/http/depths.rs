//! Deeply nested values, and corrupt records.

use serde_json::{Value, json};

use super::site::{Site, at};
use crate::program::Programs;
use support::server::{Home, Server};
use support::store::Store;

const CONFIG: &str = r#"
store.passivate_after = "100ms"

[workflows.keep]
steps = [
    { id = "ask", suspend = { reason = "why" }, map = "resume" },
    { id = "same", map = "{'was': input.v | tojson | length, 'now': data}" },
]

[workflows.nests]
steps = [{ id = "rounds", type = "andDoWhile", block = "round", when = "true", max_iterations = 500 }]
[[workflows.nests.blocks.round]]
id = "nest"
map = { n = "index + 1", last = "data" }

[workflows.reads]
steps = [{ id = "read", map = "input.t | fromjson" }]

[tools.counted]
kind = "workflow"
workflow = "add"
description = "adds three"
"#;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

fn nested_text(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

/// Returns the input of an execution of `keep`: the object around it is a level too.
fn of(levels: usize) -> Value {
    json!({ "v": nested(levels - 1) })
}

/// Returns JSON in texts in JSON, which a parser with the feature `raw_value` reads in one go.
fn embedded() -> String {
    (0..10).fold("1".to_owned(), |text, _| {
        let text = json!({ "$serde_json::private::RawValue": text });
        format!("{}{text}{}", "[".repeat(100), "]".repeat(100))
    })
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[test]
fn json_in_texts_of_a_reserved_key_is_refused() {
    let site = Site::with(CONFIG);
    let body = format!("{{\"input\":{{\"v\":{}}}}}", embedded());
    for path in ["/workflows/keep/execute", "/agents/assistant/text", "/api/memory/conversations"] {
        let headers = [("content-type", "application/json")];
        let refused = site.server.send("POST", path, &headers, Some(body.as_bytes()));
        assert_eq!(refused.status, 400, "{path}");
        let text = refused.error();
        assert!(
            text.contains("the key $serde_json::private::RawValue at line 1"),
            "{path}: {text}"
        );
    }
    let input = json!({ "input": { "t": embedded() }, "options": { "executionId": "r" } });
    assert_eq!(site.post("/workflows/reads/execute", &input).status, 500);
    let error = site.get(&at("reads", "r", "state")).data()["error"]["message"].take();
    assert!(error.as_str().is_some_and(|it| it.contains("is reserved")), "{error}");
    assert_eq!(site.execute("keep", "k", &of(1))["status"], "suspended");
}

#[test]
fn values_at_the_depth_limit_are_kept_and_deeper_ones_refused() {
    let site = Site::with(CONFIG);
    assert_eq!(site.execute("keep", "k", &of(100))["status"], "suspended");
    let refusals = [
        ("/workflows/keep/execute", json!({ "input": of(101) })),
        (
            "/workflows/keep/execute",
            json!({ "input": {}, "options": { "context": { "c": nested(100) } } }),
        ),
        ("/workflows/keep/stream", json!({ "input": of(101) })),
        ("/workflows/keep/executions/k/resume", json!({ "resumeData": nested(101) })),
        (
            "/workflows/keep/executions/k/replay",
            json!({ "stepId": "ask", "resumeData": nested(101) }),
        ),
        ("/workflows/keep/executions/k/replay", json!({ "stepId": "ask", "input": of(101) })),
        ("/tools/counted/execute", json!({ "input": { "n": 1, "more": nested(100) } })),
        ("/tools/counted/execute", json!({ "input": { "n": 1 }, "context": { "c": nested(100) } })),
        ("/agents/assistant/text", json!({ "input": nested(101) })),
        (
            "/agents/assistant/text",
            json!({ "input": "hi", "options": { "context": { "c": nested(100) } } }),
        ),
        (
            "/agents/assistant/text",
            json!({ "input": "hi", "options": { "providerOptions": { "p": nested(100) } } }),
        ),
        ("/api/memory/conversations", json!({ "metadata": { "m": nested(100) } })),
    ];
    for (path, body) in refusals {
        let reply = site.post(path, &body);
        let error = reply.error();
        assert_eq!(reply.status, 400, "{path}: {error}");
        let is_said = error.contains("nested deeper than 100 levels, at ");
        // input of agents is parsed as messages first
        assert!(is_said || error.contains("input[0]"), "{path}: {error}");
    }
    let memory = json!({ "metadata": { "m": nested(99) }, "id": "c" });
    assert_eq!(site.post("/api/memory/conversations", &memory).status, 201);
    let content = json!({ "content": { "m": nested(100) } });
    let refused = site.post("/api/memory/conversations/c/working-memory", &content);
    assert!(refused.error().contains("content: nested deeper"), "{}", refused.error());

    let site = site.after_a_kill();
    assert_eq!(depth(&site.state("keep", "k")["input"]), 100);
    let resumed = site.post(&at("keep", "k", "resume"), &json!({ "resumeData": nested(99) }));
    assert_eq!(resumed.data()["result"]["now"], nested(99));
    assert_eq!(site.state("keep", "k")["result"]["now"], nested(99));
    assert_eq!(site.get("/observability/traces").status, 200);
}

#[test]
fn the_bound_is_configured() {
    let site = Site::with(&format!("limits.value_depth_max = 8\n{CONFIG}"));
    assert_eq!(site.execute("keep", "k", &of(8))["status"], "suspended");
    let refused = site.post("/workflows/keep/execute", &json!({ "input": of(9) }));
    let error = refused.error();
    assert!(error.ends_with("nested deeper than 8 levels, at v[0][0][0][0][0][0][0]"), "{error}");
}

#[test]
fn a_loop_that_nests_its_output_fails_where_it_is_too_deep() {
    let site = Site::with(CONFIG);
    let body = json!({ "input": {}, "options": { "executionId": "n" } });
    let reply = site.post("/workflows/nests/execute", &body);
    assert_eq!(reply.status, 500, "{}", reply.text());
    let state = site.after_a_kill().state("nests", "n");
    assert_eq!(state["status"], "error");
    let error = state["error"]["message"].as_str().unwrap_or_default();
    assert!(error.contains("nested deeper than 100 levels, at last.last"), "{state:#}");
}

/// Changes a stored execution to one of an earlier version, `levels` deep.
fn older(home: &Home, levels: usize) {
    let connection = rusqlite::Connection::open(home.path("store.db")).unwrap();
    let changed = connection.execute(
        "UPDATE executions SET events = CAST(replace(CAST(events AS TEXT), ?1, ?2) AS BLOB)
            WHERE id = 'k'",
        [nested_text(80), nested_text(levels)],
    );
    assert_eq!(changed, Ok(1));
}

fn stopped(site: Site) -> Home {
    let Site { home, mut server } = site;
    server.signal("TERM");
    assert!(server.ended().success());
    home
}

#[test]
fn deeper_values_of_earlier_versions_are_read_and_continue() {
    for levels in [125, 400, 900] {
        let site = Site::on(Store::Sqlite, CONFIG);
        site.execute("keep", "k", &of(81));
        site.execute("add", "a", &json!({ "n": 1 }));
        let home = stopped(site);
        older(&home, levels);
        let server = Server::start(home.greenroom(&[]));
        let state = server.get(&at("keep", "k", "state"));
        assert_eq!(state.status, 200, "{levels}");
        assert!(state.text().contains(&nested_text(levels)), "{levels}: it is shown whole");
        for path in [
            "/observability/traces".to_owned(),
            "/workflows/executions".to_owned(),
            "/workflows/keep/executions".to_owned(),
            at("keep", "k", "why"),
        ] {
            let reply = server.get(&path);
            assert_eq!(reply.status, 200, "{levels}, {path}: {}", reply.text());
        }
        let trace = state.header("x-trace-id").map(str::to_owned);
        if let Some(trace) = trace {
            let trace = server.get(&format!("/observability/traces/{trace}"));
            assert_eq!(trace.status, 200, "{levels}: {}", trace.text());
        }
        let replay = json!({ "stepId": "ask", "resumeData": 1 });
        let replayed = server.post(&at("keep", "k", "replay"), &replay);
        assert_eq!(replayed.status, 200, "{levels}: {}", replayed.text());
        let resumed = server.post(&at("keep", "k", "resume"), &json!({ "resumeData": 5 }));
        assert_eq!(resumed.data()["result"], json!({ "was": 2 * levels + 1, "now": 5 }));
        server.kill();
        let server = Server::start(home.greenroom(&[]));
        let state = server.get(&at("keep", "k", "state")).text();
        assert!(state.contains("\"status\":\"completed\""), "{levels}");
    }
}

#[test]
fn a_corrupt_record_affects_only_its_execution() {
    let site = Site::on(Store::Sqlite, CONFIG);
    site.execute("keep", "k", &of(5));
    site.execute("keep", "other", &of(5));
    site.begin("nap", "unused", &json!({}));
    let home = stopped(site);
    let connection = rusqlite::Connection::open(home.path("store.db")).unwrap();
    connection
        .execute_batch(
            "UPDATE executions SET events = x'5b7b' WHERE id = 'k';
             UPDATE executions SET events = x'5b7b', status = 0 WHERE id = 'unused';
             UPDATE timers SET due = 0 WHERE execution = 'unused';",
        )
        .unwrap();
    drop(connection);
    let server = Server::start(home.greenroom(&[]));
    server.says("the record of execution unused is corrupt");
    let path = |what: &str| at("keep", "k", what);
    for reply in [
        server.get(&path("state")),
        server.get(&path("why")),
        server.post(&path("resume"), &json!({ "resumeData": 1 })),
        server.post(&path("cancel"), &json!({})),
        server.post(&path("suspend"), &json!({})),
        server.post(&path("replay"), &json!({ "stepId": "ask" })),
    ] {
        let code = reply.header("x-error-code");
        assert_eq!((reply.status, code), (500, Some("record_corrupt")), "{}", reply.text());
        let error = reply.error();
        assert!(error.contains("execution k"), "{error}");
    }
    for path in [
        "/workflows/executions",
        "/workflows/keep/executions",
        "/observability/traces",
        "/observability/status",
        "/readyz",
    ] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    let metrics = server.get("/metrics").text();
    let counted = metrics.lines().find(|line| line.starts_with("greenroom_store_corrupt_reads"));
    assert!(counted.is_some_and(|line| !line.ends_with(" 0")), "{counted:?}");
    let resumed = server.post(&at("keep", "other", "resume"), &json!({ "resumeData": 2 }));
    assert_eq!(resumed.data()["result"]["now"], 2);
}
