//! Bringing the runtime up, and going on with what was running.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::{Actor, Addr};
use serde_json::Value;

use crate::arbiters::{Arbiters, Placement};
use crate::core::{Core, Crew};
use crate::domain::fact::Recorded;
use crate::domain::plan::Plan;
use crate::evaluation::Evaluations;
use crate::feed::FeedHandle;
use crate::generation::tools::ToolLimits;
use crate::generation::{GenerationDeps, Live, Working};
use crate::orders::{Order, unavailable};
use crate::ports::store::{Acknowledgement, CommitSink, Header, Row, Store};
use crate::pulse::listen;
use crate::registry::Registry;
use crate::requests::Unavailable;
use crate::retention::Sweeper;
use crate::runtime::workflow_runs::WorkflowRuns;
use crate::runtime::{Runtime, RuntimeLimits, RuntimePorts};
use crate::scheduler::Scheduler;
use crate::supervisor::{Committed, ReportReady, Supervisor};
use crate::watchdog::watch;

/// Running executions taken up at once after a start.
const CONTINUE_PAGE: usize = 256;
/// Pause before the next ones: 25,600 in a second.
const CONTINUE_PAUSE: Duration = Duration::from_millis(10);
/// Those that may wait to be read before more are looked for.
const CONTINUE_WAITING_MAX: usize = 1024;
/// Pause after a failure to read which there are.
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
        interrupted.map_err(|error| unavailable(&error))?;

        let arbiters = Arbiters::start(limits.placement);
        let first = arbiters.handles().first().cloned().ok_or(Unavailable::ActorLost)?;
        let feed = FeedHandle::start(&first, limits.subscriber_stall);
        for observer in ports.observers.iter().cloned() {
            feed.observe(observer).await;
        }
        let evaluations = evaluations(&ports, &limits)?;
        let core = Arc::new(Core::new(registry, ports, limits, feed, evaluations));
        let shards: Vec<Addr<Supervisor>> = arbiters
            .handles()
            .iter()
            .enumerate()
            .map(|(index, arbiter)| {
                let core = Arc::clone(&core);
                Supervisor::start_in_arbiter(arbiter, move |_| Supervisor::new(core, index))
            })
            .collect();
        for shard in &shards {
            shard.send(ReportReady).await.map_err(|_| Unavailable::ActorLost)?;
        }
        core.store.attach(Arc::new(Sink { core: Arc::downgrade(&core) }));
        let set_aside = core.quarantine.examine(&*core.store, core.limits.quarantine_after).await;
        let scheduled = Arc::clone(&core);
        let scheduler = Scheduler::start_in_arbiter(&first, move |_| Scheduler::new(scheduled));
        let swept = Arc::clone(&core);
        let sweeper = Sweeper::start_in_arbiter(&first, move |_| Sweeper::new(swept));
        // Set once, here: nobody else has the core yet.
        let _ = core.crew.set(Crew { shards, scheduler, sweeper });

        let generations = GenerationDeps {
            registry: core.registry(),
            generations: Arc::clone(&core.store) as _,
            conversations: Arc::clone(&core.store) as _,
            clock: Arc::clone(&core.clock),
            working: Arc::new(Working::default()),
            workflows: Arc::new(WorkflowRuns::new(&core)),
            tool_limits: ToolLimits::from(&core.limits),
            kept: Arc::default(),
            live: Arc::new(Live::default()),
            feed: core.feed.clone(),
            meter: Arc::clone(&core.meter),
            evaluations: Arc::clone(&core.evaluations),
            object_repairs: core.limits.object_repairs,
            steps_max: core.limits.generation_steps_max,
            bytes_max: core.limits.generation_bytes_max,
        };
        let _ = core.generations.set(generations.clone());
        let every = core.limits.watchdog_every;
        if !every.is_zero() {
            actix::spawn(watch(Arc::downgrade(&core), every));
        }
        match core.limits.placement {
            Placement::Threads(_) => drop(actix::spawn(listen(Arc::downgrade(&core)))),
            // This thread would only hear itself.
            Placement::Here => {}
        }
        for id in set_aside {
            // Loading it ends it.
            core.deliver_patiently(id, Order::Continue).await;
        }
        let runtime = Self { core, arbiters: Arc::new(arbiters), generations };
        let going_on = runtime.clone();
        actix::spawn(async move {
            let count = going_on.continue_running().await;
            if count > 0 {
                log::info!("{count} executions were running and go on");
            }
        });
        Ok(runtime)
    }

    /// Hands every execution that the record says is running to its supervisor, oldest first.
    /// Nobody else would ask for them: a store that cannot be read is asked again. Returns how
    /// many there were.
    pub(super) async fn continue_running(&self) -> usize {
        let mut after: Row = 0;
        let mut count = 0_usize;
        while !self.core.is_draining() {
            let page = match self.core.store.running(after, CONTINUE_PAGE).await {
                Ok(page) => page,
                Err(error) => {
                    log::error!("what was running cannot be continued yet: {error}");
                    tokio::time::sleep(CONTINUE_AGAIN).await;
                    continue;
                }
            };
            let Some((last, _)) = page.last() else { break };
            after = *last;
            count += page.len();
            for (_, id) in page {
                self.core.deliver_patiently(id, Order::Continue).await;
            }
            // Callers come first: what was running waits for its turn beside them.
            tokio::time::sleep(CONTINUE_PAUSE).await;
            while !self.core.is_draining()
                && self.core.memory.waiting.load(Ordering::Relaxed) > CONTINUE_WAITING_MAX
            {
                tokio::time::sleep(CONTINUE_PAUSE).await;
            }
        }
        count
    }
}

/// Without them, what costs much would hold up everything else: a runtime does not start so.
fn evaluations(ports: &RuntimePorts, limits: &RuntimeLimits) -> Result<Evaluations, Unavailable> {
    let workers = ports.workers.clone();
    let started = Evaluations::start(limits.placement, limits.expression_time_max, workers);
    started.map_err(|error| {
        let reason = format!("no thread for expressions that cost much: {error}");
        Unavailable::Store { reason: Arc::from(reason), execution: None }
    })
}

/// Stores definitions by their hashes; returns when they are durable.
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

/// The writer's way to the actors.
struct Sink {
    /// Weak: the core owns the store, and the store this.
    core: Weak<Core>,
}

impl CommitSink for Sink {
    fn committed(&self, shard: usize, outcomes: Vec<Acknowledgement>) {
        let Some(core) = self.core.upgrade() else { return };
        if let Some(shard) = core.crew.get().and_then(|crew| crew.shards.get(shard)) {
            crate::mailbox::tell(shard, Committed(outcomes));
        }
    }

    fn wants_facts(&self) -> bool {
        self.core.upgrade().is_some_and(|core| core.feed.is_watched())
    }

    fn publish(&self, facts: Vec<(Arc<Header>, Arc<[Recorded]>)>) {
        if let Some(core) = self.core.upgrade() {
            core.feed.publish(facts);
        }
    }
}
