//! Assembles a model's answer from the pieces of a stream, within limits.

use serde_json::Value;

use crate::domain::nesting::check_depth;
use crate::ports::model::{
    FinishReason, ModelAnswer, ModelError, ModelErrorKind, ModelEvent, ProviderState, Served,
    ToolCall, Usage,
};

/// Maximum number of calls accepted per turn. Far fewer are made; the others are refused one by
/// one.
const CALLS_MAX: usize = 1024;

/// Assembles the answers of a run. The limit of bytes holds for all turns together.
#[derive(Debug)]
pub(in crate::agent::generation) struct AnswerBuffer {
    bytes_max: usize,
    /// Maximum nesting of a value.
    depth_max: usize,
    bytes_left: usize,
    text: String,
    reasoning: String,
    tool_calls: Vec<ToolCall>,
    /// Calls whose arguments came in pieces, and are counted already.
    in_pieces: Vec<String>,
    provider_state: Option<ProviderState>,
    finished: Option<(Usage, FinishReason, Option<Box<Served>>)>,
}

impl AnswerBuffer {
    pub(in crate::agent::generation) fn new(bytes_max: usize, depth_max: usize) -> Self {
        Self {
            bytes_max,
            depth_max,
            bytes_left: bytes_max,
            text: String::new(),
            reasoning: String::new(),
            tool_calls: Vec::new(),
            in_pieces: Vec::new(),
            provider_state: None,
            finished: None,
        }
    }

    /// Returns the bytes left for all further answers.
    pub(in crate::agent::generation) fn bytes_left(&self) -> usize {
        self.bytes_left
    }

    /// Sets the bytes left for all further answers.
    pub(in crate::agent::generation) fn set_bytes_left(&mut self, bytes_left: usize) {
        self.bytes_left = bytes_left.min(self.bytes_max);
    }

    /// Converts arguments that nest too deep to text, like those that are not JSON; the tool then
    /// rejects them with the reason.
    pub(in crate::agent::generation) fn normalized(&self, event: ModelEvent) -> ModelEvent {
        match event {
            ModelEvent::ToolCall(call) => ModelEvent::ToolCall(self.normalized_call(call)),
            ModelEvent::TextDelta(_)
            | ModelEvent::ReasoningDelta(_)
            | ModelEvent::ToolInputStart { .. }
            | ModelEvent::ToolInputDelta { .. }
            | ModelEvent::ProviderState(_)
            | ModelEvent::Finished { .. } => event,
        }
    }

    fn normalized_call(&self, mut call: ToolCall) -> ToolCall {
        if check_depth(&call.input, self.depth_max).is_err() {
            call.input = Value::String(call.input.to_string());
        }
        call
    }

    /// Rejects a provider's state that nests too deep, because it must go back unchanged.
    fn check_state(&self, state: &ProviderState) -> Result<(), ModelError> {
        check_depth(&state.state, self.depth_max).map_err(|too_deep| {
            let message = format!("the model's answer is {too_deep}");
            ModelError::new(ModelErrorKind::Other, message)
        })
    }

    /// Adds a piece, or rejects it if a limit is exceeded.
    pub(in crate::agent::generation) fn push(
        &mut self,
        event: &ModelEvent,
    ) -> Result<(), ModelError> {
        match event {
            ModelEvent::TextDelta(delta) => {
                self.spend(delta.len())?;
                self.text.push_str(delta);
            }
            ModelEvent::ReasoningDelta(delta) => {
                self.spend(delta.len())?;
                self.reasoning.push_str(delta);
            }
            ModelEvent::ToolInputStart { tool_call_id, tool_name } => {
                self.spend(tool_call_id.len() + tool_name.len())?;
                self.in_pieces.push(tool_call_id.clone());
            }
            ModelEvent::ToolInputDelta { delta, .. } => self.spend(delta.len())?,
            ModelEvent::ToolCall(call) => {
                let counted = self.in_pieces.contains(&call.tool_call_id);
                self.spend(if counted { 0 } else { bytes_of(call) })?;
                check_call_count(self.tool_calls.len() + 1)?;
                self.tool_calls.push(call.clone());
            }
            ModelEvent::ProviderState(state) => {
                self.check_state(state)?;
                self.spend(state.state.to_string().len())?;
                self.provider_state = Some(state.clone());
            }
            ModelEvent::Finished { usage, finish_reason, served } => {
                self.finished = Some((*usage, *finish_reason, served.clone()));
            }
        }
        Ok(())
    }

    /// Returns true after the last piece of the turn.
    pub(in crate::agent::generation) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Takes the complete answer at the end of the stream.
    pub(in crate::agent::generation) fn finish(&mut self) -> Result<ModelAnswer, ModelError> {
        let Some((usage, finish_reason, served)) = self.finished.take() else {
            return Err(ModelError::incomplete());
        };
        Ok(ModelAnswer { usage, finish_reason, served, ..self.unfinished() })
    }

    /// Takes the incomplete answer of a turn that failed or was stopped.
    pub(in crate::agent::generation) fn unfinished(&mut self) -> ModelAnswer {
        self.in_pieces.clear();
        ModelAnswer {
            text: std::mem::take(&mut self.text),
            reasoning: std::mem::take(&mut self.reasoning),
            tool_calls: std::mem::take(&mut self.tool_calls),
            provider_state: self.provider_state.take(),
            usage: Usage::default(),
            finish_reason: FinishReason::Other,
            served: None,
        }
    }

    /// Checks and counts an answer that came as a whole.
    pub(in crate::agent::generation) fn whole(
        &mut self,
        mut answer: ModelAnswer,
    ) -> Result<ModelAnswer, ModelError> {
        check_call_count(answer.tool_calls.len())?;
        answer.provider_state.iter().try_for_each(|state| self.check_state(state))?;
        let calls = std::mem::take(&mut answer.tool_calls).into_iter();
        answer.tool_calls = calls.map(|call| self.normalized_call(call)).collect();
        let calls = answer.tool_calls.iter().map(bytes_of).sum::<usize>();
        self.spend(answer.text.len() + answer.reasoning.len() + calls)?;
        Ok(answer)
    }

    /// Subtracts `bytes`, plus one per piece so that a stream of empty pieces ends too.
    fn spend(&mut self, bytes: usize) -> Result<(), ModelError> {
        let left = self.bytes_left.checked_sub(bytes.saturating_add(1));
        self.bytes_left = left.ok_or_else(|| {
            let message = format!("the model's output exceeds {} bytes", self.bytes_max);
            ModelError::new(ModelErrorKind::Other, message)
        })?;
        Ok(())
    }
}

fn check_call_count(calls: usize) -> Result<(), ModelError> {
    if calls <= CALLS_MAX {
        return Ok(());
    }
    let message = format!("the model requested more than {CALLS_MAX} tool calls in one turn");
    Err(ModelError::new(ModelErrorKind::Other, message))
}

fn bytes_of(call: &ToolCall) -> usize {
    call.tool_name.len() + call.input.to_string().len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call() -> ToolCall {
        ToolCall {
            tool_call_id: "c1".to_owned(),
            tool_name: "add".to_owned(),
            input: json!({ "n": 1 }),
        }
    }

    #[test]
    fn pieces_make_an_answer() {
        let mut buffer = AnswerBuffer::new(1000, 100);
        let usage = Usage { total_tokens: 3, ..Usage::default() };
        let events = [
            ModelEvent::ReasoningDelta("hm".to_owned()),
            ModelEvent::TextDelta("a ".to_owned()),
            ModelEvent::TextDelta("b".to_owned()),
            ModelEvent::ToolCall(call()),
            ModelEvent::Finished { usage, finish_reason: FinishReason::ToolCalls, served: None },
        ];
        for event in &events {
            assert!(!buffer.is_finished());
            buffer.push(event).unwrap();
        }
        assert!(buffer.is_finished());
        let expected = ModelAnswer {
            text: "a b".to_owned(),
            reasoning: "hm".to_owned(),
            tool_calls: vec![call()],
            usage,
            finish_reason: FinishReason::ToolCalls,
            ..ModelAnswer::default()
        };
        assert_eq!(buffer.finish(), Ok(expected));
        assert!(buffer.finish().is_err(), "the next turn has not ended");
    }

    #[test]
    fn output_is_bounded_over_all_turns() {
        let delta = |text: &str| ModelEvent::TextDelta(text.to_owned());
        let piece =
            ModelEvent::ToolInputDelta { tool_call_id: "c1".to_owned(), delta: "12345".to_owned() };
        let rows = [
            ("text", vec![delta("12345"), delta("6789")]),
            ("nothing, endlessly", vec![delta(""); 11]),
            ("arguments", vec![piece.clone(), piece]),
            ("a call", vec![ModelEvent::ToolCall(call())]),
        ];
        for (name, events) in rows {
            let mut buffer = AnswerBuffer::new(10, 100);
            let refused = events.iter().find_map(|event| buffer.push(event).err()).unwrap();
            assert_eq!(refused.message, "the model's output exceeds 10 bytes", "{name}");
        }
        let mut buffer = AnswerBuffer::new(10, 100);
        let answer = || ModelAnswer { text: "12345".to_owned(), ..ModelAnswer::default() };
        assert!(buffer.whole(answer()).is_ok());
        assert!(buffer.whole(answer()).is_err());
    }

    #[test]
    fn calls_of_a_turn_are_bounded() {
        let asks = |count: usize| ModelAnswer {
            tool_calls: vec![call(); count],
            ..ModelAnswer::default()
        };
        assert!(AnswerBuffer::new(1 << 20, 100).whole(asks(CALLS_MAX)).is_ok());
        let refused = AnswerBuffer::new(1 << 20, 100).whole(asks(CALLS_MAX + 1)).unwrap_err();
        assert_eq!(refused.message, "the model requested more than 1024 tool calls in one turn");
        let mut buffer = AnswerBuffer::new(1 << 20, 100);
        let event = ModelEvent::ToolCall(call());
        assert!((0..CALLS_MAX).all(|_| buffer.push(&event).is_ok()));
        assert_eq!(buffer.push(&event).unwrap_err(), refused);
    }

    #[test]
    fn deeply_nested_arguments_become_text() {
        let deep = ToolCall { input: json!({ "a": [[1]] }), ..call() };
        let buffer = AnswerBuffer::new(1000, 2);
        let ModelEvent::ToolCall(normalized) =
            buffer.normalized(ModelEvent::ToolCall(deep.clone()))
        else {
            panic!("another event");
        };
        assert_eq!(normalized.input, json!("{\"a\":[[1]]}"));
        let answer = ModelAnswer { tool_calls: vec![deep, call()], ..ModelAnswer::default() };
        let answer = AnswerBuffer::new(1000, 2).whole(answer).unwrap();
        assert_eq!(answer.tool_calls[0].input, normalized.input);
        assert_eq!(answer.tool_calls[1], call());

        let state = ProviderState { provider: "p".to_owned(), state: json!([[[1]]]) };
        let refused =
            AnswerBuffer::new(1000, 2).push(&ModelEvent::ProviderState(state)).unwrap_err();
        assert!(refused.message.contains("nested deeper than 2 levels"), "{refused:?}");
    }
}
