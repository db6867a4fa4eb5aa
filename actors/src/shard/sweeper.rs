//! Retention: deletes executions and generations that ended long enough ago.
//!
//! An execution is kept after its end by the rule of its workflow, configured or not. Its children
//! have their own rules, and stay while it has not ended. Other work is not delayed: reads are
//! bounded and use the readers' connections, deletes are small with pauses between them, and both
//! stop when the process drains.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, ActorFutureExt, AsyncContext, Context, Handler, WrapFuture};

use crate::domain::status::Status;
use crate::domain::time::Timestamp;
use crate::ports::store::{Ended, EndedExecutions, EndedGenerations, Row};
use crate::shard::messages::KillForTest;
use crate::shared::Shared;

/// Pause between two batches of a sweep.
const PAUSE: Duration = Duration::from_millis(50);

/// Deletes ended executions and generations at intervals.
pub(crate) struct Sweeper {
    shared: Arc<Shared>,
}

impl Sweeper {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Sweeps after the interval, and again after each sweep.
    fn sweep_later(&mut self, ctx: &mut Context<Self>) {
        ctx.run_later(self.shared.limits.retention.every, |sweeper, ctx| {
            let shared = Arc::clone(&sweeper.shared);
            let sweep = async move {
                match shared.ownership.does_housework() {
                    true => sweep(&shared).await,
                    false => Ok(()),
                }
            };
            ctx.spawn(sweep.into_actor(sweeper).map(|swept, sweeper, ctx| {
                if let Err(Failed(why)) = swept {
                    let level = sweeper.shared.level_of_failure(log::Level::Warn);
                    log::log!(level, "retention sweep failed, trying again later: {why}");
                }
                sweeper.sweep_later(ctx);
            }));
        });
    }
}

impl Actor for Sweeper {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let rules = &self.shared.limits.retention;
        if !rules.keeps_every_execution() || rules.generations.is_some() {
            self.sweep_later(ctx);
        }
    }
}

impl Handler<KillForTest> for Sweeper {
    type Result = ();

    fn handle(&mut self, _: KillForTest, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

/// The store could not be read, or rejects writes.
struct Failed(String);

impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

async fn sweep(shared: &Shared) -> Result<(), Failed> {
    let rules = &shared.limits.retention;
    if !rules.keeps_every_execution() {
        let mut name: Arc<str> = Arc::from("");
        while let Some(workflow) = shared.store.workflow_after(&name).await? {
            if let Some(keep) = rules.of_workflow(&workflow) {
                // A key that has not expired must find its execution.
                let keep = keep.max(shared.limits.idempotency_ttl);
                sweep_workflow(shared, &workflow, keep).await?;
            }
            name = workflow;
        }
    }
    if let Some(keep) = rules.generations {
        let mut name: Arc<str> = Arc::from("");
        while let Some(agent) = shared.store.agent_after(&name).await? {
            sweep_agent(shared, &agent, keep).await?;
            name = agent;
        }
    }
    Ok(())
}

async fn sweep_workflow(
    shared: &Shared,
    workflow: &Arc<str>,
    keep: Duration,
) -> Result<(), Failed> {
    let before = before(shared, keep);
    let mut dropped = 0;
    for status in Status::ALL.into_iter().filter(|status| status.is_terminal()) {
        let workflow_id = Arc::clone(workflow);
        let mut sought = EndedExecutions { workflow_id, status, before, after: None };
        while !shared.is_draining() {
            let found =
                shared.store.ended_executions(&sought, shared.limits.retention.batch).await?;
            let Ended { rows, next } = found;
            dropped += drop_rows(rows, |rows| shared.store.drop_executions(rows)).await?;
            if next.is_none() {
                break;
            }
            sought.after = next;
            tokio::time::sleep(PAUSE).await;
        }
    }
    if dropped > 0 {
        log::info!("deleted {dropped} executions of {workflow} that ended {keep:?} ago or earlier");
    }
    Ok(())
}

async fn sweep_agent(shared: &Shared, agent: &Arc<str>, keep: Duration) -> Result<(), Failed> {
    let before = before(shared, keep);
    let mut dropped = 0;
    let mut sought = EndedGenerations { agent_id: Arc::clone(agent), before, after: 0 };
    while !shared.is_draining() {
        let found = shared.store.ended_generations(&sought, shared.limits.retention.batch).await?;
        let Ended { rows, next } = found;
        dropped += drop_rows(rows, |rows| shared.store.drop_generations(rows)).await?;
        let Some(next) = next else { break };
        sought.after = next;
        tokio::time::sleep(PAUSE).await;
    }
    if dropped > 0 {
        log::info!("deleted {dropped} generations of {agent} that ended {keep:?} ago or earlier");
    }
    Ok(())
}

async fn drop_rows<E: std::error::Error>(
    rows: Vec<Row>,
    drop_them: impl AsyncFnOnce(Vec<Row>) -> Result<u64, E>,
) -> Result<u64, Failed> {
    if rows.is_empty() { Ok(0) } else { Ok(drop_them(rows).await?) }
}

fn before(shared: &Shared, keep: Duration) -> Timestamp {
    let keep = i64::try_from(keep.as_millis()).unwrap_or(i64::MAX);
    Timestamp(shared.clock.now().0.saturating_sub(keep))
}
