//! Appends decisions to the journal, and what follows once they are durable.

use std::sync::Arc;

use actix::Context;
use tokio::sync::oneshot::Sender;

use crate::agent::tool::WithdrawnQuestion;
use crate::commands::ExecutionCommand;
use crate::domain::fact::{Fact, Recorded};
use crate::domain::failure::shortened;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::{Batch, Touched};
use crate::domain::state::Outcome;
use crate::domain::time::Timestamp;
use crate::execution::asks::AskChanges;
use crate::execution::logging::log_facts;
use crate::execution::outcome::outcome_of;
use crate::execution::{ExecutionActor, LiveExecution};
use crate::ports::store::{
    Acknowledgement, Append, Failure, IdempotencyRecord, Projection, ROW_ERROR_BYTES_MAX,
    ReplayedFrom, Status, Ticket, Timer, TimerChange, TimerKey,
};
use crate::requests::Unavailable;

/// Time that a parent has to record a child's report, before the reminder, in milliseconds.
const REMIND_PARENT_MS: u64 = 5_000;

/// An append under way.
pub(super) struct Pending {
    pub(super) upto: u64,
    pub(super) facts: Arc<[Recorded]>,
    pub(super) armed: Vec<Timer>,
    pub(super) abandoned: Vec<ExecutionId>,
    /// Questions of tools that are withdrawn.
    pub(super) withdrawn: Vec<WithdrawnQuestion>,
    /// Called when this is durable, or with the reason why it is not.
    pub(super) then: Vec<Then>,
}

pub(super) type Then = Box<dyn FnOnce(Result<(), Unavailable>)>;

/// Parts of an append beside the facts of a batch.
#[derive(Default)]
pub(super) struct AppendExtras {
    pub(super) idempotency: Option<IdempotencyRecord>,
    pub(super) timers: Vec<TimerChange>,
}

impl ExecutionActor {
    /// Appends the facts of a batch. What follows from them waits for `appended`.
    pub(super) fn record(&mut self, batch: Batch, extras: AppendExtras, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        let Batch { facts, timers, abandoned, by: _ } = batch;
        let mut changes = extras.timers;
        if facts.is_empty() {
            if !changes.is_empty() {
                self.shared.store.change_timers(self.shard, changes);
            }
            return;
        }
        let now = life.machine.state().updated_at;
        life.change_own_timers(timers, &mut changes);
        life.remind_parent(&facts, now.plus_ms(REMIND_PARENT_MS), &mut changes);
        for child in &abandoned {
            let timer = Timer { execution: child.clone(), key: TimerKey::Abandoned, due: now };
            changes.push(TimerChange::Arm(timer));
        }
        let facts: Arc<[Recorded]> = facts.into();
        let upto = life.machine.state().last_seq();
        let armed = own_armed(&life.header.id, &changes);
        let revision = life.recorded_revision.map_or(0, |newest| newest + 1);
        let AskChanges { asks, withdrawn } = life.asks.follow(&facts, &life.machine);
        self.shared.ask_alarm.note_opened(&asks);
        let append = Append {
            ticket: Ticket { shard: self.shard, key: self.key },
            row: life.row,
            revision,
            projection: life.projection(),
            facts: Arc::clone(&facts),
            timers: changes,
            asks,
            idempotency: extras.idempotency.clone(),
            snapshot: life.snapshot_if_due(),
        };
        life.recorded_revision = Some(revision);
        extras.idempotency.iter().for_each(|record| life.keys.remember(record));
        let then = Vec::new();
        let pending = Arc::clone(&facts);
        life.pending.push_back(Pending { upto, facts: pending, armed, abandoned, withdrawn, then });
        life.hold_generations();
        self.shared.store.append(append);
        if let Some(claim) = &mut self.claim {
            claim.resize(life.machine.state().memory);
        }
        self.count_as_running();
        self.drop_obsolete_bodies(&facts, ctx);
    }

    /// Runs `then` when everything recorded so far is durable; at once if it already is, or if that
    /// will not be known here.
    pub(super) fn when_durable(&mut self, then: Then) {
        let Some(life) = &mut self.life else {
            then(Err(self.shared.ended_unanswered(&self.id)));
            return;
        };
        match life.pending.back_mut() {
            Some(pending) => pending.then.push(then),
            None => then(Ok(())),
        }
    }

    /// Answers a caller when everything recorded so far is durable: a refusal, too, may depend on a
    /// fact that is not durable yet.
    pub(super) fn answer_when_durable<T, E>(
        &mut self,
        answer: Sender<Result<T, E>>,
        outcome: Result<T, E>,
    ) where
        T: 'static,
        E: From<Unavailable> + 'static,
    {
        self.when_durable(Box::new(move |durable| {
            drop(answer.send(durable.map_err(E::from).and(outcome)));
        }));
    }

    /// Handles the result of the oldest append under way.
    pub(super) fn appended(&mut self, outcome: Acknowledgement, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        let Some(pending) = life.pending.pop_front() else { return };
        debug_assert_eq!(pending.upto, outcome.upto, "acknowledgements come in order");
        match outcome.result {
            Ok(()) => self.became_durable(pending, ctx),
            Err(error) => {
                life.pending.push_front(pending);
                self.give_up(&error, ctx);
            }
        }
    }

    fn became_durable(&mut self, pending: Pending, ctx: &mut Context<Self>) {
        let Pending { upto, facts, armed, abandoned, withdrawn, then } = pending;
        if let Some(life) = &mut self.life {
            life.durable_seq = upto;
            life.measure(&*self.shared.meter, &facts);
            life.release_generations(&facts);
        }
        then.into_iter().for_each(|then| then(Ok(())));
        self.answer_waiters(&facts);
        self.publish(&facts);
        self.report_to_parent(&facts);
        for child in abandoned {
            self.shared.deliver(child, ExecutionCommand::Timer(TimerKey::Abandoned));
        }
        if !withdrawn.is_empty() {
            let registry = self.shared.registry();
            withdrawn.into_iter().for_each(|question| question.notify(&registry.tools));
        }
        self.shared.announce_timers(armed);
        self.end_interrupted(&facts, ctx);
        self.await_generations(&facts);
        if let Some(life) = &self.life {
            log_facts(&life.header, &facts);
        }
        self.log_unused_answers(&facts);
        self.start_bodies_in(&Touched::by(&facts), ctx);
        self.continue_run(ctx);
    }

    /// Logs that a step asks although a replay brought an answer, which does not count.
    fn log_unused_answers(&self, facts: &[Recorded]) {
        let Some(life) = &self.life else { return };
        for Recorded { fact, .. } in facts {
            if let Fact::StepSuspended { path, ask, .. } = fact
                && life.machine.has_unused_answer(path, ask.as_deref())
            {
                log::info!(
                    step:% = path;
                    "execution {}: step {path} asks again, because the one who gave the resumeData \
                     of the replay is not among those who are asked",
                    self.id
                );
            }
        }
    }

    fn answer_waiters(&mut self, facts: &[Recorded]) {
        let Some(life) = &mut self.life else { return };
        if life.waiters.is_empty() {
            return;
        }
        for recorded in facts {
            let Some(outcome) = outcome_of(&life.header, recorded) else { continue };
            for waiter in std::mem::take(&mut life.waiters) {
                if recorded.seq > waiter.after_seq {
                    waiter.answer.give(&outcome);
                } else {
                    life.waiters.push(waiter);
                }
            }
        }
    }
}

impl LiveExecution {
    fn projection(&self) -> Projection {
        let state = self.machine.state();
        // A step may have suspended since the suspension was published, during a pause.
        let shown = (state.announced == Status::Suspended)
            .then(|| state.announced_suspensions(self.machine.plan()))
            .flatten();
        let (suspension, others) = shown.unzip();
        Projection {
            header: Arc::clone(&self.header),
            status: state.announced,
            updated_at: state.updated_at,
            ended_at: state.end.as_ref().map(|end| end.at),
            last_seq: state.last_seq(),
            suspension: suspension.map(|it| Arc::new(it.listed())),
            others: others.flatten().map(|it| Arc::new(it.listed())),
            error: state.end.as_ref().and_then(|end| row_error(&end.outcome)),
            replayed_from: state.start.replayed.as_ref().map(|replayed| ReplayedFrom {
                execution: replayed.execution.clone(),
                step_id: Arc::clone(&replayed.step_id),
            }),
        }
    }

    fn change_own_timers(
        &self,
        timers: Vec<(Arc<str>, Option<Timestamp>)>,
        changes: &mut Vec<TimerChange>,
    ) {
        for (path, until) in timers {
            let execution = self.header.id.clone();
            let key = TimerKey::Node(path);
            changes.push(match until {
                Some(due) => TimerChange::Arm(Timer { execution, key, due }),
                None => TimerChange::Disarm { execution, key },
            });
        }
    }

    /// Arms the reminder by which the parent gets the report even if this process ends first.
    fn remind_parent(&self, facts: &[Recorded], due: Timestamp, changes: &mut Vec<TimerChange>) {
        let Some(parent) = &self.header.parent else { return };
        if facts.iter().any(|recorded| concerns_parent(&recorded.fact)) {
            changes.push(TimerChange::Arm(Timer {
                execution: parent.execution.clone(),
                key: TimerKey::AskChild(self.header.id.clone()),
                due,
            }));
        }
        let state = self.machine.state();
        // One that completes after it was abandoned still has to undo that.
        if state.end.is_some() && !state.is_reversible(self.machine.plan()) {
            let execution = self.header.id.clone();
            changes.push(TimerChange::Disarm { execution, key: TimerKey::Abandoned });
        }
    }
}

/// Returns the failure as stored in the row, with a shortened message.
fn row_error(outcome: &Outcome) -> Option<Arc<Failure>> {
    let failure = Failure::of(outcome)?;
    let message = Arc::from(shortened(&failure.message, ROW_ERROR_BYTES_MAX));
    Some(Arc::new(Failure { message, ..failure }))
}

/// Returns true if a fact changes the status that the parent sees.
pub(super) fn concerns_parent(fact: &Fact) -> bool {
    let moves = matches!(fact, Fact::WorkflowSuspended { .. } | Fact::WorkflowResumed);
    moves || fact.end().is_some()
}

fn own_armed(id: &ExecutionId, changes: &[TimerChange]) -> Vec<Timer> {
    let armed = changes.iter().filter_map(|change| match change {
        TimerChange::Arm(timer) if timer.execution == *id => Some(timer.clone()),
        TimerChange::Arm(_) | TimerChange::Disarm { .. } => None,
    });
    armed.collect()
}
