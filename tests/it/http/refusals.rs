//! Every refusal: status, text, code and envelope, without any effect.

use serde_json::json;

use super::site::{Site, at};

const STATUSES: &str =
    "must be one of running, suspended, completed, error, cancelled; did you mean completed?";

const TIME: &str = "must be an ISO 8601 time, as 2026-11-22T08:15:30Z, or a date, as 2026-11-22";

pub(super) struct Row {
    request: &'static str,
    header: Option<(&'static str, &'static str)>,
    body: Option<&'static str>,
    status: u16,
    code: &'static str,
    text: String,
}

/// Returns a row. The request is its method and path; a body of `-` means none.
pub(super) fn row(
    request: &'static str,
    body: &'static str,
    status: u16,
    code: &'static str,
    text: &str,
) -> Row {
    let body = (body != "-").then_some(body);
    Row { request, header: None, body, status, code, text: text.to_owned() }
}

pub(super) fn with_header(header: (&'static str, &'static str), row: Row) -> Row {
    Row { header: Some(header), ..row }
}

/// Creates executions in every status, named like it.
fn site() -> Site {
    let site = Site::start();
    site.execute("add", "completed", &json!({ "n": 1 }));
    site.execute("approval", "suspended", &json!({ "who": "ann" }));
    site.execute("pair", "pair", &json!({}));
    site.begin("nap", "running", &json!({}));
    site.begin("nap", "cancelled", &json!({}));
    site.post(&at("nap", "cancelled", "cancel"), &json!({})).data();
    let failing = json!({ "input": {}, "options": { "executionId": "failed" } });
    assert_eq!(site.post("/workflows/failing/execute", &failing).status, 500);
    site
}

const STATES: [(&str, &str); 6] = [
    ("add", "completed"),
    ("approval", "suspended"),
    ("pair", "pair"),
    ("nap", "running"),
    ("nap", "cancelled"),
    ("failing", "failed"),
];

/// Sends each request; afterwards every execution is unchanged, byte for byte.
fn check(rows: Vec<Row>) {
    let site = site();
    let states = || STATES.map(|(workflow, id)| site.get(&at(workflow, id, "state")).text());
    let before = states();
    refused(&site, rows);
    assert_eq!(before, states());
}

/// Sends each request and compares the whole refusal.
pub(super) fn refused(site: &Site, rows: Vec<Row>) {
    for Row { request, header, body, status, code, text } in rows {
        let (method, path) = request.split_once(' ').unwrap();
        let headers: Vec<_> = header.into_iter().collect();
        let reply = site.send(method, path, &headers, body.map(str::as_bytes));
        let shown = format!("{request} {header:?} {body:?}: {} {}", reply.status, reply.text());
        assert_eq!(reply.status, status, "{shown}");
        assert_eq!(reply.header("content-type"), Some("application/json"), "{shown}");
        assert_eq!(reply.error(), text, "{shown}");
        assert_eq!(reply.header("x-error-code"), Some(code), "{shown}");
        assert!(reply.header("x-request-id").is_some_and(|id| !id.is_empty()), "{shown}");
        assert_eq!(reply.header("allow").is_some(), status == 405, "{shown}");
    }
}

#[test]
fn paths_and_methods() {
    let long = Box::leak(format!("GET /workflows/{}", "x".repeat(201)).into_boxed_str());
    let long_text = format!("Workflow {} not found", "x".repeat(201));
    check(vec![
        row("GET /nope", "-", 404, "not_found", "Not found: GET /nope"),
        row("POST /nope", "{", 404, "not_found", "Not found: POST /nope"),
        row("GET /workflows/", "-", 404, "not_found", "Not found: GET /workflows/"),
        row("GET /workflows/add/nope", "-", 404, "not_found", "Not found: GET /workflows/add/nope"),
        row("BREW /workflows", "-", 405, "method_not_allowed", "Method BREW is not allowed here"),
        row(
            "GET /workflows/add/execute",
            "-",
            405,
            "method_not_allowed",
            "Method GET is not allowed here",
        ),
        row(
            "DELETE /workflows",
            "-",
            405,
            "method_not_allowed",
            "Method DELETE is not allowed here",
        ),
        row("PUT /ws", "-", 405, "method_not_allowed", "Method PUT is not allowed here"),
        row("GET /workflows/nope", "-", 404, "workflow_not_found", "Workflow nope not found"),
        row(long, "-", 404, "workflow_not_found", &long_text),
        row("GET /workflows/%ff", "-", 404, "workflow_not_found", "Workflow %ff not found"),
        row("GET /workflows/%00", "-", 404, "workflow_not_found", "Workflow %00 not found"),
        row("GET /workflows/a%2Fb", "-", 404, "workflow_not_found", "Workflow a%2Fb not found"),
        row("GET /workflows/%zz", "-", 404, "workflow_not_found", "Workflow %zz not found"),
        row("GET /agents/nope", "-", 404, "agent_not_found", "Agent nope not found"),
        row("GET /agents/%ff", "-", 404, "agent_not_found", "Agent %ff not found"),
        row(
            "POST /workflows/executions/execute",
            "{\"input\":{}}",
            404,
            "workflow_not_found",
            "Workflow executions not found",
        ),
    ]);
}

#[test]
fn bodies_of_execute() {
    let add = |body, code, text: &str| row("POST /workflows/add/execute", body, 400, code, text);
    let invalid =
        |body, text: &str| add(body, "body_invalid", &format!("Invalid request body: {text}"));
    let malformed = |body, text: &str| add(body, "json_invalid", &format!("Invalid JSON: {text}"));
    let id = "options.executionId: must be 1 to 128 of the characters A-Z a-z 0-9 . _ : - \
              and not only dots";
    let long =
        format!("{{\"input\":{{}},\"options\":{{\"executionId\":\"{}\"}}}}", "x".repeat(129));
    check(vec![
        malformed("-", "EOF while parsing a value at line 1 column 0"),
        malformed("", "EOF while parsing a value at line 1 column 0"),
        malformed("{", "EOF while parsing an object at line 1 column 1"),
        malformed("{\"input\":\n {,}}", "key must be a string at line 2 column 3"),
        malformed("{\"input\":{}} {}", "trailing characters at line 1 column 14"),
        malformed("\u{feff}{\"input\":{}}", "expected value at line 1 column 1"),
        malformed("{\"input\":{\"n\":NaN}}", "expected value at line 1 column 15"),
        malformed("{\"input\":{\"n\":1e999}}", "number out of range at line 1 column 19"),
        malformed(
            "{\"input\":{\"n\":\"\\ud800\"}}",
            "unexpected end of hex escape at line 1 column 22",
        ),
        invalid("[]", "invalid type: sequence, expected an object"),
        invalid("null", "invalid type: null, expected an object"),
        invalid("\"input\"", "invalid type: string \"input\", expected an object"),
        invalid("{}", "input: missing"),
        invalid("{\"options\":{}}", "input: missing"),
        invalid("{\"input\":null}", "input: must be an object"),
        invalid("{\"input\":5}", "input: must be an object"),
        invalid("{\"input\":[{\"n\":1}]}", "input: must be an object"),
        invalid(
            "{\"input\":{},\"options\":5}",
            "options: invalid type: integer `5`, expected an object",
        ),
        invalid(
            "{\"input\":{},\"options\":[]}",
            "options: invalid type: sequence, expected an object",
        ),
        invalid(
            "{\"input\":{},\"options\":{\"userId\":5}}",
            "options.userId: invalid type: integer `5`, expected a string",
        ),
        invalid(
            "{\"input\":{},\"options\":{\"context\":\"x\"}}",
            "options.context: invalid type: string \"x\", expected a map",
        ),
        invalid("{\"input\":{},\"options\":{\"executionId\":\"\"}}", id),
        invalid("{\"input\":{},\"options\":{\"executionId\":\"..\"}}", id),
        invalid("{\"input\":{},\"options\":{\"executionId\":\"a b\"}}", id),
        invalid("{\"input\":{},\"options\":{\"executionId\":\"a/b\"}}", id),
        invalid("{\"input\":{},\"options\":{\"executionId\":\"é\"}}", id),
        invalid(Box::leak(long.into_boxed_str()), id),
        add("{\"input\":{}}", "input_invalid", "Input validation failed: n: missing"),
        add(
            "{\"input\":{\"n\":\"1\"}}",
            "input_invalid",
            "Input validation failed: n: \"1\" is not of type \"integer\"",
        ),
        row(
            "POST /workflows/whole/execute",
            "{\"input\":\"x\"}",
            400,
            "input_invalid",
            "Input validation failed: \"x\" is not of type \"integer\"",
        ),
    ]);
}

#[test]
fn every_route_that_starts_refuses_alike() {
    let mut rows = Vec::new();
    for route in ["POST /workflows/nope/execute", "POST /workflows/nope/stream"] {
        for body in ["-", "{", "{}", "{\"input\":{}}"] {
            rows.push(row(route, body, 404, "workflow_not_found", "Workflow nope not found"));
        }
    }
    for route in ["POST /workflows/add/execute", "POST /workflows/add/stream"] {
        let text = "Invalid request body: input: missing";
        rows.push(row(route, "{}", 400, "body_invalid", text));
        let text = "Input validation failed: n: missing";
        rows.push(row(route, "{\"input\":{}}", 400, "input_invalid", text));
        let taken = "{\"input\":{\"n\":1},\"options\":{\"executionId\":\"suspended\"}}";
        rows.push(row(route, taken, 409, "execution_exists", "Execution suspended already exists"));
    }
    check(rows);
}

#[test]
fn headers() {
    let execute = |header, status, code, text: &str| {
        let row = row("POST /workflows/add/execute", "{\"input\":{\"n\":1}}", status, code, text);
        with_header(header, row)
    };
    let stream = |header, text: &str| {
        let stream = "GET /workflows/add/executions/completed/stream";
        with_header(header, row(stream, "-", 400, "header_invalid", text))
    };
    let kind = |declared| ("content-type", declared);
    let key = "Invalid header Idempotency-Key: must be 1 to 255 visible ASCII characters";
    let number = "Invalid header Last-Event-ID: must be the number of an event";
    let long: &str = Box::leak("k".repeat(256).into_boxed_str());
    let unsupported = "media_type_unsupported";
    let form = "application/x-www-form-urlencoded";
    let form_text = format!("Content type {form} is not supported, send application/json");
    let utf16 = "application/json; charset=utf-16";
    let utf16_text = format!("Content type {utf16} is not supported, send application/json");
    check(vec![
        execute(("idempotency-key", ""), 400, "header_invalid", key),
        execute(("idempotency-key", "a b"), 400, "header_invalid", key),
        execute(("idempotency-key", long), 400, "header_invalid", key),
        execute(("idempotency-key", "ü"), 400, "header_invalid", key),
        execute(kind(form), 415, unsupported, &form_text),
        execute(kind(utf16), 415, unsupported, &utf16_text),
        stream(("last-event-id", "x"), number),
        stream(("last-event-id", "-1"), number),
        stream(("last-event-id", "99999999999999999999"), number),
    ]);
}

#[test]
fn unknown_executions_are_404() {
    let mut rows = Vec::new();
    let actions = [
        "GET /workflows/approval/executions/ID/state",
        "GET /workflows/approval/executions/ID/stream",
        "POST /workflows/approval/executions/ID/suspend",
        "POST /workflows/approval/executions/ID/resume",
        "POST /workflows/approval/executions/ID/cancel",
    ];
    for action in actions {
        // unknown; of another workflow; invalid as an id
        for id in ["nope", "completed", "%ff", "%00", "a%2Fb", "a%20b", ".."] {
            let request: &str = Box::leak(action.replace("ID", id).into_boxed_str());
            let text = format!("Execution {id} not found");
            let bodies =
                if action.starts_with("GET") { &["-"][..] } else { &["-", "{", "[]", "{}"] };
            for body in bodies {
                rows.push(row(request, body, 404, "execution_not_found", &text));
            }
        }
    }
    let foreign = "GET /workflows/nope/executions/suspended/state";
    rows.push(row(foreign, "-", 404, "execution_not_found", "Execution suspended not found"));
    check(rows);
}

#[test]
fn suspend_and_cancel() {
    let mut rows = Vec::new();
    let ended = [
        ("add", "completed", "completed"),
        ("nap", "cancelled", "cancelled"),
        ("failing", "failed", "error"),
    ];
    for (workflow, id, status) in ended {
        for action in ["suspend", "cancel"] {
            let request = Box::leak(format!("POST {}", at(workflow, id, action)).into_boxed_str());
            let text = format!("Execution {id} is already {status}");
            rows.push(row(request, "{\"reason\":\"x\"}", 400, "execution_not_running", &text));
        }
    }
    let suspend = "POST /workflows/approval/executions/suspended/suspend";
    let text = "Execution suspended is already suspended";
    rows.push(row(suspend, "-", 400, "execution_not_running", text));
    let text = "Invalid request body: reason: invalid type: integer `5`, expected a string";
    let running = "POST /workflows/nap/executions/running/suspend";
    rows.push(row(running, "{\"reason\":5}", 400, "body_invalid", text));
    let text = "Invalid JSON: EOF while parsing an object at line 1 column 1";
    rows.push(row(running, "{", 400, "json_invalid", text));
    rows.push(row("POST /workflows/nap/executions/running/cancel", "{", 400, "json_invalid", text));
    check(rows);
}

#[test]
fn resume() {
    let suspended = |body, code, text: &str| {
        row("POST /workflows/approval/executions/suspended/resume", body, 400, code, text)
    };
    let not_suspended = |request, id| {
        row(request, "{}", 404, "not_suspended", &format!("Execution {id} is not suspended"))
    };
    let pair = |body, code, text: &str| {
        row("POST /workflows/pair/executions/pair/resume", body, 400, code, text)
    };
    let data = |what: &str| format!("Resume data validation failed: {what}");
    check(vec![
        not_suspended("POST /workflows/add/executions/completed/resume", "completed"),
        not_suspended("POST /workflows/nap/executions/cancelled/resume", "cancelled"),
        not_suspended("POST /workflows/failing/executions/failed/resume", "failed"),
        not_suspended("POST /workflows/nap/executions/running/resume", "running"),
        suspended(
            "{",
            "json_invalid",
            "Invalid JSON: EOF while parsing an object at line 1 column 1",
        ),
        suspended(
            "[]",
            "body_invalid",
            "Invalid request body: invalid type: sequence, expected an object",
        ),
        suspended(
            "{\"options\":{\"stepId\":5}}",
            "body_invalid",
            "Invalid request body: options.stepId: invalid type: integer `5`, expected a string",
        ),
        suspended("-", "resume_data_invalid", &data("null is not of type \"object\"")),
        suspended("{\"resumeData\":{}}", "resume_data_invalid", &data("approved: missing")),
        suspended(
            "{\"resumeData\":{\"approved\":\"yes\"}}",
            "resume_data_invalid",
            &data("approved: \"yes\" is not of type \"boolean\""),
        ),
        suspended(
            "{\"resumeData\":{\"approved\":true},\"options\":{\"stepId\":\"nope\"}}",
            "step_not_found",
            "Step nope not found",
        ),
        suspended(
            "{\"resumeData\":{\"approved\":true},\"options\":{\"stepId\":\"after\"}}",
            "step_not_suspended",
            "Step after is not suspended",
        ),
        // the step is checked before the data
        suspended(
            "{\"resumeData\":5,\"options\":{\"stepId\":\"nope\"}}",
            "step_not_found",
            "Step nope not found",
        ),
        pair(
            "{\"options\":{\"stepId\":\"both\"}}",
            "step_not_suspended",
            "Step both is not suspended",
        ),
    ]);
}

#[test]
fn queries() {
    let list = |query: &str, name: &str, what: &str| {
        let request = Box::leak(format!("GET /workflows/executions?{query}").into_boxed_str());
        let text = format!("Invalid query parameter {name}: {what}");
        row(request, "-", 400, "query_invalid", &text)
    };
    let limit = "must be a number from 1 to 200";
    check(vec![
        list("status=done", "status", STATUSES),
        list("limit=0", "limit", limit),
        list("limit=201", "limit", limit),
        list("limit=-1", "limit", limit),
        list("limit=", "limit", limit),
        list("from=yesterday", "from", TIME),
        list("to=1", "to", TIME),
        list("cursor=x", "cursor", "must be a nextCursor of this list"),
        list("userId=", "userId", "must not be empty"),
        row(
            "GET /workflows/add/executions?status=done",
            "-",
            400,
            "query_invalid",
            &format!("Invalid query parameter status: {STATUSES}"),
        ),
        row(
            "GET /workflows/add/executions/completed/stream?fromSequence=x",
            "-",
            400,
            "query_invalid",
            "Invalid query parameter fromSequence: must be the number of an event",
        ),
    ]);
}

#[test]
fn the_cause_of_a_failure_is_only_in_the_state_and_the_log() {
    let site = Site::start();
    let body = json!({ "input": {}, "options": { "executionId": "f1" } });
    let reply = site.post("/workflows/failing/execute", &body);
    assert_eq!((reply.status, reply.error().as_str()), (500, "Failed to execute workflow"));
    assert_eq!(reply.header("x-error-code"), Some("execution_failed"));
    assert_eq!(reply.header("x-execution-id"), Some("f1"));
    let state = site.state("failing", "f1");
    assert_eq!((&state["status"], &state["result"]), (&json!("error"), &json!(null)));
    assert_eq!(state["error"]["stepId"], "bad");
    let cause = state["error"]["message"].as_str().unwrap();
    assert!(cause.contains("missing"), "{cause}");
    assert!(site.says("f1").contains(cause));
}
