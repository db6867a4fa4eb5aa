//! The export of the real program to a collector.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use serde_json::{Value, json};

use super::collector::{Collector, spans_of};
use crate::program::Programs as _;
use support::server::{Home, Server};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

const CONFIG: &str = r#"
[telemetry]
service_name = "drill"
metrics = false
logs = false
[telemetry.headers]
authorization = "Bearer ${DRILL_KEY}"

[models.m]
provider = "rehearsal"
rules = [
    { when = "tools and not tool_results", tool_call = { name = "add", args = { n = "4" } } },
]
[agents.clerk]
model = "m"
tools = ["add"]
[tools.add]
kind = "workflow"
workflow = "sum"
description = "Adds three"

[workflows.sum]
input_schema = { type = "object", required = ["n"], properties = { n = { type = "integer" } } }
steps = [{ id = "add", map = { n = "input.n + 3" } }]
[workflows.family]
steps = [
    { id = "child", type = "andWorkflow", workflow = "sum", input = { n = "1" } },
    { id = "write", type = "andAgent", agent = "clerk", prompt = "Go on" },
    { id = "ask", suspend = { reason = "well?" }, map = "resume" },
]
"#;

fn program(home: &Home, collector: &Collector) -> Command {
    let mut program = home.greenroom(&[]);
    program.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint()).env("DRILL_KEY", "k-12345");
    program.env_remove("SERVICE_PUBLIC_KEY").env_remove("SERVICE_SECRET_KEY");
    program
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns `name < name of the parent` of each span, sorted.
fn tree(spans: &[Span]) -> Vec<String> {
    let names: BTreeMap<_, _> = spans.iter().map(|span| (&span.span_id, &*span.name)).collect();
    let line = |span: &Span| {
        let parent = names.get(&span.parent_span_id).map(|name| (*name).to_owned());
        format!("{} < {}", span.name, parent.unwrap_or_else(|| hex(&span.parent_span_id)))
    };
    let mut lines: Vec<_> = spans.iter().map(line).collect();
    lines.sort();
    lines
}

/// Returns ids, names and parents.
fn exported(spans: &[Span]) -> BTreeSet<[String; 3]> {
    let told = |span: &Span| [hex(&span.span_id), span.name.clone(), hex(&span.parent_span_id)];
    spans.iter().map(told).collect()
}

fn shown(trace: &Value) -> BTreeSet<[String; 3]> {
    let text = |span: &Value, key: &str| span[key].as_str().unwrap_or_default().to_owned();
    let spans = trace["spans"].as_array().unwrap();
    let told = |span| [text(span, "spanId"), text(span, "name"), text(span, "parentSpanId")];
    spans.iter().map(told).collect()
}

#[test]
fn a_trace_is_whole_at_the_collector_and_over_rest_also_after_a_kill() {
    let (home, collector) = (Home::new(CONFIG), Collector::start([]));
    home.write(".env", "SERVICE_PUBLIC_KEY=pk\nSERVICE_SECRET_KEY='s k'\n");
    let server = Server::start(program(&home, &collector));
    let traceparent = format!("00-{TRACE}-{CALLER}-01");
    let headers = [
        ("traceparent", &*traceparent),
        ("tracestate", "a=1"),
        ("content-type", "application/json"),
    ];
    let body = json!({ "input": {}, "options": { "executionId": "e1" } }).to_string();
    let path = "/workflows/family/execute";
    let reply = server.send("POST", path, &headers, Some(body.as_bytes()));
    assert_eq!(reply.data()["status"], "suspended");
    // spans that ended before the kill must be exported
    assert_eq!(collector.wait_for_spans(10).len(), 10);
    server.kill();

    let server = Server::start(program(&home, &collector));
    let resumed = json!({ "resumeData": { "well": true } });
    let reply = server.post("/workflows/family/executions/e1/resume", &resumed);
    assert_eq!(reply.data()["status"], "completed", "{}", reply.text());
    let mut expected = [
        format!("invoke_workflow family < {CALLER}"),
        "step child < invoke_workflow family".to_owned(),
        "invoke_workflow sum < step child".to_owned(),
        "step add < invoke_workflow sum".to_owned(),
        "step write < invoke_workflow family".to_owned(),
        "invoke_agent clerk < step write".to_owned(),
        "chat rehearsal < invoke_agent clerk".to_owned(),
        "execute_tool add < invoke_agent clerk".to_owned(),
        "invoke_workflow sum < execute_tool add".to_owned(),
        "step add < invoke_workflow sum".to_owned(),
        "chat rehearsal < invoke_agent clerk".to_owned(),
        "wait ask < invoke_workflow family".to_owned(),
        "step ask < invoke_workflow family".to_owned(),
    ];
    expected.sort();
    let spans = collector.wait_for_spans(expected.len());
    assert_eq!(tree(&spans), expected);
    for span in &spans {
        let is_root = hex(&span.parent_span_id) == CALLER;
        assert_eq!((hex(&span.trace_id), &*span.trace_state), (TRACE.to_owned(), "a=1"));
        assert_eq!(span.flags, if is_root { 0x301 } else { 0x101 }, "{}", span.name);
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
        let code = span.status.as_ref().unwrap().code();
        assert_ne!(code, StatusCode::Error, "{}: {:?}", span.name, span.status);
    }
    let over_rest = |server: &Server| server.get(&format!("/observability/traces/{TRACE}")).data();
    assert_eq!(shown(&over_rest(&server)), exported(&spans));
    let sent = &collector.sent()[0];
    let said = |name| sent.header(name).unwrap_or_default().to_owned();
    assert_eq!(said("authorization"), "Bearer k-12345");
    assert_eq!((said("x-public-key"), said("x-secret-key")), ("pk".into(), "s k".into()));
    let about: Vec<_> = spans_of(sent).0.into_iter().map(|pair| pair.key).collect();
    assert!(about.iter().any(|key| key == "service.version"), "{about:?}");
    let agents = server.get("/agents").data();
    assert_eq!(agents[0]["isTelemetryEnabled"], true);
    server.kill();
    let server = Server::start(program(&home, &collector));
    assert_eq!(shown(&over_rest(&server)), exported(&spans));
}

#[test]
fn pending_spans_are_sent_before_the_process_exits() {
    let (home, collector) = (Home::new(CONFIG), Collector::start([]));
    let mut server = Server::start(program(&home, &collector));
    let reply = server.post("/workflows/sum/execute", &json!({ "input": { "n": 1 } }));
    assert_eq!(reply.data()["result"], json!({ "n": 4 }));
    server.signal("TERM");
    assert!(server.ended().success());
    assert_eq!(tree(&collector.wait_for_spans(2)).len(), 2);
}

#[test]
fn an_export_failure_is_logged_without_secrets() {
    let home = Home::new(CONFIG);
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut program = home.greenroom(&[]);
    program.env("DRILL_KEY", "k-12345");
    program.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{gone}/secret-path"));
    let server = Server::start(program);
    server.post("/workflows/sum/execute", &json!({ "input": { "n": 1 } }));
    let line = server.says("cannot export spans");
    assert!(line.contains(&gone.to_string()), "{line}");
    assert!(!line.contains("secret-path") && !line.contains("k-12345"), "{line}");
}
