//! Calls the tools of a turn, concurrently.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::mpsc;

use crate::agent::generation::GenerateError;
use crate::agent::generation::continuation::CallState;
use crate::agent::generation::tools::{Caller, ToolReturn, Toolset, Waiting, fitting};
use crate::agent::generation::turn::{Planned, Turns};
use crate::agent::tool::{Note, NoteRecipient, NoteSender};
use crate::domain::message::{ToolCall, ToolOutcome, ToolResult};
use crate::domain::time::Timestamp;
use crate::domain::usage::Usage;
use crate::observe::log_record::LogScope;
use crate::observe::trace::generation::call_span;
use crate::ports::store::AskChange;

use super::Run;
use super::hooks::hooked;

/// Maximum number of notes that wait to be recorded.
const NOTES_MAX: usize = 16;

/// Maximum number of results recorded and published together.
const BATCH_MAX: usize = 64;

/// Outcome of the calls of a turn.
pub(super) enum Called {
    /// Results in the order of their calls.
    All(Vec<ToolResult>),
    /// Some calls wait for people, whose asks are new.
    Waiting(Vec<AskChange>),
}

impl Run {
    /// Makes the calls of a turn that have no results. Dropping the future cancels the calls.
    pub(super) async fn call_tools(
        &mut self,
        turns: &mut Turns,
        toolset: &Toolset,
        planned: Vec<Planned>,
    ) -> Result<Called, GenerateError> {
        // the record until there are results
        self.transcript.call(self.deps.clock.now());
        self.record_calls(turns).await?;
        self.edit_calls(turns);
        self.transcript.call(self.deps.clock.now());
        self.publish_spans();
        // before the calls, which may take long
        self.publish().await?;
        let caller = self.caller();
        let turn = self.transcript.len().saturating_sub(1);
        let repetitions = self.transcript.repetitions();
        let (sender, mut notes) = mpsc::channel(NOTES_MAX);
        let calls: FuturesUnordered<_> = planned
            .into_iter()
            .filter(|planned| !self.transcript.has_result(planned.number))
            .map(|planned| {
                let number = planned.number;
                let repetition = repetitions.get(number).copied().unwrap_or_default();
                let span = call_span(&self.record.trace, &self.id, turn, number);
                let clock = Arc::clone(&self.deps.clock);
                let recipient = NoteRecipient::Generation { number, sender: sender.clone() };
                let control = self.control.clone();
                let is_interrupted = Arc::new(move || control.borrow().is_interrupted());
                let notes = Some(NoteSender { recipient, is_interrupted });
                let caller = Caller { notes, ..caller.below(span, repetition) };
                let scope = LogScope::current().unwrap_or_default().at(span);
                scope
                    .during(self.call(toolset, caller, planned))
                    .map(move |returned| (number, returned, clock.now()))
            })
            .collect();
        let mut calls = calls.ready_chunks(BATCH_MAX);
        let (mut waiting, mut asks) = (Vec::new(), 0);
        loop {
            let batch = tokio::select! {
                biased;
                Some(note) = notes.recv() => {
                    self.take_note(note).await?;
                    continue;
                }
                batch = calls.next() => batch,
            };
            let Some(batch) = batch else { break };
            for (number, returned, at) in batch {
                let returned = self.within_asks(asks, returned).await?;
                let ToolReturn { outcome, usage, failure: _, waits, mcp } = returned;
                if let Some(waits) = waits {
                    asks += waits.asks();
                    waiting.push((number, *waits));
                    continue;
                }
                self.transcript.reached(number, mcp);
                self.take_outcome(number, outcome, usage, at);
            }
            if self.sequencer.is_some() {
                self.record_progress().await?;
                self.publish().await?;
            }
        }
        if !waiting.is_empty() {
            return Ok(Called::Waiting(self.open_asks(turns, waiting)));
        }
        let results = self.transcript.last().map(|step| step.tool_results.clone());
        Ok(Called::All(results.unwrap_or_default()))
    }

    /// Adds the outcome of a call, and shows it to subscribers.
    fn take_outcome(&mut self, number: usize, outcome: ToolOutcome, usage: Usage, at: Timestamp) {
        let outcome = self.within_budget(outcome);
        let result = self.transcript.returned(number, outcome, usage, at);
        if let Some(result) = &result {
            log_failure(result);
        }
        if let (Some(sequencer), Some(result)) = (&mut self.sequencer, result) {
            sequencer.tool_result(result);
        }
    }

    /// Opens the asks of calls that wait.
    fn open_asks(&mut self, turns: &Turns, mut waiting: Vec<(usize, Waiting)>) -> Vec<AskChange> {
        waiting.sort_by_key(|(number, _)| *number);
        if self.continuation.is_none() {
            self.continuation = Some(self.continuation_at(turns));
        }
        let asks = self.open_calls(waiting);
        self.deps.ask_alarm.note_opened(&asks);
        asks
    }

    /// Records a note of a call.
    async fn take_note(&mut self, note: Note) -> Result<(), GenerateError> {
        let Note { number, memo, is_note, taken } = note;
        let call = self.transcript.last().and_then(|step| step.tool_calls.get(number)).cloned();
        if let (Some(call), Some(continuation)) = (call, &mut self.continuation) {
            continuation.note(number, &call, (memo, is_note));
            self.count_usage();
            let change = self.put_continuation(Vec::new());
            self.record_with(change).await?;
            // a call that has ended meanwhile does not wait
            let _ = taken.send(());
        }
        Ok(())
    }

    /// Records the calls, with what another process needs to continue here.
    async fn record_calls(&mut self, turns: &Turns) -> Result<(), GenerateError> {
        // a run that is taken up has recorded it
        if self.continuation.is_some() || self.agent.is_volatile {
            return self.record_turns().await;
        }
        self.continuation = Some(self.continuation_at(turns));
        let change = self.put_continuation(Vec::new());
        self.record_with(change).await
    }

    /// Gives calls the arguments that people have edited, and shows them to subscribers.
    fn edit_calls(&mut self, turns: &mut Turns) {
        for call in self.continuation.iter().flat_map(|continuation| &continuation.calls) {
            if let CallState::Approved { input: Some(input) } = &call.state {
                turns.edit_call(call.number, input);
                self.transcript.edit_call(call.number, input.clone());
                if let Some(sequencer) = &mut self.sequencer {
                    sequencer.edited(ToolCall {
                        tool_call_id: call.tool_call_id.to_string(),
                        tool_name: call.tool_name.to_string(),
                        input: input.clone(),
                    });
                }
            }
        }
    }

    /// Replaces a result by an error if the results of the run become too large: all of them stay
    /// in memory, in the prompt and in the history.
    fn within_budget(&mut self, outcome: ToolOutcome) -> ToolOutcome {
        let ToolOutcome::Output(output) = outcome else { return outcome };
        match fitting(output, self.results_left) {
            Some((output, bytes)) => {
                self.results_left -= bytes;
                ToolOutcome::Output(output)
            }
            None => {
                let bytes_max = self.deps.bytes_max;
                let why = format!("the results of this run exceed {bytes_max} bytes in total");
                ToolOutcome::Error(why)
            }
        }
    }

    fn call(
        &self,
        toolset: &Toolset,
        caller: Caller,
        planned: Planned,
    ) -> BoxFuture<'static, ToolReturn> {
        let Planned { number, mut call, refusal } = planned;
        if let Some(why) = refusal {
            return ready(refused(why)).boxed();
        }
        let earlier = self.continuation.as_ref().and_then(|continuation| continuation.call(number));
        match earlier.map(|earlier| &earlier.state) {
            Some(CallState::Refused { reason }) => {
                let denied = ToolOutcome::Denied(reason.clone());
                return ready(ToolReturn::of(denied)).boxed();
            }
            Some(CallState::Approved { input: Some(input) }) => call.input = input.clone(),
            _ => {}
        }
        let permission = self.permission(&call.tool_name, earlier);
        let caller = Caller {
            is_repeated: earlier.is_some() || self.is_interrupted,
            is_interrupted: permission.is_interrupted,
            answers: earlier.map(|earlier| earlier.answers.clone()).unwrap_or_default(),
            memo: earlier.and_then(|earlier| earlier.memo.clone()),
            has_noted: earlier.is_some_and(|earlier| earlier.is_noted),
            approved: earlier.and_then(|earlier| earlier.approved.clone()),
            ..caller
        };
        let gate = toolset
            .is_gated(&call.tool_name, &permission)
            .then(|| toolset.gate(&self.deps, &caller, &call, permission));
        let made = self.made(toolset, caller, call);
        match gate {
            None => made,
            Some(gate) => async move {
                match gate.await {
                    Some(returned) => returned,
                    None => made.await,
                }
            }
            .boxed(),
        }
    }

    fn made(
        &self,
        toolset: &Toolset,
        caller: Caller,
        call: ToolCall,
    ) -> BoxFuture<'static, ToolReturn> {
        match &self.agent.hooks {
            None => toolset.call(&self.deps, &caller, call),
            Some(hooks) => {
                let (toolset, deps) = (toolset.clone(), self.deps.clone());
                let make = move |call| toolset.call(&deps, &caller, call);
                hooked(hooks.clone(), self.info(), call, make).boxed()
            }
        }
    }

    fn caller(&self) -> Caller {
        Caller {
            agent_id: Arc::from(self.record.agent_id.as_str()),
            generation_id: Arc::clone(&self.id),
            user_id: self.record.user_id.as_deref().map(Arc::from),
            conversation_id: self.record.conversation_id.as_deref().map(Arc::from),
            context: Arc::clone(&self.context),
            depth: self.depth,
            trace: self.record.trace.clone(),
            repetition: 0,
            is_repeated: false,
            is_interrupted: false,
            answers: Vec::new(),
            memo: None,
            approved: None,
            has_noted: false,
            notes: None,
        }
    }
}

fn log_failure(result: &ToolResult) {
    if let ToolOutcome::Error(why) = &result.outcome {
        log::info!(call = result.tool_call_id; "tool {} failed: {why}", result.tool_name);
    }
}

/// Returns the result of a call that is not made.
pub(super) fn refused(why: String) -> ToolReturn {
    ToolReturn::of(ToolOutcome::Error(why))
}
