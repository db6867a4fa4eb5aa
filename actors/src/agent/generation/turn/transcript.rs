//! Turns of a run: answers, calls and results.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::domain::message::{Part, ToolApproval, ToolCall, ToolOutcome, ToolResult};
use crate::domain::time::Timestamp;
use crate::ports::model::{ModelAnswer, Usage};
use crate::ports::store::{GenerationStep, McpCall, Period, TurnError, TurnTiming};

/// The turns of a run.
#[derive(Debug, Default)]
pub(in crate::agent::generation) struct Transcript {
    turns: Vec<Turn>,
    usage: Usage,
    /// Number of turns that are recorded and unchanged since.
    recorded: usize,
    /// Timing of the current question.
    asking: Option<TurnTiming>,
}

#[derive(Debug)]
struct Turn {
    step: Arc<GenerationStep>,
    /// Indexed by call.
    results: Vec<Option<ToolResult>>,
}

impl Transcript {
    /// Returns the recorded turns of a run that is taken up, which has used that much.
    pub(in crate::agent::generation) fn restored(steps: Vec<GenerationStep>, usage: Usage) -> Self {
        let recorded = steps.len();
        let turns = steps.into_iter().map(|step| {
            let calls = 0..step.tool_calls.len();
            let results = calls.map(|call| step.result_of(call).cloned()).collect();
            Turn { step: Arc::new(step), results }
        });
        Self { turns: turns.collect(), usage, recorded, asking: None }
    }

    /// Returns true if the call of the last turn with this index has a result.
    pub(in crate::agent::generation) fn has_result(&self, number: usize) -> bool {
        let results = self.turns.last().and_then(|turn| turn.results.get(number));
        results.is_some_and(Option::is_some)
    }

    /// Returns true if a call of the last turn has no result.
    pub(in crate::agent::generation) fn has_open_calls(&self) -> bool {
        self.turns.last().is_some_and(|turn| turn.results.contains(&None))
    }

    /// Replaces the arguments of a call of the last turn by those that a person has edited.
    pub(in crate::agent::generation) fn edit_call(&mut self, number: usize, input: Value) {
        let Some(last) = self.turns.len().checked_sub(1) else { return };
        let step = Arc::make_mut(&mut self.turns[last].step);
        if let Some(call) = step.tool_calls.get_mut(number) {
            call.input = input;
            self.recorded = self.recorded.min(last);
        }
    }

    /// Begins a question to the model.
    pub(in crate::agent::generation) fn ask(&mut self, timing: TurnTiming) {
        self.asking = Some(timing);
    }

    /// Returns the timing of the current question.
    pub(in crate::agent::generation) fn asking(&mut self) -> Option<&mut TurnTiming> {
        self.asking.as_mut()
    }

    /// Marks the end of the model's answer, or its failure.
    pub(in crate::agent::generation) fn answered(
        &mut self,
        at: Timestamp,
        error: Option<TurnError>,
    ) {
        let Some(timing) = &mut self.asking else { return };
        if let Some(chat) = &mut timing.chat {
            chat.end.get_or_insert(at);
        }
        if timing.error.is_none() {
            timing.error = error.map(Box::new);
        }
    }

    /// Adds a turn with a complete or partial answer to the current question.
    pub(in crate::agent::generation) fn push(&mut self, answer: &ModelAnswer) {
        self.usage = self.usage.plus(answer.usage);
        let step = GenerationStep {
            text: answer.text.clone(),
            reasoning: answer.reasoning.clone(),
            tool_calls: answer.tool_calls.clone(),
            tool_results: Vec::new(),
            usage: answer.usage,
            finish_reason: answer.finish_reason,
            timing: self.asking.take().unwrap_or_default(),
        };
        let results = vec![None; step.tool_calls.len()];
        self.turns.push(Turn { step: Arc::new(step), results });
    }

    /// Marks the calls of the last turn that have no result as started.
    pub(in crate::agent::generation) fn call(&mut self, at: Timestamp) {
        if let Some((number, turn)) = self.turns.iter_mut().enumerate().next_back() {
            let step = Arc::make_mut(&mut turn.step);
            let started = Period { start: at, end: None };
            step.timing.calls.resize(step.tool_calls.len(), started);
            for call in step.timing.calls.iter_mut().filter(|call| call.end.is_none()) {
                *call = started;
            }
            self.recorded = self.recorded.min(number);
        }
    }

    /// Returns, for each call of the last turn, how many earlier calls of the run had the same id.
    /// Ids are the model's, and not every model makes new ones.
    pub(in crate::agent::generation) fn repetitions(&self) -> Vec<usize> {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        let mut repetitions = Vec::new();
        for turn in &self.turns {
            repetitions.clear();
            for call in &turn.step.tool_calls {
                let count = seen.entry(&call.tool_call_id).or_default();
                repetitions.push(*count);
                *count += 1;
            }
        }
        repetitions
    }

    /// Adds the request of a call of the last turn to an MCP server; the outcome of the call follows.
    pub(in crate::agent::generation) fn reached(
        &mut self,
        number: usize,
        request: Option<Box<McpCall>>,
    ) {
        if let Some((request, turn)) = request.zip(self.turns.last_mut()) {
            Arc::make_mut(&mut turn.step).timing.mcp.push((number, *request));
        }
    }

    /// Adds the outcome of a call of the last turn and returns it as a result; `None` if there is
    /// no such call.
    pub(in crate::agent::generation) fn returned(
        &mut self,
        number: usize,
        outcome: ToolOutcome,
        usage: Usage,
        at: Timestamp,
    ) -> Option<ToolResult> {
        self.usage = self.usage.plus(usage);
        let last = self.turns.len().checked_sub(1)?;
        let turn = self.turns.get_mut(last)?;
        let ToolCall { tool_call_id, tool_name, input } = turn.step.tool_calls.get(number)?.clone();
        let result = ToolResult { tool_call_id, tool_name, input, outcome };
        *turn.results.get_mut(number)? = Some(result.clone());
        let known = turn.results.iter().flatten().cloned().collect();
        let step = Arc::make_mut(&mut turn.step);
        step.tool_results = known;
        if let Some(call) = step.timing.calls.get_mut(number) {
            call.end = Some(at);
        }
        self.recorded = self.recorded.min(last);
        Some(result)
    }

    pub(super) fn reject_last(&mut self) {
        if let Some(turn) = self.turns.last_mut() {
            Arc::make_mut(&mut turn.step).timing.is_rejected = true;
        }
    }

    /// Returns the number of turns, rejected ones included.
    pub(in crate::agent::generation) fn len(&self) -> usize {
        self.turns.len()
    }

    /// Returns the tokens of all turns and their tools.
    pub(in crate::agent::generation) fn usage(&self) -> Usage {
        self.usage
    }

    pub(in crate::agent::generation) fn last(&self) -> Option<&GenerationStep> {
        self.turns.last().map(|turn| &*turn.step)
    }

    /// Returns all turns.
    pub(in crate::agent::generation) fn steps(&self) -> impl Iterator<Item = &Arc<GenerationStep>> {
        self.turns.iter().map(|turn| &turn.step)
    }

    /// Returns all calls, in order.
    pub(in crate::agent::generation) fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.turns.iter().flat_map(|turn| &turn.step.tool_calls)
    }

    /// Returns all results, in the order of their calls.
    pub(in crate::agent::generation) fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.turns.iter().flat_map(|turn| &turn.step.tool_results)
    }

    /// Returns turns that are missing or outdated in the record.
    pub(in crate::agent::generation) fn unrecorded(&self) -> Vec<(u32, Arc<GenerationStep>)> {
        let turns = self.turns.iter().zip(0..).skip(self.recorded);
        turns.map(|(turn, number)| (number, Arc::clone(&turn.step))).collect()
    }

    pub(in crate::agent::generation) fn has_unrecorded(&self) -> bool {
        self.recorded < self.turns.len()
    }

    pub(in crate::agent::generation) fn mark_recorded(&mut self) {
        self.recorded = self.turns.len();
    }

    /// Returns all turns that were not rejected, as the parts of one message, approvals after their
    /// calls. Calls without a result are left out, but for these.
    pub(in crate::agent::generation) fn parts(
        &self,
        approvals: &[ToolApproval],
        waiting: &[Arc<str>],
    ) -> Vec<Part> {
        let approval_of = |call: &ToolCall| {
            // a call may ask again; the newest request counts
            approvals.iter().rfind(|approval| approval.tool_call_id == call.tool_call_id)
        };
        let mut parts = Vec::new();
        for Turn { step, .. } in self.turns.iter().filter(|turn| !turn.step.timing.is_rejected) {
            if !step.reasoning.is_empty() {
                parts.push(Part::Reasoning { text: step.reasoning.clone() });
            }
            if !step.text.is_empty() {
                parts.push(Part::Text { text: step.text.clone() });
            }
            let is_whole = |call: &ToolCall| {
                step.tool_results.iter().any(|result| result.tool_call_id == call.tool_call_id)
            };
            for call in &step.tool_calls {
                if is_whole(call) || waiting.iter().any(|id| **id == *call.tool_call_id) {
                    parts.push(Part::ToolCall(call.clone()));
                    parts.extend(approval_of(call).cloned().map(Part::ToolApproval));
                }
            }
            parts.extend(step.tool_results.iter().cloned().map(Part::ToolResult));
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_call_ids_are_counted() {
        let call = |id: &str| ToolCall {
            tool_call_id: id.to_owned(),
            tool_name: "refund".to_owned(),
            input: serde_json::Value::Null,
        };
        let mut transcript = Transcript::default();
        assert_eq!(transcript.repetitions(), [0; 0]);
        let turns: [(&[&str], &[usize]); 3] =
            [(&["a", "b", "a"], &[0, 0, 1]), (&["a", "c"], &[2, 0]), (&[], &[])];
        for (ids, expected) in turns {
            let tool_calls = ids.iter().map(|id| call(id)).collect();
            transcript.push(&ModelAnswer { tool_calls, ..ModelAnswer::default() });
            assert_eq!(transcript.repetitions(), expected, "{ids:?}");
        }
    }
}
