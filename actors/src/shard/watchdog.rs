//! Looks after executions that ought to go on: by what they wait for, it finds those that nothing
//! can move any more, and those that something only forgot.
//!
//! It goes along the index of running executions in the background, a bounded number at a time.
//! One that a person can answer is suspended and never looked at.

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
use crate::shard::stuck::StuckExecution;
use crate::shared::Shared;
use crate::wait_report::WaitReport;

/// Running executions looked at in one round.
const ROUND_MAX: usize = 500;
/// Stuck executions that are remembered and told of; the others are found when these are gone.
const STUCK_MAX: usize = 1000;
/// How long an end of a child may be on its way to the parent.
const NEWS_TAKE_MS: u64 = 30_000;

/// Makes rounds until the process ends or drains.
pub(crate) async fn watch(shared: Weak<Shared>, every: Duration) {
    let mut after: Row = 0;
    loop {
        tokio::time::sleep(every).await;
        // Weak: whoever only sleeps keeps nothing alive.
        let Some(shared) = shared.upgrade().filter(|shared| !shared.is_draining()) else { return };
        if shared.store.is_writable() {
            after = shared.watch_round(after).await;
        }
    }
}

enum Verdict {
    /// Something can move it.
    Fine,
    /// Nothing can.
    Stuck(String),
    /// Nobody can say just now.
    Unknown,
}

impl Shared {
    /// Looks at those known to be stuck and at the next running ones; returns where it came to.
    async fn watch_round(&self, after: Row) -> Row {
        for id in self.known_stuck() {
            self.judge(id).await;
        }
        let page = match self.store.running(after, ROUND_MAX).await {
            Ok(page) => page,
            Err(error) => {
                log::warn!("running executions cannot be looked after: {error}");
                return after;
            }
        };
        let reached = match page.last() {
            Some((row, _)) if page.len() >= ROUND_MAX => *row,
            // The end: the next round begins at the beginning.
            Some(_) | None => 0,
        };
        for (_, id) in page {
            if self.is_draining() {
                break;
            }
            self.judge(id).await;
        }
        reached
    }

    fn known_stuck(&self) -> Vec<ExecutionId> {
        let stuck = self.stuck.read().unwrap_or_else(PoisonError::into_inner);
        stuck.keys().cloned().collect()
    }

    /// Looks at one execution and notes what it found.
    async fn judge(&self, id: ExecutionId) {
        let wait_report = self.wait_report(&id, None).await;
        let header = match &wait_report {
            Ok(wait_report) => Some(Arc::clone(&wait_report.header)),
            // Its row may be there although the rest makes no sense.
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
                let is_news = stuck.get(&id).is_none_or(|known| *known.cause != *cause);
                let has_room = stuck.len() < STUCK_MAX || stuck.contains_key(&id);
                if is_news && has_room {
                    log::warn!("execution {id} is stuck, nothing can move it on: {cause}");
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
            Err(DescribeError::Unavailable(
                why @ (Unavailable::Store { .. } | Unavailable::Corrupt(_)),
            )) => Verdict::Stuck(format!("it cannot be read: {why}")),
            Err(DescribeError::Unavailable(
                Unavailable::Busy { .. }
                | Unavailable::NoMemory
                | Unavailable::Draining { .. }
                | Unavailable::ActorLost,
            )) => Verdict::Unknown,
        }
    }

    /// Mends what can be mended. Only what waits for nothing but what is not there is stuck.
    async fn verdict_of(&self, wait_report: &WaitReport) -> Verdict {
        let id = &wait_report.header.id;
        let mut missing = Vec::new();
        let mut is_movable = false;
        let mut is_forgotten = false;
        for awaited in &wait_report.waits_for {
            is_movable |= !matches!(awaited.cause, Cause::Missing { .. });
            match &awaited.cause {
                Cause::Missing { what } => missing.push(what.as_str()),
                Cause::CutOff { .. } | Cause::Turn => is_forgotten = true,
                Cause::Child { child, .. } => {
                    self.look_after_child(id, child, wait_report.children.get(child));
                }
                Cause::Sleep | Cause::Retry { .. } | Cause::Resume { .. } => {
                    if let (Some(path), Some(due)) = (&awaited.path, awaited.until) {
                        self.look_after_timer(id, path, due).await;
                    }
                }
                Cause::Hold { .. } | Cause::Body { .. } | Cause::AtWork | Cause::Draining => {}
            }
        }
        if is_forgotten {
            log::warn!("execution {id} was running and nobody worked on it: it goes on");
            self.deliver(id.clone(), ExecutionCommand::Continue);
        }
        match (is_movable, missing.is_empty()) {
            (true, _) => Verdict::Fine,
            (false, false) => Verdict::Stuck(missing.join("; ")),
            (false, true) => Verdict::Stuck("it runs and waits for nothing".to_owned()),
        }
    }

    /// A child that never started is started when the parent goes on; of one whose end the parent
    /// did not hear, the parent asks.
    fn look_after_child(&self, id: &ExecutionId, child: &ExecutionId, row: Option<&Projection>) {
        let Some(row) = row else {
            // Also while it is about to start: then nothing comes of this.
            self.deliver(id.clone(), ExecutionCommand::Continue);
            return;
        };
        let Some(ended_at) = row.ended_at else { return };
        if ended_at.plus_ms(NEWS_TAKE_MS) <= self.clock.now() {
            log::warn!("execution {id} has not heard that {child} has ended: it asks");
            self.deliver(id.clone(), ExecutionCommand::Timer(TimerKey::AskChild(child.clone())));
        }
    }

    /// Arms the timer of a node again that the store has lost.
    async fn look_after_timer(&self, id: &ExecutionId, path: &StepPath, due: Timestamp) {
        let key = TimerKey::Node(Arc::clone(path));
        let Ok(stored) = self.store.timers_of(id).await else { return };
        if stored.iter().any(|timer| timer.key == key) {
            return;
        }
        // It may have fired since: what the execution says now, counts.
        let Ok(now) = self.wait_report(id, None).await else { return };
        let waits = |it: &Awaited| it.path.as_ref() == Some(path) && it.until == Some(due);
        if now.waits_for.iter().any(waits) {
            log::warn!("the timer of execution {id} at {path} was lost: it is armed again");
            let timer = Timer { execution: id.clone(), key, due };
            self.store.change_timers(vec![TimerChange::Arm(timer)]);
        }
    }
}
