//! Requests and answers.

use super::*;

async fn site() -> Site {
    Site::start(WebConfig::default()).await
}

#[actix_web::test]
async fn execute_answers_the_result_and_names_the_execution() {
    let site = site().await;
    let answer = site.post("/workflows/noop/execute", &json!({ "input": { "n": 1 } })).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let body = answer.json();
    assert_eq!(body["success"], true);
    assert_eq!(body["data"]["status"], "completed");
    assert_eq!(body["data"]["result"], json!({ "n": 3 }));
    assert_eq!(answer.header("x-execution-id"), body["data"]["executionId"].as_str());
    assert_eq!(answer.header("content-type"), Some("application/json"));

    let id = answer.header("x-execution-id").unwrap();
    let state = site.get(&format!("/workflows/noop/executions/{id}/state")).await;
    assert_eq!(state.status, 200, "{}", state.body);
    assert_eq!(state.json()["data"]["input"], json!({ "n": 1 }));
    assert_eq!(state.json()["data"]["steps"][1]["output"], json!({ "n": 3 }));
    let other = site.get(&format!("/workflows/approval/executions/{id}/state")).await;
    assert_eq!(other.json()["error"], format!("Execution {id} not found"));
}

#[actix_web::test]
async fn refusals_have_their_texts() {
    let site = site().await;
    let rows = [
        ("/workflows/nope/execute", "{", 404, "Workflow nope not found"),
        (
            "/workflows/noop/execute",
            "{",
            400,
            "Invalid JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("/workflows/noop/execute", "{}", 400, "Invalid request body: input: missing"),
        ("/workflows/noop/executions/x/resume", "{", 404, "Execution x not found"),
        ("/workflows/noop/executions/x/suspend", "", 404, "Execution x not found"),
        ("/workflows/noop/executions/%ff/cancel", "", 404, "Execution %ff not found"),
        ("/workflows/failing/execute", "{\"input\":{}}", 500, "Failed to execute workflow"),
        ("/agents/nope/text", "{", 404, "Agent nope not found"),
        ("/agents/assistant/text", "{}", 400, "Invalid request body: input: missing"),
    ];
    for (path, body, status, text) in rows {
        let answer = site.send("POST", path, "", Some(body)).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        let mut body = answer.json();
        // For an execution that failed, `data` has the step.
        body.as_object_mut().unwrap().remove("data");
        assert_eq!(body, json!({ "success": false, "error": text }), "{path}");
    }
    let answer = site.post("/workflows/noop/execute", &json!({ "input": { "n": "x" } })).await;
    let text = answer.json()["error"].as_str().unwrap().to_owned();
    assert!(text.starts_with("Input validation failed: "), "{text}");
}

#[actix_web::test]
async fn an_approval_is_suspended_resumed_once_and_listed() {
    let site = site().await;
    let start = json!({ "input": {}, "options": { "executionId": "a-1" } });
    let suspended = site.post("/workflows/approval/execute", &start).await;
    assert_eq!(suspended.json()["data"]["status"], "suspended", "{}", suspended.body);
    assert_eq!(suspended.json()["data"]["suspension"]["suspendedStepIndex"], 0);
    let again = site.post("/workflows/approval/execute", &start).await;
    assert_eq!(again.status, 409);
    assert_eq!(again.json()["error"], "Execution a-1 already exists");

    let path = "/workflows/approval/executions/a-1/resume";
    let wrong = site.post(path, &json!({ "resumeData": {} })).await;
    assert_eq!(wrong.status, 400);
    let text = wrong.json()["error"].as_str().unwrap().to_owned();
    assert!(text.starts_with("Resume data validation failed: "), "{text}");
    assert_eq!(wrong.header("x-execution-id"), Some("a-1"));
    let resumed = site.post(path, &json!({ "resumeData": { "ok": true } })).await;
    assert_eq!(resumed.json()["data"]["result"], json!({ "ok": true }), "{}", resumed.body);
    let late = site.post(path, &json!({ "resumeData": { "ok": true } })).await;
    late.assert_refusal(404, "Execution a-1 is not suspended");

    let list = site.get("/workflows/approval/executions?status=completed&limit=1").await;
    assert_eq!(list.json()["data"]["executions"][0]["executionId"], "a-1");
    assert_eq!(list.json()["data"]["nextCursor"], Value::Null);
    assert_eq!(site.get("/workflows/executions?limit=0").await.status, 400);
}

#[actix_web::test]
async fn an_idempotency_key_gives_the_first_answer_again() {
    let site = site().await;
    let execute = async |key: &str, body: &str| {
        let header = format!("idempotency-key: {key}\r\n");
        site.send("POST", "/workflows/noop/execute", &header, Some(body)).await
    };
    let first = execute("k1", "{\"input\":{\"n\":1}}").await;
    let again = execute("k1", "{\"input\":{\"n\":1}}").await;
    assert_eq!(first.json()["data"], again.json()["data"]);
    let other = execute("k1", "{\"input\":{\"n\":2}}").await;
    assert_eq!(other.json()["error"], "Idempotency-Key was used with another body");
    assert_eq!(execute("ü", "{\"input\":{\"n\":2}}").await.status, 400);
}

#[actix_web::test]
async fn a_stream_replays_from_any_event() {
    let site = site().await;
    let body = json!({ "input": { "n": 1 }, "options": { "executionId": "s-1" } });
    let stream = site.post("/workflows/noop/stream", &body).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    assert_eq!(stream.header("x-execution-id"), Some("s-1"));
    let whole = frames(&stream.body);
    assert_eq!(whole[0].1["type"], "workflow-start");
    assert_eq!(whole.last().unwrap().1["type"], "workflow-result");
    let numbers: Vec<u64> = whole.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..=whole.len() as u64).collect::<Vec<_>>());
    for after in 0..whole.len() {
        let path = format!("/workflows/noop/executions/s-1/stream?fromSequence={after}");
        assert_eq!(frames(&site.get(&path).await.body), whole[after..], "after {after}");
    }
    let path = "/workflows/noop/executions/s-1/stream";
    let resumed = site.send("GET", path, "last-event-id: 2\r\n", None).await;
    assert_eq!(frames(&resumed.body), whole[2..]);
    assert_eq!(site.send("GET", path, "last-event-id: x\r\n", None).await.status, 400);
}

#[actix_web::test]
async fn a_suspended_stream_stays_open_and_ends_after_the_resume() {
    let site = site().await;
    let body = json!({ "input": {}, "options": { "executionId": "s-2" } });
    let resuming = async {
        let path = "/workflows/approval/executions/s-2/resume";
        while site.post(path, &json!({ "resumeData": { "ok": 1 } })).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let (stream, ()) = tokio::join!(site.post("/workflows/approval/stream", &body), resuming);
    let kinds: Vec<_> = frames(&stream.body)
        .iter()
        .map(|(_, data)| data["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(kinds.contains(&"workflow-suspended".to_owned()), "{kinds:?}");
    assert_eq!(kinds.last().unwrap(), "workflow-result");
}

#[actix_web::test]
async fn agents_and_pages_answer() {
    let site = site().await;
    let text = site.post("/agents/assistant/text", &json!({ "input": "hello there" })).await;
    assert_eq!(text.json()["data"]["text"], "hello there", "{}", text.body);
    assert_eq!(text.json()["data"]["finishReason"], "stop");
    assert!(text.header("x-generation-id").is_some());
    assert_eq!(site.get("/agents").await.json()["data"][0]["status"], "idle");
    assert_eq!(site.get("/agents/assistant").await.json()["data"]["model"], "offline");
    assert_eq!(site.get("/workflows").await.json()["data"][2]["stepsCount"], 2);
    assert_eq!(site.get("/workflows/noop").await.json()["data"]["steps"][0]["type"], "andMap");
    assert!(site.get("/").await.body.contains("/workflows/approval"));
    assert_eq!(site.get("/livez").await.body, "ok\n");
    assert_eq!(site.get("/readyz").await.status, 200);
    let head = site.send("HEAD", "/livez", "", None).await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

pub(super) fn frames(body: &str) -> Vec<(u64, Value)> {
    let body = unchunked(body);
    let mut frames = Vec::new();
    for frame in body.split_terminator("\n\n").filter(|frame| !frame.starts_with(':')) {
        let (number, data) = frame.split_once('\n').unwrap();
        let number = number.strip_prefix("id: ").unwrap().parse().unwrap();
        frames.push((number, serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap()));
    }
    frames
}

fn unchunked(body: &str) -> String {
    let (mut rest, mut whole) = (body, String::new());
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole.push_str(&tail[..size]);
        rest = tail.get(size + 2..).unwrap_or_default();
    }
    whole
}
