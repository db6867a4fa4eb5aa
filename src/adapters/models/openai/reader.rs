//! Answers of chat completions; a whole answer is read as a stream of one piece.

use greenroom_actors::ports::model::{FinishReason, ModelError, ProviderState};
use serde_json::{Value, json};

use crate::adapters::models::answer::Answer;
use crate::adapters::models::fields::{count, text, usage};
use crate::adapters::models::format::Reader;

use super::REASONING;

/// Reads one answer.
#[derive(Debug)]
pub(in crate::adapters::models) struct OpenAiReader {
    provider: &'static str,
    /// Reasoning from [`REASONING`], which the server may require back.
    thoughts: String,
    refused: bool,
}

impl OpenAiReader {
    pub(in crate::adapters::models) fn new(provider: &'static str) -> Self {
        Self { provider, thoughts: String::new(), refused: false }
    }
}

impl Reader for OpenAiReader {
    fn read(&mut self, frame: &Value, answer: &mut Answer) -> Result<(), ModelError> {
        answer.set_names(text(frame, "id"), text(frame, "model"));
        if let Some(counted) = frame.get("usage").filter(|usage| usage.is_object()) {
            let cached = count(counted, "/prompt_tokens_details/cached_tokens")
                .max(count(counted, "/prompt_cache_hit_tokens"));
            let prompt = count(counted, "/prompt_tokens");
            let reasoning = count(counted, "/completion_tokens_details/reasoning_tokens");
            let mut completion = count(counted, "/completion_tokens");
            // xAI does not count reasoning as part of the completion
            if count(counted, "/total_tokens") == prompt + completion + reasoning {
                completion += reasoning;
            }
            answer.usage = usage(prompt, cached, completion, reasoning);
        }
        let Some(choice) = frame.pointer("/choices/0") else { return Ok(()) };
        let message = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
        let thought = text(message, REASONING);
        answer.reasoning(thought)?;
        self.thoughts.push_str(thought);
        if thought.is_empty() {
            // some servers send both, with the same text
            answer.reasoning(text(message, "reasoning"))?;
        }
        match &message["content"] {
            Value::Array(parts) => {
                parts.iter().try_for_each(|part| answer.text(text(part, "text")))?;
            }
            content => answer.text(content.as_str().unwrap_or_default())?,
        }
        let refusal = text(message, "refusal");
        self.refused |= !refusal.is_empty();
        answer.text(refusal)?;
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        for call in calls {
            read_call(call, answer)?;
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str) {
            answer.finish_reason = Some(if self.refused {
                FinishReason::ContentFilter
            } else {
                finish_reason(reason)
            });
        }
        Ok(())
    }

    fn state(&mut self, answer: &Answer) -> Option<ProviderState> {
        // servers with this field refuse tool results without the reasoning before the call
        let thoughts = std::mem::take(&mut self.thoughts);
        (!thoughts.is_empty() && answer.has_calls()).then(|| ProviderState {
            provider: self.provider.to_owned(),
            state: json!({ REASONING: thoughts }),
        })
    }
}

/// Reads a piece of a call, or all of it. Servers differ: some omit the index, some give every call
/// the index 0 and a different id, some repeat the name.
fn read_call(call: &Value, answer: &mut Answer) -> Result<(), ModelError> {
    let id = text(call, "id");
    let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
    let newest = answer.newest_open();
    let key = match call.get("index").and_then(Value::as_u64) {
        Some(index) => index,
        None if id.is_empty() && name.is_empty() => newest.unwrap_or(0),
        None => newest.map_or(0, |key| key.saturating_add(1)),
    };
    if !answer.has_open(key, id) && !name.is_empty() {
        answer.begin_call(key, id, name)?;
    }
    match call.pointer("/function/arguments") {
        Some(Value::String(piece)) => answer.more_of_call(key, piece),
        None | Some(Value::Null) => Ok(()),
        Some(whole) => answer.more_of_call(key, &whole.to_string()),
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" | "eos" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "error" => FinishReason::Error,
        _ => FinishReason::Other,
    }
}
