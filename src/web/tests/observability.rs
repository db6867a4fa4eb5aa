//! Traces and the log over HTTP.

use greenroom_actors::agent::tool::ToolDefinition;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::log_record::{LogLevel, LogRecord, LogScope};
use greenroom_actors::ports::store::Logs as _;

use super::*;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

async fn site() -> Site {
    Site::start(WebConfig::default()).await
}

impl Site {
    pub(super) async fn log(&self, records: Vec<LogRecord>) {
        self.store.write_logs(records.into_iter().map(Arc::new).collect()).await.unwrap();
    }
}

/// Returns a record, with its time in milliseconds after the epoch.
pub(super) fn record(at: i64, level: LogLevel, message: &str, scope: LogScope) -> LogRecord {
    LogRecord {
        at: Timestamp(at),
        level,
        target: "greenroom::web".into(),
        message: message.to_owned(),
        attributes: vec![("step".to_owned(), json!(message.len()))],
        scope: Arc::new(scope),
    }
}

#[actix_web::test]
async fn an_execution_is_a_trace_found_by_its_ids() {
    let site = site().await;
    let answer = site.post("/workflows/noop/execute", &json!({ "input": { "n": 1 } })).await;
    let execution = answer.header("x-execution-id").unwrap();
    let trace_id = answer.header("x-trace-id").unwrap();
    assert_eq!(execution.replace('-', ""), trace_id);

    let trace = site.data(&format!("/observability/traces/{trace_id}")).await;
    assert_eq!((&trace["traceId"], trace.get("isTruncated")), (&json!(trace_id), None));
    let spans = trace["spans"].as_array().unwrap();
    assert_eq!(trace["spanCount"], spans.len());
    let root = &trace["tree"][0];
    assert_eq!((&root["name"], &root["depth"]), (&json!("invoke_workflow noop"), &json!(0)));
    assert_eq!(root["status"], json!({ "code": "OK" }));
    let children = root["children"].as_array().unwrap();
    let steps: Vec<_> =
        children.iter().map(|it| it["attributes"]["workflow.step.id"].as_str().unwrap()).collect();
    assert_eq!(steps, ["one", "two"]);
    for child in children {
        assert_eq!((&child["depth"], &child["parentSpanId"]), (&json!(1), &root["spanId"]));
        assert_eq!(child["children"], json!([]));
    }
    for span in spans {
        let id = span["spanId"].as_str().unwrap();
        assert_eq!(&site.data(&format!("/observability/spans/{id}")).await, span);
    }

    let state = format!("/workflows/noop/executions/{execution}/state");
    let answer = site.get(&state).await;
    assert_eq!(answer.header("x-trace-id"), Some(trace_id));
    assert_eq!(answer.json()["data"]["traceId"], trace_id);
    let list = site.data("/observability/traces").await;
    let item = &list["traces"][0];
    assert_eq!((&item["traceId"], &item["name"]), (&json!(trace_id), &root["name"]));
    assert_eq!((&item["startTime"], &item["endTime"]), (&root["startTime"], &root["endTime"]));
    assert_eq!((&item["duration"], &item["status"]), (&root["duration"], &root["status"]));
    assert_eq!((&item["spanCount"], &list["nextCursor"]), (&trace["spanCount"], &Value::Null));
}

#[actix_web::test]
async fn executions_and_generations_continue_the_callers_trace() {
    let site = site().await;
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let ask = json!({ "input": "hi", "schema": schema });
    let rows = [
        ("/workflows/noop/execute", json!({ "input": { "n": 1 } }), 200),
        ("/workflows/noop/stream", json!({ "input": { "n": 1 } }), 200),
        ("/workflows/failing/execute", json!({ "input": {} }), 500),
        ("/agents/assistant/text", ask.clone(), 200),
        ("/agents/assistant/stream", ask.clone(), 200),
        ("/agents/assistant/chat", ask.clone(), 200),
        ("/agents/assistant/object", ask.clone(), 200),
        ("/agents/assistant/stream-object", ask, 200),
    ];
    for (path, body, status) in rows {
        let body = body.to_string();
        let sent = async |headers: &str| {
            let answer = site.send("POST", path, headers, Some(&body)).await;
            assert_eq!(answer.status, status, "{path}: {}", answer.body);
            let id = answer.header("x-execution-id").or_else(|| answer.header("x-generation-id"));
            (answer.header("x-trace-id").map(str::to_owned), id.unwrap().replace('-', ""))
        };
        let good = format!("traceparent: 00-{TRACE}-{PARENT}-01\r\ntracestate: a=1\r\n");
        assert_eq!(sent(&good).await.0.as_deref(), Some(TRACE), "{path}");
        for headers in ["", "traceparent: 00-zz\r\n", "tracestate: a=1\r\n"] {
            let (trace, own) = sent(headers).await;
            assert_eq!(trace, Some(own), "{path} {headers}");
        }
    }
    let history = site.data("/agents/assistant/history?limit=100").await;
    let entries = history["entries"].as_array().unwrap();
    let of_caller = entries.iter().filter(|entry| entry["traceId"] == TRACE);
    assert_eq!((entries.len(), of_caller.count()), (20, 5));
    let trace = site.data(&format!("/observability/traces/{TRACE}")).await;
    let tree = trace["tree"].as_array().unwrap();
    assert!(tree.iter().all(|root| root["parentSpanId"] == PARENT), "{trace}");
}

#[actix_web::test]
async fn a_tool_called_directly_continues_the_callers_trace() {
    let mut registry = registry();
    let tool = ToolDefinition::for_workflow("adds", None, None, &registry.workflows["noop"]);
    registry.tools = [("adds".to_owned(), Arc::new(tool.unwrap()))].into();
    let site = Site::over(WebConfig::default(), registry).await;
    let headers = format!("traceparent: 00-{TRACE}-{PARENT}-01\r\n");
    let body = Some("{\"input\":{\"n\":1}}");
    for headers in [headers.as_str(), ""] {
        let answer = site.send("POST", "/tools/adds/execute", headers, body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let trace = site.data(&format!("/observability/traces/{TRACE}")).await;
    let root = &trace["tree"][0];
    assert_eq!(
        (&root["name"], &root["parentSpanId"]),
        (&json!("invoke_workflow noop"), &json!(PARENT))
    );
    let list = site.data("/observability/traces?entityType=workflow&entityId=noop").await;
    let ids: Vec<_> = list["traces"].as_array().unwrap().iter().map(|it| &it["traceId"]).collect();
    assert_eq!((ids.len(), ids.contains(&&json!(TRACE))), (2, true), "{list}");
}

#[actix_web::test]
async fn requests_about_an_execution_name_its_trace() {
    let site = site().await;
    let body = json!({ "input": {}, "options": { "executionId": "a-1" } }).to_string();
    let headers = format!("traceparent: 00-{TRACE}-{PARENT}-01\r\nidempotency-key: k\r\n");
    let at = |what: &str| format!("/workflows/approval/executions/a-1/{what}");
    for _ in 0..2 {
        let other = headers.replace(PARENT, "00000000000000ff");
        for headers in [&headers, &other] {
            let path = "/workflows/approval/execute";
            let answer = site.send("POST", path, headers, Some(&body)).await;
            assert_eq!(answer.header("x-trace-id"), Some(TRACE), "{}", answer.body);
        }
    }
    // The trace is that of the start, whatever the later caller's header says.
    let resumed = json!({ "resumeData": { "ok": true } }).to_string();
    let answer = site.send("POST", &at("resume"), "traceparent: 00-x\r\n", Some(&resumed)).await;
    assert_eq!((answer.status, answer.header("x-trace-id")), (200, Some(TRACE)));
    let body = json!({ "input": {}, "options": { "executionId": "w-1" } }).to_string();
    site.send("POST", "/workflows/approval/execute", &headers.replace(": k", ": l"), Some(&body))
        .await;
    let answer = site.send("POST", "/workflows/approval/executions/w-1/cancel", "", None).await;
    assert_eq!((answer.status, answer.header("x-trace-id")), (200, Some(TRACE)));
}

#[actix_web::test]
async fn traces_are_listed_page_by_page() {
    let site = site().await;
    for n in 0..3 {
        site.post("/workflows/noop/execute", &json!({ "input": { "n": n } })).await;
    }
    site.post("/workflows/failing/execute", &json!({ "input": {} })).await;
    let whole = site.data("/observability/traces").await;
    let whole = whole["traces"].as_array().unwrap();
    assert_eq!(whole.len(), 4);
    let mut pages = Vec::new();
    let mut path = "/observability/traces?limit=1".to_owned();
    for _ in 0..4 {
        let page = site.data(&path).await;
        pages.extend(page["traces"].as_array().unwrap().clone());
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        path = format!("/observability/traces?limit=1&cursor={cursor}");
    }
    assert_eq!(&pages, whole);
    let rows = [
        ("entityType=workflow", 4),
        ("entityType=agent", 0),
        ("entityId=noop", 3),
        ("entityId=failing&entityType=workflow", 1),
        ("entityId=unknown", 0),
        ("from=1970-01-01T00:00:00Z", 4),
        ("from=2999-01-01T00:00:00Z", 0),
    ];
    for (filter, count) in rows {
        let list = site.data(&format!("/observability/traces?{filter}")).await;
        assert_eq!(list["traces"].as_array().unwrap().len(), count, "{filter}");
    }
}

#[actix_web::test]
async fn log_records_are_filtered() {
    let site = site().await;
    let scope = |execution: &str, parent: Option<&str>| LogScope {
        execution_id: Some(ExecutionId::trusted(execution)),
        parent_execution_id: parent.map(ExecutionId::trusted),
        workflow_id: Some("order".into()),
        ..LogScope::default()
    };
    let chat = LogScope {
        agent_id: Some("clerk".into()),
        conversation_id: Some("c".into()),
        trace_id: Some(TRACE.into()),
        span_id: PARENT.parse().ok(),
        ..LogScope::default()
    };
    site.log(vec![
        record(1_000, LogLevel::Debug, "a", LogScope::default()),
        record(2_000, LogLevel::Info, "b", scope("e1", None)),
        record(3_000, LogLevel::Warn, "c", scope("e2", Some("e1"))),
        record(4_000, LogLevel::Error, "d", chat),
    ])
    .await;
    let entries = [
        ("", "abcd"),
        ("level=trace", "abcd"),
        ("level=warn", "cd"),
        ("level=fatal", ""),
        ("workflowId=order", "bc"),
        ("executionId=e1", "bc"),
        ("executionId=e2", "c"),
        ("agentId=clerk", "d"),
        ("conversationId=c&level=error", "d"),
        ("since=1970-01-01T00:00:02Z", "bcd"),
        ("until=1970-01-01T00:00:02Z", "ab"),
        ("limit=2", "cd"),
    ];
    for (query, expected) in entries {
        let answer = site.get(&format!("/api/logs?{query}")).await.json();
        let data = answer["data"].as_array().unwrap();
        let found: String = data.iter().map(|entry| entry["msg"].as_str().unwrap()).collect();
        assert_eq!((found.as_str(), &answer["success"]), (expected, &json!(true)), "{query}");
        assert_eq!(answer["total"], data.len(), "{query}");
    }
    let filtered = site.get("/api/logs?level=warn&executionId=e1").await.json();
    let expected = json!({ "level": "warn", "executionId": "e1", "limit": 100 });
    assert_eq!(filtered["query"], expected);
    let records = [
        ("", "abcd"),
        ("severityText=WARN", "c"),
        ("severityNumber=13", "cd"),
        ("severityText=FATAL", ""),
        (&format!("traceId={TRACE}"), "d"),
        (&format!("spanId={PARENT}"), "d"),
        ("spanId=00000000000000ff", ""),
        ("startTime=1970-01-01T00:00:03Z", "cd"),
        ("endTime=1970-01-01T00:00:01Z", "a"),
    ];
    for (query, expected) in records {
        let page = site.data(&format!("/observability/logs?{query}")).await;
        let logs = page["logs"].as_array().unwrap().iter();
        let found: String = logs.map(|record| record["body"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{query}");
    }
    let older = site.get("/api/logs?limit=3").await.json();
    let path = format!("/api/logs?limit=3&cursor={}", older["nextCursor"].as_str().unwrap());
    let oldest = site.get(&path).await.json();
    assert_eq!((&oldest["data"][0]["msg"], &oldest["nextCursor"]), (&json!("a"), &Value::Null));
    assert_eq!(site.data("/observability/status").await["logCount"], 4);
}

#[actix_web::test]
async fn a_trace_and_a_span_have_their_records() {
    let site = site().await;
    let answer = site.post("/workflows/noop/execute", &json!({ "input": { "n": 1 } })).await;
    let trace_id = answer.header("x-trace-id").unwrap();
    let trace = site.data(&format!("/observability/traces/{trace_id}")).await;
    let span_id = trace["spans"][1]["spanId"].as_str().unwrap();
    let scope = |span: Option<&str>| LogScope {
        trace_id: Some(trace_id.into()),
        span_id: span.and_then(|span| span.parse().ok()),
        ..LogScope::default()
    };
    site.log(vec![
        record(1_000, LogLevel::Info, "a", scope(None)),
        record(2_000, LogLevel::Error, "b", scope(Some(span_id))),
        record(3_000, LogLevel::Error, "c", LogScope::default()),
    ])
    .await;
    let rows = [
        (format!("traces/{trace_id}/logs"), "ab"),
        (format!("traces/{trace_id}/logs?severityText=ERROR"), "b"),
        (format!("traces/{trace_id}/logs?traceId={TRACE}"), "ab"),
        (format!("spans/{span_id}/logs"), "b"),
        (format!("spans/{span_id}/logs?endTime=1970-01-01T00:00:01Z"), ""),
    ];
    for (path, expected) in rows {
        let page = site.data(&format!("/observability/{path}")).await;
        let logs = page["logs"].as_array().unwrap().iter();
        let found: String = logs.map(|record| record["body"].as_str().unwrap()).collect();
        assert_eq!(found, expected, "{path}");
    }
}

#[actix_web::test]
async fn unknown_and_invalid_ids_and_filters_are_refused() {
    let site = site().await;
    let missing = [
        (format!("traces/{TRACE}"), format!("Trace {TRACE} not found")),
        (format!("traces/{TRACE}/logs"), format!("Trace {TRACE} not found")),
        (format!("traces/{TRACE}/logs?limit=0"), format!("Trace {TRACE} not found")),
        ("traces/x".to_owned(), "Trace x not found".to_owned()),
        ("traces/%ff/logs".to_owned(), "Trace %ff not found".to_owned()),
        (format!("spans/{PARENT}"), format!("Span {PARENT} not found")),
        (format!("spans/{PARENT}/logs"), format!("Span {PARENT} not found")),
        ("spans/0000000000000000".to_owned(), "Span 0000000000000000 not found".to_owned()),
        ("spans/x/logs".to_owned(), "Span x not found".to_owned()),
    ];
    for (path, text) in missing {
        let answer = site.get(&format!("/observability/{path}")).await;
        assert_eq!((answer.status, &answer.json()["error"]), (404, &json!(text)), "{path}");
    }
    let wrong = [
        ("/observability/traces", "entityType=tool"),
        ("/observability/traces", "entityId="),
        ("/observability/traces", "limit=101"),
        ("/observability/traces", "cursor=-.-"),
        ("/observability/traces", "from=now"),
        ("/observability/logs", "traceId=x"),
        ("/observability/logs", "spanId=x"),
        ("/observability/logs", "severityText=warn"),
        ("/observability/logs", "startTime=now"),
        ("/observability/logs", "endTime=now"),
        ("/observability/logs", "limit=0"),
        ("/observability/logs", "cursor=x"),
        ("/api/logs", "level=loud"),
        ("/api/logs", "agentId="),
        ("/api/logs", "workflowId="),
        ("/api/logs", "executionId="),
        ("/api/logs", "conversationId="),
        ("/api/logs", "since=now"),
        ("/api/logs", "until=now"),
        ("/api/logs", "limit=1001"),
        ("/api/logs", "cursor=x"),
    ];
    for (path, query) in wrong {
        let answer = site.get(&format!("{path}?{query}")).await;
        let (name, _) = query.split_once('=').unwrap();
        let text = answer.json()["error"].as_str().unwrap().to_owned();
        assert_eq!(answer.status, 400, "{path}?{query}: {text}");
        assert!(text.starts_with(&format!("Invalid query parameter {name}: must ")), "{text}");
    }
}
