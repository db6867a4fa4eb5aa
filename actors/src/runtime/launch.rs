//! Starting the runtime, and continuing what was running.

use std::sync::{Arc, Weak};

use actix::{Actor, Addr, ArbiterHandle};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::agent::generation::tools::ToolLimits;
use crate::agent::generation::{ActiveGenerations, GenerationDeps, GenerationRegistry};
use crate::cluster::answers::Answers;
use crate::cluster::member::follow;
use crate::commands::ExecutionCommand;
use crate::domain::fact::Recorded;
use crate::domain::plan::Plan;
use crate::domain::slot::SlotSet;
use crate::limits::RuntimeLimits;
use crate::mailbox::report;
use crate::observe::feed::FeedHandle;
use crate::ports::store::{Acknowledgement, CommitSink, Header, Store};
use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::runtime::rows::RowReads;
use crate::runtime::tending::{adopt_interrupted, tend_generations};
use crate::runtime::workflow_runs::WorkflowRuns;
use crate::runtime::{Runtime, SystemActors, bulk};
use crate::runtime_ports::RuntimePorts;
use crate::shard::arbiters::{Arbiters, Placement};
use crate::shard::ask_backfill::fill_in_asks;
use crate::shard::ask_reminders::remind;
use crate::shard::evaluation::Evaluations;
use crate::shard::messages::Committed;
use crate::shard::scheduler::Scheduler;
use crate::shard::stalls::log_stalls;
use crate::shard::supervisor::{ReportReady, Supervisor};
use crate::shard::sweeper::Sweeper;
use crate::shard::watchdog::watch;
use crate::shared::{BuiltIn, Routes, Shard, Shared};

impl Runtime {
    /// Starts arbiters, supervisors, scheduler and feed, stores the definitions, and continues
    /// what was running when the process last ended. Call from within an actix system.
    pub async fn launch(
        registry: Registry,
        ports: RuntimePorts,
        limits: RuntimeLimits,
    ) -> Result<Self, Unavailable> {
        let bulk = bulk::workflow::plan()?;
        store_definitions(registry.workflows.values().chain([&bulk]), &*ports.store).await?;
        let interrupted = ports.store.interrupt_working(ports.clock.now()).await;
        interrupted.map_err(Unavailable::from)?;
        let left = adopt_interrupted(&*ports.store).await?;

        let arbiters = Arbiters::start(limits.placement);
        let first = arbiters.handles().first().cloned().ok_or(Unavailable::ActorLost)?;
        let feed = FeedHandle::start(&first, limits.subscriber_stall_timeout);
        for observer in ports.observers.iter().cloned() {
            feed.observe(observer).await;
        }
        let evaluations = evaluations(&ports, &limits)?;
        let shared = Arc::new(Shared::new(registry, ports, limits, feed, evaluations));
        let shards: Vec<Addr<Supervisor>> = arbiters
            .handles()
            .iter()
            .enumerate()
            .map(|(index, arbiter)| {
                let shared = Arc::clone(&shared);
                Supervisor::start_in_arbiter(arbiter, move |_| Supervisor::new(shared, index))
            })
            .collect();
        for shard in &shards {
            shard.send(ReportReady).await.map_err(|_| Unavailable::ActorLost)?;
        }
        shared.store.attach(Arc::new(Sink { shared: Arc::downgrade(&shared) }));
        let set_aside =
            shared.quarantine.examine(&*shared.store, shared.limits.quarantine_after).await;
        let scheduled = Arc::clone(&shared);
        let scheduler = Scheduler::start_in_arbiter(&first, move |_| Scheduler::new(scheduled));
        let swept = Arc::clone(&shared);
        let sweeper = Sweeper::start_in_arbiter(&first, move |_| Sweeper::new(swept));
        // Set once: nothing else has `shared` yet.
        let _ = shared.routes.set(routes(&shards, &scheduler));
        let system = Arc::new(SystemActors { shards, scheduler, sweeper });

        let generations = generations(&shared);
        let _ = shared.generations.set(generations.clone());
        let (arbiters, row_reads) = (Arc::new(arbiters), RowReads::default());
        let runtime =
            Self { shared: Arc::clone(&shared), system, arbiters, generations, row_reads };
        runtime.make_known(bulk);
        start_checks(&shared);
        serve_slots(&shared, first).await;
        actix::spawn(fill_in_asks(Arc::downgrade(&shared)));
        actix::spawn(remind(Arc::downgrade(&shared)));
        for id in set_aside {
            // Loading it fails it.
            shared.deliver_when_ready(id, ExecutionCommand::Continue).await;
        }
        tend_generations(&runtime, left);
        Ok(runtime)
    }

    /// Makes the runtime known to functions of steps and tools, and its own workflow to executions.
    fn make_known(&self, bulk: Arc<Plan>) {
        self.shared.home.set(self.downgrade());
        let function = bulk::function(self.downgrade());
        let _ = self.shared.built_in.set(BuiltIn { plan: bulk, function });
    }
}

/// Returns what generations need of the runtime.
fn generations(shared: &Arc<Shared>) -> GenerationDeps {
    GenerationDeps {
        registry: shared.registry(),
        generations: Arc::clone(&shared.store) as _,
        conversations: Arc::clone(&shared.store) as _,
        clock: Arc::clone(&shared.clock),
        active: Arc::new(ActiveGenerations::default()),
        workflows: Arc::new(WorkflowRuns::new(shared)),
        tool_limits: ToolLimits::from(&shared.limits),
        compiled: Arc::default(),
        live: Arc::new(GenerationRegistry::default()),
        feed: shared.feed.clone(),
        warned: Arc::clone(&shared.warned),
        meter: Arc::clone(&shared.meter),
        evaluations: Arc::clone(&shared.evaluations),
        object_repairs: shared.limits.object_repairs,
        steps_max: shared.limits.generation_steps_max,
        bytes_max: shared.limits.generation_bytes_max,
        crash_attempts: shared.limits.machine.crash_attempts,
        left_behind: Arc::clone(&shared.left_behind),
        ask_alarm: Arc::clone(&shared.ask_alarm),
        home: shared.home.clone(),
    }
}

/// Takes the slots of this process into service: all of them, or those that the other members leave
/// to it.
async fn serve_slots(shared: &Arc<Shared>, first: ArbiterHandle) {
    if let Some(links) = shared.ownership.links() {
        links.attach(Arc::new(Answers::new(shared, first)));
    }
    match shared.ownership.members() {
        Some(members) => {
            let (joined, first_look) = oneshot::channel();
            actix::spawn(follow(Arc::downgrade(shared), Arc::clone(members), joined));
            if timeout(members.lease().length(), first_look).await.is_err() {
                log::warn!("this server has joined the others, but the store does not answer");
            }
        }
        None => shared.gain(SlotSet::all(), "the last process").await,
    }
}

/// Starts the checks for stuck executions and stalled threads.
fn start_checks(shared: &Arc<Shared>) {
    let every = shared.limits.watchdog_every;
    if !every.is_zero() {
        actix::spawn(watch(Arc::downgrade(shared), every));
    }
    match shared.limits.placement {
        Placement::Threads(_) => drop(actix::spawn(log_stalls(Arc::downgrade(shared)))),
        // The check would run on the thread that it checks.
        Placement::Here => {}
    }
}

/// Returns the addresses that every actor may send to.
fn routes(shards: &[Addr<Supervisor>], scheduler: &Addr<Scheduler>) -> Routes {
    let shard = |address: &Addr<Supervisor>| Shard {
        commands: address.clone().recipient(),
        commits: address.clone().recipient(),
        leave: address.clone().recipient(),
        busy: address.clone().recipient(),
        forget: address.clone().recipient(),
    };
    let (timers, slots) = (scheduler.clone().recipient(), scheduler.clone().recipient());
    Routes { shards: shards.iter().map(shard).collect(), timers, slots }
}

/// Starts the evaluation threads. Without them a costly evaluation would block everything else, so
/// the start of the runtime fails.
fn evaluations(ports: &RuntimePorts, limits: &RuntimeLimits) -> Result<Evaluations, Unavailable> {
    let workers = ports.workers.clone();
    let started = Evaluations::start(limits.placement, limits.expression_time_max, workers);
    started.map_err(|error| {
        let reason = format!("cannot start threads for evaluations: {error}");
        Unavailable::Store { reason: Arc::from(reason), execution: None }
    })
}

/// Stores definitions by hash; returns when they are durable.
pub(super) async fn store_definitions(
    plans: impl Iterator<Item = &Arc<Plan>>,
    store: &dyn Store,
) -> Result<(), Unavailable> {
    for plan in plans {
        let definition = serde_json::to_value(&plan.definition).unwrap_or(Value::Null);
        store.put_definition(&plan.hash, &definition).await?;
    }
    Ok(())
}

/// Passes results of the store's writer to the actors.
struct Sink {
    /// Weak: `Shared` owns the store, which owns this.
    shared: Weak<Shared>,
}

impl CommitSink for Sink {
    fn committed(&self, shard: usize, outcomes: Vec<Acknowledgement>) {
        let Some(shared) = self.shared.upgrade() else { return };
        if let Some(shard) = shared.routes.get().and_then(|routes| routes.shards.get(shard)) {
            report(&shard.commits, Committed(outcomes));
        }
    }

    fn wants_facts(&self) -> bool {
        self.shared.upgrade().is_some_and(|shared| shared.feed.is_watched())
    }

    fn publish(&self, facts: Vec<(Arc<Header>, Arc<[Recorded]>)>) {
        if let Some(shared) = self.shared.upgrade() {
            shared.feed.publish(facts);
        }
    }
}
