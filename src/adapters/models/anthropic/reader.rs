//! Answers of the messages format; a whole answer is read block by block.

use std::collections::BTreeMap;

use greenroom_actors::ports::model::{FinishReason, ModelError, ProviderState};
use serde_json::{Value, json};

use super::{ANSWER_TOOL, STATE};
use crate::adapters::models::answer::Answer;
use crate::adapters::models::fields::{count, text, usage};
use crate::adapters::models::format::Reader;
use crate::adapters::models::prompt::{Object, Prompt};

/// Reads one answer.
#[derive(Debug)]
pub(in crate::adapters::models) struct AnthropicReader {
    /// True if the model is forced to answer with the tool.
    answers_by_tool: bool,
    /// Index of the block of that tool.
    answer_block: Option<u64>,
    /// Blocks of reasoning by index; sent back unchanged.
    thoughts: BTreeMap<u64, Value>,
    counted: Counted,
    is_done: bool,
}

/// Counts of tokens, which arrive in several partial messages.
#[derive(Debug, Default)]
struct Counted {
    prompt: u64,
    cached: u64,
    completion: u64,
    reasoning: u64,
}

impl AnthropicReader {
    pub(in crate::adapters::models) fn new(prompt: &Prompt<'_>) -> Self {
        Self {
            answers_by_tool: matches!(prompt.object, Object::Schema(_)),
            answer_block: None,
            thoughts: BTreeMap::new(),
            counted: Counted::default(),
            is_done: false,
        }
    }

    fn begin(&mut self, at: u64, block: &Value, answer: &mut Answer) -> Result<(), ModelError> {
        match text(block, "type") {
            "text" => answer.text(text(block, "text")),
            "thinking" => {
                answer.reasoning(text(block, "thinking"))?;
                self.keep(at, block, answer)
            }
            "redacted_thinking" => self.keep(at, block, answer),
            "tool_use" => {
                let given = block
                    .get("input")
                    .filter(|input| input.as_object().is_none_or(|members| !members.is_empty()));
                let given = given.map(Value::to_string).unwrap_or_default();
                if self.answers_by_tool && text(block, "name") == ANSWER_TOOL {
                    self.answer_block = Some(at);
                    return answer.text(&given);
                }
                answer.begin_call(at, text(block, "id"), text(block, "name"))?;
                answer.more_of_call(at, &given)
            }
            // blocks of the provider's own tools
            _ => Ok(()),
        }
    }

    fn more(&mut self, at: u64, delta: &Value, answer: &mut Answer) -> Result<(), ModelError> {
        match text(delta, "type") {
            "text_delta" => answer.text(text(delta, "text")),
            "input_json_delta" if self.answer_block == Some(at) => {
                answer.text(text(delta, "partial_json"))
            }
            "input_json_delta" => answer.more_of_call(at, text(delta, "partial_json")),
            "thinking_delta" => {
                let piece = text(delta, "thinking");
                self.append(at, "thinking", piece);
                answer.reasoning(piece)
            }
            "signature_delta" => {
                let piece = text(delta, "signature");
                self.append(at, "signature", piece);
                answer.grow(piece.len())
            }
            _ => Ok(()),
        }
    }

    fn keep(&mut self, at: u64, block: &Value, answer: &mut Answer) -> Result<(), ModelError> {
        answer.grow(block.to_string().len())?;
        self.thoughts.insert(at, block.clone());
        Ok(())
    }

    /// Appends to a block of reasoning.
    fn append(&mut self, at: u64, member: &str, piece: &str) {
        let Some(block) = self.thoughts.get_mut(&at) else { return };
        match &mut block[member] {
            Value::String(text) => text.push_str(piece),
            other => *other = Value::from(piece),
        }
    }

    fn count(&mut self, counted: &Value, answer: &mut Answer) {
        let Counted { prompt, cached, completion, reasoning } = &mut self.counted;
        let read = count(counted, "/cache_read_input_tokens");
        // `input_tokens` does not include tokens read from or written to the cache
        let sum =
            count(counted, "/input_tokens") + count(counted, "/cache_creation_input_tokens") + read;
        *prompt = sum.max(*prompt);
        *cached = read.max(*cached);
        *completion = count(counted, "/output_tokens").max(*completion);
        *reasoning = count(counted, "/output_tokens_details/thinking_tokens").max(*reasoning);
        answer.usage = usage(*prompt, *cached, *completion, *reasoning);
    }

    fn stop(&mut self, reason: &Value, answer: &mut Answer) {
        let Some(reason) = reason.as_str() else { return };
        answer.finish_reason = Some(match reason {
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "tool_use" if self.answers_by_tool => FinishReason::Stop,
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::ContentFilter,
            _ => FinishReason::Other,
        });
    }

    fn whole(&mut self, message: &Value, answer: &mut Answer) -> Result<(), ModelError> {
        answer.set_names(text(message, "id"), text(message, "model"));
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (at, block) in (0..).zip(blocks) {
            self.begin(at, block, answer)?;
            answer.end_call(at)?;
        }
        self.count(&message["usage"], answer);
        self.stop(&message["stop_reason"], answer);
        self.is_done = true;
        Ok(())
    }
}

impl Reader for AnthropicReader {
    fn read(&mut self, frame: &Value, answer: &mut Answer) -> Result<(), ModelError> {
        let at = frame.get("index").and_then(Value::as_u64).unwrap_or(0);
        match text(frame, "type") {
            "message" => self.whole(frame, answer),
            "message_start" => {
                let message = &frame["message"];
                answer.set_names(text(message, "id"), text(message, "model"));
                self.count(&frame["message"]["usage"], answer);
                Ok(())
            }
            "content_block_start" => self.begin(at, &frame["content_block"], answer),
            "content_block_delta" => self.more(at, &frame["delta"], answer),
            "content_block_stop" => answer.end_call(at),
            "message_delta" => {
                self.count(&frame["usage"], answer);
                self.stop(&frame["delta"]["stop_reason"], answer);
                Ok(())
            }
            "message_stop" => {
                self.is_done = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn state(&mut self, _: &Answer) -> Option<ProviderState> {
        let blocks: Vec<Value> = std::mem::take(&mut self.thoughts).into_values().collect();
        (!blocks.is_empty()).then(|| ProviderState {
            provider: STATE.to_owned(),
            state: json!({ "blocks": blocks }),
        })
    }
}
