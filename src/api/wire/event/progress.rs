//! What the agent of a step says, as events of a stream that have no number.

use std::io::Write as _;

use greenroom_actors::domain::ids::step_id_of;
use greenroom_actors::domain::message::ToolOutcome;
use greenroom_actors::generation::GenerationEvent;
use greenroom_actors::ports::model::Usage;
use greenroom_actors::requests::ProgressBatch;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api::wire::Iso;

/// The data of one `step-progress`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressFrame<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    execution_id: &'a str,
    timestamp: Iso,
    from: &'a str,
    path: &'a str,
    event: Value,
}

/// Writes progress as server-sent events. They have no number: nobody can ask for them again.
pub fn render_progress(batch: &ProgressBatch) -> Vec<u8> {
    let mut out = Vec::new();
    for event in batch.events() {
        let frame = ProgressFrame {
            kind: "step-progress",
            execution_id: batch.execution_id.as_str(),
            timestamp: Iso(batch.at),
            from: step_id_of(&batch.path),
            path: &batch.path,
            event: progress_event(event),
        };
        let written = out
            .write_all(b"data: ")
            .and_then(|()| serde_json::to_writer(&mut out, &frame).map_err(Into::into))
            .and_then(|()| out.write_all(b"\n\n"));
        debug_assert!(written.is_ok(), "progress of {} could not be written", batch.execution_id);
    }
    out
}

/// An event of a generation in the words of the agents' own stream.
fn progress_event(event: &GenerationEvent) -> Value {
    use GenerationEvent as Said;
    match event {
        Said::Start { generation_id, message_id } => {
            json!({ "type": "start", "generationId": generation_id, "messageId": message_id })
        }
        Said::StepStart => json!({ "type": "start-step" }),
        Said::TextStart { id } => json!({ "type": "text-start", "id": id }),
        Said::TextDelta { id, delta } => {
            json!({ "type": "text-delta", "id": id, "delta": delta, "text": delta })
        }
        Said::TextEnd { id } => json!({ "type": "text-end", "id": id }),
        Said::ReasoningStart { id } => json!({ "type": "reasoning-start", "id": id }),
        Said::ReasoningDelta { id, delta } => {
            json!({ "type": "reasoning-delta", "id": id, "delta": delta, "text": delta })
        }
        Said::ReasoningEnd { id } => json!({ "type": "reasoning-end", "id": id }),
        Said::ToolInputStart { tool_call_id, tool_name } => {
            json!({ "type": "tool-input-start", "id": tool_call_id, "toolName": tool_name })
        }
        Said::ToolInputDelta { tool_call_id, delta } => {
            json!({ "type": "tool-input-delta", "id": tool_call_id, "delta": delta })
        }
        Said::ToolInputEnd { tool_call_id } => {
            json!({ "type": "tool-input-end", "id": tool_call_id })
        }
        Said::ToolCall(call) => json!({
            "type": "tool-call", "toolCallId": call.tool_call_id, "toolName": call.tool_name,
            "input": call.input
        }),
        Said::ToolResult(result) => {
            let (kind, key, outcome) = match &result.outcome {
                ToolOutcome::Output(output) => ("tool-result", "output", output.clone()),
                ToolOutcome::Error(error) => ("tool-error", "error", Value::from(error.as_str())),
            };
            json!({
                "type": kind, "toolCallId": result.tool_call_id, "toolName": result.tool_name,
                "input": result.input, key: outcome
            })
        }
        Said::StepFinish { finish_reason, usage } => json!({
            "type": "finish-step", "finishReason": finish_reason, "usage": total_usage(usage)
        }),
        Said::ObjectRejected { detail } => json!({ "type": "object-rejected", "error": detail }),
        Said::Object(object) => json!({ "type": "object", "object": object }),
        Said::Finish { finish_reason, usage } => json!({
            "type": "finish", "finishReason": finish_reason, "usage": usage,
            "totalUsage": total_usage(usage)
        }),
        Said::Abort => json!({ "type": "abort" }),
        Said::Error { message } => json!({ "type": "error", "error": message }),
    }
}

/// In the names of the AI SDK.
fn total_usage(usage: &Usage) -> Value {
    json!({
        "inputTokens": usage.prompt_tokens, "outputTokens": usage.completion_tokens,
        "totalTokens": usage.total_tokens, "cachedInputTokens": usage.cached_input_tokens,
        "reasoningTokens": usage.reasoning_tokens
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use greenroom_actors::domain::ids::ExecutionId;
    use greenroom_actors::domain::message::{ToolCall, ToolResult};
    use greenroom_actors::domain::time::Timestamp;
    use greenroom_actors::generation::GenerationProgress;
    use greenroom_actors::ports::model::FinishReason;

    use super::*;

    fn batch(path: &str, events: Vec<GenerationEvent>) -> ProgressBatch {
        ProgressBatch {
            execution_id: ExecutionId::trusted("e1"),
            path: Arc::from(path),
            at: Timestamp(1_700_000_000_000),
            said: events.into_iter().map(|event| GenerationProgress(Arc::from([event]))).collect(),
            rendered: OnceLock::new(),
        }
    }

    #[test]
    fn progress_names_its_step_and_has_no_number() {
        let said = vec![GenerationEvent::StepStart, GenerationEvent::Abort];
        let text = String::from_utf8(render_progress(&batch("checks/letter/write", said))).unwrap();
        let frames: Vec<&str> = text.split_terminator("\n\n").collect();
        let data: Vec<Value> = frames
            .iter()
            .map(|frame| serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap())
            .collect();
        let expected = ["start-step", "abort"].map(|kind| {
            json!({
                "type": "step-progress", "executionId": "e1",
                "timestamp": "2023-11-14T22:13:20.000Z", "from": "write",
                "path": "checks/letter/write", "event": { "type": kind }
            })
        });
        assert_eq!(data, expected);
    }

    #[test]
    fn each_thing_that_is_said_has_the_words_of_the_agents_stream() {
        let id: Arc<str> = Arc::from("a");
        let call = || ToolCall {
            tool_call_id: "c1".to_owned(),
            tool_name: "add".to_owned(),
            input: json!(1),
        };
        let result = |outcome| {
            let ToolCall { tool_call_id, tool_name, input } = call();
            GenerationEvent::ToolResult(ToolResult { tool_call_id, tool_name, input, outcome })
        };
        let usage = Usage {
            prompt_tokens: 1,
            completion_tokens: 2,
            total_tokens: 3,
            cached_input_tokens: 4,
            reasoning_tokens: 5,
        };
        let spent = json!({ "promptTokens": 1, "completionTokens": 2, "totalTokens": 3,
                            "cachedInputTokens": 4, "reasoningTokens": 5 });
        let total = json!({ "inputTokens": 1, "outputTokens": 2, "totalTokens": 3,
                            "cachedInputTokens": 4, "reasoningTokens": 5 });
        let finish_reason = FinishReason::ToolCalls;
        let rows = [
            (
                GenerationEvent::Start { generation_id: id.clone(), message_id: "m".into() },
                json!({ "type": "start", "generationId": "a", "messageId": "m" }),
            ),
            (
                GenerationEvent::TextDelta { id, delta: "hi".to_owned() },
                json!({ "type": "text-delta", "id": "a", "delta": "hi", "text": "hi" }),
            ),
            (
                GenerationEvent::ToolCall(call()),
                json!({ "type": "tool-call", "toolCallId": "c1", "toolName": "add", "input": 1 }),
            ),
            (
                result(ToolOutcome::Output(json!(2))),
                json!({ "type": "tool-result", "toolCallId": "c1", "toolName": "add", "input": 1,
                        "output": 2 }),
            ),
            (
                result(ToolOutcome::Error("no".to_owned())),
                json!({ "type": "tool-error", "toolCallId": "c1", "toolName": "add", "input": 1,
                        "error": "no" }),
            ),
            (
                GenerationEvent::StepFinish { finish_reason, usage },
                json!({ "type": "finish-step", "finishReason": "tool-calls", "usage": total }),
            ),
            (
                GenerationEvent::Finish { finish_reason, usage },
                json!({ "type": "finish", "finishReason": "tool-calls", "usage": spent,
                        "totalUsage": total }),
            ),
            (
                GenerationEvent::Error { message: "no".to_owned() },
                json!({ "type": "error", "error": "no" }),
            ),
        ];
        for (event, expected) in rows {
            assert_eq!(progress_event(&event), expected);
        }
    }
}
