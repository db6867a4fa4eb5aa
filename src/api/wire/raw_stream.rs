//! Raw stream of an agent: all events of a generation.
//!
//! Names are those of the full streams of the AI SDK, with those of the specification beside them
//! where the two differ.

use greenroom_actors::agent::generation::GenerationEvent;
use greenroom_actors::domain::message::{ToolCall, ToolOutcome, ToolResult};
use greenroom_actors::ports::model::{FinishReason, Usage};
use greenroom_actors::ports::store::AskKind;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::api::error::stream_failure;
use crate::api::wire::pending_ask::PendingAskView;
use crate::api::wire::shape::{FinishReasonShape, UsageShape};
use crate::api::wire::stand_in::StandInView;

/// Data of an event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RawStreamEvent)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum RawEvent<'a> {
    #[schema(rename_all = "camelCase")]
    Start {
        message_id: &'a str,
        generation_id: &'a str,
    },
    StartStep,
    TextStart {
        id: &'a str,
    },
    /// `delta` and `text` are equal: some clients read one, some the other.
    TextDelta {
        id: &'a str,
        delta: &'a str,
        text: &'a str,
    },
    TextEnd {
        id: &'a str,
    },
    ReasoningStart {
        id: &'a str,
    },
    ReasoningDelta {
        id: &'a str,
        delta: &'a str,
        text: &'a str,
    },
    ReasoningEnd {
        id: &'a str,
    },
    #[schema(rename_all = "camelCase")]
    ToolInputStart {
        id: &'a str,
        tool_name: &'a str,
    },
    ToolInputDelta {
        id: &'a str,
        delta: &'a str,
    },
    ToolInputEnd {
        id: &'a str,
    },
    ToolCall(CallFields<'a>),
    ToolResult(ResultFields<'a, OutputField<'a>>),
    ToolError(ResultFields<'a, ErrorField<'a>>),
    /// The call was refused, and not made.
    ToolOutputDenied(ResultFields<'a, ReasonField<'a>>),
    /// The call waits for an approval. The generation is suspended once all other calls of the turn
    /// have results.
    ToolApprovalRequest(PendingAskView<'a>),
    /// The tool asks a person; `reason` is the question.
    Ask(PendingAskView<'a>),
    #[schema(rename_all = "camelCase")]
    FinishStep {
        #[schema(value_type = FinishReasonShape)]
        finish_reason: FinishReason,
        usage: SdkUsage,
    },
    Object {
        object: &'a Value,
    },
    ObjectRejected {
        error: &'a str,
    },
    #[schema(rename_all = "camelCase")]
    Finish {
        #[schema(value_type = FinishReasonShape)]
        finish_reason: FinishReason,
        #[schema(value_type = UsageShape)]
        usage: Usage,
        total_usage: SdkUsage,
        #[serde(skip_serializing_if = "Option::is_none")]
        answered_by: Option<StandInView<'a>>,
    },
    Abort,
    /// `code` is an error code, here because the headers have already been sent.
    Error {
        error: &'a str,
        code: &'static str,
    },
}

/// A tool call of the model.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolCallFields)]
#[serde(rename_all = "camelCase")]
pub struct CallFields<'a> {
    tool_call_id: &'a str,
    tool_name: &'a str,
    input: &'a Value,
}

/// A tool call with its result.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolResultFields)]
#[serde(rename_all = "camelCase")]
pub struct ResultFields<'a, T> {
    tool_call_id: &'a str,
    tool_name: &'a str,
    input: &'a Value,
    #[serde(flatten)]
    outcome: T,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolOutputField)]
pub struct OutputField<'a> {
    output: &'a Value,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolErrorField)]
pub struct ErrorField<'a> {
    error: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ToolReasonField)]
pub struct ReasonField<'a> {
    reason: &'a str,
}

/// Tokens, with the names of the AI SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SdkUsage)]
#[serde(rename_all = "camelCase")]
pub struct SdkUsage {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    reasoning_tokens: u64,
    cached_input_tokens: u64,
}

impl From<Usage> for SdkUsage {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.prompt_tokens,
            output_tokens: usage.completion_tokens,
            total_tokens: usage.total_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            cached_input_tokens: usage.cached_input_tokens,
        }
    }
}

/// Converts an event of a generation into one event of the stream.
pub fn raw_event(event: &GenerationEvent) -> RawEvent<'_> {
    match event {
        GenerationEvent::Start { generation_id, message_id } => {
            RawEvent::Start { message_id, generation_id }
        }
        GenerationEvent::Ask(ask) => match ask.kind {
            AskKind::Approval => RawEvent::ToolApprovalRequest(PendingAskView::of(ask)),
            AskKind::Input | AskKind::Step | AskKind::Function | AskKind::Compensation => {
                RawEvent::Ask(PendingAskView::of(ask))
            }
        },
        GenerationEvent::StepStart => RawEvent::StartStep,
        GenerationEvent::TextStart { id } => RawEvent::TextStart { id },
        GenerationEvent::TextDelta { id, delta } => RawEvent::TextDelta { id, delta, text: delta },
        GenerationEvent::TextEnd { id } => RawEvent::TextEnd { id },
        GenerationEvent::ReasoningStart { id } => RawEvent::ReasoningStart { id },
        GenerationEvent::ReasoningDelta { id, delta } => {
            RawEvent::ReasoningDelta { id, delta, text: delta }
        }
        GenerationEvent::ReasoningEnd { id } => RawEvent::ReasoningEnd { id },
        GenerationEvent::ToolInputStart { tool_call_id, tool_name } => {
            RawEvent::ToolInputStart { id: tool_call_id, tool_name }
        }
        GenerationEvent::ToolInputDelta { tool_call_id, delta } => {
            RawEvent::ToolInputDelta { id: tool_call_id, delta }
        }
        GenerationEvent::ToolInputEnd { tool_call_id } => {
            RawEvent::ToolInputEnd { id: tool_call_id }
        }
        GenerationEvent::ToolCall(ToolCall { tool_call_id, tool_name, input }) => {
            RawEvent::ToolCall(CallFields { tool_call_id, tool_name, input })
        }
        GenerationEvent::ToolResult(result) => raw_result(result),
        GenerationEvent::StepFinish { finish_reason, usage } => {
            RawEvent::FinishStep { finish_reason: *finish_reason, usage: (*usage).into() }
        }
        GenerationEvent::ObjectRejected { detail } => RawEvent::ObjectRejected { error: detail },
        GenerationEvent::Object(object) => RawEvent::Object { object },
        GenerationEvent::Finish { finish_reason, usage, stand_in } => RawEvent::Finish {
            finish_reason: *finish_reason,
            usage: *usage,
            total_usage: (*usage).into(),
            answered_by: stand_in.as_deref().map(StandInView::of),
        },
        GenerationEvent::Abort => RawEvent::Abort,
        GenerationEvent::Error { message, kind } => {
            RawEvent::Error { error: message, code: stream_failure(*kind).as_str() }
        }
    }
}

fn raw_result(result: &ToolResult) -> RawEvent<'_> {
    let ToolResult { tool_call_id, tool_name, input, outcome } = result;
    match outcome {
        ToolOutcome::Output(output) => RawEvent::ToolResult(ResultFields {
            tool_call_id,
            tool_name,
            input,
            outcome: OutputField { output },
        }),
        ToolOutcome::Error(error) => RawEvent::ToolError(ResultFields {
            tool_call_id,
            tool_name,
            input,
            outcome: ErrorField { error },
        }),
        ToolOutcome::Denied(reason) => RawEvent::ToolOutputDenied(ResultFields {
            tool_call_id,
            tool_name,
            input,
            outcome: ReasonField { reason },
        }),
    }
}
