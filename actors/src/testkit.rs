//! Worlds for tests: paused time, a store in memory, every actor on the test's thread.

mod links;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::Instant;

use crate::domain::definition::WorkflowDefinition;
use crate::domain::fact::Recorded;
use crate::domain::ids::ExecutionId;
use crate::domain::plan::Plan;
use crate::domain::time::Timestamp;
use crate::limits::RuntimeLimits;
use crate::observe::span::{Observer, SpanEvent};
use crate::observe::trace::execution::{SpanMemory, spans_of_record};
use crate::ports::clock::Clock;
use crate::ports::external_calls::scripted::ScriptedCalls;
use crate::ports::memory::{MemoryCrashMarks, MemoryStore};
use crate::ports::store::Header;
use crate::registry::Registry;
use crate::requests::{StartExecution, Target, TraceOrigin, Unavailable};
use crate::runtime::Runtime;
use crate::runtime_ports::RuntimePorts;
use crate::shard::arbiters::Placement;
use crate::visibility::Visibility;

pub use self::links::TestNetwork;
pub use self::workers::ScriptedWorkers;

/// Start time of every test world: 2026-01-01T00:00:00Z.
pub const EPOCH_MS: i64 = 1_767_225_600_000;

/// A clock that follows Tokio's time, paused or not, and counts ids.
#[derive(Debug)]
pub struct TestClock {
    began: Instant,
    /// The time at `began`.
    start: Timestamp,
    /// Begin of each id.
    prefix: &'static str,
    ids: AtomicU64,
}

impl TestClock {
    /// Starts at [`EPOCH_MS`]. Call from within a runtime.
    pub fn new() -> Self {
        Self::starting_at(Timestamp(EPOCH_MS))
    }

    /// Starts at this time. Call from within a runtime.
    pub fn starting_at(start: Timestamp) -> Self {
        Self { began: Instant::now(), start, prefix: "id-", ids: AtomicU64::new(0) }
    }

    /// Sets the begin of each id, which has at least four digits behind it.
    #[must_use]
    pub fn naming(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let passed = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.start.plus_ms(passed)
    }

    fn new_id(&self) -> Arc<str> {
        let number = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        Arc::from(format!("{}{number:04}", self.prefix))
    }
}

/// Returns the UUID of this number among those of a process. Neighbours are in slots that are far
/// apart.
pub fn uuid_of(process: u64, number: u64) -> Arc<str> {
    let tail = (number << 20) | ((number * 1103) & 0xfff);
    Arc::from(format!("01932f6c-9d1e-7a3b-8c{process:02x}-{tail:012x}"))
}

/// A runtime with its store and scripted surroundings.
#[derive(Debug)]
pub struct World {
    pub runtime: Runtime,
    pub store: Arc<MemoryStore>,
    pub crash_marks: Arc<MemoryCrashMarks>,
    /// Workers of this process.
    pub workers: Arc<ScriptedWorkers>,
    setup: Setup,
}

/// Parts that a restart keeps.
#[derive(Debug)]
struct Setup {
    registry: Registry,
    limits: RuntimeLimits,
    clock: Arc<TestClock>,
    observers: Vec<Observer>,
    external_calls: Option<ScriptedCalls>,
}

impl World {
    /// Launches a runtime over an empty store.
    pub async fn launch(registry: Registry, limits: RuntimeLimits) -> Self {
        Self::launch_with(registry, limits, Vec::new(), None).await
    }

    /// Launches a runtime with observers, which a restart keeps.
    pub async fn launch_observed(
        registry: Registry,
        limits: RuntimeLimits,
        observers: Vec<Observer>,
    ) -> Self {
        Self::launch_with(registry, limits, observers, None).await
    }

    /// Launches a runtime with scripted external calls, which a restart keeps.
    pub async fn launch_beside(
        registry: Registry,
        limits: RuntimeLimits,
        external_calls: ScriptedCalls,
    ) -> Self {
        Self::launch_with(registry, limits, Vec::new(), Some(external_calls)).await
    }

    async fn launch_with(
        registry: Registry,
        limits: RuntimeLimits,
        observers: Vec<Observer>,
        external_calls: Option<ScriptedCalls>,
    ) -> Self {
        let limits = RuntimeLimits { placement: Placement::Here, ..limits };
        let clock = Arc::new(TestClock::new());
        let setup = Setup { registry, limits, clock, observers, external_calls };
        Self::over(MemoryStore::new(), MemoryCrashMarks::default(), setup).await
    }

    /// Kills the process and launches another one over the same store.
    pub async fn restart(self) -> Self {
        // copied first: a killed process records nothing more
        let (store, crash_marks) = (self.store.reopened(), self.crash_marks.reopened());
        self.runtime.kill().await;
        Self::over(store, crash_marks, self.setup).await
    }

    async fn over(store: MemoryStore, crash_marks: MemoryCrashMarks, setup: Setup) -> Self {
        let (store, crash_marks) = (Arc::new(store), Arc::new(crash_marks));
        let workers = Arc::new(ScriptedWorkers::default());
        let mut ports = RuntimePorts {
            observers: setup.observers.clone(),
            crash_marks: Arc::clone(&crash_marks) as _,
            workers: Some(Arc::clone(&workers) as _),
            ..RuntimePorts::new(Arc::clone(&store) as _, Arc::clone(&setup.clock) as _)
        };
        if let Some(external_calls) = &setup.external_calls {
            ports.external_calls = Arc::new(external_calls.clone());
        }
        let runtime = launch(&setup.registry, ports, &setup.limits).await;
        Self { runtime, store, crash_marks, workers, setup }
    }

    /// Replaces the registry, also for later restarts.
    pub async fn exchange(&mut self, registry: Registry) -> Result<(), Unavailable> {
        self.setup.registry = registry.clone();
        self.runtime.exchange(registry).await
    }

    /// Returns the number of executions in memory.
    pub fn live(&self) -> usize {
        self.runtime.live()
    }
}

async fn launch(registry: &Registry, ports: RuntimePorts, limits: &RuntimeLimits) -> Runtime {
    Runtime::launch(registry.clone(), ports, limits.clone())
        .await
        .unwrap_or_else(|error| unreachable!("a store in memory takes a runtime: {error}"))
}

/// Returns a registry of these workflows.
pub fn registry_of(definitions: impl IntoIterator<Item = WorkflowDefinition>) -> Registry {
    let plans = definitions.into_iter().map(|definition| {
        let plan = Plan::compile(definition)
            .unwrap_or_else(|problems| unreachable!("a test's definition: {problems:?}"));
        (plan.definition.id.clone(), Arc::new(plan))
    });
    Registry { workflows: plans.collect(), ..Registry::default() }
}

/// Returns the spans of an execution with these commits, first as published commit by commit, then
/// as derived from the whole record.
pub fn spans_of_commits(
    header: &Arc<Header>,
    commits: &[Vec<Recorded>],
) -> (Vec<SpanEvent>, Vec<SpanEvent>) {
    let mut memory = SpanMemory::default();
    let live = commits.iter().flat_map(|facts| memory.apply(header, facts)).collect();
    (live, spans_of_record(header, &commits.concat()))
}

/// Returns a plain start.
pub fn start(workflow: &str, id: &str, input: Value) -> StartExecution {
    StartExecution {
        workflow_id: workflow.to_owned(),
        execution_id: Some(ExecutionId::trusted(id)),
        input,
        user_id: None,
        conversation_id: None,
        context: Map::new(),
        idempotency: None,
        trace: TraceOrigin::New,
    }
}

/// Returns the execution of this id, with full visibility.
pub fn target(workflow: &str, id: &str) -> Target {
    let (workflow_id, execution_id) = (workflow.to_owned(), ExecutionId::trusted(id));
    Target { workflow_id, execution_id, visibility: Visibility::Everything }
}

/// Lets time pass, and tasks react.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
