//! Several processes over one store, in paused time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use greenroom_actors::domain::cluster::NodeId;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::clock::Clock;
use greenroom_actors::ports::members::Members;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{Executions as _, Status};
use greenroom_actors::registry::Registry;
use greenroom_actors::requests::{ResumeError, StartExecution, Target, Unavailable};
use greenroom_actors::testkit::{TestClock, TestNetwork, pass, registry_of, start, uuid_of};
use greenroom_actors::visibility::Visibility;
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use serde_json::json;

use crate::workflows::{Calls, ask, function, map, resume, run, sleep, with_functions, workflow};

pub(crate) const LEASE: Duration = Duration::from_secs(6);
/// Time in which slots are taken over from a process that is gone, and some more.
pub(crate) const TAKEN_OVER: Duration = Duration::from_secs(8);
/// Time in which slots are shared out after a process joins.
pub(crate) const SHARED_OUT: Duration = Duration::from_secs(120);

/// A clock whose ids are UUIDs, so that they have slots; those of one process differ from those of
/// another.
struct UuidClock {
    clock: TestClock,
    process: u64,
    ids: AtomicU64,
}

impl Clock for UuidClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn new_id(&self) -> Arc<str> {
        uuid_of(self.process, self.ids.fetch_add(1, Ordering::Relaxed))
    }
}

/// Processes that share a store.
pub(crate) struct Cluster {
    pub(crate) disk: MemoryStore,
    pub(crate) calls: Calls,
    pub(crate) registry: Registry,
    pub(crate) processes: AtomicU64,
    /// `None`: the processes have no connections to each other.
    pub(crate) network: Option<TestNetwork>,
    pub(crate) limits: RuntimeLimits,
}

pub(crate) struct Process {
    pub(crate) runtime: Runtime,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) node: NodeId,
    pub(crate) network: Option<TestNetwork>,
}

impl Cluster {
    pub(crate) fn new() -> Self {
        tokio::time::pause();
        let definitions = [
            workflow("w", vec![ask("manager"), map("z", json!(1))]),
            workflow("naps", vec![sleep("nap", 3_600_000), map("z", json!(1))]),
            workflow("works", vec![run("first", "slow"), run("second", "slow")]),
            workflow("toils", vec![run("first", "long"), run("second", "long")]),
            workflow("drags", vec![run("only", "very long")]),
            workflow("asks", vec![ask("manager"), run("first", "long"), run("second", "long")]),
        ];
        let calls = Calls::default();
        let mut registry = with_functions(registry_of(definitions), &calls);
        for (name, seconds) in [("long", 5), ("very long", 20)] {
            let counted = calls.clone();
            let lasting = function(move |_| {
                counted.add_one();
                async move {
                    pass(Duration::from_secs(seconds)).await;
                    Ok(json!(name).into())
                }
            });
            registry.functions.insert(name.to_owned(), lasting);
        }
        let processes = AtomicU64::new(0);
        let limits = RuntimeLimits { placement: Placement::Here, ..RuntimeLimits::default() };
        Self { disk: MemoryStore::new(), calls, registry, processes, network: None, limits }
    }

    /// Returns a cluster of connected processes with this registry.
    pub(crate) fn linked_with(registry: Registry) -> Self {
        Self { registry, ..Self::linked() }
    }

    /// Returns a cluster whose processes are connected.
    pub(crate) fn linked() -> Self {
        Self { network: Some(TestNetwork::default()), ..Self::new() }
    }

    pub(crate) async fn join(&self, name: &str) -> Process {
        self.join_as(name, |members| members).await
    }

    /// Launches a process that knows the members through something else.
    pub(crate) async fn join_as(
        &self,
        name: &str,
        wrapped: impl FnOnce(Arc<dyn Members>) -> Arc<dyn Members>,
    ) -> Process {
        let store = Arc::new(self.disk.join(name, LEASE));
        let process = self.processes.fetch_add(1, Ordering::Relaxed);
        let clock = UuidClock { clock: TestClock::new(), process, ids: AtomicU64::new(0) };
        let members = store.members().unwrap();
        let node = members.own();
        let network = self.network.clone();
        let ports = RuntimePorts {
            members: Some(wrapped(members)),
            links: network.as_ref().map(|network| network.links_of(node)),
            ..RuntimePorts::new(Arc::clone(&store) as _, Arc::new(clock))
        };
        let (registry, limits) = (self.registry.clone(), self.limits.clone());
        let runtime = Runtime::launch(registry, ports, limits).await.unwrap();
        Process { runtime, store, node, network }
    }

    /// Launches processes that have shared the slots out.
    pub(crate) async fn of<const N: usize>(&self, names: [&str; N]) -> [Process; N] {
        let mut processes = Vec::new();
        for name in names {
            processes.push(self.join(name).await);
        }
        pass(SHARED_OUT).await;
        processes.try_into().ok().unwrap()
    }

    /// Cuts the connection of two processes.
    pub(crate) fn cut(&self, one: &Process, other: &Process) {
        self.network.as_ref().unwrap().cut(one.node, other.node);
    }

    /// Connects two processes again.
    pub(crate) fn heal(&self, one: &Process, other: &Process) {
        self.network.as_ref().unwrap().heal(one.node, other.node);
    }

    pub(crate) async fn status(&self, id: &ExecutionId) -> Status {
        self.disk.describe(id).await.unwrap().unwrap().status
    }
}

impl Process {
    /// Starts an execution in a slot of this process; returns its id when it waits.
    pub(crate) async fn start(&self, workflow: &str) -> ExecutionId {
        self.runtime.execute(new(workflow)).await.unwrap().execution_id
    }

    /// Starts an execution and does not wait for it.
    pub(crate) async fn begin(&self, workflow: &'static str) -> ExecutionId {
        let known = self.running().await;
        let runtime = self.runtime.clone();
        actix::spawn(async move { drop(runtime.execute(new(workflow)).await) });
        pass(Duration::from_millis(10)).await;
        let running = self.running().await;
        running.into_iter().find(|id| !known.contains(id)).unwrap()
    }

    pub(crate) async fn running(&self) -> Vec<ExecutionId> {
        let all = SlotSet::all();
        let rows = self.store.running(&all, 0, 1000).await.unwrap();
        rows.into_iter().map(|(_, id)| id).collect()
    }

    pub(crate) async fn resume(&self, id: &ExecutionId) -> Result<Status, ResumeError> {
        self.resume_of("w", id).await
    }

    pub(crate) async fn resume_of(
        &self,
        workflow: &str,
        id: &ExecutionId,
    ) -> Result<Status, ResumeError> {
        let answer = resume(json!({ "approved": 1 }));
        self.runtime.resume(&target(workflow, id), answer).await.map(|outcome| outcome.status())
    }

    /// Ends the process without a word. (Its node is silent when the last handle is dropped.)
    pub(crate) async fn kill(self) {
        self.network.inspect(|network| network.remove(self.node));
        self.runtime.kill().await;
    }
}

/// Returns a start whose id is made by the process.
pub(crate) fn new(workflow: &str) -> StartExecution {
    StartExecution { execution_id: None, ..start(workflow, "", json!({})) }
}

pub(crate) fn target(workflow: &str, id: &ExecutionId) -> Target {
    let (workflow_id, execution_id) = (workflow.to_owned(), id.clone());
    Target { workflow_id, execution_id, visibility: Visibility::Everything }
}

pub(crate) const MOVED: Unavailable = Unavailable::Moved { execution: None };
