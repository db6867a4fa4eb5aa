//! The order of what a run says: the one place where events are made.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::message::{ToolCall, ToolResult};
use crate::ports::model::{FinishReason, ModelEvent, Served, Usage};

use crate::agent::event::{FailureKind, GenerationEvent};

/// Makes events, whatever comes in, in the order that [`GenerationEvent`] promises.
#[derive(Debug)]
pub(super) struct EventSequencer {
    generation_id: Arc<str>,
    message_id: Arc<str>,
    /// Said, and not taken yet.
    said: Vec<GenerationEvent>,
    stage: Stage,
    open: Option<Open>,
    /// Calls whose arguments are on their way.
    inputs: Vec<Arc<str>>,
    texts: u32,
    reasonings: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Silent,
    BetweenTurns,
    InTurn,
    Over,
}

/// What is being said piece by piece.
#[derive(Debug)]
enum Open {
    Text(Arc<str>),
    Reasoning(Arc<str>),
}

/// How a run ends for its readers.
#[derive(Debug)]
pub(super) enum FinalEvent {
    Finish {
        object: Option<Value>,
        finish_reason: FinishReason,
        usage: Usage,
        stand_in: Option<Box<Served>>,
    },
    Abort,
    Error {
        message: String,
        kind: FailureKind,
    },
}

impl EventSequencer {
    pub(super) fn new(generation_id: Arc<str>, message_id: Arc<str>) -> Self {
        Self {
            generation_id,
            message_id,
            said: Vec::new(),
            stage: Stage::Silent,
            open: None,
            inputs: Vec::new(),
            texts: 0,
            reasonings: 0,
        }
    }

    /// What was said since the last time.
    pub(super) fn take(&mut self) -> Vec<GenerationEvent> {
        std::mem::take(&mut self.said)
    }

    /// Passes on a piece of the model's answer.
    pub(super) fn hear(&mut self, event: ModelEvent) {
        self.enter_turn();
        match event {
            ModelEvent::TextDelta(delta) => {
                let id = self.open_text();
                self.said.push(GenerationEvent::TextDelta { id, delta });
            }
            ModelEvent::ReasoningDelta(delta) => {
                let id = self.open_reasoning();
                self.said.push(GenerationEvent::ReasoningDelta { id, delta });
            }
            ModelEvent::ToolInputStart { tool_call_id, tool_name } => {
                self.start_input(Arc::from(tool_call_id), Arc::from(tool_name));
            }
            ModelEvent::ToolInputDelta { tool_call_id, delta } => {
                if let Some(id) = self.inputs.iter().find(|id| ***id == *tool_call_id) {
                    let tool_call_id = Arc::clone(id);
                    self.said.push(GenerationEvent::ToolInputDelta { tool_call_id, delta });
                }
            }
            ModelEvent::ToolCall(call) => self.call(call),
            ModelEvent::ProviderState(_) | ModelEvent::Finished { .. } => {}
        }
    }

    /// Tells what a tool gave.
    pub(super) fn result(&mut self, result: ToolResult) {
        self.enter_turn();
        self.said.push(GenerationEvent::ToolResult(result));
    }

    /// Ends the turn.
    pub(super) fn turn_over(&mut self, finish_reason: FinishReason, usage: Usage) {
        self.enter_turn();
        self.close_all();
        self.stage = Stage::BetweenTurns;
        self.said.push(GenerationEvent::StepFinish { finish_reason, usage });
    }

    /// Takes back what the turn said.
    pub(super) fn rejected(&mut self, detail: String) {
        self.said.push(GenerationEvent::ObjectRejected { detail });
    }

    /// Says the last word; nothing follows.
    pub(super) fn over(&mut self, last: FinalEvent) {
        if self.stage == Stage::Over {
            return;
        }
        self.start();
        self.close_all();
        self.stage = Stage::Over;
        match last {
            FinalEvent::Finish { object, finish_reason, usage, stand_in } => {
                self.said.extend(object.map(GenerationEvent::Object));
                self.said.push(GenerationEvent::Finish { finish_reason, usage, stand_in });
            }
            FinalEvent::Abort => self.said.push(GenerationEvent::Abort),
            FinalEvent::Error { message, kind } => {
                self.said.push(GenerationEvent::Error { message, kind });
            }
        }
    }

    /// Says that the run has begun, once.
    pub(super) fn start(&mut self) {
        if self.stage == Stage::Silent {
            self.stage = Stage::BetweenTurns;
            self.said.push(GenerationEvent::Start {
                generation_id: Arc::clone(&self.generation_id),
                message_id: Arc::clone(&self.message_id),
            });
        }
    }

    fn enter_turn(&mut self) {
        self.start();
        if self.stage == Stage::BetweenTurns {
            self.stage = Stage::InTurn;
            self.said.push(GenerationEvent::StepStart);
        }
    }

    fn open_text(&mut self) -> Arc<str> {
        if let Some(Open::Text(id)) = &self.open {
            return Arc::clone(id);
        }
        self.close();
        let id: Arc<str> = Arc::from(format!("text-{}", self.texts));
        self.texts += 1;
        self.open = Some(Open::Text(Arc::clone(&id)));
        self.said.push(GenerationEvent::TextStart { id: Arc::clone(&id) });
        id
    }

    fn open_reasoning(&mut self) -> Arc<str> {
        if let Some(Open::Reasoning(id)) = &self.open {
            return Arc::clone(id);
        }
        self.close();
        let id: Arc<str> = Arc::from(format!("reasoning-{}", self.reasonings));
        self.reasonings += 1;
        self.open = Some(Open::Reasoning(Arc::clone(&id)));
        self.said.push(GenerationEvent::ReasoningStart { id: Arc::clone(&id) });
        id
    }

    fn start_input(&mut self, tool_call_id: Arc<str>, tool_name: Arc<str>) {
        self.close();
        if !self.inputs.contains(&tool_call_id) {
            self.inputs.push(Arc::clone(&tool_call_id));
            self.said.push(GenerationEvent::ToolInputStart { tool_call_id, tool_name });
        }
    }

    /// A call that was given whole gets the words that lead to it.
    fn call(&mut self, call: ToolCall) {
        let known = self.inputs.iter().position(|id| **id == *call.tool_call_id);
        let id = match known {
            Some(at) => self.inputs.remove(at),
            None => {
                let id: Arc<str> = Arc::from(call.tool_call_id.as_str());
                self.start_input(Arc::clone(&id), Arc::from(call.tool_name.as_str()));
                self.inputs.pop();
                let delta = call.input.to_string();
                let tool_call_id = Arc::clone(&id);
                self.said.push(GenerationEvent::ToolInputDelta { tool_call_id, delta });
                id
            }
        };
        self.close();
        self.said.push(GenerationEvent::ToolInputEnd { tool_call_id: id });
        self.said.push(GenerationEvent::ToolCall(call));
    }

    fn close(&mut self) {
        match self.open.take() {
            Some(Open::Text(id)) => self.said.push(GenerationEvent::TextEnd { id }),
            Some(Open::Reasoning(id)) => self.said.push(GenerationEvent::ReasoningEnd { id }),
            None => {}
        }
    }

    fn close_all(&mut self) {
        self.close();
        let ends = self.inputs.drain(..);
        self.said.extend(ends.map(|tool_call_id| GenerationEvent::ToolInputEnd { tool_call_id }));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::message::ToolOutcome;

    fn text(delta: &str) -> ModelEvent {
        ModelEvent::TextDelta(delta.to_owned())
    }

    fn call(id: &str) -> ToolCall {
        ToolCall { tool_call_id: id.to_owned(), tool_name: "add".to_owned(), input: json!([1]) }
    }

    fn input_start(id: &str) -> ModelEvent {
        ModelEvent::ToolInputStart { tool_call_id: id.to_owned(), tool_name: "add".to_owned() }
    }

    fn input_delta(id: &str, delta: &str) -> ModelEvent {
        ModelEvent::ToolInputDelta { tool_call_id: id.to_owned(), delta: delta.to_owned() }
    }

    /// The events in short.
    fn shown(events: &[GenerationEvent]) -> Vec<String> {
        let shown = events.iter().map(|event| match event {
            GenerationEvent::Start { .. } => "start".to_owned(),
            GenerationEvent::StepStart => "step".to_owned(),
            GenerationEvent::TextStart { id } | GenerationEvent::ReasoningStart { id } => {
                format!("{id}(")
            }
            GenerationEvent::TextDelta { id, delta }
            | GenerationEvent::ReasoningDelta { id, delta } => format!("{id}:{delta}"),
            GenerationEvent::TextEnd { id } | GenerationEvent::ReasoningEnd { id } => {
                format!("{id})")
            }
            GenerationEvent::ToolInputStart { tool_call_id, .. } => format!("{tool_call_id}("),
            GenerationEvent::ToolInputDelta { tool_call_id, delta } => {
                format!("{tool_call_id}:{delta}")
            }
            GenerationEvent::ToolInputEnd { tool_call_id } => format!("{tool_call_id})"),
            GenerationEvent::ToolCall(call) => format!("{}!", call.tool_call_id),
            GenerationEvent::ToolResult(result) => format!("{}=", result.tool_call_id),
            GenerationEvent::StepFinish { .. } => "step.".to_owned(),
            GenerationEvent::ObjectRejected { .. } => "rejected".to_owned(),
            GenerationEvent::Object(_) => "object".to_owned(),
            GenerationEvent::Finish { .. } => "finish".to_owned(),
            GenerationEvent::Abort => "abort".to_owned(),
            GenerationEvent::Error { .. } => "error".to_owned(),
        });
        shown.collect()
    }

    fn sequencer(events: Vec<ModelEvent>) -> EventSequencer {
        let mut sequencer = EventSequencer::new(Arc::from("g1"), Arc::from("m1"));
        events.into_iter().for_each(|event| sequencer.hear(event));
        sequencer
    }

    #[test]
    fn pieces_are_framed_by_their_starts_and_ends() {
        let thought = || ModelEvent::ReasoningDelta("hm".to_owned());
        let rows = [
            (
                "a text",
                vec![text("a"), text("b")],
                "start step text-0( text-0:a text-0:b text-0) step.",
            ),
            (
                "thoughts between texts",
                vec![text("a"), thought(), text("b")],
                "start step text-0( text-0:a text-0) reasoning-0( reasoning-0:hm reasoning-0) \
                 text-1( text-1:b text-1) step.",
            ),
            (
                "a call given whole",
                vec![text("a"), ModelEvent::ToolCall(call("c1"))],
                "start step text-0( text-0:a text-0) c1( c1:[1] c1) c1! step.",
            ),
            (
                "calls given in pieces, in one another",
                vec![
                    input_start("c1"),
                    input_start("c2"),
                    input_delta("c2", "[1"),
                    input_start("c2"),
                    ModelEvent::ToolCall(call("c2")),
                    ModelEvent::ToolCall(call("c1")),
                ],
                "start step c1( c2( c2:[1 c2) c2! c1) c1! step.",
            ),
            (
                "a call that never comes",
                vec![input_start("c1"), input_delta("c9", "?")],
                "start step c1( c1) step.",
            ),
            ("nothing", vec![], "start step step."),
        ];
        for (name, events, expected) in rows {
            let mut sequencer = sequencer(events);
            sequencer.turn_over(FinishReason::Stop, Usage::default());
            assert_eq!(shown(&sequencer.take()).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn a_run_has_one_last_word() {
        let finish = || FinalEvent::Finish {
            object: Some(json!(1)),
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            stand_in: None,
        };
        let error = || FinalEvent::Error { message: "no".to_owned(), kind: FailureKind::Agent };
        let rows = [
            ("finish", finish(), "text-0) object finish"),
            ("abort", FinalEvent::Abort, "text-0) abort"),
            ("error", error(), "text-0) error"),
        ];
        for (name, last, expected) in rows {
            let mut sequencer = sequencer(vec![text("a")]);
            sequencer.take();
            sequencer.over(last);
            sequencer.over(FinalEvent::Abort);
            assert_eq!(shown(&sequencer.take()).join(" "), expected, "{name}");
        }
        let mut silent = sequencer(vec![]);
        silent.over(error());
        assert_eq!(shown(&silent.take()).join(" "), "start error");
    }

    #[test]
    fn turns_follow_one_another() {
        let mut sequencer = sequencer(vec![ModelEvent::ToolCall(call("c1"))]);
        let ToolCall { tool_call_id, tool_name, input } = call("c1");
        let outcome = ToolOutcome::Output(json!(2));
        sequencer.result(ToolResult { tool_call_id, tool_name, input, outcome });
        sequencer.turn_over(FinishReason::ToolCalls, Usage::default());
        sequencer.hear(text("{"));
        sequencer.turn_over(FinishReason::Stop, Usage::default());
        sequencer.rejected("no JSON".to_owned());
        sequencer.hear(text("{}"));
        let said = shown(&sequencer.take()).join(" ");
        let expected = "start step c1( c1:[1] c1) c1! c1= step. step text-0( text-0:{ text-0) \
                        step. rejected step text-1( text-1:{}";
        assert_eq!(said, expected);
    }
}
