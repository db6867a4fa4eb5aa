//! The only place where a run's events are made, and ordered.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::message::{ToolCall, ToolResult};
use crate::ports::model::{FinishReason, ModelEvent, Usage};

use crate::agent::event::GenerationEvent;
use crate::agent::outcome::PendingAsk;

/// Makes events in the order that [`GenerationEvent`] promises, for any order of input.
#[derive(Debug)]
pub(super) struct EventSequencer {
    generation_id: Arc<str>,
    message_id: Arc<str>,
    /// Events not yet taken.
    pending: Vec<GenerationEvent>,
    stage: Stage,
    /// The open text, with its id.
    open: Option<(Prose, Arc<str>)>,
    /// Calls whose arguments are incomplete.
    inputs: Vec<Arc<str>>,
    texts: u32,
    reasonings: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    NotStarted,
    BetweenTurns,
    InTurn,
    /// In a turn that began before the run was put down.
    Continued,
    Finished,
}

/// Kind of the text that deltas currently extend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prose {
    Text,
    Reasoning,
}

impl EventSequencer {
    pub(super) fn new(generation_id: Arc<str>, message_id: Arc<str>) -> Self {
        Self {
            generation_id,
            message_id,
            pending: Vec::new(),
            stage: Stage::NotStarted,
            open: None,
            inputs: Vec::new(),
            texts: 0,
            reasonings: 0,
        }
    }

    /// Takes the events since the last call.
    pub(super) fn take(&mut self) -> Vec<GenerationEvent> {
        std::mem::take(&mut self.pending)
    }

    /// Adds the events of a piece of the model's answer.
    pub(super) fn push(&mut self, event: ModelEvent) {
        self.enter_turn();
        match event {
            ModelEvent::TextDelta(delta) => {
                let id = self.open(Prose::Text);
                self.pending.push(GenerationEvent::TextDelta { id, delta });
            }
            ModelEvent::ReasoningDelta(delta) => {
                let id = self.open(Prose::Reasoning);
                self.pending.push(GenerationEvent::ReasoningDelta { id, delta });
            }
            ModelEvent::ToolInputStart { tool_call_id, tool_name } => {
                self.start_input(Arc::from(tool_call_id), Arc::from(tool_name));
            }
            ModelEvent::ToolInputDelta { tool_call_id, delta } => {
                if let Some(id) = self.inputs.iter().find(|id| ***id == *tool_call_id) {
                    let tool_call_id = Arc::clone(id);
                    self.pending.push(GenerationEvent::ToolInputDelta { tool_call_id, delta });
                }
            }
            ModelEvent::ToolCall(call) => self.call(call),
            ModelEvent::ProviderState(_) | ModelEvent::Finished { .. } => {}
        }
    }

    /// Shows a call again whose arguments a person has edited.
    pub(super) fn edited(&mut self, call: ToolCall) {
        self.enter_turn();
        self.pending.push(GenerationEvent::ToolCall(call));
    }

    /// Adds a tool's result.
    pub(super) fn tool_result(&mut self, result: ToolResult) {
        self.enter_turn();
        self.pending.push(GenerationEvent::ToolResult(result));
    }

    /// Ends the turn.
    pub(super) fn finish_turn(&mut self, finish_reason: FinishReason, usage: Usage) {
        if self.stage == Stage::Continued {
            self.stage = Stage::BetweenTurns;
            return;
        }
        self.enter_turn();
        self.close_all();
        self.stage = Stage::BetweenTurns;
        self.pending.push(GenerationEvent::StepFinish { finish_reason, usage });
    }

    /// Begins in the middle of a turn, whose start and end earlier subscribers got.
    pub(super) fn take_up(&mut self) {
        self.start();
        self.stage = Stage::Continued;
    }

    /// Adds a question to a person.
    pub(super) fn ask(&mut self, ask: PendingAsk) {
        self.start();
        self.close();
        self.pending.push(GenerationEvent::Ask(Box::new(ask)));
    }

    /// Marks the answer of the turn as rejected.
    pub(super) fn reject(&mut self, detail: String) {
        self.pending.push(GenerationEvent::ObjectRejected { detail });
    }

    /// Adds the object, if any, and the last event, once.
    pub(super) fn finish(&mut self, object: Option<Value>, last: GenerationEvent) {
        debug_assert!(last.is_last());
        if self.stage == Stage::Finished {
            return;
        }
        self.start();
        self.close_all();
        self.stage = Stage::Finished;
        self.pending.extend(object.map(GenerationEvent::Object));
        self.pending.push(last);
    }

    /// Adds `Start`, once.
    pub(super) fn start(&mut self) {
        if self.stage == Stage::NotStarted {
            self.stage = Stage::BetweenTurns;
            self.pending.push(GenerationEvent::Start {
                generation_id: Arc::clone(&self.generation_id),
                message_id: Arc::clone(&self.message_id),
            });
        }
    }

    fn enter_turn(&mut self) {
        self.start();
        if self.stage == Stage::BetweenTurns {
            self.stage = Stage::InTurn;
            self.pending.push(GenerationEvent::StepStart);
        }
    }

    /// Returns the id of the open text of this kind, which it begins if there is none.
    fn open(&mut self, kind: Prose) -> Arc<str> {
        if let Some((open, id)) = &self.open
            && *open == kind
        {
            return Arc::clone(id);
        }
        self.close();
        let (name, count) = match kind {
            Prose::Text => ("text", &mut self.texts),
            Prose::Reasoning => ("reasoning", &mut self.reasonings),
        };
        let id: Arc<str> = Arc::from(format!("{name}-{count}"));
        *count += 1;
        self.open = Some((kind, Arc::clone(&id)));
        let started = Arc::clone(&id);
        self.pending.push(match kind {
            Prose::Text => GenerationEvent::TextStart { id: started },
            Prose::Reasoning => GenerationEvent::ReasoningStart { id: started },
        });
        id
    }

    fn start_input(&mut self, tool_call_id: Arc<str>, tool_name: Arc<str>) {
        self.close();
        if !self.inputs.contains(&tool_call_id) {
            self.inputs.push(Arc::clone(&tool_call_id));
            self.pending.push(GenerationEvent::ToolInputStart { tool_call_id, tool_name });
        }
    }

    /// Adds a call; one given whole gets input events first.
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
                self.pending.push(GenerationEvent::ToolInputDelta { tool_call_id, delta });
                id
            }
        };
        self.close();
        self.pending.push(GenerationEvent::ToolInputEnd { tool_call_id: id });
        self.pending.push(GenerationEvent::ToolCall(call));
    }

    fn close(&mut self) {
        match self.open.take() {
            Some((Prose::Text, id)) => self.pending.push(GenerationEvent::TextEnd { id }),
            Some((Prose::Reasoning, id)) => self.pending.push(GenerationEvent::ReasoningEnd { id }),
            None => {}
        }
    }

    fn close_all(&mut self) {
        self.close();
        let ends = self.inputs.drain(..);
        self.pending
            .extend(ends.map(|tool_call_id| GenerationEvent::ToolInputEnd { tool_call_id }));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::outcome::FailureKind;
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

    /// Abbreviates events.
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
            GenerationEvent::Ask(ask) => format!("{}?", ask.ask_id),
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
        events.into_iter().for_each(|event| sequencer.push(event));
        sequencer
    }

    #[test]
    fn deltas_are_framed_by_starts_and_ends() {
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
            sequencer.finish_turn(FinishReason::Stop, Usage::default());
            assert_eq!(shown(&sequencer.take()).join(" "), expected, "{name}");
        }
    }

    #[test]
    fn a_run_has_one_last_event() {
        let finish = || GenerationEvent::Finish {
            finish_reason: FinishReason::Stop,
            usage: Usage::default(),
            stand_in: None,
        };
        let error =
            || GenerationEvent::Error { message: "no".to_owned(), kind: FailureKind::Agent };
        let rows = [
            ("finish", Some(json!(1)), finish(), "text-0) object finish"),
            ("abort", None, GenerationEvent::Abort, "text-0) abort"),
            ("error", None, error(), "text-0) error"),
        ];
        for (name, object, last, expected) in rows {
            let mut sequencer = sequencer(vec![text("a")]);
            sequencer.take();
            sequencer.finish(object, last);
            sequencer.finish(None, GenerationEvent::Abort);
            assert_eq!(shown(&sequencer.take()).join(" "), expected, "{name}");
        }
        let mut silent = sequencer(vec![]);
        silent.finish(None, error());
        assert_eq!(shown(&silent.take()).join(" "), "start error");
    }

    #[test]
    fn a_continued_turn_shows_edited_calls_again() {
        let mut sequencer = sequencer(vec![]);
        sequencer.take_up();
        sequencer.edited(call("c1"));
        sequencer.finish_turn(FinishReason::ToolCalls, Usage::default());
        assert_eq!(shown(&sequencer.take()).join(" "), "start c1!");
    }

    #[test]
    fn each_turn_starts_and_finishes() {
        let mut sequencer = sequencer(vec![ModelEvent::ToolCall(call("c1"))]);
        let ToolCall { tool_call_id, tool_name, input } = call("c1");
        let outcome = ToolOutcome::Output(json!(2));
        sequencer.tool_result(ToolResult { tool_call_id, tool_name, input, outcome });
        sequencer.finish_turn(FinishReason::ToolCalls, Usage::default());
        sequencer.push(text("{"));
        sequencer.finish_turn(FinishReason::Stop, Usage::default());
        sequencer.reject("no JSON".to_owned());
        sequencer.push(text("{}"));
        let said = shown(&sequencer.take()).join(" ");
        let expected = "start step c1( c1:[1] c1) c1! c1= step. step text-0( text-0:{ text-0) \
                        step. rejected step text-1( text-1:{}";
        assert_eq!(said, expected);
    }
}
