//! The only entry point to executions and generations.

mod agents;
mod ask_feed;
mod ask_updates;
mod bulk;
mod call_asks;
mod cancelled;
mod continued_chat;
mod decision;
mod erasure;
mod events;
mod exchange;
mod following;
mod health;
mod inbox;
mod launch;
mod left_behind;
mod lists;
mod logs;
mod orphans;
mod outcomes;
mod replay;
mod replay_key;
mod requests;
mod rows;
mod stats;
mod suspended;
mod tending;
mod tools;
mod traces;
mod versions;
mod weak;
mod workflow_runs;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::Addr;
use futures_util::future::join_all;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout, timeout_at};

use crate::agent::generation::GenerationDeps;
use crate::cluster::observing::Watch;
use crate::commands::{Answer, ExecutionCommand};
use crate::domain::ids::ExecutionId;
use crate::domain::plan::Plan;
use crate::limits::RuntimeLimits;
use crate::observe::span::{Observer, ObserverId};
use crate::ports::clock::Clock;
use crate::ports::store::{CountsOfUser, ExecutionCount, FactCursor, OpenAskCounts, Portion};
use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::runtime::rows::RowReads;
use crate::shard::arbiters::Arbiters;
use crate::shard::messages::KillForTest;
use crate::shard::scheduler::Scheduler;
use crate::shard::supervisor::{StopAll, Supervisor};
use crate::shard::sweeper::Sweeper;
use crate::shared::Shared;

pub use crate::cluster::activity::Activity;
pub use crate::cluster::figures::ClusterStats;
pub use crate::observe::ask_news::{AskNews, AskNewsKind};
pub use crate::replay::{ReplayError, possible_steps};
pub use crate::requests::Subscription;
pub use agents::{BegunGeneration, FailedGeneration, StreamedGeneration};
pub use bulk::{
    BULK_IDS_MAX, BULK_PREVIEW_MAX, BULK_WORKFLOW, BulkAction, BulkOperation, BulkPreview,
    BulkReach,
};

pub use cancelled::CancelGenerationError;
pub use continued_chat::{ContinueChatError, ContinuedChat, WaitingChat};
pub use events::EventPage;
pub use outcomes::{Durations, OUTCOMES_COUNTED_MAX, Outcomes, OutcomesRequest, Part, Tally};
pub use replay::{Replay, ReplayDefinition, ReplayExecution};
pub use stats::RuntimeStats;
pub use tools::{AskedBefore, CallTool, CallToolError};
pub use traces::{TracePage, TraceSummary, TraceView};
pub use versions::{VERSIONS_COUNTED_MAX, Version, Versions};

/// State of a runtime as to new work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    Draining,
    StoreRefusesWrites,
}

/// Time that the records of cancelled generations may take at the end of a drain.
const LAST_RECORDS: Duration = Duration::from_secs(2);

/// Time for which a new observer waits for the answers of other processes. Those that answer later
/// are observed from then on.
const FEEDS_FOLLOWED: Duration = Duration::from_secs(1);

/// Executions and generations, and all requests about them. Cheap to clone; all clones are the
/// same runtime.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use greenroom_actors::domain::definition::WorkflowDefinition;
/// use greenroom_actors::domain::plan::Plan;
/// use greenroom_actors::domain::status::Status;
/// use greenroom_actors::ports::clock::SystemClock;
/// use greenroom_actors::ports::memory::MemoryStore;
/// use greenroom_actors::registry::Registry;
/// use greenroom_actors::requests::StartExecution;
/// use greenroom_actors::{Runtime, RuntimeLimits, RuntimePorts};
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let definition: WorkflowDefinition = serde_json::from_value(json!({
///     "id": "double", "name": "Double", "purpose": "",
///     "steps": [{ "id": "times", "name": "times", "purpose": "", "on_error": "fail",
///         "kind": { "map": { "map": "input * 2" } } }],
/// }))?;
/// let plan = Plan::compile(definition).map_err(|problems| format!("{problems:?}"))?;
/// let mut registry = Registry::default();
/// registry.workflows.insert("double".to_owned(), Arc::new(plan));
///
/// actix::System::new().block_on(async {
///     let ports = RuntimePorts::new(Arc::new(MemoryStore::new()), Arc::new(SystemClock));
///     let runtime = Runtime::launch(registry, ports, RuntimeLimits::default()).await?;
///     let request = StartExecution::new("double", 21);
///     let outcome = runtime.execute(request).await?;
///     assert_eq!((outcome.status(), outcome.result()), (Status::Completed, Some(&json!(42))));
///     runtime.drain(Duration::from_secs(1)).await;
///     runtime.end();
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
    system: Arc<SystemActors>,
    arbiters: Arc<Arbiters>,
    generations: GenerationDeps,
    row_reads: RowReads,
}

/// The long-lived actors.
struct SystemActors {
    shards: Vec<Addr<Supervisor>>,
    scheduler: Addr<Scheduler>,
    sweeper: Addr<Sweeper>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

impl Runtime {
    /// Returns the current registry. Code that looks up several names takes it once, since
    /// [`Runtime::exchange`] may replace it.
    pub fn registry(&self) -> Arc<Registry> {
        self.shared.registry()
    }

    /// Returns what changes each time the registry was replaced.
    pub fn watch_registry(&self) -> watch::Receiver<()> {
        self.shared.current.watch()
    }

    /// Returns a registered workflow, or that of bulk operations.
    pub fn plan(&self, workflow_id: &str) -> Option<Arc<Plan>> {
        self.shared.plan_to_start(workflow_id)
    }

    /// Returns the dependencies of a new generation.
    fn generation_deps(&self) -> GenerationDeps {
        self.shared.generation_deps().unwrap_or_else(|| self.generations.clone())
    }

    /// Returns the clock of all timestamps.
    pub fn clock(&self) -> &dyn Clock {
        &*self.shared.clock
    }

    pub fn limits(&self) -> &RuntimeLimits {
        &self.shared.limits
    }

    /// Returns durable facts from a place on, in about `bytes` bytes of their stored form.
    pub async fn portion(
        &self,
        id: &ExecutionId,
        from: FactCursor,
        bytes: usize,
    ) -> Result<Portion, Unavailable> {
        Ok(self.shared.store.portion(id, from, bytes).await?)
    }

    /// Counts all stored executions by workflow and status.
    pub async fn counts(&self) -> Result<Vec<ExecutionCount>, Unavailable> {
        Ok(self.shared.store.counts().await?)
    }

    /// Counts all open asks by kind. The cost grows with their number.
    pub async fn open_ask_counts(&self) -> Result<OpenAskCounts, Unavailable> {
        Ok(self.shared.store.open_ask_counts().await?)
    }

    /// Counts the newest `limit` executions of one user.
    pub async fn counts_of_user(
        &self,
        user_id: &str,
        limit: usize,
    ) -> Result<CountsOfUser, Unavailable> {
        Ok(self.shared.store.counts_of_user(user_id, limit).await?)
    }

    /// Registers an observer of spans and logs, which gets everything from now on: of this process,
    /// and of all others over the same store that can be reached. Those of one execution are in
    /// order.
    pub async fn observe(&self, observer: Observer) -> ObserverId {
        let id = self.observe_here(observer.clone()).await;
        let elsewhere = Watch::of(&self.shared, &observer, id);
        if let Some((watch, arbiter)) = elsewhere.zip(self.arbiters.handles().first()) {
            let (ready, answered) = oneshot::channel();
            arbiter.spawn(watch.pass(ready));
            // an error: it is dropped when the others have answered
            let _ = tokio::time::timeout(FEEDS_FOLLOWED, answered).await;
        }
        id
    }

    /// Registers an observer of the spans and logs of this process alone.
    pub async fn observe_here(&self, observer: Observer) -> ObserverId {
        self.shared.feed.observe(observer).await
    }

    /// Returns when observers were sent everything that is durable by now.
    pub async fn observers_settled(&self) {
        self.shared.feed.settled().await;
    }

    pub fn forget(&self, observer: ObserverId) {
        self.shared.feed.forget(observer);
    }

    /// Returns true if writes succeed and the runtime accepts new work.
    pub fn is_ready(&self) -> bool {
        self.readiness() == Readiness::Ready
    }

    /// Returns whether the runtime accepts new work, or the reason why not.
    pub fn readiness(&self) -> Readiness {
        let is_writable = self.shared.store.is_writable() && self.shared.ownership.is_believed();
        match (self.shared.is_draining(), is_writable) {
            (true, _) => Readiness::Draining,
            (false, false) => Readiness::StoreRefusesWrites,
            (false, true) => Readiness::Ready,
        }
    }

    /// Refuses new work, gives running steps `grace`, answers waiting callers with
    /// [`Unavailable::Draining`], and returns when everything is durable, or an outage of the store
    /// has lasted for its patience. Everything acknowledged is durable either way.
    pub async fn drain(&self, grace: Duration) {
        self.shared.draining.store(true, Ordering::Release);
        self.leave_members();
        let deadline = Instant::now() + grace;
        let quiet = async {
            self.shared.bodies.done().await;
            self.generations.active.idle().await;
            // chats of others, which their readers would have to attach to anew
            self.generations.live.followed.idle().await;
        };
        if timeout_at(deadline, quiet).await.is_err() {
            log::warn!(
                "work is in progress after the grace period of {grace:?}; steps that are interrupted \
                 run again {}",
                self.shared.where_next()
            );
        } else if timeout_at(deadline, self.shared.ownership.handed_over()).await.is_err() {
            log::warn!(
                "not all servers confirmed the handover of this server's slots within the grace \
                 period of {grace:?}; they take the slots over once this server is gone"
            );
        } else if timeout_at(deadline, self.shared.ownership.none_asks()).await.is_err() {
            log::info!(
                "callers wait for executions of other servers after the grace period of {grace:?}; \
                 they are refused"
            );
        }
        // first, since answering their callers and dropping their steps would cancel them
        self.generations.live.close();
        self.shared.ending.cancel();
        let stops = self.system.shards.iter().map(|shard| shard.send(StopAll));
        tokio::select! {
            _ = join_all(stops) => {}
            () = self.shared.outage_outlasts_patience() => log::warn!(
                "some executions still wait for the store, which accepts no writes; after the \
                 restart they continue from what it has"
            ),
        }
        if timeout(LAST_RECORDS, self.generations.active.idle()).await.is_err() {
            log::warn!(
                "some generations ended without a record; after the restart they are interrupted"
            );
        }
    }

    /// Ends the threads of the actors and closes the store. Blocks: call it after
    /// [`Runtime::drain`], outside of async code.
    pub fn end(self) {
        self.shared.quarantine.close();
        self.arbiters.end();
        self.shared.store.close();
    }

    /// Returns the number of executions in memory.
    pub fn live(&self) -> usize {
        self.shared.live.load(Ordering::Acquire)
    }

    /// Ends every actor without any record, like a crash of the process: for tests of recovery.
    #[doc(hidden)]
    pub async fn kill(self) {
        self.generations.live.vanish();
        let ends = self.system.shards.iter().map(|shard| shard.send(KillForTest));
        join_all(ends).await;
        let _ = self.system.scheduler.send(KillForTest).await;
        let _ = self.system.sweeper.send(KillForTest).await;
    }

    /// Has the other members take over what this process serves, as far as there is time.
    fn leave_members(&self) {
        let Some(members) = self.shared.ownership.members().cloned() else { return };
        actix::spawn(async move {
            if let Err(error) = members.set_leaving().await {
                log::warn!("the other servers take over only when this one has ended: {error}");
            }
        });
    }

    /// Sends a command to an execution and awaits the answer.
    async fn ask<T, E: From<Unavailable>>(
        &self,
        id: &ExecutionId,
        command: impl FnOnce(Answer<T, E>) -> ExecutionCommand,
    ) -> Result<T, E> {
        let (answer, reply) = oneshot::channel();
        self.shared.deliver(id.clone(), command(answer));
        self.answer_of(id, reply).await
    }

    /// Awaits the answer to a command; an actor that dies on it gives none. In an outage of the
    /// store that outlasts the patience, the command is left to be carried out after it.
    async fn answer_of<T, E: From<Unavailable>>(
        &self,
        id: &ExecutionId,
        reply: oneshot::Receiver<Result<T, E>>,
    ) -> Result<T, E> {
        let answer = self.shared.unless_outage(Some(id), reply).await?;
        answer.unwrap_or_else(|_| {
            Err(E::from(if self.shared.is_draining() {
                Unavailable::Draining { execution: Some(id.clone()) }
            } else {
                Unavailable::ActorLost
            }))
        })
    }
}

#[cfg(test)]
mod tests;
