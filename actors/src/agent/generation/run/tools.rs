//! Calls the tools of a turn, concurrently.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _, ready};
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use crate::agent::generation::GenerateError;
use crate::agent::generation::tools::{Caller, ToolReturn, Toolset, bytes_within};
use crate::agent::generation::turn::Planned;
use crate::domain::message::{ToolOutcome, ToolResult};
use crate::observe::log_record::LogScope;
use crate::observe::trace::generation::call_span;
use crate::ports::model::Usage;

use super::Run;
use super::hooks::hooked;

/// Maximum number of results recorded and published together.
const BATCH_MAX: usize = 64;

impl Run {
    /// Returns the results in the order of their calls. Dropping the future cancels the calls.
    pub(super) async fn call_tools(
        &mut self,
        toolset: &Toolset,
        planned: Vec<Planned>,
    ) -> Result<Vec<ToolResult>, GenerateError> {
        // the record until there are results
        self.transcript.call(self.deps.clock.now());
        self.record_turns().await?;
        self.transcript.call(self.deps.clock.now());
        self.publish_spans();
        let caller = self.caller();
        let turn = self.transcript.len().saturating_sub(1);
        let repetitions = self.transcript.repetitions();
        let calls: FuturesUnordered<_> = planned
            .into_iter()
            .enumerate()
            .map(|(number, planned)| {
                let repetition = repetitions.get(number).copied().unwrap_or_default();
                let span = call_span(&self.record.trace, &self.id, turn, number);
                let clock = Arc::clone(&self.deps.clock);
                let scope = LogScope::current().unwrap_or_default().at(span);
                scope
                    .during(self.call(toolset, caller.below(span, repetition), planned))
                    .map(move |returned| (number, returned, clock.now()))
            })
            .collect();
        let mut calls = calls.ready_chunks(BATCH_MAX);
        while let Some(batch) = calls.next().await {
            for (number, ToolReturn { outcome, usage, failure: _ }, at) in batch {
                let outcome = self.within_budget(outcome);
                let result = self.transcript.returned(number, outcome, usage, at);
                if let Some(result) = &result {
                    log_failure(result);
                }
                if let (Some(sequencer), Some(result)) = (&mut self.sequencer, result) {
                    sequencer.tool_result(result);
                }
            }
            if self.sequencer.is_some() {
                self.record_progress().await?;
                self.publish().await?;
            }
        }
        let results = self.transcript.last().map(|step| step.tool_results.clone());
        Ok(results.unwrap_or_default())
    }

    /// Replaces a result by an error if the results of the run become too large: all of them stay
    /// in memory, in the prompt and in the history.
    fn within_budget(&mut self, outcome: ToolOutcome) -> ToolOutcome {
        let ToolOutcome::Output(output) = &outcome else { return outcome };
        match bytes_within(output, self.results_left) {
            Some(bytes) => {
                self.results_left -= bytes;
                outcome
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
        let Planned { call, refusal } = planned;
        if let Some(why) = refusal {
            return ready(refused(why)).boxed();
        }
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
    ToolReturn { outcome: ToolOutcome::Error(why), usage: Usage::default(), failure: None }
}
