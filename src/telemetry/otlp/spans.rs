//! Encodes spans as OTLP messages.

use std::collections::BTreeMap;

use greenroom_actors::observe::span::{Span, SpanKind, SpanStatus};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1 as proto;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind as ProtoKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

use super::values::{nanoseconds, of_attribute, pair, resource, scope, trace_bytes};

/// Flag `sampled` of W3C Trace Context.
const SAMPLED: u32 = 0x001;
/// Flag: [`IS_REMOTE`] is valid.
const HAS_IS_REMOTE: u32 = 0x100;
/// Flag: the parent span belongs to another process.
const IS_REMOTE: u32 = 0x200;

/// Encodes a span; `None` if it has not ended. With `content`, includes prompts, answers, inputs
/// and outputs.
pub(super) fn encode(span: &Span, content: bool) -> Option<proto::Span> {
    let trace = span.trace();
    let is_remote = trace.is_remote && span.parent == trace.parent_span;
    let kind = match span.kind() {
        SpanKind::Internal => ProtoKind::Internal,
        SpanKind::Client => ProtoKind::Client,
    };
    let (code, message) = match &span.status {
        SpanStatus::Unset => (StatusCode::Unset, String::new()),
        SpanStatus::Ok => (StatusCode::Ok, String::new()),
        SpanStatus::Error(message) => (StatusCode::Error, message.to_string()),
    };
    let attributes = span.attributes(content).into_iter();
    Some(proto::Span {
        trace_id: trace_bytes(&trace.id)?,
        span_id: span.id.to_bytes().to_vec(),
        trace_state: trace.state.as_deref().unwrap_or_default().to_owned(),
        parent_span_id: span.parent.map(|id| id.to_bytes().to_vec()).unwrap_or_default(),
        flags: SAMPLED | HAS_IS_REMOTE | if is_remote { IS_REMOTE } else { 0 },
        name: span.name(),
        kind: kind.into(),
        start_time_unix_nano: nanoseconds(span.start),
        end_time_unix_nano: nanoseconds(span.end?),
        attributes: attributes.map(|(name, value)| pair(name, of_attribute(value))).collect(),
        status: Some(proto::Status { message, code: code.into() }),
        ..proto::Span::default()
    })
}

/// Builds the request that exports spans.
pub(super) fn request(
    about: &BTreeMap<String, String>,
    spans: Vec<proto::Span>,
) -> ExportTraceServiceRequest {
    let scope_spans = vec![proto::ScopeSpans { scope: Some(scope()), spans, ..Default::default() }];
    let resource = Some(resource(about));
    let of_resource = proto::ResourceSpans { resource, scope_spans, ..Default::default() };
    ExportTraceServiceRequest { resource_spans: vec![of_resource] }
}
