//! Spans on the wire.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::span::{
    AttributeValue, EntityType, ObserverFilter, Span, SpanEvent, SpanId, SpanKind, SpanPhase,
    SpanStatus,
};
use greenroom_actors::visibility::Visibility;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;
use utoipa::openapi::Object;

use crate::api::error::ApiError;
use crate::api::json::present;
use crate::api::query::refuse_misspelt;
use crate::api::wire::Iso;
use crate::api::wire::envelope::Frame;
use crate::api::wire::shape::one_of;
use crate::auth::User;

/// A span with OpenTelemetry's fields.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Span)]
#[serde(rename_all = "camelCase")]
pub struct SpanView<'a> {
    trace_id: &'a str,
    #[schema(value_type = String)]
    span_id: SpanId,
    #[schema(value_type = String, required = false)]
    parent_span_id: Option<SpanId>,
    name: String,
    #[schema(schema_with = span_kind)]
    kind: &'static str,
    start_time: Iso,
    end_time: Option<Iso>,
    /// Milliseconds.
    duration: Option<u64>,
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    attributes: Attributes,
    status: SpanStatusView<'a>,
    #[schema(value_type = Vec<serde_json::Value>)]
    events: [(); 0],
}

#[derive(Debug)]
struct Attributes(Vec<(&'static str, AttributeValue)>);

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            match value {
                AttributeValue::Text(text) => map.serialize_entry(name, text)?,
                AttributeValue::Int(number) => map.serialize_entry(name, number)?,
                AttributeValue::Float(number) => map.serialize_entry(name, number)?,
                AttributeValue::Bool(flag) => map.serialize_entry(name, flag)?,
                AttributeValue::Texts(texts) => map.serialize_entry(name, texts)?,
            }
        }
        map.end()
    }
}

/// Result of a span; `UNSET` until it has ended.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SpanStatus)]
pub struct SpanStatusView<'a> {
    #[schema(schema_with = span_status)]
    code: &'static str,
    message: Option<&'a str>,
}

impl<'a> SpanStatusView<'a> {
    /// Shows a status.
    pub fn of(status: &'a SpanStatus) -> Self {
        let (code, message) = match status {
            SpanStatus::Unset => ("UNSET", None),
            SpanStatus::Ok => ("OK", None),
            SpanStatus::Error(message) => ("ERROR", Some(&**message)),
        };
        Self { code, message }
    }
}

impl<'a> SpanView<'a> {
    /// Shows a span; with `content`, also inputs, outputs and messages.
    pub fn of(span: &'a Span, content: bool) -> Self {
        let kind = match span.kind() {
            SpanKind::Internal => "INTERNAL",
            SpanKind::Client => "CLIENT",
        };
        Self {
            trace_id: &span.trace().id,
            span_id: span.id,
            parent_span_id: span.parent,
            name: span.name(),
            kind,
            start_time: Iso(span.start),
            end_time: span.end.map(Iso),
            duration: span.end.map(|end| end.ms_since(span.start)),
            attributes: Attributes(span.attributes(content)),
            status: SpanStatusView::of(&span.status),
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
    /// Creates the frame of a span.
    pub fn frame(event: &'a SpanEvent, content: bool) -> Frame<Self> {
        let SpanEvent { phase, span } = event;
        let (kind, at) = match phase {
            SpanPhase::Started => ("span:start", span.start),
            SpanPhase::Ended => ("span:end", span.end.unwrap_or(span.start)),
        };
        Frame::of(
            "OBSERVABILITY_EVENT",
            Self { kind, span: SpanView::of(span, content), timestamp: Iso(at) },
        )
    }
}

/// Data of `CONNECTION_TEST` and `CONNECTION_SUCCESS`.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = Welcome)]
#[serde(rename_all = "camelCase")]
pub struct Welcome<'a> {
    message: &'static str,
    #[schema(schema_with = entity_type, required = false)]
    entity_type: Option<&'static str>,
    entity_id: Option<&'a str>,
    timestamp: Iso,
    /// True if the connection was opened with a valid token. Only on `/ws`.
    authenticated: Option<bool>,
    user_id: Option<&'a str>,
}

impl<'a> Welcome<'a> {
    /// Creates the first frame of `/ws`, with the user of the token.
    pub fn echo(user: Option<&'a User>, now: Timestamp) -> Frame<Self> {
        let data = Self {
            message: "Connected: JSON messages are echoed",
            timestamp: Iso(now),
            authenticated: Some(user.is_some()),
            user_id: user.and_then(User::id),
            ..Self::default()
        };
        Frame::of("CONNECTION_TEST", data)
    }

    /// Creates the first frame of `/ws/observability`.
    pub fn observer(filter: &'a ObserverFilter, now: Timestamp) -> Frame<Self> {
        let data = Self {
            message: "Connected to observability stream",
            entity_type: filter.entity_type.map(EntityType::as_str),
            entity_id: filter.entity_id.as_deref(),
            timestamp: Iso(now),
            ..Self::default()
        };
        Frame::of("CONNECTION_SUCCESS", data)
    }
}

/// Data of `SUBSCRIPTION_SUCCESS`.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Subscribed)]
#[serde(rename_all = "camelCase")]
pub struct Subscribed<'a> {
    subscribed: bool,
    #[schema(schema_with = entity_type, required = false)]
    entity_type: Option<&'static str>,
    entity_id: Option<&'a str>,
}

impl<'a> Subscribed<'a> {
    /// Creates the frame that confirms a filter.
    pub fn frame(filter: &'a ObserverFilter) -> Frame<Self> {
        let data = Self {
            subscribed: true,
            entity_type: filter.entity_type.map(EntityType::as_str),
            entity_id: filter.entity_id.as_deref(),
        };
        Frame::of("SUBSCRIPTION_SUCCESS", data)
    }
}

fn span_kind() -> Object {
    one_of(["INTERNAL", "CLIENT"])
}

fn span_status() -> Object {
    one_of(["UNSET", "OK", "ERROR"])
}

fn span_phase() -> Object {
    one_of(["span:start", "span:end"])
}

pub(super) fn entity_type() -> Object {
    one_of(EntityType::ALL.map(EntityType::as_str))
}

/// Message of a client of `/ws/observability`. `null` is a part of a filter, which restricts nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObserverMessage {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(deserialize_with = "present")]
    entity_type: Option<Option<String>>,
    #[serde(deserialize_with = "present")]
    entity_id: Option<Option<String>>,
    /// Alias of `entityId`.
    #[serde(deserialize_with = "present")]
    agent_id: Option<Option<String>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// Keys of a filter in a message.
const FILTER_KEYS: [&str; 3] = ["entityType", "entityId", "agentId"];

impl ObserverMessage {
    /// Returns the filter of the message, limited to what the observer sees; `None` if it has none.
    /// Keys that look misspelt are refused.
    pub fn filter(self, visibility: Visibility) -> Result<Option<ObserverFilter>, ApiError> {
        let Self { kind: _, entity_type, entity_id, agent_id, others } = self;
        let others: Vec<_> = others.into_iter().map(|(name, _)| (name, String::new())).collect();
        refuse_misspelt(&others, &FILTER_KEYS)?;
        if entity_type.is_none() && entity_id.is_none() && agent_id.is_none() {
            return Ok(None);
        }
        let entity_id = entity_id.flatten().or_else(|| agent_id.flatten());
        filter_of(entity_type.flatten().as_deref(), entity_id, visibility).map(Some)
    }
}

/// Rules for the parameters of a filter.
pub(crate) const ENTITY_TYPE: &str = "must be agent or workflow";
pub(crate) const ENTITY_ID: &str = "must have 1 to 200 characters";

/// Parses the type of an entity.
pub(crate) fn entity_type_of(word: &str) -> Option<EntityType> {
    EntityType::ALL.into_iter().find(|kind| kind.as_str() == word)
}

/// Returns true if a text may be the id of a workflow or an agent.
pub(crate) fn is_entity_id(id: &str) -> bool {
    (1..=200).contains(&id.chars().count())
}

/// Parses a filter, limited to what the observer sees.
pub fn filter_of(
    entity_type: Option<&str>,
    entity_id: Option<String>,
    visibility: Visibility,
) -> Result<ObserverFilter, ApiError> {
    let entity_type = match entity_type {
        None => None,
        Some(word) => Some(entity_type_of(word).ok_or_else(|| {
            let what = ENTITY_TYPE.to_owned();
            ApiError::InvalidQuery { name: "entityType".to_owned(), what }
        })?),
    };
    if entity_id.as_deref().is_some_and(|id| !is_entity_id(id)) {
        let what = ENTITY_ID.to_owned();
        return Err(ApiError::InvalidQuery { name: "entityId".to_owned(), what });
    }
    Ok(ObserverFilter { entity_type, entity_id, visibility })
}

#[cfg(test)]
mod tests {
    use greenroom_actors::observe::span::{Owner, SpanWork};
    use serde_json::{json, to_value};

    use super::*;
    use crate::api::wire::test_header;

    #[test]
    fn a_span_event_has_the_fields_of_opentelemetry() {
        let mut header = test_header();
        header.trace.id = "0af7651916cd43dd8448eb211c80319c".into();
        let span = Span {
            id: "b7ad6b7169203331".parse().unwrap(),
            parent: None,
            owner: Owner::Execution(header.into()),
            start: Timestamp(1_700_000_000_000),
            end: Some(Timestamp(1_700_000_000_250)),
            status: SpanStatus::Error("boom".into()),
            work: SpanWork::Workflow {
                input: None,
                output: None,
                replayed_by: None,
                cancelled_by: None,
            },
        };
        let event = SpanEvent { phase: SpanPhase::Ended, span };
        let expected = json!({
            "type": "OBSERVABILITY_EVENT", "success": true, "data": {
                "type": "span:end",
                "span": {
                    "traceId": "0af7651916cd43dd8448eb211c80319c",
                    "spanId": "b7ad6b7169203331", "name": "invoke_workflow order", "kind": "INTERNAL",
                    "startTime": "2023-11-14T22:13:20.000Z",
                    "endTime": "2023-11-14T22:13:20.250Z", "duration": 250,
                    "attributes": {
                        "entity.type": "workflow", "entity.id": "order",
                        "entity.name": "order", "workflow.execution.id": "e1",
                        "gen_ai.operation.name": "invoke_workflow",
                        "gen_ai.workflow.name": "order", "error.type": "_OTHER"
                    },
                    "status": { "code": "ERROR", "message": "boom" }, "events": []
                },
                "timestamp": "2023-11-14T22:13:20.250Z"
            }
        });
        assert_eq!(to_value(SpanEventView::frame(&event, false)).unwrap(), expected);
    }

    #[test]
    fn a_filter_accepts_two_entity_types() {
        let filter = filter_of(Some("agent"), Some("a".into()), Visibility::Everything).unwrap();
        assert_eq!(filter.entity_type, Some(EntityType::Agent));
        assert!(filter_of(Some("tool"), None, Visibility::Everything).is_err());
        assert!(filter_of(None, Some(String::new()), Visibility::Everything).is_err());
    }

    #[test]
    fn a_message_replaces_the_filter_only_if_it_has_one() {
        let filter = |entity_type, entity_id: Option<&str>| {
            let entity_id = entity_id.map(str::to_owned);
            Some(ObserverFilter { entity_type, entity_id, visibility: Visibility::Everything })
        };
        let rows = [
            (json!({}), None),
            (json!({ "data": { "entityType": "agent" } }), None),
            (json!({ "entityType": null }), filter(None, None)),
            (json!({ "entityId": null, "agentId": "a" }), filter(None, Some("a"))),
            (json!({ "entityId": "w", "agentId": "a" }), filter(None, Some("w"))),
            (json!({ "entityType": "agent" }), filter(Some(EntityType::Agent), None)),
        ];
        for (mut message, expected) in rows {
            message["type"] = json!("SUBSCRIBE");
            let text = message.to_string();
            let message: ObserverMessage = serde_json::from_value(message).unwrap();
            assert_eq!(message.filter(Visibility::Everything).unwrap(), expected, "{text}");
        }
        let misspelt = json!({ "type": "SUBSCRIBE", "entityID": "w" });
        let misspelt: ObserverMessage = serde_json::from_value(misspelt).unwrap();
        let text = misspelt.filter(Visibility::Everything).unwrap_err().to_string();
        assert_eq!(text, "Invalid query parameter entityID: unknown; did you mean entityId?");
    }
}
