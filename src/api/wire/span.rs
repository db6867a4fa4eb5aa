//! Spans on the wire.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::sight::Sight;
use greenroom_actors::span::{EntityType, ObserverFilter, Span, SpanEvent, SpanPhase, SpanStatus};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;
use utoipa::openapi::Object;

use crate::api::error::ApiError;
use crate::api::wire::Iso;
use crate::api::wire::envelope::Frame;
use crate::api::wire::shape::one_of;
use crate::auth::User;

/// A span with OpenTelemetry's fields.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Span)]
#[serde(rename_all = "camelCase")]
pub struct SpanView<'a> {
    trace_id: &'a str,
    span_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    parent_span_id: Option<&'a str>,
    name: &'a str,
    #[schema(schema_with = span_kind)]
    kind: &'static str,
    start_time: Iso,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    end_time: Option<Iso>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    duration: Option<u64>,
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    attributes: Attributes<'a>,
    status: StatusView<'a>,
    #[schema(value_type = Vec<serde_json::Value>)]
    events: [(); 0],
}

#[derive(Debug)]
struct Attributes<'a>(&'a [(&'static str, String)]);

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SpanStatus)]
struct StatusView<'a> {
    #[schema(schema_with = span_status)]
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    message: Option<&'a str>,
}

impl<'a> SpanView<'a> {
    /// Shows a span.
    pub fn of(span: &'a Span) -> Self {
        let (code, message) = match &span.status {
            SpanStatus::Unset => ("UNSET", None),
            SpanStatus::Ok => ("OK", None),
            SpanStatus::Error(message) => ("ERROR", Some(message.as_str())),
        };
        Self {
            trace_id: &span.trace_id,
            span_id: &span.span_id,
            parent_span_id: span.parent_span_id.as_deref(),
            name: &span.name,
            kind: "INTERNAL",
            start_time: Iso(span.start),
            end_time: span.end.map(Iso),
            duration: span.end.map(|end| end.ms_since(span.start)),
            attributes: Attributes(&span.attributes),
            status: StatusView { code, message },
            events: [],
        }
    }
}

/// Data of `OBSERVABILITY_EVENT`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SpanEvent)]
pub struct SpanEventView<'a> {
    #[serde(rename = "type")]
    #[schema(schema_with = span_phase)]
    kind: &'static str,
    span: SpanView<'a>,
    timestamp: Iso,
}

impl<'a> SpanEventView<'a> {
    /// The frame that tells of a span.
    pub fn frame(event: &'a SpanEvent) -> Frame<Self> {
        let SpanEvent { phase, span } = event;
        let (kind, at) = match phase {
            SpanPhase::Started => ("span:start", span.start),
            SpanPhase::Ended => ("span:end", span.end.unwrap_or(span.start)),
        };
        Frame::of(
            "OBSERVABILITY_EVENT",
            Self { kind, span: SpanView::of(span), timestamp: Iso(at) },
        )
    }
}

/// Data of `CONNECTION_TEST` and `CONNECTION_SUCCESS`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Welcome)]
#[serde(rename_all = "camelCase")]
pub struct Welcome<'a> {
    message: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = entity_type, required = false)]
    entity_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    entity_id: Option<&'a str>,
    timestamp: Iso,
    /// Whether the connection was opened with a good token; on `/ws` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    authenticated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    user_id: Option<&'a str>,
}

impl<'a> Welcome<'a> {
    /// Greets a client of `/ws`; tells it whose token it came with.
    pub fn echo(user: Option<&'a User>, now: Timestamp) -> Frame<Self> {
        let data = Self {
            message: "Connected: every JSON message comes back",
            entity_type: None,
            entity_id: None,
            timestamp: Iso(now),
            authenticated: Some(user.is_some()),
            user_id: user.and_then(User::id),
        };
        Frame::of("CONNECTION_TEST", data)
    }

    /// Greets a client of `/ws/observability`.
    pub fn observer(filter: &'a ObserverFilter, now: Timestamp) -> Frame<Self> {
        let data = Self {
            message: "Connected to observability stream",
            entity_type: filter.entity_type.map(entity_name),
            entity_id: filter.entity_id.as_deref(),
            timestamp: Iso(now),
            authenticated: None,
            user_id: None,
        };
        Frame::of("CONNECTION_SUCCESS", data)
    }
}

/// Data of `SUBSCRIPTION_SUCCESS`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Subscribed)]
#[serde(rename_all = "camelCase")]
pub struct Subscribed<'a> {
    subscribed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = entity_type, required = false)]
    entity_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    entity_id: Option<&'a str>,
}

impl<'a> Subscribed<'a> {
    /// Confirms a filter.
    pub fn frame(filter: &'a ObserverFilter) -> Frame<Self> {
        let data = Self {
            subscribed: true,
            entity_type: filter.entity_type.map(entity_name),
            entity_id: filter.entity_id.as_deref(),
        };
        Frame::of("SUBSCRIPTION_SUCCESS", data)
    }
}

fn span_kind() -> Object {
    one_of(["INTERNAL"])
}

fn span_status() -> Object {
    one_of(["UNSET", "OK", "ERROR"])
}

fn span_phase() -> Object {
    one_of(["span:start", "span:end"])
}

fn entity_type() -> Object {
    one_of([EntityType::Agent, EntityType::Workflow].map(entity_name))
}

/// What a client of `/ws/observability` may say.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObserverMessage {
    #[serde(rename = "type")]
    pub kind: String,
    pub entity_type: Option<String>,
    pub entity_id: Option<String>,
}

/// Reads a filter from its two words, for what its observer sees anyway.
pub fn filter_of(
    entity_type: Option<&str>,
    entity_id: Option<String>,
    sight: Sight,
) -> Result<ObserverFilter, ApiError> {
    let entity_type = match entity_type {
        None => None,
        Some("agent") => Some(EntityType::Agent),
        Some("workflow") => Some(EntityType::Workflow),
        Some(_) => {
            let what = "must be agent or workflow".to_owned();
            return Err(ApiError::InvalidQuery { name: "entityType".to_owned(), what });
        }
    };
    if entity_id.as_deref().is_some_and(|id| id.is_empty() || id.len() > 200) {
        let what = "must have 1 to 200 characters".to_owned();
        return Err(ApiError::InvalidQuery { name: "entityId".to_owned(), what });
    }
    Ok(ObserverFilter { entity_type, entity_id, sight })
}

fn entity_name(kind: EntityType) -> &'static str {
    match kind {
        EntityType::Agent => "agent",
        EntityType::Workflow => "workflow",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn a_span_event_has_the_fields_of_opentelemetry() {
        let span = Span {
            trace_id: "0af7651916cd43dd8448eb211c80319c".into(),
            span_id: "b7ad6b7169203331".into(),
            parent_span_id: None,
            name: "order".into(),
            start: Timestamp(1_700_000_000_000),
            end: Some(Timestamp(1_700_000_000_250)),
            status: SpanStatus::Error("boom".into()),
            attributes: vec![("entity.id", "order".into())],
        };
        let event = SpanEvent { phase: SpanPhase::Ended, span };
        let expected = json!({
            "type": "OBSERVABILITY_EVENT", "success": true, "data": {
                "type": "span:end",
                "span": {
                    "traceId": "0af7651916cd43dd8448eb211c80319c",
                    "spanId": "b7ad6b7169203331", "name": "order", "kind": "INTERNAL",
                    "startTime": "2023-11-14T22:13:20.000Z",
                    "endTime": "2023-11-14T22:13:20.250Z", "duration": 250,
                    "attributes": { "entity.id": "order" },
                    "status": { "code": "ERROR", "message": "boom" }, "events": []
                },
                "timestamp": "2023-11-14T22:13:20.250Z"
            }
        });
        assert_eq!(to_value(SpanEventView::frame(&event)).unwrap(), expected);
    }

    #[test]
    fn a_filter_knows_two_types() {
        let filter = filter_of(Some("agent"), Some("a".into()), Sight::Everything).unwrap();
        assert_eq!(filter.entity_type, Some(EntityType::Agent));
        assert!(filter_of(Some("tool"), None, Sight::Everything).is_err());
        assert!(filter_of(None, Some(String::new()), Sight::Everything).is_err());
    }
}
