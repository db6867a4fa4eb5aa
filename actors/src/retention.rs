//! For how long what is over is kept, and the actor that drops what is older.
//!
//! An execution is kept from its end on by the rule of its own workflow, configured or not. Its
//! children have rules of their own, and stay while it is not over. Nobody is kept waiting: looks
//! are bounded and on connections that read, drops are small and come with pauses, and both end
//! with the drain.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};

use crate::core::Core;
use crate::domain::status::Status;
use crate::domain::time::Timestamp;
use crate::ports::store::{Ended, EndedExecutions, EndedGenerations, Row};
use crate::supervisor::Vanish;

/// Pause between two looks of a sweep.
const PAUSE: Duration = Duration::from_millis(50);

/// For how long what is over is kept; see `[retention]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetentionRules {
    /// Executions of workflows without a rule of their own; `None`: for ever. None goes before its
    /// idempotency keys have expired.
    pub executions: Option<Duration>,
    /// By workflow, in place of the rule for all.
    pub workflows: HashMap<String, Option<Duration>>,
    /// The history of agents' generations; `None`: for ever.
    pub generations: Option<Duration>,
    /// How often it is looked for what is older.
    pub every: Duration,
    /// What is looked at, and dropped, at once.
    pub batch: usize,
}

impl Default for RetentionRules {
    fn default() -> Self {
        Self {
            executions: None,
            workflows: HashMap::new(),
            generations: None,
            every: Duration::from_secs(60),
            batch: 200,
        }
    }
}

impl RetentionRules {
    fn of_workflow(&self, id: &str) -> Option<Duration> {
        self.workflows.get(id).copied().unwrap_or(self.executions)
    }

    fn keeps_every_execution(&self) -> bool {
        self.executions.is_none() && self.workflows.values().all(Option::is_none)
    }
}

/// Drops what has been over for long enough, now and then.
pub(crate) struct Sweeper {
    core: Arc<Core>,
}

impl Sweeper {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core }
    }

    /// Sweeps once, and again after a while.
    fn sweep_later(&mut self, ctx: &mut Context<Self>) {
        ctx.run_later(self.core.limits.retention.every, |sweeper, ctx| {
            let core = Arc::clone(&sweeper.core);
            let sweep = async move { sweep(&core).await };
            ctx.spawn(sweep.into_actor(sweeper).map(|swept, sweeper, ctx| {
                if let Err(Failed(why)) = swept {
                    log::warn!("what is over stays until the next look: {why}");
                }
                sweeper.sweep_later(ctx);
            }));
        });
    }
}

impl Actor for Sweeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let rules = &self.core.limits.retention;
        if !rules.keeps_every_execution() || rules.generations.is_some() {
            self.sweep_later(ctx);
        }
    }
}

impl Handler<Vanish> for Sweeper {
    type Result = ();

    fn handle(&mut self, _: Vanish, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

/// The store could not be asked, or does not take writes.
struct Failed(String);

impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

async fn sweep(core: &Core) -> Result<(), Failed> {
    let rules = &core.limits.retention;
    if !rules.keeps_every_execution() {
        let mut name: Arc<str> = Arc::from("");
        while let Some(workflow) = core.store.workflow_after(&name).await? {
            if let Some(keep) = rules.of_workflow(&workflow) {
                // A key that has not expired must find its execution.
                let keep = keep.max(core.limits.idempotency_ttl);
                sweep_workflow(core, &workflow, keep).await?;
            }
            name = workflow;
        }
    }
    if let Some(keep) = rules.generations {
        let mut name: Arc<str> = Arc::from("");
        while let Some(agent) = core.store.agent_after(&name).await? {
            sweep_agent(core, &agent, keep).await?;
            name = agent;
        }
    }
    Ok(())
}

async fn sweep_workflow(core: &Core, workflow: &Arc<str>, keep: Duration) -> Result<(), Failed> {
    let before = before(core, keep);
    let mut dropped = 0;
    for status in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
        let workflow_id = Arc::clone(workflow);
        let mut sought = EndedExecutions { workflow_id, status, before, after: None };
        while !core.is_draining() {
            let found = core.store.ended_executions(&sought, core.limits.retention.batch).await?;
            let Ended { rows, next } = found;
            dropped += drop_rows(rows, |rows| core.store.drop_executions(rows)).await?;
            if next.is_none() {
                break;
            }
            sought.after = next;
            tokio::time::sleep(PAUSE).await;
        }
    }
    if dropped > 0 {
        log::info!("{dropped} executions of {workflow} were over for {keep:?} and are dropped");
    }
    Ok(())
}

async fn sweep_agent(core: &Core, agent: &Arc<str>, keep: Duration) -> Result<(), Failed> {
    let before = before(core, keep);
    let mut dropped = 0;
    let mut sought = EndedGenerations { agent_id: Arc::clone(agent), before, after: 0 };
    while !core.is_draining() {
        let found = core.store.ended_generations(&sought, core.limits.retention.batch).await?;
        let Ended { rows, next } = found;
        dropped += drop_rows(rows, |rows| core.store.drop_generations(rows)).await?;
        let Some(next) = next else { break };
        sought.after = next;
        tokio::time::sleep(PAUSE).await;
    }
    if dropped > 0 {
        log::info!("{dropped} generations of {agent} were over for {keep:?} and are dropped");
    }
    Ok(())
}

async fn drop_rows<E: std::error::Error>(
    rows: Vec<Row>,
    drop_them: impl AsyncFnOnce(Vec<Row>) -> Result<u64, E>,
) -> Result<u64, Failed> {
    if rows.is_empty() { Ok(0) } else { Ok(drop_them(rows).await?) }
}

fn before(core: &Core, keep: Duration) -> Timestamp {
    let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    Timestamp(core.clock.now().0.saturating_sub(keep))
}
