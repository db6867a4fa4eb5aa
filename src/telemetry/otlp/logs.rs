//! Encodes log records as OTLP messages.

use std::collections::BTreeMap;

use greenroom_actors::observe::log_record::{LogRecord, LogScope};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1 as proto;

use super::values::{any, nanoseconds, of_json, resource, scope, text, trace_bytes};

/// Encodes a record; attributes of its scope come before its own.
pub(super) fn encode(record: &LogRecord) -> Option<proto::LogRecord> {
    let LogScope { trace_id, span_id, .. } = &*record.scope;
    let at = nanoseconds(record.at);
    let mut attributes = vec![text("log.target", &*record.target)];
    attributes.extend(about(&record.scope));
    attributes.extend(record.attributes.iter().map(|(key, value)| KeyValue {
        key: key.clone(),
        value: Some(of_json(value)),
        ..KeyValue::default()
    }));
    Some(proto::LogRecord {
        time_unix_nano: at,
        observed_time_unix_nano: at,
        severity_number: i32::from(record.level.severity_number()),
        severity_text: record.level.severity_text().to_owned(),
        body: Some(any(Value::StringValue(record.message.clone()))),
        attributes,
        trace_id: trace_id.as_deref().and_then(trace_bytes).unwrap_or_default(),
        span_id: span_id.map(|id| id.to_bytes().to_vec()).unwrap_or_default(),
        ..proto::LogRecord::default()
    })
}

/// Returns the ids of a scope under the attribute names of spans.
fn about(scope: &LogScope) -> impl Iterator<Item = KeyValue> {
    let execution = scope.execution_id.as_ref().map(|id| id.as_str());
    let parent = scope.parent_execution_id.as_ref().map(|id| id.as_str());
    let (kind, entity) = match (&scope.agent_id, &scope.workflow_id) {
        (Some(agent), _) => (Some("agent"), Some(&**agent)),
        (None, Some(workflow)) => (Some("workflow"), Some(&**workflow)),
        (None, None) => (None, None),
    };
    let rows = [
        ("entity.type", kind),
        ("entity.id", entity),
        ("workflow.execution.id", execution),
        ("workflow.parent_execution.id", parent),
        ("workflow.id", scope.workflow_id.as_deref()),
        ("agent.generation.id", scope.generation_id.as_deref()),
        ("conversation.id", scope.conversation_id.as_deref()),
        ("user.id", scope.user_id.as_deref()),
        ("request.id", scope.request_id.as_deref()),
    ];
    rows.map(|(name, value)| Some(text(name, value?))).into_iter().flatten()
}

/// Builds the request that exports records.
pub(super) fn request(
    about: &BTreeMap<String, String>,
    log_records: Vec<proto::LogRecord>,
) -> ExportLogsServiceRequest {
    let scope_logs =
        vec![proto::ScopeLogs { scope: Some(scope()), log_records, ..Default::default() }];
    let resource = Some(resource(about));
    let of_resource = proto::ResourceLogs { resource, scope_logs, ..Default::default() };
    ExportLogsServiceRequest { resource_logs: vec![of_resource] }
}
