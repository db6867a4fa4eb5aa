//! Diagnosis: what executions wait for, stuck executions and stalled threads.

use std::sync::Arc;

use super::Runtime;
use super::bulk::workflow::BULK_WORKFLOW;
use crate::agent::generation::continuation::{Continuation, awaited_calls};
use crate::cluster::activity::Activity;
use crate::commands::ExecutionCommand;
use crate::domain::time::Timestamp;
use crate::ports::store::{ASK_PREFIX, AskState, ReadError};
use crate::requests::{AskError, DescribeError, Target, Unavailable};
use crate::shard::pulse::StalledThread;
use crate::shard::stuck::StuckExecution;
use crate::visibility::Visibility;
use crate::wait_report::{Awaited, Cause, WaitReport};

/// Asks that are looked up for one report. The list of asks has all.
const ASKS_MAX: usize = 50;

/// Generations that are looked up for one report.
const GENERATIONS_MAX: usize = 50;

impl Runtime {
    /// Reports what an execution waits for. The query does not keep it in memory.
    pub async fn why(&self, target: &Target) -> Result<Box<WaitReport>, DescribeError> {
        let asked = self.shared.clock.now();
        let command = |answer| ExecutionCommand::Why { subject: Some(target.into()), answer };
        let report = match self.ask_unless_ended(target, command).await {
            Err(DescribeError::Unavailable(Unavailable::Moved { .. })) => {
                let recorded = self.read_rows(&target.execution_id, command).await?;
                self.report_elsewhere(recorded, asked)
            }
            answer => answer?,
        };
        let mut report = report;
        if let Some(ending) = report.ending.as_mut().filter(|_| target.workflow_id == BULK_WORKFLOW)
        {
            // no replay of an operation is accepted
            ending.replayable.clear();
        }
        let report = self.shared.with_children(report).await?;
        let report = self.with_asks(report, &target.visibility).await?;
        Ok(self.with_calls(report).await?)
    }

    /// Looks up the open asks of suspensions that a caller sees. Those of the calls of an agent are
    /// in the payload of its step.
    async fn with_asks(
        &self,
        mut report: Box<WaitReport>,
        visibility: &Visibility,
    ) -> Result<Box<WaitReport>, Unavailable> {
        let mut named = Vec::new();
        for awaited in &report.waits_for {
            let (Cause::Resume { suspension_id, payload, .. }
            | Cause::Asks { suspension_id, payload, .. }) = &awaited.cause
            else {
                continue;
            };
            named.push((suspension_id, format!("{ASK_PREFIX}{suspension_id}")));
            let calls = payload.as_deref().and_then(|payload| payload["asks"].as_array());
            let ids = calls.into_iter().flatten().filter_map(|call| call["askId"].as_str());
            named.extend(ids.map(|id| (suspension_id, id.to_owned())));
        }
        for (suspension_id, id) in named.into_iter().take(ASKS_MAX) {
            match self.find_ask(&id, visibility).await {
                Ok(ask) if ask.state == AskState::Open => {
                    report.asks.entry(Arc::clone(suspension_id)).or_default().push(ask);
                }
                Err(AskError::Unavailable(why)) => return Err(why),
                // closed meanwhile, or not known to a version without asks
                Ok(_) | Err(_) => {}
            }
        }
        Ok(report)
    }

    /// Looks up the calls of tools that the agents of steps wait for. What cannot be read is left out.
    async fn with_calls(
        &self,
        mut report: Box<WaitReport>,
    ) -> Result<Box<WaitReport>, Unavailable> {
        let store = &self.shared.store;
        let found: Vec<_> = report.waits_for.iter().filter_map(generation_of).collect();
        for id in found.into_iter().take(GENERATIONS_MAX) {
            let (entry, stored) =
                match tokio::try_join!(store.generation(&id), store.continuation(&id)) {
                    Ok((Some(entry), stored)) => (entry, stored),
                    // not recorded yet, or damaged
                    Ok((None, _)) | Err(ReadError::Corrupt(_)) => continue,
                    Err(error @ (ReadError::Unavailable(_) | ReadError::TooLarge(_))) => {
                        return Err(error.into());
                    }
                };
            let continuation =
                stored.and_then(|it| Continuation::read(&it.body, &entry.record).ok());
            let calls = entry.steps.last().map(|last| awaited_calls(last, continuation.as_ref()));
            report.calls.insert(id, calls.unwrap_or_default());
        }
        Ok(report)
    }

    /// Returns the report on an execution whose process did not answer: what is recorded, and that it
    /// waits for that process.
    fn report_elsewhere(&self, recorded: Box<WaitReport>, since: Timestamp) -> Box<WaitReport> {
        let server = self.shared.ownership.owner_name(&recorded.header.id);
        let mut waits_for = recorded.waits_for;
        waits_for.retain(|awaited| awaited.cause.is_recorded());
        if recorded.ending.is_none() {
            let cause = Cause::Elsewhere { server: server.clone() };
            let (step_id, path, until) = (None, None, None);
            waits_for.push(Awaited { step_id, path, since, until, cause });
        }
        Box::new(WaitReport { server, waits_for, ..*recorded })
    }

    /// Returns which workflows and agents are running, at all processes over the same store. One
    /// that does not answer within a second is left out.
    pub async fn activity(&self) -> Activity {
        self.shared.activity_everywhere().await
    }

    /// Returns the stuck executions found by the last checks; at most a thousand. A process that
    /// does not answer within a second is left out.
    pub async fn stuck(&self) -> Vec<StuckExecution> {
        self.shared.stuck_everywhere().await
    }

    /// Returns the threads of executions of this process that do not respond now.
    pub fn stalled_threads(&self) -> Vec<StalledThread> {
        self.shared.pulse.stalled()
    }
}

/// Returns the generation of an agent that a step runs or waits for.
fn generation_of(awaited: &Awaited) -> Option<Arc<str>> {
    match &awaited.cause {
        Cause::Body { generation, .. } => generation.clone(),
        Cause::Asks { payload, .. } => payload.as_deref()?["generationId"].as_str().map(Arc::from),
        Cause::Hold { .. }
        | Cause::Resume { .. }
        | Cause::Child { .. }
        | Cause::Sleep
        | Cause::Retry { .. }
        | Cause::Missing { .. }
        | Cause::Interrupted { .. }
        | Cause::Turn
        | Cause::Deciding
        | Cause::Draining
        | Cause::Elsewhere { .. } => None,
    }
}
