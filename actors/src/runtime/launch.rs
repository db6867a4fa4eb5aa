//! Starting the runtime, and continuing what was running.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::{Actor, Addr};
use serde_json::Value;

use crate::agent::generation::tools::ToolLimits;
use crate::agent::generation::{ActiveGenerations, GenerationDeps, GenerationRegistry};
use crate::commands::ExecutionCommand;
use crate::domain::fact::Recorded;
use crate::domain::plan::Plan;
use crate::domain::slot::SlotSet;
use crate::limits::RuntimeLimits;
use crate::mailbox::report;
use crate::observe::feed::FeedHandle;
use crate::ports::store::{Acknowledgement, CommitSink, Header, Row, Store};
use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::runtime::workflow_runs::WorkflowRuns;
use crate::runtime::{Runtime, SystemActors};
use crate::runtime_ports::RuntimePorts;
use crate::shard::arbiters::{Arbiters, Placement};
use crate::shard::evaluation::Evaluations;
use crate::shard::messages::Committed;
use crate::shard::scheduler::Scheduler;
use crate::shard::stalls::log_stalls;
use crate::shard::supervisor::{ReportReady, Supervisor};
use crate::shard::sweeper::Sweeper;
use crate::shard::watchdog::watch;
use crate::shared::{Routes, Shard, Shared};

/// Running executions per page when they are continued after a start.
const CONTINUE_PAGE: usize = 256;
/// Pause between pages: 25,600 executions per second.
const CONTINUE_PAUSE: Duration = Duration::from_millis(10);
/// Number of executions waiting to be read above which the next page is delayed.
const CONTINUE_WAITING_MAX: usize = 1024;
/// Delay after a failed read of a page.
const CONTINUE_AGAIN: Duration = Duration::from_secs(1);

impl Runtime {
    /// Starts arbiters, supervisors, scheduler and feed, stores the definitions, and continues
    /// what was running when the process last ended. Call from within an actix system.
    pub async fn launch(
        registry: Registry,
        ports: RuntimePorts,
        limits: RuntimeLimits,
    ) -> Result<Self, Unavailable> {
        store_definitions(registry.workflows.values(), &*ports.store).await?;
        let interrupted = ports.store.interrupt_working(ports.clock.now()).await;
        interrupted.map_err(Unavailable::from)?;

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

        let generations = GenerationDeps {
            registry: shared.registry(),
            generations: Arc::clone(&shared.store) as _,
            conversations: Arc::clone(&shared.store) as _,
            clock: Arc::clone(&shared.clock),
            active: Arc::new(ActiveGenerations::default()),
            workflows: Arc::new(WorkflowRuns::new(&shared)),
            tool_limits: ToolLimits::from(&shared.limits),
            compiled: Arc::default(),
            live: Arc::new(GenerationRegistry::default()),
            feed: shared.feed.clone(),
            meter: Arc::clone(&shared.meter),
            evaluations: Arc::clone(&shared.evaluations),
            object_repairs: shared.limits.object_repairs,
            steps_max: shared.limits.generation_steps_max,
            bytes_max: shared.limits.generation_bytes_max,
        };
        let _ = shared.generations.set(generations.clone());
        start_checks(&shared);
        for id in set_aside {
            // Loading it fails it.
            shared.deliver_when_ready(id, ExecutionCommand::Continue).await;
        }
        let runtime = Self { shared, system, arbiters: Arc::new(arbiters), generations };
        let continuing = runtime.clone();
        actix::spawn(async move {
            let count = continuing.continue_running().await;
            if count > 0 {
                log::info!(
                    "continued {count} executions that were running when the last process ended"
                );
            }
        });
        Ok(runtime)
    }

    /// Passes every running execution of the store to its supervisor, oldest first, and returns
    /// their number. Retries failed reads, since no caller would ask for these executions.
    pub(super) async fn continue_running(&self) -> usize {
        let mut after: Row = 0;
        let mut count = 0_usize;
        while !self.shared.is_draining() {
            let page = match self.shared.store.running(&SlotSet::all(), after, CONTINUE_PAGE).await
            {
                Ok(page) => page,
                Err(error) => {
                    let level = self.shared.level_of_failure(log::Level::Error);
                    log::log!(level, "cannot read running executions, trying again: {error}");
                    tokio::time::sleep(CONTINUE_AGAIN).await;
                    continue;
                }
            };
            let Some((last, _)) = page.last() else { break };
            after = *last;
            count += page.len();
            for (_, id) in page {
                self.shared.deliver_when_ready(id, ExecutionCommand::Continue).await;
            }
            // Callers come first: these executions wait in the queue of their supervisors.
            tokio::time::sleep(CONTINUE_PAUSE).await;
            while !self.shared.is_draining()
                && self.shared.memory.waiting.load(Ordering::Relaxed) > CONTINUE_WAITING_MAX
            {
                tokio::time::sleep(CONTINUE_PAUSE).await;
            }
        }
        count
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
    };
    let timers = scheduler.clone().recipient();
    Routes { shards: shards.iter().map(shard).collect(), timers }
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
