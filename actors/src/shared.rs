//! State shared by the actors of one runtime.

mod answer_check;
mod bodies;
mod current;
mod outage;
mod unreadable_asks;

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, RwLock};

use actix::Recipient;
use actix::dev::SendError;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::agent::generation::GenerationDeps;
use crate::agent::generation::left_behind::LeftBehind;
use crate::ask_alarm::AskAlarm;
use crate::cluster::ownership::Ownership;
use crate::commands::{Deliver, ExecutionCommand};
use crate::counters::Counters;
use crate::domain::definition::{Called, WorkflowDefinition};
use crate::domain::effort::Budget;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::Moment;
use crate::domain::plan::{Plan, Step, WorkClass};
use crate::domain::slot::slot_of;
use crate::function::StepFunction;
use crate::home::Home;
use crate::limits::RuntimeLimits;
use crate::observe::ask_news::AskFeed;
use crate::observe::blocked::Warned;
use crate::observe::feed::FeedHandle;
use crate::ports::answer_guard::AnswerGuard;
use crate::ports::clock::Clock;
use crate::ports::external_calls::ExternalCalls;
use crate::ports::meter::Meter;
use crate::ports::store::Store;
use crate::registry::{Missing, Registry};
use crate::requests::Unavailable;
use crate::runtime_ports::RuntimePorts;
use crate::shard::evaluation::Evaluations;
use crate::shard::memory_budget::MemoryBudget;
use crate::shard::messages::{
    BusySlots, Committed, ForgetUser, LeaveSlots, SlotsChanged, TimerArmed,
};
use crate::shard::pulse::Pulse;
use crate::shard::quarantine::Quarantine;
use crate::shard::stuck::Stuck;

use self::bodies::Bodies;
use self::current::Current;
use self::outage::Outage;
use self::unreadable_asks::UnreadableAsks;

pub(crate) use answer_check::NotPassed;
pub(crate) use bodies::BodyGuard;
pub(crate) use outage::{OutageWatch, refusal};

pub(crate) struct Shared {
    pub(crate) current: Current,
    pub(crate) ownership: Ownership,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) meter: Arc<dyn Meter>,
    pub(crate) external_calls: Arc<dyn ExternalCalls>,
    pub(crate) answer_guard: Option<Arc<dyn AnswerGuard>>,
    /// Places for answers that the program checks.
    pub(crate) answer_checks: Semaphore,
    /// Steps and tools that were warned of, since they block their thread.
    pub(crate) warned: Arc<Warned>,
    pub(crate) limits: RuntimeLimits,
    /// Threads for evaluations that cost more than a turn.
    pub(crate) evaluations: Arc<Evaluations>,
    pub(crate) pulse: Pulse,
    pub(crate) quarantine: Quarantine,
    pub(crate) feed: FeedHandle,
    pub(crate) ask_feed: AskFeed,
    /// Time of what is due next of asks.
    pub(crate) ask_alarm: Arc<AskAlarm>,
    pub(crate) unreadable_asks: UnreadableAsks,
    /// The workflow of bulk operations. Set once, before executions continue.
    pub(crate) built_in: OnceLock<BuiltIn>,
    /// Notified when generations of another process were left behind.
    pub(crate) abandoned: Arc<Notify>,
    /// Generations of this process that can continue and could not yet.
    pub(crate) left_behind: Arc<LeftBehind>,
    pub(crate) routes: OnceLock<Routes>,
    /// Dependencies of generations, without the registry. Set once, with the routes.
    pub(crate) generations: OnceLock<GenerationDeps>,
    pub(crate) outage: Outage,
    pub(crate) draining: AtomicBool,
    /// Fires when the grace period of a drain ends.
    pub(crate) ending: CancellationToken,
    /// Executions in memory.
    pub(crate) live: AtomicUsize,
    /// Memory that they hold, and its limit.
    pub(crate) memory: Arc<MemoryBudget>,
    /// Running bodies.
    pub(crate) bodies: Arc<Bodies>,
    pub(crate) counters: Counters,
    /// Findings of the watchdog.
    pub(crate) stuck: RwLock<Stuck>,
    /// Plans by hash: those configured now and those that older executions are pinned to.
    plans: RwLock<HashMap<Arc<str>, Arc<Plan>>>,
    /// The runtime, for functions of steps and tools.
    pub(crate) home: Home,
}

/// Workflow that belongs to the runtime, and the function of its steps, which has the same name.
pub(crate) struct BuiltIn {
    pub(crate) plan: Arc<Plan>,
    pub(crate) function: StepFunction,
}

/// Addresses that every actor may send to. Set once, when all actors are up.
pub(crate) struct Routes {
    /// Supervisors, by the number of their shard.
    pub(crate) shards: Vec<Shard>,
    pub(crate) timers: Recipient<TimerArmed>,
    /// The scheduler, for changes of the slots that are served.
    pub(crate) slots: Recipient<SlotsChanged>,
}

/// Addresses of one supervisor.
pub(crate) struct Shard {
    pub(crate) commands: Recipient<Deliver>,
    pub(crate) commits: Recipient<Committed>,
    pub(crate) leave: Recipient<LeaveSlots>,
    pub(crate) busy: Recipient<BusySlots>,
    pub(crate) forget: Recipient<ForgetUser>,
}

impl Shared {
    pub(crate) fn new(
        registry: Registry,
        ports: RuntimePorts,
        limits: RuntimeLimits,
        feed: FeedHandle,
        evaluations: Evaluations,
    ) -> Self {
        let RuntimePorts {
            store,
            members,
            links,
            crash_marks,
            clock,
            meter,
            external_calls,
            answer_guard,
            host,
            ..
        } = ports;
        let plans = registry
            .workflows
            .values()
            .map(|plan| (Arc::clone(&plan.hash), Arc::clone(plan)))
            .collect();
        Self {
            built_in: OnceLock::new(),
            abandoned: Arc::default(),
            left_behind: Arc::default(),
            unreadable_asks: UnreadableAsks::default(),
            current: Current::new(registry),
            ownership: Ownership::new(members, links),
            evaluations: Arc::new(evaluations),
            pulse: Pulse::of(limits.placement.threads()),
            quarantine: Quarantine::new(crash_marks),
            memory: Arc::new(MemoryBudget::new(limits.executions_memory_max)),
            store,
            clock,
            meter,
            external_calls,
            answer_guard,
            answer_checks: Semaphore::new(limits.answer_checks_max),
            warned: Arc::default(),
            limits,
            feed,
            ask_feed: AskFeed::default(),
            ask_alarm: Arc::default(),
            routes: OnceLock::new(),
            generations: OnceLock::new(),
            outage: Outage::default(),
            draining: AtomicBool::new(false),
            ending: CancellationToken::new(),
            live: AtomicUsize::new(0),
            bodies: Arc::default(),
            counters: Counters::default(),
            stuck: RwLock::default(),
            plans: RwLock::new(plans),
            home: Home::of(host),
        }
    }

    /// Returns the plan of a new execution.
    pub(crate) fn plan_to_start(&self, workflow_id: &str) -> Option<Arc<Plan>> {
        let registered = self.registry().workflows.get(workflow_id).cloned();
        registered.or_else(|| Some(Arc::clone(&self.built_in(workflow_id)?.plan)))
    }

    fn built_in(&self, name: &str) -> Option<&BuiltIn> {
        self.built_in.get().filter(|it| it.plan.definition.id == name)
    }

    /// Returns the function of the built-in workflow, by its name.
    pub(crate) fn built_in_function(&self, name: &str) -> Option<StepFunction> {
        Some(Arc::clone(&self.built_in(name)?.function))
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Returns the refusal for exhausted memory, and counts it.
    pub(crate) fn no_memory(&self) -> Unavailable {
        self.memory.note_refusal();
        Unavailable::NoMemory
    }

    /// Returns the shard of an execution, by the hash of its id.
    pub(crate) fn shard_of(&self, id: &ExecutionId) -> Option<(usize, &Recipient<Deliver>)> {
        let shards = &self.routes.get()?.shards;
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        let count = u64::try_from(shards.len()).ok()?;
        let index = usize::try_from(hasher.finish().checked_rem(count)?).ok()?;
        shards.get(index).map(|shard| (index, &shard.commands))
    }

    /// Returns the id of a new execution: the chosen one, or one in a slot that this process
    /// serves, so that nothing is sent to another.
    pub(crate) fn execution_id(&self, chosen: Option<ExecutionId>) -> ExecutionId {
        if let Some(id) = chosen {
            return id;
        }
        let id = self.clock.new_execution_id();
        if self.ownership.serves(&id) {
            return id;
        }
        // a process that serves nothing leaves it to another one
        let slot = self.ownership.slot_near(slot_of(&id));
        slot.map_or(id, |slot| self.clock.new_execution_id_in(slot))
    }

    /// Returns the id of a new execution in the slot of another one, so that what undoes a child of
    /// both is found by both. Without links to the server of that slot: in one of this process.
    pub(crate) fn id_near(&self, other: &ExecutionId) -> ExecutionId {
        if self.ownership.serves(other) || self.ownership.links().is_some() {
            return self.clock.new_execution_id_in(slot_of(other));
        }
        self.execution_id(None)
    }

    /// Notifies the scheduler that other slots are served.
    pub(crate) async fn announce_slots(&self) {
        let Some(routes) = self.routes.get() else { return };
        // an error: the scheduler has ended
        let _ = routes.slots.send(SlotsChanged).await;
    }

    /// Sends a command to the supervisor of its execution; refuses it when the mailbox is full, or
    /// when this process cannot know whether it still serves the execution.
    pub(crate) fn deliver(&self, id: ExecutionId, command: ExecutionCommand) {
        // callers would not repeat the patient ones; what follows from them waits for the store
        if !self.ownership.is_believed() && !command.is_patient() {
            command.refuse(refusal(None));
            return;
        }
        let Some((_, shard)) = self.shard_of(&id) else {
            command.refuse(Unavailable::Draining { execution: Some(id) });
            return;
        };
        match shard.try_send(Deliver { id, command }) {
            Ok(()) => {}
            Err(SendError::Full(Deliver { command, .. })) => {
                Counters::add_one(&self.counters.refused);
                command.refuse(Unavailable::Busy { execution: None });
            }
            Err(SendError::Closed(Deliver { id, command })) => {
                command.refuse(Unavailable::Draining { execution: Some(id) });
            }
        }
    }

    /// Sends a command and waits for room: for commands that no caller would repeat.
    pub(crate) async fn deliver_when_ready(&self, id: ExecutionId, command: ExecutionCommand) {
        let Some((_, shard)) = self.shard_of(&id) else { return };
        if shard.send(Deliver { id, command }).await.is_err() {
            log::debug!("a supervisor ended before it took a command");
        }
    }

    /// Returns the current registry. Take it once per decision: the next call may return another.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.current.now().registry)
    }

    pub(crate) fn running_of(&self, workflow_id: &str) -> Option<Arc<AtomicUsize>> {
        self.current.now().running_of(workflow_id).cloned()
    }

    /// Returns the dependencies of a new generation; it keeps them until it ends.
    pub(crate) fn generation_deps(&self) -> Option<GenerationDeps> {
        let now = self.current.now();
        let (registry, compiled) = (Arc::clone(&now.registry), Arc::clone(&now.compiled));
        Some(GenerationDeps { registry, compiled, ..self.generations.get()?.clone() })
    }

    /// Runs `decide` with the current moment of an execution, within the budget of a turn.
    pub(crate) fn at_moment<T>(
        &self,
        execution: &ExecutionId,
        decide: impl FnOnce(&Moment<'_>) -> T,
    ) -> T {
        self.at_moment_within(execution, &Budget::turn(), decide)
    }

    /// Runs `decide` with the current moment of an execution, within the given budget. Children get
    /// ids in the execution's slot, so that a family stays together.
    pub(crate) fn at_moment_within<T>(
        &self,
        execution: &ExecutionId,
        budget: &Budget,
        decide: impl FnOnce(&Moment<'_>) -> T,
    ) -> T {
        let moment = Moment {
            now: self.clock.now(),
            new_id: &|| self.clock.new_execution_id_in(slot_of(execution)),
            missing: &|step| self.missing(step),
            limits: &self.limits.machine,
            budget,
            closures: &|| self.registry().closures.clone(),
        };
        decide(&moment)
    }

    /// Returns the reason why a step cannot start now, if any. While draining, no step that would
    /// leave this process starts: it starts after the restart.
    pub(crate) fn missing(&self, step: &Step) -> Option<String> {
        match step.work.class() {
            WorkClass::Outside | WorkClass::Child => {}
            WorkClass::Pure | WorkClass::Container(_) | WorkClass::Timer => return None,
        }
        let missing = step.work.called().and_then(|called| match called {
            Called::Function(name) => self.note_missing(Missing::Function(Arc::clone(name))),
            Called::Tool(name) => self.note_missing(Missing::Tool(Arc::clone(name))),
            Called::Agent(id) => self.missing_for_agent(id),
            Called::Workflow(id) => self.note_missing(Missing::Workflow(Arc::clone(id))),
        });
        if self.is_draining() {
            return Some("the server is shutting down".to_owned());
        }
        missing.map(|missing| missing.to_string())
    }

    /// Returns where steps run again that are interrupted by the end of this process.
    pub(crate) fn where_next(&self) -> &'static str {
        match self.ownership.members() {
            Some(_) => "at another server",
            None => "after the restart",
        }
    }

    /// Returns the name if the registry lacks it, and notes that an execution waits for it.
    pub(crate) fn note_missing(&self, name: Missing) -> Option<Missing> {
        let is_built_in =
            || matches!(&name, Missing::Function(name) if self.built_in(name).is_some());
        if self.registry().has(&name) || is_built_in() {
            return None;
        }
        self.current.note_missing(name)
    }

    /// Returns and notes the first thing that an agent lacks.
    pub(crate) fn missing_for_agent(&self, id: &str) -> Option<Missing> {
        let missing = self.registry().missing_for_agent(id)?;
        self.current.note_missing(missing)
    }

    /// Replaces the registry. Its definitions are already stored.
    pub(crate) fn exchange(&self, registry: Registry) {
        let now = self.current.exchange(registry);
        let Ok(mut plans) = self.plans.write() else { return };
        // what no live execution is pinned to can be read from the store again
        plans.retain(|_, plan| Arc::strong_count(plan) > 1);
        let configured = now.registry.workflows.values();
        plans.extend(configured.map(|plan| (Arc::clone(&plan.hash), Arc::clone(plan))));
    }

    /// Returns the plan of this hash, from memory or from the stored definition.
    pub(crate) async fn plan(&self, hash: &Arc<str>) -> Result<Arc<Plan>, Unavailable> {
        if let Some(plan) = self.known_plan(hash) {
            return Ok(plan);
        }
        let unreadable = |why: String| {
            self.corrupt(format!("definition {hash}"), &format!("it cannot be used: {why}"))
        };
        let stored = self.store.definition(hash).await?;
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

    /// Logs and counts a record that can be read but not used.
    pub(crate) fn corrupt(&self, record: String, why: &str) -> Unavailable {
        self.meter.met_defect();
        log::error!("the record of {record} is corrupt: {why}");
        Unavailable::Corrupt(Arc::from(record))
    }

    fn known_plan(&self, hash: &Arc<str>) -> Option<Arc<Plan>> {
        self.plans.read().ok()?.get(hash).cloned()
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
