//! Failures of other services: answers to callers, lists, states and `why`, metrics, and repeated
//! attempts.

use std::io::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::site::{Site, at};
use crate::program::Programs;
use support::listener::{Request, Watched, listen};
use support::server::{Home, Server};

const JSON: (&str, &str) = ("content-type", "application/json");

const BROKEN: &str = r#"
[workflows.broken]
steps = [{ id = "fine", map = 1 }, { id = "both", type = "andAll", blocks = ["left"] }]
blocks.left = [
    { id = "bad", map = { x = "input.missing.thing" }, retry = { attempts = 2, delay = "1ms" } },
]
"#;

#[test]
fn the_answer_has_the_place_of_a_failure_and_the_state_its_cause() {
    let mut site = Site::with(BROKEN);
    let body = json!({ "input": {}, "options": { "executionId": "f1" } }).to_string();
    let execute = |site: &Site, id: &str, accept: &'static str| {
        let headers = [JSON, ("accept", accept)];
        let body = body.replace("f1", id);
        site.send("POST", "/workflows/broken/execute", &headers, Some(body.as_bytes()))
    };
    let reply = execute(&site, "json", "application/json");
    assert_eq!((reply.status, reply.header("x-error-code")), (500, Some("execution_failed")));
    let place = json!({ "executionId": "json", "stepId": "bad", "path": "both/left/bad" });
    let expected =
        json!({ "success": false, "error": "Failed to execute workflow", "data": place });
    assert_eq!(reply.json(), expected, "where, and not why");
    let problem = execute(&site, "problem", "application/problem+json").json();
    assert_eq!(
        (&problem["stepId"], &problem["path"], &problem["detail"]),
        (&json!("bad"), &json!("both/left/bad"), &json!("Failed to execute workflow"))
    );
    assert!(!problem.to_string().contains("undefined"), "{problem}");

    for _ in 0..2 {
        let list = site.get("/workflows/broken/executions?status=error").data();
        let error = &list["executions"][1]["error"];
        assert_eq!((&error["stepId"], &error["kind"]), (&json!("bad"), &json!("expression")));
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("undefined"), "{message}");

        let state = site.state("broken", "json");
        assert_eq!(state["error"], *error, "the row has what the state has");
        let bad = state["steps"].as_array().unwrap().iter().find(|step| step["stepId"] == "bad");
        let errors = bad.unwrap()["errors"].as_array().unwrap();
        let attempts: Vec<_> = errors.iter().map(|it| it["attempt"].as_u64().unwrap()).collect();
        assert_eq!(attempts, [1, 2], "{errors:?}");

        let ended = site.get(&at("broken", "json", "why")).data()["ended"].clone();
        let said = format!("failed at both/left/bad after 2 attempts: {message}");
        assert_eq!((&ended["message"], &ended["attempts"]), (&json!(said), &json!(2)));
        assert_eq!(ended["error"], *error);
        assert_eq!(ended["errors"].as_array().unwrap().len(), 2, "{ended}");
        assert_eq!(ended["replayFrom"], json!(["fine", "both"]));
        site = site.after_a_kill();
    }
}

/// Returns the metric of a workflow's executions.
fn gauge(server: &Server, workflow: &str, status: &str) -> String {
    let start = format!("greenroom_executions{{workflow=\"{workflow}\",status=\"{status}\"}} ");
    let metrics = server.get("/metrics").text();
    let found = metrics.lines().find_map(|line| line.strip_prefix(&start).map(str::to_owned));
    found.unwrap_or_else(|| panic!("no {start} in {metrics}"))
}

#[test]
fn executions_are_counted_before_and_after_a_kill() {
    let mut site = Site::start();
    assert_eq!(site.get("/workflows/executions/counts").data()["total"]["all"], 0);
    for status in ["running", "suspended", "completed", "error", "cancelled"] {
        assert_eq!(gauge(&site.server, "add", status), "0", "{status}");
    }
    for n in 0..3 {
        site.execute("add", &format!("a{n}"), &json!({ "n": n }));
        site.execute("approval", &format!("w{n}"), &json!({ "who": "ann" }));
    }
    let answer = json!({ "resumeData": { "approved": true } });
    site.post(&at("approval", "w0", "resume"), &answer).data();
    site.post("/workflows/failing/execute", &json!({ "input": {} }));
    let ben = json!({ "input": { "who": "x" }, "options": { "userId": "ben" } });
    site.post("/workflows/approval/execute", &ben).data();
    for _ in 0..2 {
        let counts = site.get("/workflows/executions/counts").data();
        let of = |running: u64, suspended: u64, completed: u64, error: u64| {
            json!({ "running": running, "suspended": suspended, "completed": completed,
                    "error": error, "cancelled": 0,
                    "all": running + suspended + completed + error })
        };
        let named = |id: &str, mut counts: Value| {
            counts["workflowId"] = json!(id);
            counts
        };
        let expected = [
            named("add", of(0, 0, 3, 0)),
            named("approval", of(0, 3, 1, 0)),
            named("failing", of(0, 0, 0, 1)),
        ];
        assert_eq!(counts["workflows"], json!(expected));
        assert_eq!((&counts["total"], &counts["isComplete"]), (&of(0, 3, 4, 1), &json!(true)));
        let only = |query: &str| {
            let path = format!("/workflows/executions/counts?{query}");
            site.get(&path).data()["total"].clone()
        };
        assert_eq!(only("workflowId=approval"), of(0, 3, 1, 0));
        assert_eq!(only("userId=ben"), of(0, 1, 0, 0));
        assert_eq!(only("userId=ben&workflowId=add"), of(0, 0, 0, 0));
        assert_eq!(gauge(&site, "approval", "suspended"), "3");
        assert_eq!(gauge(&site, "approval", "running"), "0");
        assert_eq!(gauge(&site, "nap", "suspended"), "0");
        site = site.after_a_kill();
    }
}

#[test]
fn outcomes_are_counted_by_time_workflow_and_step() {
    let site = Site::start();
    for n in 0..3 {
        site.execute("add", &format!("a{n}"), &json!({ "n": n }));
    }
    site.post(
        "/workflows/failing/execute",
        &json!({ "input": {}, "options": { "userId": "ben" } }),
    );
    site.execute("approval", "w", &json!({ "who": "ann" }));
    site.post(&at("approval", "w", "cancel"), &json!({})).data();

    let read = |query: &str| site.get(&format!("/workflows/executions/outcomes{query}")).data();
    let all = read("?parts=2");
    assert_eq!((&all["isComplete"], &all["partMs"]), (&json!(true), &json!(12 * 3_600_000)));
    assert_eq!(all["countedFrom"]["error"], all["from"]);
    let figures = |tally: &Value| {
        ["completed", "error", "cancelled"].map(|outcome| tally[outcome].as_u64().unwrap())
    };
    assert_eq!(figures(&all["total"]), [3, 1, 1]);
    let parts = all["total"]["parts"].as_array().unwrap();
    assert_eq!(parts.iter().map(figures).collect::<Vec<_>>(), [[0, 0, 0], [3, 1, 1]]);
    assert!(parts[1]["p95Ms"].is_u64() && parts[0]["p95Ms"].is_null(), "{parts:?}");
    let workflows = all["workflows"].as_array().unwrap();
    let of_workflows = workflows.iter().map(|it| (it["workflowId"].as_str().unwrap(), figures(it)));
    let expected = [("add", [3, 0, 0]), ("approval", [0, 0, 1]), ("failing", [0, 1, 0])];
    assert_eq!(of_workflows.collect::<Vec<_>>(), expected);
    let failed = workflows[2]["failedSteps"].as_array().unwrap();
    assert_eq!((failed.len(), &failed[0]["count"]), (1, &json!(1)), "{failed:?}");

    for (query, expected) in [
        ("?workflowId=add", [3, 0, 0]),
        ("?userId=ben", [0, 1, 0]),
        ("?userId=ben&workflowId=add", [0, 0, 0]),
        ("?to=2026-01-31", [0, 0, 0]),
        ("?from=9999-02-01&to=2026-01-31", [0, 0, 0]),
    ] {
        assert_eq!(figures(&read(query)["total"]), expected, "{query}");
    }
    for (query, refusal) in [
        ("parts=0", "parts: must be a number from 1 to 200"),
        ("parts=201", "parts: must be a number from 1 to 200"),
        ("status=error", "status: unknown; known parameters: workflowId, userId, from, to, parts"),
    ] {
        let refused = site.get(&format!("/workflows/executions/outcomes?{query}"));
        assert_eq!(refused.status, 400, "{query}");
        assert_eq!(refused.json()["error"], format!("Invalid query parameter {refusal}"));
    }
}

#[test]
fn unknown_names_are_refused_with_the_nearest_known() {
    let site = Site::start();
    let paths = [
        "/workflows/aproval",
        "/workflows/aproval/executions",
        "/workflows/executions/counts?workflowId=aproval",
        "/workflows/executions/outcomes?workflowId=aproval",
        "/workflows/aproval/versions",
    ];
    for path in paths {
        let reply = site.get(path);
        let expected = json!({ "success": false, "error": "Workflow aproval not found",
                               "data": { "didYouMean": "approval" } });
        assert_eq!((reply.status, reply.json()), (404, expected), "{path}");
    }
    let refused = site.get("/agents/asistant/history");
    let expected = json!({ "success": false, "error": "Agent asistant not found",
                           "data": { "didYouMean": "assistant" } });
    assert_eq!((refused.status, refused.json()), (404, expected));
    let headers = [JSON, ("accept", "application/problem+json")];
    let input = b"{\"input\":{}}";
    let problem = site.send("POST", "/workflows/ad/execute", &headers, Some(input)).json();
    assert_eq!((&problem["didYouMean"], &problem["status"]), (&json!("add"), &json!(404)));
    let reply = site.get("/workflows/elephant/executions");
    assert_eq!(reply.json(), json!({ "success": false, "error": "Workflow elephant not found" }));

    site.execute("approval", "w", &json!({ "who": "ann" }));
    let at = |action: &str| format!("/workflows/approval/executions/w/{action}");
    for (action, body) in [
        ("resume", json!({ "options": { "stepId": "akk" } })),
        ("replay", json!({ "stepId": "akk" })),
    ] {
        let refused = site.post(&at(action), &body);
        let expected = json!({ "success": false, "error": "Step akk not found",
                               "data": { "didYouMean": "ask" } });
        assert_eq!((refused.status, refused.json()), (400, expected), "{action}");
    }

    let refused = site.get("/workflows/executions?status=failed").error();
    assert!(refused.ends_with("error, cancelled; did you mean error?"), "{refused}");
    let today = site.get("/workflows/executions?from=2020-01-01&to=2999-12-31").data();
    assert_eq!(today["executions"][0]["executionId"], "w");
}

#[test]
fn a_removed_workflow_keeps_its_list() {
    let site = Site::start();
    site.execute("add", "a1", &json!({ "n": 1 }));
    let Site { home, server } = site;
    server.kill();
    home.configure("[workflows.other]\nsteps = [{ id = \"a\", map = 1 }]\n");
    let server = Server::start(home.greenroom(&[]));
    let list = server.get("/workflows/add/executions").data();
    assert_eq!(list["executions"][0]["executionId"], "a1");
    let none = server.get("/workflows/add/executions?status=running").data();
    assert_eq!(none["executions"], json!([]), "of those that are kept");
    assert_eq!(gauge(&server, "_other", "completed"), "1");
    assert_eq!(server.get("/workflows/approval/executions").status, 404);
}

/// Starts a server that answers with the status in the path; records the requested paths.
fn refusing() -> (String, Arc<Watched<Vec<String>>>) {
    let asked = Arc::new(Watched::<Vec<String>>::default());
    let noted = Arc::clone(&asked);
    let address = listen(move |mut stream| {
        let Some(request) = Request::read(&mut stream) else { return };
        noted.change(|asked| asked.push(request.path.clone()));
        let status = request.path.trim_start_matches('/');
        let head = "content-length: 2\r\nretry-after: 0\r\nconnection: close\r\n\r\nno";
        let _ = write!(stream.get_mut(), "HTTP/1.1 {status} x\r\n{head}");
    });
    (format!("http://{address}"), asked)
}

#[test]
fn a_final_4xx_is_not_retried() {
    let (upstream, asked) = refusing();
    let step = |id: &str, status: u16, more: &str| {
        format!(
            "[workflows.{id}]\n[[workflows.{id}.steps]]\nid = \"call\"\n\
             http = {{ url = \"{upstream}/{status}\" }}\n\
             retry = {{ attempts = 3, delay = \"1ms\"{more} }}\n\
             on_error = {{ value = {{ status = \"error.status\", kind = \"error.kind\", \
             attempt = \"error.attempt\" }} }}\n"
        )
    };
    let config = [
        step("missing", 404, ""),
        step("busy", 503, ""),
        step("insisting", 404, ", on = \"error.status == 404\""),
        step("giving-up", 503, ", never = \"error.status == 503\""),
    ];
    let home = Home::new(&config.concat());
    let server = Server::start(home.greenroom(&[]));
    let rows =
        [("missing", 404, 1), ("busy", 503, 3), ("insisting", 404, 3), ("giving-up", 503, 1)];
    for (workflow, status, attempts) in rows {
        asked.change(Vec::clear);
        let reply = server.post(&format!("/workflows/{workflow}/execute"), &json!({ "input": {} }));
        let expected = json!({ "status": status, "kind": "http", "attempt": attempts });
        assert_eq!(reply.data()["result"], expected, "{workflow}");
        assert_eq!(asked.lock().len(), attempts, "{workflow}");
    }
}
