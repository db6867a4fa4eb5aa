//! A completion in pieces.

use std::sync::Arc;

use greenroom_actors::agent::PendingAsk;
use greenroom_actors::agent::generation::{FailureKind, GenerationEvent};
use greenroom_actors::domain::message::ToolCall;
use greenroom_actors::ports::model::{FinishReason, ToolSpec, Usage};
use serde::Serialize;
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::completion::{
    CompletionHead, CompletionUsage, Subject, WaitingView, arguments_of, finish_reason_of,
    waiting_text,
};
use super::failure::FailureView;
use crate::api::error::{ErrorCode, stream_failure};
use crate::api::wire::object_text::ObjectText;
use crate::api::wire::server_sent::write_data;
use crate::api::wire::ui_stream::DONE;

/// Between the texts of two turns.
const BREAK: &str = "\n\n";

/// Translates the events of a generation. Only what concerns the client is shown: text, reasoning,
/// calls of its tools, and the end.
#[derive(Debug)]
pub struct CompletionChunks {
    head: CompletionHead,
    has_usage: bool,
    client_tools: Arc<[ToolSpec]>,
    /// Set if an object was requested.
    object: Option<Box<ObjectText>>,
    /// Id of the generation or execution, and that of the completion.
    subject_id: Arc<str>,
    id: String,
    /// Calls of the client's tools, which are sent at the end.
    calls: Vec<ToolCall>,
    asks: Vec<PendingAsk>,
    has_text: bool,
    /// True if text of a further turn may follow.
    is_turn_new: bool,
    has_ended: bool,
}

/// A frame of the stream.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionChunk)]
pub struct ChunkView<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    /// One, or none beside the usage.
    choices: Vec<ChunkChoice<'a>>,
    /// Only in the last frame, where `include_usage` is true.
    usage: Option<CompletionUsage>,
    greenroom: Option<WaitingView<'a>>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionChunkChoice)]
struct ChunkChoice<'a> {
    index: u8,
    delta: Delta<'a>,
    #[schema(required)]
    finish_reason: Option<&'static str>,
    /// Always null.
    #[schema(value_type = Option<serde_json::Value>)]
    logprobs: (),
}

#[skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ChatCompletionDelta)]
struct Delta<'a> {
    role: Option<&'static str>,
    content: Option<&'a str>,
    /// Text of the model's reasoning, as other providers name it.
    reasoning_content: Option<&'a str>,
    tool_calls: Option<[CallDelta<'a>; 1]>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionCallDelta)]
struct CallDelta<'a> {
    index: usize,
    id: &'a str,
    r#type: &'static str,
    function: FunctionDelta<'a>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ChatCompletionFunctionDelta)]
struct FunctionDelta<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl CompletionChunks {
    /// Creates the stream of an answer with usage at its end, if that is asked for.
    pub fn new(head: CompletionHead, has_usage: bool) -> Self {
        Self {
            head,
            has_usage,
            client_tools: Arc::from([]),
            object: None,
            subject_id: Arc::from(""),
            id: String::new(),
            calls: Vec::new(),
            asks: Vec::new(),
            has_text: false,
            is_turn_new: false,
            has_ended: false,
        }
    }

    /// Returns the stream of an answer that may call these tools of the client.
    #[must_use]
    pub fn calling(self, client_tools: Arc<[ToolSpec]>) -> Self {
        Self { client_tools, ..self }
    }

    /// Returns the stream of an object as JSON.
    #[must_use]
    pub fn of_object(self) -> Self {
        Self { object: Some(Box::default()), ..self }
    }

    /// Appends the bytes of an event to `out`.
    pub fn write(&mut self, event: &GenerationEvent, out: &mut Vec<u8>) {
        if self.has_ended {
            return;
        }
        match event {
            GenerationEvent::Start { generation_id, .. } => {
                self.id = CompletionHead::id_of(generation_id);
                self.subject_id = Arc::clone(generation_id);
                let role = Some("assistant");
                self.delta(Delta { role, content: Some(""), ..Delta::default() }, out);
            }
            GenerationEvent::ReasoningDelta { delta, .. } => {
                self.delta(Delta { reasoning_content: Some(delta), ..Delta::default() }, out);
            }
            GenerationEvent::ToolCall(call) => {
                if self.client_tools.iter().any(|tool| tool.name == call.tool_name) {
                    self.calls.push(call.clone());
                }
            }
            GenerationEvent::Ask(ask) => self.asks.push((**ask).clone()),
            GenerationEvent::Finish { finish_reason, usage, .. } => {
                self.finish(*finish_reason, *usage, out);
            }
            GenerationEvent::Abort => {
                let message = "the generation was cancelled";
                self.fail(ErrorCode::GenerationCancelled, message, out);
            }
            GenerationEvent::Error { message, kind } => {
                let code = match (self.head.subject, kind) {
                    (Subject::Workflow, FailureKind::Agent) => ErrorCode::ExecutionFailed,
                    _ => stream_failure(*kind),
                };
                self.fail(code, message, out);
            }
            GenerationEvent::StepStart
            | GenerationEvent::TextDelta { .. }
            | GenerationEvent::ObjectRejected { .. }
            | GenerationEvent::Object(_) => self.text(event, out),
            GenerationEvent::TextStart { .. }
            | GenerationEvent::TextEnd { .. }
            | GenerationEvent::ReasoningStart { .. }
            | GenerationEvent::ReasoningEnd { .. }
            | GenerationEvent::ToolInputStart { .. }
            | GenerationEvent::ToolInputDelta { .. }
            | GenerationEvent::ToolInputEnd { .. }
            | GenerationEvent::ToolResult(_)
            | GenerationEvent::StepFinish { .. } => {}
        }
    }

    /// Appends text of an answer or of an object.
    fn text(&mut self, event: &GenerationEvent, out: &mut Vec<u8>) {
        if let Some(object) = &mut self.object {
            let mut json = Vec::new();
            let written = object.write(event, &mut json);
            match (written, std::str::from_utf8(&json)) {
                (Ok(()), Ok("")) => {}
                (Ok(()), Ok(json)) => self.content(json, out),
                _ => {
                    let message = "the answer of the model does not match the schema";
                    self.fail(ErrorCode::GenerationFailed, message, out);
                }
            }
            return;
        }
        match event {
            GenerationEvent::StepStart => self.is_turn_new = self.has_text,
            GenerationEvent::TextDelta { delta, .. } => {
                if std::mem::take(&mut self.is_turn_new) {
                    self.content(BREAK, out);
                }
                self.has_text = true;
                self.content(delta, out);
            }
            _ => {}
        }
    }

    /// Appends the calls that the client makes, once it is its turn. While the generation waits for a
    /// person it is not: what the client sent then would be another generation, which asks again.
    fn call(&self, calls: &[ToolCall], out: &mut Vec<u8>) {
        for (index, ToolCall { tool_call_id, tool_name, input }) in calls.iter().enumerate() {
            let function = FunctionDelta { name: tool_name, arguments: &arguments_of(input) };
            let call = CallDelta { index, id: tool_call_id, r#type: "function", function };
            self.delta(Delta { tool_calls: Some([call]), ..Delta::default() }, out);
        }
    }

    fn finish(&mut self, reason: FinishReason, usage: Usage, out: &mut Vec<u8>) {
        if let Some(waiting) = waiting_text(&self.asks) {
            let text = if self.has_text { format!("{BREAK}{waiting}") } else { waiting };
            self.content(&text, out);
        }
        let calls = std::mem::take(&mut self.calls);
        let waits = !self.asks.is_empty();
        let calls = if waits { &[][..] } else { &calls };
        self.call(calls, out);
        let reason = finish_reason_of(reason, !calls.is_empty(), waits);
        let mut last = self.chunk(Some(choice(Delta::default(), Some(reason))));
        last.greenroom = self.head.waiting(&self.subject_id, &self.asks);
        write_data(&last, out);
        if self.has_usage {
            let mut usage_only = self.chunk(None);
            usage_only.usage = Some(usage.into());
            write_data(&usage_only, out);
        }
        self.end(out);
    }

    fn fail(&mut self, code: ErrorCode, message: &str, out: &mut Vec<u8>) {
        write_data(&FailureView::of(code, message, None), out);
        self.end(out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.has_ended = true;
        out.extend_from_slice(format!("data: {DONE}\n\n").as_bytes());
    }

    fn content(&self, text: &str, out: &mut Vec<u8>) {
        self.delta(Delta { content: Some(text), ..Delta::default() }, out);
    }

    fn delta(&self, delta: Delta<'_>, out: &mut Vec<u8>) {
        write_data(&self.chunk(Some(choice(delta, None))), out);
    }

    fn chunk<'a>(&'a self, choice: Option<ChunkChoice<'a>>) -> ChunkView<'a> {
        ChunkView {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.head.created_s,
            model: &self.head.model,
            choices: choice.into_iter().collect(),
            usage: None,
            greenroom: None,
        }
    }
}

fn choice<'a>(delta: Delta<'a>, finish_reason: Option<&'static str>) -> ChunkChoice<'a> {
    ChunkChoice { index: 0, delta, finish_reason, logprobs: () }
}

#[cfg(test)]
mod tests;
