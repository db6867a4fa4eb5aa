//! The only door to executions and generations.

mod agents;
mod exchange;
mod launch;
mod lists;
mod logs;
pub(crate) mod replay;
mod replay_key;
mod requests;
pub(crate) mod stats;
mod tools;
mod traces;
mod workflow_runs;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::oneshot;

use crate::arbiters::{Arbiters, Placement};
use crate::core::Core;
use crate::domain::ids::ExecutionId;
use crate::domain::nesting::VALUE_DEPTH_MAX;
use crate::generation::GenerationDeps;
use crate::ports::clock::Clock;
use crate::ports::crash_marks::{CrashMarks, NoCrashMarks};
use crate::ports::meter::{Meter, NoMeter};
use crate::ports::outside::{NoOutside, Outside};
use crate::ports::store::{CountsOfUser, ExecutionCount, Place, Portion, Store};
use crate::ports::workers::Workers;
use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::retention::RetentionRules;
use crate::span::{Observer, ObserverId};
use crate::supervisor::{StopAll, Vanish};

pub use agents::{CancelGenerationError, FailedGeneration, StreamedGeneration};
pub use replay::{ReplayDefinition, ReplayError, ReplayExecution};
pub use stats::RuntimeStats;
pub use tools::{CallTool, CallToolError};
pub use traces::{TracePage, TraceSummary, TraceView};

/// Whether new work is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    Draining,
    StoreRefusesWrites,
}

/// How long the records of cancelled generations may take at the end.
const LAST_RECORDS: Duration = Duration::from_secs(2);

/// Bounds of the runtime; see `[limits]` and `[store]` of the configuration.
#[derive(Debug, Clone)]
pub struct RuntimeLimits {
    /// Where executions run.
    pub placement: Placement,
    /// A waiting execution that nobody reads leaves memory after this.
    pub passivate_after: Duration,
    /// Interruptions by a crash after which a step fails.
    pub crash_attempts: u32,
    /// Processes that end while an execution is evaluated at the same point, after which it fails;
    /// zero: it never does.
    pub quarantine_after: u32,
    /// Executions in memory at once; above it, new ones are refused as busy.
    pub executions_live_max: usize,
    /// Bytes of memory that the values of executions in memory may take together, by an estimate:
    /// when they are used up, new executions, and resumes of those that are not in memory, are
    /// refused.
    pub executions_memory_max: u64,
    /// Largest value that an expression or a function may give, in bytes of JSON.
    pub value_bytes_max: usize,
    /// How deep a value may nest: one that comes in, and one that is made.
    pub value_depth_max: usize,
    /// Events of one execution; beyond it the execution fails.
    pub events_max: u64,
    /// Bytes of JSON of all values of one execution.
    pub execution_bytes_max: u64,
    /// How long a subscriber may take nothing before its connection is cut.
    pub subscriber_stall: Duration,
    /// Times that an execution's actor is rebuilt after a panic of its own within a minute.
    pub actor_restarts_max: u32,
    /// How long an idempotency key is kept.
    pub idempotency_ttl: Duration,
    /// Executions and agents above one another, from the first to the last sub-workflow.
    pub child_depth_max: u32,
    /// Generations at once; above it, new ones are refused as busy.
    pub generations_live_max: usize,
    /// Times that a model is asked again for an object that does not meet its schema.
    pub object_repairs: u32,
    /// How long an attempt of a step that calls a server or runs a program may take, when the step
    /// has no time limit of its own.
    pub call_timeout: Duration,
    /// How long a call of a tool without a time limit of its own may take.
    pub tool_timeout: Duration,
    /// Largest result of a tool, in bytes of JSON.
    pub tool_result_bytes_max: usize,
    /// Turns of one generation, whatever its caller or its agent says.
    pub generation_steps_max: u32,
    /// All that the model of one generation may say, and all that its tools may give, in bytes
    /// each.
    pub generation_bytes_max: usize,
    /// Facts of executions and turns of generations that one trace shows, and that are read for
    /// one page of traces.
    pub trace_spans_max: usize,
    /// For how long what is over is kept.
    pub retention: RetentionRules,
    /// How often running executions are looked after; zero: never.
    pub watchdog_every: Duration,
    /// How long the evaluation of one expression, template or schema may take.
    pub expression_time_max: Duration,
}

/// What a runtime stands on. Cheap to clone.
#[derive(Clone)]
pub struct RuntimePorts {
    pub store: Arc<dyn Store>,
    /// Where it is noted what a process may end with.
    pub crash_marks: Arc<dyn CrashMarks>,
    pub clock: Arc<dyn Clock>,
    pub meter: Arc<dyn Meter>,
    pub outside: Arc<dyn Outside>,
    /// Whoever evaluates what costs much, in place of threads of the runtime's own.
    pub workers: Option<Arc<dyn Workers>>,
    /// Listeners from the first moment on: they hear of what goes on again after a restart.
    pub observers: Vec<Observer>,
}

impl RuntimePorts {
    /// Without anybody who counts or listens, with nothing outside, and without crash marks.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            crash_marks: Arc::new(NoCrashMarks),
            clock,
            meter: Arc::new(NoMeter),
            outside: Arc::new(NoOutside),
            workers: None,
            observers: Vec::new(),
        }
    }
}

impl std::fmt::Debug for RuntimePorts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimePorts").finish_non_exhaustive()
    }
}

impl Default for RuntimeLimits {
    fn default() -> Self {
        let arbiters = std::thread::available_parallelism().map_or(1, |n| (n.get() / 2).max(1));
        Self {
            placement: Placement::Threads(arbiters),
            passivate_after: Duration::from_secs(10),
            crash_attempts: 3,
            quarantine_after: 2,
            executions_live_max: 100_000,
            executions_memory_max: 1024 * 1024 * 1024,
            value_bytes_max: 1024 * 1024,
            value_depth_max: VALUE_DEPTH_MAX,
            events_max: 100_000,
            execution_bytes_max: 64 * 1024 * 1024,
            subscriber_stall: Duration::from_secs(10),
            actor_restarts_max: 3,
            idempotency_ttl: Duration::from_secs(24 * 3600),
            child_depth_max: 16,
            generations_live_max: 10_000,
            object_repairs: 1,
            call_timeout: Duration::from_secs(60),
            tool_timeout: Duration::from_secs(60),
            tool_result_bytes_max: 256 * 1024,
            generation_steps_max: 50,
            generation_bytes_max: 4 * 1024 * 1024,
            trace_spans_max: 10_000,
            retention: RetentionRules::default(),
            watchdog_every: Duration::from_secs(60),
            expression_time_max: Duration::from_secs(1),
        }
    }
}

/// Executions and generations, and all that can be asked of them. Cheap to clone; all clones are
/// the same runtime.
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
/// use greenroom_actors::requests::{StartExecution, TraceOrigin};
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
///     let request = StartExecution {
///         workflow_id: "double".to_owned(),
///         execution_id: None,
///         input: json!(21),
///         user_id: None,
///         conversation_id: None,
///         context: serde_json::Map::new(),
///         idempotency: None,
///         trace: TraceOrigin::New,
///     };
///     let rest = runtime.execute(request).await?;
///     assert_eq!((rest.status, rest.result), (Status::Completed, Some(json!(42).into())));
///     runtime.drain(Duration::from_secs(1)).await;
///     runtime.end();
///     Ok(())
/// })
/// # }
/// ```
#[derive(Clone)]
pub struct Runtime {
    core: Arc<Core>,
    arbiters: Arc<Arbiters>,
    generations: GenerationDeps,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}

/// Where a new reader of an execution begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscription {
    /// Number of the last durable event: everything above it reaches the subscriber, everything
    /// up to it is in [`Runtime::portion`].
    pub durable_seq: u64,
    /// The execution has ended and takes no subscriber: the facts are all there is.
    pub ended: bool,
}

impl Runtime {
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// What can be run just now. Who works with several names of it takes it once:
    /// [`Runtime::exchange`] may put another in its place.
    pub fn registry(&self) -> Arc<Registry> {
        self.core.registry()
    }

    /// What a generation that begins now runs with.
    fn generation_deps(&self) -> GenerationDeps {
        self.core.generation_deps().unwrap_or_else(|| self.generations.clone())
    }

    /// The clock that dates everything.
    pub fn clock(&self) -> &dyn Clock {
        &*self.core.clock
    }

    pub fn limits(&self) -> &RuntimeLimits {
        &self.core.limits
    }

    /// Whether an execution of the workflow runs now.
    pub fn is_workflow_running(&self, workflow_id: &str) -> bool {
        self.core.running_of(workflow_id).is_some_and(|count| count.load(Ordering::Acquire) > 0)
    }

    /// Whether a generation of the agent runs now.
    pub fn is_agent_working(&self, agent_id: &str) -> bool {
        self.generations.working.is_working(agent_id)
    }

    /// Durable facts from a place on, about so many bytes of them as they are stored.
    pub async fn portion(
        &self,
        id: &ExecutionId,
        from: Place,
        bytes: usize,
    ) -> Result<Portion, Unavailable> {
        Ok(self.core.store.portion(id, from, bytes).await?)
    }

    /// Counts the executions that are kept, by workflow and status, whatever their number.
    pub async fn counts(&self) -> Result<Vec<ExecutionCount>, Unavailable> {
        Ok(self.core.store.counts().await?)
    }

    /// Counts those of one user among the newest `limit` of that user's.
    pub async fn counts_of_user(
        &self,
        user_id: &str,
        limit: usize,
    ) -> Result<CountsOfUser, Unavailable> {
        Ok(self.core.store.counts_of_user(user_id, limit).await?)
    }

    /// Registers a listener of spans and logs: it hears of all that becomes known from now on.
    pub async fn observe(&self, observer: Observer) -> ObserverId {
        self.core.feed.observe(observer).await
    }

    /// Returns when observers were sent everything that is durable by now.
    pub async fn observers_told(&self) {
        self.core.feed.settled().await;
    }

    pub fn forget(&self, observer: ObserverId) {
        self.core.feed.forget(observer);
    }

    /// Whether writes succeed and the runtime takes new work.
    pub fn is_ready(&self) -> bool {
        self.readiness() == Readiness::Ready
    }

    /// Whether new work is taken, or what it is that keeps it out.
    pub fn readiness(&self) -> Readiness {
        match (self.core.is_draining(), self.core.store.is_writable()) {
            (true, _) => Readiness::Draining,
            (false, false) => Readiness::StoreRefusesWrites,
            (false, true) => Readiness::Ready,
        }
    }

    /// Refuses new work, gives running steps `grace`, answers those who still wait with
    /// [`Unavailable::Draining`], and returns when everything acknowledged is durable.
    pub async fn drain(&self, grace: Duration) {
        self.core.draining.store(true, Ordering::Release);
        let quiet = async {
            self.bodies_done().await;
            self.generations.working.idle().await;
        };
        if tokio::time::timeout(grace, quiet).await.is_err() {
            log::warn!(
                "steps still run after the grace of {grace:?}; they run again after the restart"
            );
        }
        // before their callers are answered and their steps are dropped: that would cancel them
        self.generations.live.close();
        self.core.ending.cancel();
        let Some(crew) = self.core.crew.get() else { return };
        let stops = crew.shards.iter().map(|shard| shard.send(StopAll));
        join_all(stops).await;
        if tokio::time::timeout(LAST_RECORDS, self.generations.working.idle()).await.is_err() {
            log::warn!("generations ended without a record of how");
        }
    }

    /// Ends the threads of the actors and closes the store. Blocks; call after
    /// [`Runtime::drain`], from a thread of one's own.
    pub fn end(self) {
        self.core.quarantine.close();
        self.arbiters.end();
        self.core.store.close();
    }

    /// Executions in memory.
    pub fn live(&self) -> usize {
        self.core.live.load(Ordering::Acquire)
    }

    /// Ends every actor without a word, as the end of the process would: for tests of recovery.
    #[doc(hidden)]
    pub async fn kill(self) {
        self.generations.live.vanish();
        let Some(crew) = self.core.crew.get() else { return };
        let ends = crew.shards.iter().map(|shard| shard.send(Vanish));
        join_all(ends).await;
        let _ = crew.scheduler.send(Vanish).await;
        let _ = crew.sweeper.send(Vanish).await;
    }

    async fn bodies_done(&self) {
        loop {
            let done = self.core.bodies_done.notified();
            if self.core.bodies.load(Ordering::Acquire) == 0 {
                return;
            }
            done.await;
        }
    }

    /// Awaits the answer to an order; an actor that dies with it gives none.
    async fn hear<T, E: From<Unavailable>>(
        &self,
        id: &ExecutionId,
        heard: oneshot::Receiver<Result<T, E>>,
    ) -> Result<T, E> {
        heard.await.unwrap_or_else(|_| {
            Err(E::from(if self.core.is_draining() {
                Unavailable::Draining { execution: Some(id.clone()) }
            } else {
                Unavailable::ActorLost
            }))
        })
    }
}
