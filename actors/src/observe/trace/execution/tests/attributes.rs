//! Attributes of spans of executions.

use super::*;
use crate::domain::fact::McpCall;
use crate::observe::span::AttributeValue;

#[test]
fn long_content_is_truncated_and_errors_are_classified() {
    let long = at(
        90,
        Fact::WorkflowCompleted { since: Timestamp(0), result: Arc::new(json!("é".repeat(9000))) },
    );
    let root = latest_of(spans_of_record(&header_of("e"), &[started(), long])).remove(0);
    let attributes = root.attributes(true);
    let (_, output) = attributes.iter().find(|(key, _)| *key == "workflow.output").unwrap();
    let AttributeValue::Text(text) = output else { panic!("{output:?}") };
    assert!(text.ends_with("é…") && text.len() <= 8 * 1024 + "…".len(), "{}", text.len());

    for (message, kind) in [
        ("cancelled: enough", "cancelled"),
        ("cancelled", "cancelled"),
        ("interrupted 3 times", "interrupted"),
        ("timed out after 5 ms", "timeout"),
        ("deadline passed", "timeout"),
        ("cancelledness", "_OTHER"),
        ("whatever a function says", "_OTHER"),
    ] {
        let span = root.clone().ended(Timestamp(1), failed(message)).span;
        let kind = ("error.type", AttributeValue::from(kind));
        assert_eq!(span.attributes(false).last(), Some(&kind), "{message}");
    }
}

/// Returns the attributes of the attempt that ends with this fact.
fn of_attempt(end: Recorded) -> Vec<(&'static str, AttributeValue)> {
    let spans = latest_of(spans_of_record(&header_of("e"), &[started(), Story::step("a", 1), end]));
    let is_attempt = |span: &&Span| matches!(span.work, SpanWork::Step { .. });
    spans.iter().find(is_attempt).unwrap().attributes(false)
}

#[test]
fn attempts_that_call_mcp_servers_have_the_attributes_of_their_requests() {
    let some = |text: &str| Some(Arc::from(text));
    let request = McpCall {
        is_http: true,
        server: some("mcp.example"),
        port: Some(443),
        protocol_version: some("2026-07-28"),
        session_id: some("s1"),
        request_id: some("7"),
        tool: some("own.sum"),
        error_code: Some(-32602),
    };
    let ends = [
        Story::done("a", 1),
        Story::failed(80, "a", 1, AfterFailure::Fail),
        Story::suspended(80, "a"),
    ];
    for mut end in ends {
        assert!(of_attempt(end.clone()).iter().all(|(name, _)| *name != "mcp.method.name"));
        let has_failed = matches!(end.fact, Fact::StepFailed { .. });
        if let Fact::StepCompleted { mcp, .. }
        | Fact::StepFailed { mcp, .. }
        | Fact::StepSuspended { mcp, .. } = &mut end.fact
        {
            *mcp = Some(Box::new(request.clone()));
        }
        let attributes = of_attempt(end);
        for (name, expected) in [
            ("mcp.method.name", "tools/call"),
            ("gen_ai.tool.name", "own.sum"),
            ("mcp.protocol.version", "2026-07-28"),
            ("mcp.session.id", "s1"),
            ("jsonrpc.request.id", "7"),
            ("network.transport", "tcp"),
            ("server.address", "mcp.example"),
            ("rpc.response.status_code", "-32602"),
        ] {
            let (_, value) = attributes.iter().find(|(known, _)| *known == name).unwrap();
            assert_eq!(*value, AttributeValue::from(expected), "{name}");
        }
        let error = attributes.iter().find(|(name, _)| *name == "error.type");
        let expected = ("error.type", AttributeValue::from("-32602"));
        assert_eq!(error, has_failed.then_some(&expected));
    }
}
