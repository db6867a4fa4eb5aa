//! Answers of `generateContent`; each piece of a stream has the shape of a whole answer.

use greenroom_actors::ports::model::{FinishReason, ModelError, ProviderState};
use serde_json::{Map, Value, json};

use super::STATE;
use crate::adapters::models::answer::Answer;
use crate::adapters::models::fields::{count, text, usage};
use crate::adapters::models::format::Reader;

/// Reads one answer.
#[derive(Debug, Default)]
pub(in crate::adapters::models) struct GeminiReader {
    /// Signatures of calls, by our ids of the calls.
    calls: Map<String, Value>,
    /// Signature of the text.
    text: Option<Value>,
}

impl GeminiReader {
    fn part(&mut self, part: &Value, answer: &mut Answer) -> Result<(), ModelError> {
        let signature = part.get("thoughtSignature").filter(|signature| signature.is_string());
        answer.grow(text(part, "thoughtSignature").len())?;
        if let Some(call) = part.get("functionCall") {
            let input = call.get("args").cloned().unwrap_or_else(|| json!({}));
            answer.grow(input.to_string().len())?;
            let id = answer.whole_call(text(call, "id"), text(call, "name"), input)?;
            if let Some(signature) = signature {
                self.calls.insert(id, signature.clone());
            }
            return Ok(());
        }
        let content = text(part, "text");
        if part["thought"] == true {
            return answer.reasoning(content);
        }
        if let Some(signature) = signature {
            self.text = Some(signature.clone());
        }
        answer.text(content)
    }
}

impl Reader for GeminiReader {
    fn read(&mut self, frame: &Value, answer: &mut Answer) -> Result<(), ModelError> {
        answer.set_names(text(frame, "responseId"), text(frame, "modelVersion"));
        if let Some(counted) = frame.get("usageMetadata") {
            let reasoning = count(counted, "/thoughtsTokenCount");
            answer.usage = usage(
                count(counted, "/promptTokenCount") + count(counted, "/toolUsePromptTokenCount"),
                count(counted, "/cachedContentTokenCount"),
                // reasoning is not counted among the candidates
                count(counted, "/candidatesTokenCount") + reasoning,
                reasoning,
            );
        }
        if frame.pointer("/promptFeedback/blockReason").is_some_and(Value::is_string) {
            answer.finish_reason = Some(FinishReason::ContentFilter);
        }
        let Some(candidate) = frame.pointer("/candidates/0") else { return Ok(()) };
        let parts = candidate.pointer("/content/parts").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            self.part(part, answer)?;
        }
        if let Some(reason) = candidate.get("finishReason").and_then(Value::as_str) {
            answer.finish_reason = Some(finish_reason(reason));
        }
        Ok(())
    }

    fn state(&mut self, _: &Answer) -> Option<ProviderState> {
        let mut state = Map::new();
        if !self.calls.is_empty() {
            state.insert("calls".to_owned(), Value::Object(std::mem::take(&mut self.calls)));
        }
        state.extend(self.text.take().map(|signature| ("text".to_owned(), signature)));
        (!state.is_empty())
            .then(|| ProviderState { provider: STATE.to_owned(), state: Value::Object(state) })
    }
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY"
        | "LANGUAGE" => FinishReason::ContentFilter,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => FinishReason::Error,
        _ => FinishReason::Other,
    }
}
