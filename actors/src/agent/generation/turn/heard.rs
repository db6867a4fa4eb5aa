//! What a model has said so far, put together from the pieces of a stream.

use serde_json::Value;

use crate::domain::nesting::check_depth;
use crate::ports::model::{
    FinishReason, ModelAnswer, ModelError, ModelErrorKind, ModelEvent, ProviderState, Served,
    ToolCall, Usage,
};

/// Calls of one turn that are listened to. Far fewer are made; the others are refused one by one.
const CALLS_MAX: usize = 1024;

/// Listens to a model, over all turns of a run: what it may say is bounded.
#[derive(Debug)]
pub(in crate::agent::generation) struct Heard {
    bytes_max: usize,
    /// How deep a value of the model may nest.
    depth_max: usize,
    bytes_left: usize,
    text: String,
    reasoning: String,
    tool_calls: Vec<ToolCall>,
    /// Calls whose arguments came in pieces, and were counted then.
    in_pieces: Vec<String>,
    provider_state: Option<ProviderState>,
    finished: Option<(Usage, FinishReason, Option<Box<Served>>)>,
}

impl Heard {
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

    /// A piece as it is kept and passed on: arguments that nest too deep are a text, like those that
    /// are no JSON, and the tool says what is wrong with them.
    pub(in crate::agent::generation) fn kept(&self, event: ModelEvent) -> ModelEvent {
        match event {
            ModelEvent::ToolCall(call) => ModelEvent::ToolCall(self.kept_call(call)),
            ModelEvent::TextDelta(_)
            | ModelEvent::ReasoningDelta(_)
            | ModelEvent::ToolInputStart { .. }
            | ModelEvent::ToolInputDelta { .. }
            | ModelEvent::ProviderState(_)
            | ModelEvent::Finished { .. } => event,
        }
    }

    fn kept_call(&self, mut call: ToolCall) -> ToolCall {
        if check_depth(&call.input, self.depth_max).is_err() {
            call.input = Value::String(call.input.to_string());
        }
        call
    }

    /// What a provider wants back cannot be changed: it is kept as it is or not at all.
    fn check_state(&self, state: &ProviderState) -> Result<(), ModelError> {
        check_depth(&state.state, self.depth_max).map_err(|too_deep| {
            let message = format!("the model's answer is {too_deep}");
            ModelError::new(ModelErrorKind::Other, message)
        })
    }

    /// Takes the next piece. Refuses what is too much.
    pub(in crate::agent::generation) fn hear(
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
                few_enough(self.tool_calls.len() + 1)?;
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

    /// Whether the turn's last piece was heard.
    pub(in crate::agent::generation) fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// The turn as a whole, when the stream has ended. Makes room for the next turn.
    pub(in crate::agent::generation) fn finish(&mut self) -> Result<ModelAnswer, ModelError> {
        let Some((usage, finish_reason, served)) = self.finished.take() else {
            return Err(ModelError::broken_off());
        };
        Ok(ModelAnswer { usage, finish_reason, served, ..self.unfinished() })
    }

    /// What there is of a turn that was cut off. Makes room for the next turn.
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

    /// Counts an answer that came in one piece.
    pub(in crate::agent::generation) fn whole(
        &mut self,
        mut answer: ModelAnswer,
    ) -> Result<ModelAnswer, ModelError> {
        few_enough(answer.tool_calls.len())?;
        answer.provider_state.iter().try_for_each(|state| self.check_state(state))?;
        let calls = std::mem::take(&mut answer.tool_calls).into_iter();
        answer.tool_calls = calls.map(|call| self.kept_call(call)).collect();
        let calls = answer.tool_calls.iter().map(bytes_of).sum::<usize>();
        self.spend(answer.text.len() + answer.reasoning.len() + calls)?;
        Ok(answer)
    }

    /// One byte more for each piece: a stream of empty ones ends as well.
    fn spend(&mut self, bytes: usize) -> Result<(), ModelError> {
        let left = self.bytes_left.checked_sub(bytes.saturating_add(1));
        self.bytes_left = left.ok_or_else(|| {
            let message = format!("the model said more than {} bytes", self.bytes_max);
            ModelError::new(ModelErrorKind::Other, message)
        })?;
        Ok(())
    }
}

fn few_enough(calls: usize) -> Result<(), ModelError> {
    if calls <= CALLS_MAX {
        return Ok(());
    }
    let message = format!("the model asked for more than {CALLS_MAX} tools at once");
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
        let mut heard = Heard::new(1000, 100);
        let usage = Usage { total_tokens: 3, ..Usage::default() };
        let events = [
            ModelEvent::ReasoningDelta("hm".to_owned()),
            ModelEvent::TextDelta("a ".to_owned()),
            ModelEvent::TextDelta("b".to_owned()),
            ModelEvent::ToolCall(call()),
            ModelEvent::Finished { usage, finish_reason: FinishReason::ToolCalls, served: None },
        ];
        for event in &events {
            assert!(!heard.is_finished());
            heard.hear(event).unwrap();
        }
        assert!(heard.is_finished());
        let expected = ModelAnswer {
            text: "a b".to_owned(),
            reasoning: "hm".to_owned(),
            tool_calls: vec![call()],
            usage,
            finish_reason: FinishReason::ToolCalls,
            ..ModelAnswer::default()
        };
        assert_eq!(heard.finish(), Ok(expected));
        assert!(heard.finish().is_err(), "the next turn has not ended");
    }

    #[test]
    fn what_a_model_says_is_bounded_over_all_turns() {
        let said = |text: &str| ModelEvent::TextDelta(text.to_owned());
        let piece =
            ModelEvent::ToolInputDelta { tool_call_id: "c1".to_owned(), delta: "12345".to_owned() };
        let rows = [
            ("text", vec![said("12345"), said("6789")]),
            ("nothing, endlessly", vec![said(""); 11]),
            ("arguments", vec![piece.clone(), piece]),
            ("a call", vec![ModelEvent::ToolCall(call())]),
        ];
        for (name, events) in rows {
            let mut heard = Heard::new(10, 100);
            let refused = events.iter().find_map(|event| heard.hear(event).err()).unwrap();
            assert_eq!(refused.message, "the model said more than 10 bytes", "{name}");
        }
        let mut heard = Heard::new(10, 100);
        let answer = || ModelAnswer { text: "12345".to_owned(), ..ModelAnswer::default() };
        assert!(heard.whole(answer()).is_ok());
        assert!(heard.whole(answer()).is_err());
    }

    #[test]
    fn calls_of_a_turn_are_bounded() {
        let asks = |count: usize| ModelAnswer {
            tool_calls: vec![call(); count],
            ..ModelAnswer::default()
        };
        assert!(Heard::new(1 << 20, 100).whole(asks(CALLS_MAX)).is_ok());
        let refused = Heard::new(1 << 20, 100).whole(asks(CALLS_MAX + 1)).unwrap_err();
        assert_eq!(refused.message, "the model asked for more than 1024 tools at once");
        let mut heard = Heard::new(1 << 20, 100);
        let event = ModelEvent::ToolCall(call());
        assert!((0..CALLS_MAX).all(|_| heard.hear(&event).is_ok()));
        assert_eq!(heard.hear(&event).unwrap_err(), refused);
    }

    #[test]
    fn what_nests_too_deep_is_a_text() {
        let deep = ToolCall { input: json!({ "a": [[1]] }), ..call() };
        let heard = Heard::new(1000, 2);
        let ModelEvent::ToolCall(kept) = heard.kept(ModelEvent::ToolCall(deep.clone())) else {
            panic!("another event");
        };
        assert_eq!(kept.input, json!("{\"a\":[[1]]}"));
        let answer = ModelAnswer { tool_calls: vec![deep, call()], ..ModelAnswer::default() };
        let answer = Heard::new(1000, 2).whole(answer).unwrap();
        assert_eq!(answer.tool_calls[0].input, kept.input);
        assert_eq!(answer.tool_calls[1], call());

        let state = ProviderState { provider: "p".to_owned(), state: json!([[[1]]]) };
        let refused = Heard::new(1000, 2).hear(&ModelEvent::ProviderState(state)).unwrap_err();
        assert!(refused.message.contains("nested deeper than 2 levels"), "{refused:?}");
    }
}
