//! One process of the server: launched over the previous disk, ended in order or by a crash.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_actors::agent::{AgentDefinition, Choice};
use greenroom_actors::domain::machine::MachineLimits;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::workers::{Job, Lane, Workers};
use greenroom_actors::registry::Registry;
use greenroom_actors::{Placement, Runtime, RuntimeLimits, RuntimePorts};
use tokio::task::JoinHandle;

use crate::simulator::approvals::{PAY, pay};
use crate::simulator::bodies::{self, Model};
use crate::simulator::callers::Caller;
use crate::simulator::dice::Dice;
use crate::simulator::promises::Promises;
use crate::simulator::stage::Stage;
use crate::simulator::store::SimStore;

pub(crate) struct Process {
    pub(crate) runtime: Runtime,
    pub(crate) store: Arc<SimStore>,
    tasks: Vec<JoinHandle<()>>,
}

/// Returns the configuration, which is the same for all processes. Functions note the process that
/// calls them; it is 0 if there is one at a time.
pub(crate) fn registry(stage: &Arc<Stage>, process: u64) -> Registry {
    let helper = AgentDefinition {
        id: "helper".to_owned(),
        model: "simulated".into(),
        tools: Choice::Fixed(vec![PAY.to_owned()]),
        ..AgentDefinition::default()
    };
    Registry {
        workflows: stage.plans.clone(),
        functions: [("work".to_owned(), bodies::function(stage, process))].into(),
        agents: BTreeMap::from([("helper".to_owned(), Arc::new(helper))]),
        tools: [(PAY.to_owned(), Arc::new(pay(stage, process)))].into(),
        models: [("simulated".to_owned(), Arc::new(Model::new(stage)) as _)].into(),
        ..Registry::default()
    }
}

pub(crate) fn limits(dice: &mut Dice) -> RuntimeLimits {
    let passivate_ms = dice.pick(&[0, 100, 10_000, 300_000]);
    let crash_attempts = dice.pick(&[1, 3, 3, 3, 20]);
    let executions_live_max = dice.pick(&[2, 100_000, 100_000, 100_000]);
    let events_max = dice.pick(&[40, 100_000, 100_000, 100_000]);
    RuntimeLimits {
        placement: Placement::Here,
        passivate_after: Duration::from_millis(passivate_ms),
        machine: MachineLimits { crash_attempts, events_max, ..MachineLimits::default() },
        executions_live_max,
        ..RuntimeLimits::default()
    }
}

impl Process {
    /// Launches the only process over a disk.
    pub(crate) async fn launch(
        stage: &Arc<Stage>,
        registry: Registry,
        limits: RuntimeLimits,
        disk: MemoryStore,
    ) -> Self {
        let number = stage.process.fetch_add(1, Ordering::SeqCst);
        stage.note(&format!("process {number} begins"));
        let dice = Dice::about(stage.seed, &format!("disk {number}"));
        let store = SimStore::open(disk, Arc::clone(&stage.faults), dice);
        stage.put_disk(Arc::clone(&store.disk));
        let ports = RuntimePorts::new(Arc::clone(&store) as _, Arc::clone(&stage.clock) as _);
        Self::over(stage, (registry, limits), store, (number, 0), ports).await
    }

    /// Launches a process over a store, with these ports and the others of every process. It has a
    /// number, and one for its bodies.
    pub(crate) async fn over(
        stage: &Arc<Stage>,
        (registry, limits): (Registry, RuntimeLimits),
        store: Arc<SimStore>,
        (number, process): (u64, u64),
        ports: RuntimePorts,
    ) -> Self {
        let ports = RuntimePorts {
            external_calls: Arc::new(bodies::external_calls(stage, process)),
            workers: Some(Arc::new(SlowWorkers::of(stage, number))),
            ..ports
        };
        let runtime = Runtime::launch(registry, ports, limits).await.unwrap();
        Self { runtime, store, tasks: Vec::new() }
    }

    pub(crate) fn caller(&self, stage: &Arc<Stage>, promises: &Arc<Promises>) -> Caller {
        Caller {
            stage: Arc::clone(stage),
            promises: Arc::clone(promises),
            runtime: self.runtime.clone(),
            is_of_cluster: false,
        }
    }

    /// Runs a task beside the script, until the process ends.
    pub(crate) fn spawn<T>(&mut self, task: impl Future<Output = T> + 'static) {
        self.tasks.push(actix::spawn(async move { drop(task.await) }));
    }

    /// Returns true if all callers have replies.
    pub(crate) fn is_quiet(&self) -> bool {
        self.tasks.iter().all(JoinHandle::is_finished)
    }

    /// Crashes.
    pub(crate) async fn crash(self) -> MemoryStore {
        self.store.crash();
        let disk = self.store.reopened();
        self.vanish().await;
        disk
    }

    /// Ends as on a signal.
    pub(crate) async fn drain(self, grace: Duration) -> MemoryStore {
        self.runtime.drain(grace).await;
        self.store.close_in_order();
        let disk = self.store.reopened();
        self.vanish().await;
        disk
    }

    /// Ends, with nothing of it left but the store.
    pub(crate) async fn vanish(self) {
        self.runtime.kill().await;
        self.tasks.iter().for_each(JoinHandle::abort);
        tokio::task::yield_now().await;
    }
}

/// Maximum duration of a costly evaluation.
const EVALUATION_MS: u64 = 2_000;

/// Workers with slow evaluations, so that other commands arrive during them.
struct SlowWorkers {
    stage: Arc<Stage>,
    dice: Mutex<Dice>,
}

impl SlowWorkers {
    fn of(stage: &Arc<Stage>, process: u64) -> Self {
        let dice = Dice::about(stage.seed, &format!("evaluations {process}"));
        Self { stage: Arc::clone(stage), dice: Mutex::new(dice) }
    }
}

impl Workers for SlowWorkers {
    fn take(&self, _lane: Lane, job: Job) {
        self.stage.count("evaluated elsewhere");
        let time = Duration::from_millis(self.dice.lock().unwrap().millis(EVALUATION_MS));
        actix::spawn(async move {
            tokio::time::sleep(time).await;
            job();
        });
    }
}
