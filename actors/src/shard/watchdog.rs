//! Checks running executions: from what they wait for, it finds those that can never continue and
//! those that were forgotten.
//!
//! It reads the index of running executions in the background, a bounded number at a time.
//! Suspended executions wait for an answer and are not checked.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use crate::commands::ExecutionCommand;
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::machine::{Awaited, Cause};
use crate::domain::time::Timestamp;
use crate::observe::log_record::LogScope;
use crate::observe::scope::scope_of;
use crate::ports::store::{Projection, Row, Timer, TimerChange, TimerKey};
use crate::requests::{DescribeError, Unavailable};
use crate::shard::stuck::{STUCK_MAX, StuckExecution};
use crate::shared::Shared;
use crate::wait_report::WaitReport;

/// Running executions checked in one round.
const ROUND_MAX: usize = 500;
/// Time that the report of a child's end may take to reach the parent, in milliseconds.
const REPORT_TAKES_MS: u64 = 30_000;

/// Checks in rounds until the runtime drains or is dropped.
pub(crate) async fn watch(shared: Weak<Shared>, every: Duration) {
    let mut after: Row = 0;
    loop {
        tokio::time::sleep(every).await;
        // Weak, so that a sleeping task keeps nothing alive.
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_draining()) else { return };
        if shared.store.is_writable() {
            after = shared.watch_round(after).await;
        }
    }
}

enum Verdict {
    /// It can continue.
    Fine,
    /// It can never continue.
    Stuck(String),
    /// The state cannot be determined now.
    Unknown,
}

impl Shared {
    /// Checks known stuck executions and the next running ones; returns the position reached.
    async fn watch_round(&self, after: Row) -> Row {
        self.forget_others();
        for id in self.known_stuck() {
            self.check(id).await;
        }
        let served = self.ownership.served();
        let page = match self.store.running(&served, after, ROUND_MAX).await {
            Ok(page) => page,
            Err(error) => {
                let level = self.level_of_failure(log::Level::Warn);
                log::log!(level, "the watchdog cannot read running executions: {error}");
                return after;
            }
        };
        let reached = match page.last() {
            Some((row, _)) if page.len() >= ROUND_MAX => *row,
            // The end of the index: the next round starts over.
            Some(_) | None => 0,
        };
        for (_, id) in page {
            if self.is_draining() || !self.store.is_writable() {
                break;
            }
            self.check(id).await;
        }
        reached
    }

    /// Forgets executions that another process serves now.
    fn forget_others(&self) {
        let mut stuck = self.stuck.write().unwrap_or_else(PoisonError::into_inner);
        stuck.retain(|id, _| self.ownership.serves(id));
    }

    fn known_stuck(&self) -> Vec<ExecutionId> {
        let stuck = self.stuck.read().unwrap_or_else(PoisonError::into_inner);
        stuck.keys().cloned().collect()
    }

    /// Checks one execution and notes the result.
    async fn check(&self, id: ExecutionId) {
        let wait_report = self.wait_report(&id).await;
        let header = match &wait_report {
            Ok(wait_report) => Some(Arc::clone(&wait_report.header)),
            // Its row may be readable although the facts are not.
            Err(_) => self.store.describe(&id).await.ok().flatten().map(|row| row.header),
        };
        let scope = header.as_deref().map_or_else(|| LogScope::of_execution(&id), scope_of);
        let verdict = scope.during(self.verdict(wait_report)).await;
        let workflow_id = header.map(|header| Arc::clone(&header.workflow_id));
        scope.within(|| self.note(id, workflow_id, verdict));
    }

    fn note(&self, id: ExecutionId, workflow_id: Option<Arc<str>>, verdict: Verdict) {
        let mut stuck = self.stuck.write().unwrap_or_else(PoisonError::into_inner);
        match verdict {
            Verdict::Unknown => {}
            Verdict::Fine => {
                if stuck.remove(&id).is_some() {
                    log::info!("execution {id} is no longer stuck");
                }
            }
            Verdict::Stuck(cause) => {
                let is_new = stuck.get(&id).is_none_or(|known| *known.cause != *cause);
                let has_room = stuck.len() < STUCK_MAX || stuck.contains_key(&id);
                if is_new && has_room {
                    log::warn!(
                        "execution {id} is stuck: {cause}; its `why` says what would continue it"
                    );
                    let cause = Arc::from(cause);
                    let entry = StuckExecution { workflow_id, execution_id: id.clone(), cause };
                    stuck.insert(id, entry);
                }
            }
        }
    }

    async fn verdict(&self, wait_report: Result<Box<WaitReport>, DescribeError>) -> Verdict {
        match wait_report {
            Ok(wait_report) if wait_report.status.is_terminal() => Verdict::Fine,
            Ok(wait_report) => self.verdict_of(&wait_report).await,
            Err(DescribeError::NotFound) => Verdict::Fine,
            // An outage, which is no property of the execution.
            Err(DescribeError::Unavailable(Unavailable::Store { .. }))
                if !self.store.is_writable() =>
            {
                Verdict::Unknown
            }
            Err(DescribeError::Unavailable(
                why @ (Unavailable::Store { .. } | Unavailable::Corrupt(_)),
            )) => Verdict::Stuck(format!("it cannot be read: {why}")),
            Err(DescribeError::Unavailable(
                Unavailable::Busy { .. }
                | Unavailable::Moved { .. }
                | Unavailable::TooLarge
                | Unavailable::Unreachable
                | Unavailable::NoMemory
                | Unavailable::Draining { .. }
                | Unavailable::ActorLost,
            )) => Verdict::Unknown,
        }
    }

    /// Repairs what can be repaired. Stuck is an execution that waits only for missing things.
    async fn verdict_of(&self, wait_report: &WaitReport) -> Verdict {
        let id = &wait_report.header.id;
        let mut missing = Vec::new();
        let mut is_movable = false;
        let mut is_forgotten = false;
        for awaited in &wait_report.waits_for {
            is_movable |= !matches!(awaited.cause, Cause::Missing { .. });
            match &awaited.cause {
                Cause::Missing { what } => missing.push(what.as_str()),
                Cause::Interrupted { .. } | Cause::Turn => is_forgotten = true,
                Cause::Child { child, .. } => {
                    self.check_child(id, child, wait_report.children.get(child));
                }
                Cause::Sleep | Cause::Retry { .. } | Cause::Resume { .. } | Cause::Asks { .. } => {
                    if let (Some(path), Some(due)) = (&awaited.path, awaited.until) {
                        self.check_timer(id, path, due).await;
                    }
                }
                Cause::Hold { .. }
                | Cause::Body { .. }
                | Cause::Deciding
                | Cause::Draining
                | Cause::Elsewhere { .. } => {}
            }
        }
        if is_forgotten {
            log::warn!("execution {id} was running without any work in progress; continuing it");
            self.deliver(id.clone(), ExecutionCommand::Continue);
        }
        match (is_movable, missing.is_empty()) {
            (true, _) => Verdict::Fine,
            (false, false) => Verdict::Stuck(missing.join("; ")),
            (false, true) => Verdict::Stuck("it runs and waits for nothing".to_owned()),
        }
    }

    /// Continues a parent whose child never started, and has it query a child whose end it missed.
    fn check_child(&self, id: &ExecutionId, child: &ExecutionId, row: Option<&Projection>) {
        let Some(row) = row else {
            // The child may also be about to start: then this has no effect.
            self.deliver(id.clone(), ExecutionCommand::Continue);
            return;
        };
        let Some(ended_at) = row.ended_at else { return };
        if ended_at.plus_ms(REPORT_TAKES_MS) <= self.clock.now() {
            log::warn!("execution {id} missed the end of its child {child}; querying the child");
            self.deliver(id.clone(), ExecutionCommand::Timer(TimerKey::AskChild(child.clone())));
        }
    }

    /// Arms a timer that is missing in the store again.
    async fn check_timer(&self, id: &ExecutionId, path: &StepPath, due: Timestamp) {
        let key = TimerKey::Node(Arc::clone(path));
        let Ok(stored) = self.store.timers_of(id).await else { return };
        if stored.iter().any(|timer| timer.key == key) {
            return;
        }
        // It may have fired in between, so the execution is queried again.
        let Ok(now) = self.wait_report(id).await else { return };
        let waits = |it: &Awaited| it.path.as_ref() == Some(path) && it.until == Some(due);
        let Some((shard, _)) = self.shard_of(id) else { return };
        if now.waits_for.iter().any(waits) {
            log::warn!("the timer of execution {id} at {path} was lost; armed it again");
            let timer = Timer { execution: id.clone(), key, due };
            self.store.change_timers(shard, vec![TimerChange::Arm(timer)]);
        }
    }
}
