//! The UI message stream of the AI SDK, for chats in a browser.
//!
//! Only chunks and fields that all releases of its version 1 accept: clients abort the stream at an
//! unknown one, and early clients at an optional field that is null. The exception are approvals,
//! which clients know since version 6 of the AI SDK.

use greenroom_actors::agent::generation::GenerationEvent;
use greenroom_actors::domain::message::{ToolCall, ToolOutcome, ToolResult};
use greenroom_actors::ports::model::FinishReason;
use greenroom_actors::ports::store::AskKind;
use serde::Serialize;
use serde_json::Value;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use crate::api::wire::pending_ask::{
    ApprovalData, ApprovalForm, AskData, DataPart, RefusalData, TransientPart,
};
use crate::api::wire::raw_stream::SdkUsage;
use crate::api::wire::shape::FinishReasonShape;
use crate::api::wire::stand_in::StandInView;

/// Data of the frame after the last chunk.
pub const DONE: &str = "[DONE]";

/// Data of a frame.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatStreamEvent)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum UiChunk<'a> {
    #[schema(rename_all = "camelCase")]
    Start {
        message_id: &'a str,
    },
    StartStep,
    TextStart {
        id: &'a str,
    },
    TextDelta {
        id: &'a str,
        delta: &'a str,
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
    },
    ReasoningEnd {
        id: &'a str,
    },
    #[schema(rename_all = "camelCase")]
    ToolInputStart {
        tool_call_id: &'a str,
        tool_name: &'a str,
    },
    #[schema(rename_all = "camelCase")]
    ToolInputDelta {
        tool_call_id: &'a str,
        input_text_delta: &'a str,
    },
    #[schema(rename_all = "camelCase")]
    ToolInputAvailable {
        tool_call_id: &'a str,
        tool_name: &'a str,
        input: &'a Value,
    },
    #[schema(rename_all = "camelCase")]
    ToolOutputAvailable {
        tool_call_id: &'a str,
        output: &'a Value,
    },
    #[schema(rename_all = "camelCase")]
    ToolOutputError {
        tool_call_id: &'a str,
        error_text: &'a str,
    },
    /// The call was refused, and not made.
    #[schema(rename_all = "camelCase")]
    ToolOutputDenied {
        tool_call_id: &'a str,
    },
    /// The call waits for the user; `approvalId` is the id of the ask. Early clients reject further
    /// fields.
    #[schema(rename_all = "camelCase")]
    ToolApprovalRequest {
        approval_id: &'a str,
        tool_call_id: &'a str,
    },
    /// The same for agents with approvals as data.
    DataApproval(DataPart<'a, ApprovalData<'a>>),
    /// The tool asks the user; the output of its call is the answer.
    DataAsk(DataPart<'a, AskData<'a>>),
    /// An answer was refused; the chunk in front of this one asks again.
    DataAnswerRefused(TransientPart<RefusalData<'a>>),
    FinishStep,
    /// Early clients reject a `finishReason` outside of the metadata.
    #[schema(rename_all = "camelCase")]
    Finish {
        message_metadata: RunMetadata<'a>,
    },
    Abort,
    #[schema(rename_all = "camelCase")]
    Error {
        error_text: &'a str,
    },
}

/// End of a generation. Clients store it with the message.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatRunMetadata)]
#[serde(rename_all = "camelCase")]
pub struct RunMetadata<'a> {
    #[schema(value_type = FinishReasonShape)]
    finish_reason: FinishReason,
    usage: SdkUsage,
    answered_by: Option<StandInView<'a>>,
}

/// Converts an event; `None` if a chat has no chunk for it.
pub fn ui_chunk(event: &GenerationEvent, approvals: ApprovalForm) -> Option<UiChunk<'_>> {
    Some(match event {
        GenerationEvent::Start { message_id, .. } => UiChunk::Start { message_id },
        GenerationEvent::StepStart => UiChunk::StartStep,
        GenerationEvent::TextStart { id } => UiChunk::TextStart { id },
        GenerationEvent::TextDelta { id, delta } => UiChunk::TextDelta { id, delta },
        GenerationEvent::TextEnd { id } => UiChunk::TextEnd { id },
        GenerationEvent::ReasoningStart { id } => UiChunk::ReasoningStart { id },
        GenerationEvent::ReasoningDelta { id, delta } => UiChunk::ReasoningDelta { id, delta },
        GenerationEvent::ReasoningEnd { id } => UiChunk::ReasoningEnd { id },
        GenerationEvent::ToolInputStart { tool_call_id, tool_name } => {
            UiChunk::ToolInputStart { tool_call_id, tool_name }
        }
        GenerationEvent::ToolInputDelta { tool_call_id, delta } => {
            UiChunk::ToolInputDelta { tool_call_id, input_text_delta: delta }
        }
        GenerationEvent::ToolCall(ToolCall { tool_call_id, tool_name, input }) => {
            UiChunk::ToolInputAvailable { tool_call_id, tool_name, input }
        }
        GenerationEvent::ToolResult(result) => result_chunk(result, approvals),
        GenerationEvent::Ask(ask) => match (ask.kind, approvals) {
            (AskKind::Approval, ApprovalForm::States) => UiChunk::ToolApprovalRequest {
                approval_id: &ask.ask_id,
                tool_call_id: ask.waiting_call(),
            },
            (AskKind::Approval, ApprovalForm::Data) => {
                UiChunk::DataApproval(DataPart::approving(ask))
            }
            (AskKind::Input | AskKind::Step | AskKind::Function | AskKind::Compensation, _) => {
                UiChunk::DataAsk(DataPart::asking(ask))
            }
        },
        GenerationEvent::StepFinish { .. } => UiChunk::FinishStep,
        GenerationEvent::Finish { finish_reason, usage, stand_in } => UiChunk::Finish {
            message_metadata: RunMetadata {
                finish_reason: *finish_reason,
                usage: (*usage).into(),
                answered_by: stand_in.as_deref().map(StandInView::of),
            },
        },
        GenerationEvent::Abort => UiChunk::Abort,
        GenerationEvent::Error { message, .. } => UiChunk::Error { error_text: message },
        GenerationEvent::ToolInputEnd { .. }
        | GenerationEvent::ObjectRejected { .. }
        | GenerationEvent::Object(_) => return None,
    })
}

/// Returns the chunk that follows the one of an event: an ask that is repeated because its answer was
/// refused says why.
pub fn refusal_chunk(event: &GenerationEvent) -> Option<UiChunk<'_>> {
    let GenerationEvent::Ask(ask) = event else { return None };
    TransientPart::refusal(ask).map(UiChunk::DataAnswerRefused)
}

fn result_chunk(result: &ToolResult, approvals: ApprovalForm) -> UiChunk<'_> {
    let ToolResult { tool_call_id, outcome, .. } = result;
    match (outcome, approvals) {
        (ToolOutcome::Output(output), _) => UiChunk::ToolOutputAvailable { tool_call_id, output },
        (ToolOutcome::Denied(_), ApprovalForm::States) => {
            UiChunk::ToolOutputDenied { tool_call_id }
        }
        (ToolOutcome::Error(error_text), _)
        | (ToolOutcome::Denied(error_text), ApprovalForm::Data) => {
            UiChunk::ToolOutputError { tool_call_id, error_text }
        }
    }
}
