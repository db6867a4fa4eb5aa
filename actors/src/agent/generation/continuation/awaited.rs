//! Calls of tools that a run waits for, as its record and its continuation have them, and their open
//! questions.

use std::sync::Arc;

use super::{CallState, Continuation, OpenCall};
use crate::agent::tool::WithdrawnQuestion;
use crate::domain::note::{CallStage, Queued};
use crate::ports::store::GenerationStep;
use crate::wait_report::AwaitedCall;

/// Returns the calls of the last turn that have no result, in the order of the model's answer. Without
/// a continuation their stages are not known.
pub(crate) fn awaited_calls(
    last: &GenerationStep,
    continuation: Option<&Continuation>,
) -> Vec<AwaitedCall> {
    let asked = last.tool_calls.iter().enumerate();
    let awaited = asked.filter(|(number, _)| last.result_of(*number).is_none());
    let calls = awaited.map(|(number, call)| {
        // the continuation may still be that of the turn before
        let open = continuation.and_then(|continuation| continuation.call(number));
        let open = open.filter(|open| *open.tool_call_id == *call.tool_call_id);
        let begun = last.timing.calls.get(number);
        AwaitedCall {
            tool_call_id: Arc::from(call.tool_call_id.as_str()),
            tool: Arc::from(call.tool_name.as_str()),
            stage: open.map_or(CallStage::Works, stage_of),
            since: begun.map(|period| period.start),
        }
    });
    // versions that did not record times have results nevertheless
    let is_over = last.tool_results.len() >= last.tool_calls.len();
    if is_over { Vec::new() } else { calls.collect() }
}

impl Continuation {
    /// Returns the questions of tools that the end of the run withdraws, those with a memo: the open
    /// ones, and those whose answers the tool did not get.
    pub(crate) fn open_questions(&self) -> Vec<WithdrawnQuestion> {
        let is_asked =
            |call: &&OpenCall| matches!(call.state, CallState::Asked(_) | CallState::Answered);
        let asked = self.calls.iter().filter(is_asked);
        let noted = asked.filter_map(|call| {
            let memo = Arc::clone(call.memo.as_ref()?);
            Some(WithdrawnQuestion { tool: Arc::clone(&call.tool_name), memo })
        });
        noted.collect()
    }
}

impl OpenCall {
    /// Returns true if the call was waiting for its place among the concurrent calls of its tool.
    pub(in crate::agent::generation) fn waits_for_place(&self) -> bool {
        self.is_noted && self.memo.as_deref().is_some_and(|memo| Queued::of(memo).is_some())
    }

    /// Notes that the call has not begun: it waits for its place, and its tool for the approval.
    pub(super) fn put_off(&mut self, is_repetition: bool) {
        if self.memo.as_deref().and_then(Queued::of).is_none() {
            let queued = Queued { memo: self.memo.take(), is_repetition };
            self.memo = Some(Arc::new(queued.to_note()));
        }
        self.is_noted = true;
    }
}

fn stage_of(call: &OpenCall) -> CallStage {
    match &call.state {
        CallState::Asked(_) | CallState::Child { is_ready: false, .. } => CallStage::Asks,
        CallState::Child { is_ready: true, .. }
        | CallState::Approved { .. }
        | CallState::Refused { .. }
        | CallState::Answered => CallStage::of(call.memo.as_deref().filter(|_| call.is_noted)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::continuation;
    use super::*;
    use crate::domain::message::{ToolCall, ToolOutcome, ToolResult};
    use crate::domain::time::Timestamp;
    use crate::ports::store::{Period, TurnTiming};

    fn call(id: &str) -> ToolCall {
        ToolCall { tool_call_id: id.to_owned(), tool_name: "own.stay".to_owned(), input: json!({}) }
    }

    /// Returns a call of the last turn with a note.
    fn open(number: usize, id: &str, note: Value) -> OpenCall {
        let memo = Some(Arc::new(note));
        OpenCall { memo, is_noted: true, ..OpenCall::new(number, &call(id)) }
    }

    #[test]
    fn calls_without_results_have_the_stages_of_their_notes() {
        let ToolCall { tool_call_id, tool_name, input } = call("a");
        let outcome = ToolOutcome::Output(json!(1));
        let period =
            |start, end: Option<i64>| Period { start: Timestamp(start), end: end.map(Timestamp) };
        let calls = vec![period(1, Some(2)), period(3, None), period(4, None), period(5, None)];
        let turn = GenerationStep {
            tool_calls: ["a", "b", "c", "d"].map(call).to_vec(),
            tool_results: vec![ToolResult { tool_call_id, tool_name, input, outcome }],
            timing: TurnTiming { calls, ..TurnTiming::default() },
            ..GenerationStep::default()
        };
        let queued = || Queued::default().to_note();
        let continuation = continuation(vec![
            open(1, "b", queued()),
            open(2, "c", json!(7)),
            // a note of the turn before
            open(3, "z", queued()),
        ]);
        let shown = |continuation: Option<&Continuation>| -> Vec<_> {
            let calls = awaited_calls(&turn, continuation).into_iter();
            calls.map(|it| (it.tool_call_id.to_string(), it.stage, it.since)).collect()
        };
        let row = |id: &str, stage, since| (id.to_owned(), stage, Some(Timestamp(since)));
        let expected = [
            row("b", CallStage::WaitsForPlace, 3),
            row("c", CallStage::Follows, 4),
            row("d", CallStage::Works, 5),
        ];
        assert_eq!(shown(Some(&continuation)), expected);
        assert!(shown(None).iter().all(|(_, stage, _)| *stage == CallStage::Works));
        let over = GenerationStep { tool_calls: vec![call("a")], ..turn.clone() };
        assert_eq!(awaited_calls(&over, None), []);
    }
}
