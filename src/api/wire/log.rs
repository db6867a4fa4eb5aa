//! Log records on the wire, in two forms: an entry of the log, and a record of OpenTelemetry.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::domain::trace::is_trace_id;
use greenroom_actors::log_record::{LogLevel, LogRecord};
use greenroom_actors::ports::store::{LogFilter, LogNumber, LogPage};
use greenroom_actors::sight::Sight;
use greenroom_actors::span::SpanId;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa::openapi::{Object, ObjectBuilder, Type};

use crate::api::error::ApiError;
use crate::api::query::{Pairs, digits, read, value_of};
use crate::api::wire::Iso;
use crate::api::wire::shape::one_of;

/// What the service calls itself where it is one of many.
const SERVICE_NAME: &str = "greenroom";

/// Records of an answer when the caller names no number.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// Words for a level in queries. Nothing that the server outlives is fatal: nothing is logged
/// there, and as a minimum the word admits nothing.
pub const LEVEL_WORDS: [&str; 6] = ["trace", "debug", "info", "warn", "error", "fatal"];
/// The same words as OpenTelemetry writes them.
pub const SEVERITY_WORDS: [&str; 6] = ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"];

/// An entry of the log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogEntry)]
#[serde(rename_all = "camelCase")]
pub struct LogEntry<'a> {
    timestamp: Iso,
    #[schema(schema_with = level)]
    level: &'static str,
    msg: &'a str,
    /// The part of the server that logged it.
    component: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    workflow_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    execution_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    conversation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    user_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<LogError>,
}

/// What went wrong, where the record says it apart from its message.
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
            level: word_of(record.level),
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
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogRecord)]
#[serde(rename_all = "camelCase")]
pub struct LogRecordView<'a> {
    timestamp: Iso,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    trace_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, nullable = false)]
    span_id: Option<SpanId>,
    severity_number: u8,
    #[schema(schema_with = severity)]
    severity_text: &'static str,
    body: &'a str,
    /// Whom the record is about, and what else it says.
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
            severity_text: severity_of(record.level),
            body: &record.message,
            attributes: attributes_of(record),
            resource: Resource { name: SERVICE_NAME, version: env!("CARGO_PKG_VERSION") },
        }
    }
}

/// The record's own attributes, and the ids of its scope, which count more where names meet.
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

/// The answer of `GET /api/logs`, which has a shape of its own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogEntryPage)]
#[serde(rename_all = "camelCase")]
pub struct EntriesView<'a> {
    #[schema(schema_with = yes)]
    success: bool,
    /// Newest last.
    data: Vec<LogEntry<'a>>,
    /// Entries of this answer.
    total: usize,
    query: AskedView<'a>,
    /// Leads to older ones.
    #[schema(required)]
    next_cursor: Option<String>,
}

/// What was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LogQuery)]
#[serde(rename_all = "camelCase")]
struct AskedView<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    level: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    agent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    workflow_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    execution_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    conversation_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    since: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    until: Option<&'a str>,
    limit: usize,
}

impl<'a> EntriesView<'a> {
    /// Shows a page, and what was asked for: parameters that have been read, and the limit that
    /// counted.
    pub fn of(page: &'a LogPage, pairs: &'a Pairs, limit: usize) -> Self {
        let asked = |name| value_of(pairs, name);
        Self {
            success: true,
            data: page.records.iter().map(LogEntry::of).collect(),
            total: page.records.len(),
            query: AskedView {
                level: asked("level"),
                agent_id: asked("agentId"),
                workflow_id: asked("workflowId"),
                execution_id: asked("executionId"),
                conversation_id: asked("conversationId"),
                since: asked("since"),
                until: asked("until"),
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
    /// Leads to older ones.
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

/// Reads which records are wanted, in the words of `/api/logs` and `/ws/logs`, of those that the
/// caller sees. Unknown parameters are ignored, wrong values refused.
pub fn log_filter_of(pairs: &Pairs, sight: Sight) -> Result<LogFilter, ApiError> {
    let what = "must be trace, debug, info, warn, error or fatal";
    let minimum = read(pairs, "level", what, |word| minimum_of(word, LEVEL_WORDS))?;
    let (level, sight) = bounded_by(minimum, sight);
    Ok(LogFilter {
        level,
        agent_id: name(pairs, "agentId")?,
        workflow_id: name(pairs, "workflowId")?,
        execution_id: name(pairs, "executionId")?,
        conversation_id: name(pairs, "conversationId")?,
        since: time(pairs, "since")?,
        until: time(pairs, "until")?,
        sight,
        ..LogFilter::default()
    })
}

/// The same in the words of OpenTelemetry.
pub fn record_filter_of(pairs: &Pairs, sight: Sight) -> Result<LogFilter, ApiError> {
    let what = "must be TRACE, DEBUG, INFO, WARN, ERROR or FATAL";
    let minimum = read(pairs, "severityText", what, |word| minimum_of(word, SEVERITY_WORDS))?;
    let (level, sight) = bounded_by(minimum, sight);
    let (trace, span) = (
        "must be 32 hexadecimal digits in lower case, not all zero",
        "must be 16 hexadecimal digits in lower case, not all zero",
    );
    Ok(LogFilter {
        level,
        trace_id: read(pairs, "traceId", trace, |id| is_trace_id(id).then(|| id.to_owned()))?,
        span_id: read(pairs, "spanId", span, |id| id.parse().ok())?,
        since: time(pairs, "startTime")?,
        until: time(pairs, "endTime")?,
        sight,
        ..LogFilter::default()
    })
}

/// Reads how many records are wanted at most.
pub fn log_limit_of(pairs: &Pairs) -> Result<usize, ApiError> {
    let limit = read(pairs, "limit", "must be a number from 1 to 1000", |text| {
        digits(text).filter(|limit| (1..=LIMIT_MAX).contains(limit))
    })?;
    Ok(limit.unwrap_or(LIMIT_DEFAULT))
}

/// The least grave level that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Minimum {
    Level(LogLevel),
    /// Graver than anything that is logged.
    Fatal,
}

/// `words`: one for each level, from the least grave on, then the one for what is fatal.
fn minimum_of(word: &str, words: [&str; 6]) -> Option<Minimum> {
    let place = words.iter().position(|known| *known == word)?;
    Some(LogLevel::ALL.get(place).map_or(Minimum::Fatal, |level| Minimum::Level(*level)))
}

fn bounded_by(minimum: Option<Minimum>, sight: Sight) -> (Option<LogLevel>, Sight) {
    match minimum {
        None => (None, sight),
        Some(Minimum::Level(level)) => (Some(level), sight),
        Some(Minimum::Fatal) => (None, Sight::Nothing),
    }
}

fn name(pairs: &Pairs, key: &str) -> Result<Option<String>, ApiError> {
    read(pairs, key, "must not be empty", |text| (!text.is_empty()).then(|| text.to_owned()))
}

fn time(pairs: &Pairs, key: &str) -> Result<Option<Timestamp>, ApiError> {
    read(pairs, key, "must be an ISO 8601 time", Timestamp::from_iso)
}

fn word_of(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "trace",
        LogLevel::Debug => "debug",
        LogLevel::Info => "info",
        LogLevel::Warn => "warn",
        LogLevel::Error => "error",
    }
}

fn severity_of(level: LogLevel) -> &'static str {
    match level {
        LogLevel::Trace => "TRACE",
        LogLevel::Debug => "DEBUG",
        LogLevel::Info => "INFO",
        LogLevel::Warn => "WARN",
        LogLevel::Error => "ERROR",
    }
}

/// Nothing else than success has this shape.
fn yes() -> Object {
    ObjectBuilder::new().schema_type(Type::Boolean).enum_values(Some([true])).build()
}

fn level() -> Object {
    one_of(LogLevel::ALL.map(word_of))
}

fn severity() -> Object {
    one_of(LogLevel::ALL.map(severity_of))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::log_record::LogScope;
    use serde_json::{json, to_value};

    use super::*;

    fn record() -> LogRecord {
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

    fn filter(name: &str, value: &str) -> Result<LogFilter, ApiError> {
        log_filter_of(&[(name.to_owned(), value.to_owned())], Sight::Everything)
    }

    #[test]
    fn an_entry_has_the_ids_that_there_are() {
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

    #[test]
    fn a_level_is_the_least_that_is_wanted() {
        for (place, word) in LEVEL_WORDS.into_iter().enumerate() {
            let filter = filter("level", word).unwrap();
            assert_eq!(filter.level, LogLevel::ALL.get(place).copied(), "{word}");
            assert_eq!(filter.admits(&record()), place <= 3, "{word}");
        }
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        let rows = [
            ("level", "loud"),
            ("level", "WARN"),
            ("agentId", ""),
            ("workflowId", ""),
            ("executionId", ""),
            ("conversationId", ""),
            ("since", "yesterday"),
            ("until", ""),
        ];
        for (name, value) in rows {
            let text = filter(name, value).unwrap_err().to_string();
            assert!(text.starts_with(&format!("Invalid query parameter {name}: ")), "{text}");
        }
        for value in ["0", "1001", "-1", "ten", ""] {
            assert!(log_limit_of(&[("limit".to_owned(), value.to_owned())]).is_err(), "{value:?}");
        }
        assert_eq!(log_limit_of(&[]), Ok(100));
    }
}
