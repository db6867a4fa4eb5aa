//! A world for tests: paused time, a store in memory, every actor on the test's own thread.

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

pub use self::workers::ScriptedWorkers;

/// The time at which every test world begins: 2026-01-01T00:00:00Z.
pub const EPOCH_MS: i64 = 1_767_225_600_000;

/// Follows Tokio's time, paused or not, and counts ids.
#[derive(Debug)]
pub struct TestClock {
    start: Instant,
    ids: AtomicU64,
}

impl TestClock {
    /// Begins now, at [`EPOCH_MS`]. Call from within a runtime.
    pub fn new() -> Self {
        Self { start: Instant::now(), ids: AtomicU64::new(0) }
    }
}

impl Default for TestClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let passed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        Timestamp(EPOCH_MS).plus_ms(passed)
    }

    fn new_id(&self) -> Arc<str> {
        Arc::from(format!("id-{:04}", self.ids.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// A runtime and what it stands on.
#[derive(Debug)]
pub struct World {
    pub runtime: Runtime,
    pub store: Arc<MemoryStore>,
    pub crash_marks: Arc<MemoryCrashMarks>,
    /// Those of this process.
    pub workers: Arc<ScriptedWorkers>,
    registry: Registry,
    limits: RuntimeLimits,
    clock: Arc<TestClock>,
    observers: Vec<Observer>,
    external_calls: Option<ScriptedCalls>,
}

impl World {
    /// Launches a runtime over an empty store.
    pub async fn launch(registry: Registry, limits: RuntimeLimits) -> Self {
        Self::launch_observed(registry, limits, Vec::new()).await
    }

    /// Launches a runtime that these listen to, as they do to those that follow it.
    pub async fn launch_observed(
        registry: Registry,
        limits: RuntimeLimits,
        observers: Vec<Observer>,
    ) -> Self {
        Self::launch_with(registry, limits, observers, None).await
    }

    /// Launches a runtime that calls this, as do those that follow it.
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
        let store = Arc::new(MemoryStore::new());
        let clock = Arc::new(TestClock::new());
        let limits = RuntimeLimits { placement: Placement::Here, ..limits };
        let crash_marks = Arc::new(MemoryCrashMarks::default());
        let workers = Arc::new(ScriptedWorkers::default());
        let mut ports = ports(&store, &crash_marks, &clock, &observers, external_calls.as_ref());
        ports.workers = Some(Arc::clone(&workers) as _);
        let runtime = launch(&registry, ports, &limits).await;
        Self {
            runtime,
            store,
            crash_marks,
            workers,
            registry,
            limits,
            clock,
            observers,
            external_calls,
        }
    }

    /// Another process over the same store: what the first had in memory is gone.
    pub async fn restart(self) -> Self {
        let Self { runtime, store, crash_marks, registry, .. } = self;
        let Self { limits, clock, observers, external_calls, .. } = self;
        // Before the end: a process that is killed records nothing more.
        let store = Arc::new(store.reopened());
        let crash_marks = Arc::new(crash_marks.reopened());
        runtime.kill().await;
        let workers = Arc::new(ScriptedWorkers::default());
        let mut ports = ports(&store, &crash_marks, &clock, &observers, external_calls.as_ref());
        ports.workers = Some(Arc::clone(&workers) as _);
        let runtime = launch(&registry, ports, &limits).await;
        Self {
            runtime,
            store,
            crash_marks,
            workers,
            registry,
            limits,
            clock,
            observers,
            external_calls,
        }
    }

    /// Another registry, here and after a restart.
    pub async fn exchange(&mut self, registry: Registry) -> Result<(), Unavailable> {
        self.registry = registry.clone();
        self.runtime.exchange(registry).await
    }

    /// Executions in memory.
    pub fn live(&self) -> usize {
        self.runtime.live()
    }
}

fn ports(
    store: &Arc<MemoryStore>,
    crash_marks: &Arc<MemoryCrashMarks>,
    clock: &Arc<TestClock>,
    observers: &[Observer],
    external_calls: Option<&ScriptedCalls>,
) -> RuntimePorts {
    let ports = RuntimePorts {
        observers: observers.to_vec(),
        crash_marks: Arc::clone(crash_marks) as _,
        ..RuntimePorts::new(Arc::clone(store) as _, Arc::clone(clock) as _)
    };
    match external_calls {
        Some(external_calls) => {
            RuntimePorts { external_calls: Arc::new(external_calls.clone()), ..ports }
        }
        None => ports,
    }
}

async fn launch(registry: &Registry, ports: RuntimePorts, limits: &RuntimeLimits) -> Runtime {
    Runtime::launch(registry.clone(), ports, limits.clone())
        .await
        .unwrap_or_else(|error| unreachable!("a store in memory takes a runtime: {error}"))
}

/// A registry of these workflows, written as JSON definitions.
pub fn registry_of(definitions: impl IntoIterator<Item = WorkflowDefinition>) -> Registry {
    let plans = definitions.into_iter().map(|definition| {
        let plan = Plan::compile(definition)
            .unwrap_or_else(|problems| unreachable!("a test's definition: {problems:?}"));
        (plan.definition.id.clone(), Arc::new(plan))
    });
    Registry { workflows: plans.collect(), ..Registry::default() }
}

/// The spans of an execution whose facts were recorded in these commits: as they are told live,
/// commit by commit, and as they are read from the whole record.
pub fn spans_of_commits(
    header: &Arc<Header>,
    commits: &[Vec<Recorded>],
) -> (Vec<SpanEvent>, Vec<SpanEvent>) {
    let mut memory = SpanMemory::default();
    let live = commits.iter().flat_map(|facts| memory.hear(header, facts)).collect();
    (live, spans_of_record(header, &commits.concat()))
}

/// A plain start.
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

/// The execution of this id, for somebody who sees everything.
pub fn target(workflow: &str, id: &str) -> Target {
    let (workflow_id, execution_id) = (workflow.to_owned(), ExecutionId::trusted(id));
    Target { workflow_id, execution_id, visibility: Visibility::Everything }
}

/// Lets time pass, and everybody act on it.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}
