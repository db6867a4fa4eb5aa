//! Log records on the wire: as entries of the log, and as records of OpenTelemetry.

mod filter;

use greenroom_actors::observe::log_record::{LogLevel, LogRecord};
use greenroom_actors::observe::span::SpanId;
use greenroom_actors::ports::store::{LogNumber, LogPage};
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use crate::api::query::{Pairs, value_of};
use crate::api::wire::Iso;
use crate::api::wire::shape::one_of;

pub use filter::{
    LEVEL_WORDS, SEVERITY_NUMBERS, SEVERITY_WORDS, log_filter_of, log_limit_of, record_filter_of,
};

/// `service.name` of OpenTelemetry.
const SERVICE_NAME: &str = "greenroom";

/// An entry of the log.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogEntry)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry<'a> {
    timestamp: Iso,
    #[schema(schema_with = level)]
    level: &'static str,
    msg: &'a str,
    /// Module that logged the entry.
    component: &'a str,
    agent_id: Option<&'a str>,
    workflow_id: Option<&'a str>,
    execution_id: Option<&'a str>,
    conversation_id: Option<&'a str>,
    user_id: Option<&'a str>,
    error: Option<LogError>,
}

/// Error of an entry, if the record has one besides its message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogError)]
struct LogError {
    message: String,
}

impl<'a> LogEntry<'a> {
    /// Shows a record.
    pub fn of(record: &'a LogRecord) -> Self {
        let scope = &*record.scope;
        Self {
            timestamp: Iso(record.at),
            level: record.level.as_str(),
            msg: &record.message,
            component: &record.target,
            agent_id: scope.agent_id.as_deref(),
            workflow_id: scope.workflow_id.as_deref(),
            execution_id: scope.execution_id.as_ref().map(|id| id.as_str()),
            conversation_id: scope.conversation_id.as_deref(),
            user_id: scope.user_id.as_deref(),
            error: error_of(record),
        }
    }
}

fn error_of(record: &LogRecord) -> Option<LogError> {
    let (_, value) = record.attributes.iter().find(|(key, _)| key == "error")?;
    let message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Some(LogError { message })
}

/// A log record with OpenTelemetry's fields.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogRecord)]
#[serde(rename_all = "camelCase")]
pub struct LogRecordView<'a> {
    timestamp: Iso,
    trace_id: Option<&'a str>,
    #[schema(value_type = String, required = false)]
    span_id: Option<SpanId>,
    severity_number: u8,
    #[schema(schema_with = severity)]
    severity_text: &'static str,
    body: &'a str,
    /// Ids of the record and further attributes.
    #[schema(value_type = std::collections::BTreeMap<String, Value>)]
    attributes: Map<String, Value>,
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    resource: Resource,
}

#[derive(Debug, Serialize)]
struct Resource {
    #[serde(rename = "service.name")]
    name: &'static str,
    #[serde(rename = "service.version")]
    version: &'static str,
}

impl<'a> LogRecordView<'a> {
    /// Shows a record.
    pub fn of(record: &'a LogRecord) -> Self {
        Self {
            timestamp: Iso(record.at),
            trace_id: record.scope.trace_id.as_deref(),
            span_id: record.scope.span_id,
            severity_number: record.level.severity_number(),
            severity_text: record.level.severity_text(),
            body: &record.message,
            attributes: attributes_of(record),
            resource: Resource { name: SERVICE_NAME, version: env!("CARGO_PKG_VERSION") },
        }
    }
}

/// Returns the attributes of a record and the ids of its scope, which override attributes of the
/// same name.
fn attributes_of(record: &LogRecord) -> Map<String, Value> {
    let scope = &*record.scope;
    let ids = [
        ("component", Some(&*record.target)),
        ("agentId", scope.agent_id.as_deref()),
        ("workflowId", scope.workflow_id.as_deref()),
        ("executionId", scope.execution_id.as_ref().map(|id| id.as_str())),
        ("parentExecutionId", scope.parent_execution_id.as_ref().map(|id| id.as_str())),
        ("generationId", scope.generation_id.as_deref()),
        ("conversationId", scope.conversation_id.as_deref()),
        ("userId", scope.user_id.as_deref()),
        ("requestId", scope.request_id.as_deref()),
    ];
    let mut attributes: Map<String, Value> = record.attributes.iter().cloned().collect();
    let ids = ids.into_iter().filter_map(|(key, id)| Some((key.to_owned(), Value::from(id?))));
    attributes.extend(ids);
    attributes
}

/// Response of `GET /api/logs`, which has no `data` envelope.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogEntryPage)]
#[serde(rename_all = "camelCase")]
pub struct EntriesView<'a> {
    #[schema(schema_with = yes)]
    success: bool,
    /// Newest last.
    data: Vec<LogEntry<'a>>,
    /// Number of entries in this response.
    total: usize,
    query: QueryView<'a>,
    /// Cursor of the page with older ones.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// Parameters of the request.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogQuery)]
#[serde(rename_all = "camelCase")]
struct QueryView<'a> {
    level: Option<&'a str>,
    agent_id: Option<&'a str>,
    workflow_id: Option<&'a str>,
    execution_id: Option<&'a str>,
    conversation_id: Option<&'a str>,
    since: Option<&'a str>,
    until: Option<&'a str>,
    limit: usize,
}

impl<'a> EntriesView<'a> {
    /// Shows a page and the parameters of the request; `limit` is the effective one.
    pub fn of(page: &'a LogPage, pairs: &'a Pairs, limit: usize) -> Self {
        let parameter = |name| value_of(pairs, name);
        Self {
            success: true,
            data: page.records.iter().map(LogEntry::of).collect(),
            total: page.records.len(),
            query: QueryView {
                level: parameter("level"),
                agent_id: parameter("agentId"),
                workflow_id: parameter("workflowId"),
                execution_id: parameter("executionId"),
                conversation_id: parameter("conversationId"),
                since: parameter("since"),
                until: parameter("until"),
                limit,
            },
            next_cursor: page.older.map(cursor_text),
        }
    }
}

/// A page of log records.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogRecordPage)]
#[serde(rename_all = "camelCase")]
pub struct RecordsView<'a> {
    /// Newest last.
    logs: Vec<LogRecordView<'a>>,
    /// Cursor of the page with older ones.
    #[schema(required)]
    next_cursor: Option<String>,
}

impl<'a> RecordsView<'a> {
    /// Shows a page.
    pub fn of(page: &'a LogPage) -> Self {
        let logs = page.records.iter().map(LogRecordView::of).collect();
        Self { logs, next_cursor: page.older.map(cursor_text) }
    }
}

fn cursor_text(older: LogNumber) -> String {
    format!("{older:016x}")
}

/// `true`: failures have another form.
fn yes() -> Object {
    ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])).build()
}

fn level() -> Object {
    one_of(LogLevel::ALL.map(LogLevel::as_str))
}

fn severity() -> Object {
    one_of(LogLevel::ALL.map(LogLevel::severity_text))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::observe::log_record::LogScope;
    use serde_json::{json, to_value};

    use super::*;

    pub(super) fn record() -> LogRecord {
        let scope = LogScope {
            trace_id: Some("0af7651916cd43dd8448eb211c80319c".into()),
            span_id: "b7ad6b7169203331".parse().ok(),
            execution_id: Some(ExecutionId::trusted("e1")),
            workflow_id: Some("order".into()),
            user_id: Some("ann".into()),
            ..LogScope::default()
        };
        LogRecord {
            at: Timestamp(1_700_000_000_000),
            level: LogLevel::Warn,
            target: "greenroom_actors::execution".into(),
            message: "a step failed".to_owned(),
            attributes: vec![
                ("error".to_owned(), json!("boom")),
                ("attempt".to_owned(), json!(2)),
                ("userId".to_owned(), json!("mallory")),
            ],
            scope: Arc::new(scope),
        }
    }

    #[test]
    fn an_entry_has_the_ids_of_its_scope() {
        let expected = json!({
            "timestamp": "2023-11-14T22:13:20.000Z", "level": "warn", "msg": "a step failed",
            "component": "greenroom_actors::execution", "workflowId": "order",
            "executionId": "e1", "userId": "ann", "error": { "message": "boom" }
        });
        assert_eq!(to_value(LogEntry::of(&record())).unwrap(), expected);
    }

    #[test]
    fn a_record_has_the_fields_of_opentelemetry() {
        let expected = json!({
            "timestamp": "2023-11-14T22:13:20.000Z",
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331",
            "severityNumber": 13, "severityText": "WARN", "body": "a step failed",
            "attributes": {
                "component": "greenroom_actors::execution", "workflowId": "order",
                "executionId": "e1", "userId": "ann", "error": "boom", "attempt": 2
            },
            "resource": {
                "service.name": "greenroom", "service.version": env!("CARGO_PKG_VERSION")
            }
        });
        assert_eq!(to_value(LogRecordView::of(&record())).unwrap(), expected);
    }
}
