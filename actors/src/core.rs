//! What the actors of one runtime share.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use actix::Addr;
use actix::dev::SendError;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::domain::definition::WorkflowDefinition;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::{MachineLimits, Moment};
use crate::domain::plan::{Call, Plan, Step, Work};
use crate::feed::FeedHandle;
use crate::generation::GenerationDeps;
use crate::orders::{Deliver, Order};
use crate::ports::clock::Clock;
use crate::ports::meter::Meter;
use crate::ports::outside::Outside;
use crate::ports::store::Store;
use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::retention::Sweeper;
use crate::runtime::stats::Tallies;
use crate::runtime::{RuntimeLimits, RuntimePorts};
use crate::scheduler::Scheduler;
use crate::supervisor::Supervisor;

pub(crate) struct Core {
    pub(crate) registry: Registry,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) meter: Arc<dyn Meter>,
    pub(crate) outside: Arc<dyn Outside>,
    pub(crate) limits: RuntimeLimits,
    pub(crate) machine_limits: MachineLimits,
    pub(crate) feed: FeedHandle,
    /// Set once, when all actors are up.
    pub(crate) crew: OnceLock<Crew>,
    /// What agent steps run with. Set once, with the crew.
    pub(crate) generations: OnceLock<GenerationDeps>,
    pub(crate) draining: AtomicBool,
    /// Fires when the grace of a drain is over.
    pub(crate) ending: CancellationToken,
    /// Executions in memory.
    pub(crate) live: AtomicUsize,
    /// Bodies at work.
    pub(crate) bodies: AtomicUsize,
    pub(crate) tallies: Tallies,
    /// Wakes who waits for `bodies` to become 0.
    pub(crate) bodies_done: Notify,
    /// Running executions of each configured workflow.
    running: HashMap<String, Arc<AtomicUsize>>,
    /// Plans by hash: those configured now and those that older executions are pinned to.
    plans: RwLock<HashMap<Arc<str>, Arc<Plan>>>,
}

/// The long-lived actors.
pub(crate) struct Crew {
    pub(crate) shards: Vec<Addr<Supervisor>>,
    pub(crate) scheduler: Addr<Scheduler>,
    pub(crate) sweeper: Addr<Sweeper>,
}

impl Core {
    pub(crate) fn new(
        registry: Registry,
        ports: RuntimePorts,
        limits: RuntimeLimits,
        feed: FeedHandle,
    ) -> Self {
        let RuntimePorts { store, clock, meter, outside, .. } = ports;
        let running = registry.workflows.keys().map(|id| (id.clone(), Arc::default())).collect();
        let plans = registry
            .workflows
            .values()
            .map(|plan| (Arc::clone(&plan.hash), Arc::clone(plan)))
            .collect();
        let machine_limits = MachineLimits {
            crash_attempts: limits.crash_attempts,
            value_bytes_max: limits.value_bytes_max,
            events_max: limits.events_max,
        };
        Self {
            registry,
            store,
            clock,
            meter,
            outside,
            limits,
            machine_limits,
            feed,
            crew: OnceLock::new(),
            generations: OnceLock::new(),
            draining: AtomicBool::new(false),
            ending: CancellationToken::new(),
            live: AtomicUsize::new(0),
            bodies: AtomicUsize::new(0),
            tallies: Tallies::default(),
            bodies_done: Notify::new(),
            running,
            plans: RwLock::new(plans),
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// The shard of an execution: the hash of its id.
    pub(crate) fn shard_of(&self, id: &ExecutionId) -> Option<(usize, &Addr<Supervisor>)> {
        let shards = &self.crew.get()?.shards;
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let count = u64::try_from(shards.len()).ok()?;
        let index = usize::try_from(hasher.finish().checked_rem(count)?).ok()?;
        shards.get(index).map(|shard| (index, shard))
    }

    /// Hands an order to the supervisor of its execution; refuses it when there is no room.
    pub(crate) fn deliver(&self, id: ExecutionId, order: Order) {
        let Some((_, shard)) = self.shard_of(&id) else {
            order.refuse(Unavailable::Draining { execution: Some(id) });
            return;
        };
        match shard.try_send(Deliver { id, order }) {
            Ok(()) => {}
            Err(SendError::Full(Deliver { order, .. })) => {
                Tallies::add_one(&self.tallies.refused);
                order.refuse(Unavailable::Busy);
            }
            Err(SendError::Closed(Deliver { id, order })) => {
                order.refuse(Unavailable::Draining { execution: Some(id) });
            }
        }
    }

    /// The same, waiting for room: for what nobody would ask for again.
    pub(crate) async fn deliver_patiently(&self, id: ExecutionId, order: Order) {
        let Some((_, shard)) = self.shard_of(&id) else { return };
        if shard.send(Deliver { id, order }).await.is_err() {
            log::debug!("a supervisor ended before it took an order");
        }
    }

    pub(crate) fn running_of(&self, workflow_id: &str) -> Option<&Arc<AtomicUsize>> {
        self.running.get(workflow_id)
    }

    /// Running executions by workflow.
    pub(crate) fn running(&self) -> impl Iterator<Item = (&str, &AtomicUsize)> {
        self.running.iter().map(|(id, count)| (id.as_str(), &**count))
    }

    /// Runs `decide` with the moment that it is made in.
    pub(crate) fn at_moment<T>(&self, decide: impl FnOnce(&Moment<'_>) -> T) -> T {
        let moment = Moment {
            now: self.clock.now(),
            new_id: &|| self.clock.new_execution_id(),
            missing: &|step| self.missing(step),
            limits: &self.machine_limits,
        };
        decide(&moment)
    }

    /// What a step needs and cannot have now. A step that would leave this process has nothing
    /// once the process is to end: it starts after the restart.
    pub(crate) fn missing(&self, step: &Step) -> Option<String> {
        let absent = match &step.work {
            Work::Call(Call::Function(name)) => {
                (!self.registry.functions.contains_key(&**name)).then(|| format!("function {name}"))
            }
            Work::Call(Call::Tool { tool, .. }) => {
                (!self.registry.tools.contains_key(&**tool)).then(|| format!("tool {tool}"))
            }
            Work::Call(Call::Http(_) | Call::Command(_)) => None,
            Work::Agent(work) => self.missing_for_agent(&work.agent),
            Work::Workflow { workflow, .. } => {
                let is_here = self.registry.workflows.contains_key(&**workflow);
                (!is_here).then(|| format!("workflow {workflow}"))
            }
            Work::Map(_)
            | Work::When { .. }
            | Work::All(_)
            | Work::Race(_)
            | Work::ForEach { .. }
            | Work::Choice { .. }
            | Work::Loop { .. }
            | Work::Sleep { .. }
            | Work::SleepUntil { .. } => return None,
        };
        if self.is_draining() {
            return Some("the server is shutting down".to_owned());
        }
        absent.map(|what| format!("{what} is not registered"))
    }

    fn missing_for_agent(&self, id: &str) -> Option<String> {
        let Some(agent) = self.registry.agents.get(id) else { return Some(format!("agent {id}")) };
        if let Some(model) = agent.model.fixed()
            && !self.registry.models.contains_key(model)
        {
            return Some(format!("model {model}"));
        }
        let mut tools = agent.tools.fixed()?.iter();
        let absent = tools.find(|tool| !self.registry.tools.contains_key(*tool))?;
        Some(format!("tool {absent}"))
    }

    /// The plan of this hash, from memory or from the stored definition.
    pub(crate) async fn plan(&self, hash: &Arc<str>) -> Result<Arc<Plan>, Unavailable> {
        if let Some(plan) = self.known_plan(hash) {
            return Ok(plan);
        }
        let unreadable = |why: String| {
            Unavailable::Store(Arc::from(format!("definition {hash} cannot be used: {why}")))
        };
        let stored = self
            .store
            .definition(hash)
            .await
            .map_err(|error| Unavailable::Store(Arc::from(error.to_string())))?;
        let stored = stored.ok_or_else(|| unreadable("it is not stored".to_owned()))?;
        let definition: WorkflowDefinition =
            serde_json::from_value(stored).map_err(|error| unreadable(error.to_string()))?;
        let plan = Plan::compile(definition).map_err(|problems| {
            let messages = problems.into_iter().map(|problem| problem.message);
            unreadable(messages.collect::<Vec<_>>().join("; "))
        })?;
        let plan = Arc::new(plan);
        if let Ok(mut plans) = self.plans.write() {
            plans.insert(Arc::clone(hash), Arc::clone(&plan));
        }
        Ok(plan)
    }

    fn known_plan(&self, hash: &Arc<str>) -> Option<Arc<Plan>> {
        self.plans.read().ok()?.get(hash).cloned()
    }
}

/// Counts a body at work while it lives.
pub(crate) struct BodyGuard(Arc<Core>);

impl BodyGuard {
    pub(crate) fn new(core: &Arc<Core>) -> Self {
        core.bodies.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(core))
    }
}

impl Drop for BodyGuard {
    fn drop(&mut self) {
        if self.0.bodies.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.bodies_done.notify_waiters();
        }
    }
}

/// Counts something while it lives.
pub(crate) struct CountGuard(Arc<AtomicUsize>);

impl CountGuard {
    pub(crate) fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for CountGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
