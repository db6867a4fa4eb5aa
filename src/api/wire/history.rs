//! The history of an agent on the wire.

use greenroom_actors::agent::PendingAsk;
use greenroom_actors::domain::message::{ToolCall, ToolResult};
use greenroom_actors::ports::model::{FinishReason, Usage};
use greenroom_actors::ports::store::{
    GenerationEntry, GenerationPage, GenerationStatus, GenerationStep,
};
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::wire::Iso;
use crate::api::wire::pending_ask::PendingAskView;
use crate::api::wire::shape::{GenerationStatusShape, GenerationStepShape, UsageShape};
use crate::api::wire::stand_in::StandInView;

/// A page of an agent's history, newest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentHistory)]
pub struct HistoryView<'a> {
    entries: Vec<HistoryEntryView<'a>>,
    pagination: PaginationView,
}

/// A generation, as recorded so far.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentHistoryEntry)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntryView<'a> {
    id: &'a str,
    start_time: Iso,
    #[schema(required)]
    end_time: Option<Iso>,
    #[schema(value_type = GenerationStatusShape)]
    status: GenerationStatus,
    input: &'a Value,
    #[schema(value_type = Value, required)]
    output: Option<&'a Value>,
    #[schema(value_type = Vec<GenerationStepShape>)]
    steps: Vec<StepView<'a>>,
    #[schema(value_type = Option<UsageShape>, required)]
    usage: Option<Usage>,
    #[schema(required)]
    user_id: Option<&'a str>,
    #[schema(required)]
    conversation_id: Option<&'a str>,
    /// The API through which it was started, or what it is part of: `mcp`, or `mcp:NAME` of a face with a name, and
    /// `openai`. Absent for the REST API and programs in Rust.
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<&'a str>,
    trace_id: &'a str,
    #[schema(required)]
    error: Option<&'a str>,
    /// Open asks of a suspended generation. Lists leave them out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    asks: Vec<PendingAskView<'a>>,
}

/// A turn, without the details that only traces show.
#[skip_serializing_none]
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepView<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reasoning: &'a str,
    tool_calls: &'a [ToolCall],
    tool_results: &'a [ToolResult],
    usage: Usage,
    finish_reason: FinishReason,
    answered_by: Option<StandInView<'a>>,
}

impl<'a> StepView<'a> {
    pub(super) fn of(step: &'a GenerationStep) -> Self {
        Self {
            text: &step.text,
            reasoning: &step.reasoning,
            tool_calls: &step.tool_calls,
            tool_results: &step.tool_results,
            usage: step.usage,
            finish_reason: step.finish_reason,
            answered_by: step.stand_in().map(StandInView::of),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pagination)]
#[serde(rename_all = "camelCase")]
struct PaginationView {
    /// Starts at 0.
    page: u32,
    limit: u32,
    total: u64,
    total_pages: u64,
}

impl<'a> HistoryView<'a> {
    /// Shows a page; `limit` is at least 1.
    pub fn of(history: &'a GenerationPage, page: u32, limit: u32) -> Self {
        let total = history.total;
        Self {
            entries: history.entries.iter().map(HistoryEntryView::of).collect(),
            pagination: PaginationView {
                page,
                limit,
                total,
                total_pages: total.div_ceil(u64::from(limit.max(1))),
            },
        }
    }
}

impl<'a> HistoryEntryView<'a> {
    /// Shows a generation.
    pub fn of(entry: &'a GenerationEntry) -> Self {
        let record = &entry.record;
        Self {
            id: &record.id,
            start_time: Iso(record.start_time),
            end_time: record.end_time.map(Iso),
            status: record.status,
            input: &record.input,
            output: record.output.as_ref(),
            steps: entry.steps.iter().filter(|step| step.has_content()).map(StepView::of).collect(),
            usage: record.usage,
            user_id: record.user_id.as_deref(),
            conversation_id: record.conversation_id.as_deref(),
            via: record.trace.via.as_deref(),
            trace_id: &record.trace.id,
            error: record.error.as_deref(),
            asks: Vec::new(),
        }
    }

    /// Adds what the generation waits for.
    pub fn waiting_for(mut self, asks: &'a [PendingAsk]) -> Self {
        self.asks = PendingAskView::all(asks);
        self
    }
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::domain::trace::{EntityType, Trace, TraceOrigin};
    use greenroom_actors::ports::store::{GenerationRecord, TurnError, TurnErrorKind, TurnTiming};
    use serde_json::{json, to_value};

    use super::*;

    #[test]
    fn an_entry_has_the_fields_of_the_contract() {
        let record = GenerationRecord {
            id: "g".to_owned(),
            agent_id: "a".to_owned(),
            status: GenerationStatus::Error,
            start_time: Timestamp(0),
            end_time: Some(Timestamp(5)),
            input: json!("hi"),
            output: None,
            usage: None,
            error: Some("interrupted by a restart".to_owned()),
            user_id: Some("u".to_owned()),
            conversation_id: None,
            origin: None,
            trace: Trace::of("g", EntityType::Agent, &std::sync::Arc::from("a"), TraceOrigin::New),
        };
        let trace_id = record.trace.id.to_string();
        let step = GenerationStep {
            text: "so far".to_owned(),
            timing: TurnTiming { first_piece: Some(Timestamp(3)), ..TurnTiming::default() },
            ..GenerationStep::default()
        };
        let error = TurnError { kind: TurnErrorKind::Timeout, message: "no".to_owned() };
        let timing = TurnTiming { error: Some(Box::new(error)), ..TurnTiming::default() };
        let empty = GenerationStep { timing, ..GenerationStep::default() };
        let page = GenerationPage {
            entries: vec![GenerationEntry { record, steps: vec![step, empty] }],
            total: 11,
        };
        let expected = json!({
            "entries": [{
                "id": "g", "startTime": "1970-01-01T00:00:00.000Z",
                "endTime": "1970-01-01T00:00:00.005Z", "status": "error", "input": "hi",
                "output": null,
                "steps": [{
                    "text": "so far", "toolCalls": [], "toolResults": [],
                    "usage": { "promptTokens": 0, "completionTokens": 0, "totalTokens": 0,
                               "cachedInputTokens": 0, "reasoningTokens": 0 },
                    "finishReason": "stop"
                }],
                "usage": null, "userId": "u", "conversationId": null, "traceId": trace_id,
                "error": "interrupted by a restart"
            }],
            "pagination": { "page": 1, "limit": 10, "total": 11, "totalPages": 2 }
        });
        assert_eq!(to_value(HistoryView::of(&page, 1, 10)).unwrap(), expected);
        let empty = to_value(HistoryView::of(&GenerationPage::default(), 0, 10)).unwrap();
        assert_eq!(empty["pagination"]["totalPages"], 0);
    }
}
