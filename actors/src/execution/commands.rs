//! Orders, one by one.

use std::sync::Arc;

use actix::Context;

use crate::commands::{
    Answer, Order, ResumeOrder, ResumeRefusal, StartAnswer, StartOrder, StartRefusal,
};
use crate::domain::fact::Start;
use crate::domain::machine::{Command, Decision, Machine, Refusal, Resume};
use crate::domain::principal::Principal;
use crate::domain::time::Timestamp;
use crate::domain::trace::RootRow;
use crate::execution::outcome::{OutcomeAnswer, Owns, Waiter};
use crate::execution::record::Along;
use crate::execution::{ExecutionActor, Life, describe, outcome_of, report_of};
use crate::ports::store::{Header, IdempotencyRecord, ReadError, Store, TimerChange, TimerKey};
use crate::replay::Original;
use crate::requests::{
    Cancelled, ControlError, ExecutionOutcome, ResumeError, StartError, Suspended, Unavailable,
};
use crate::shared::Shared;

/// Callers that may wait for the outcome of one execution.
const WAITERS_MAX: usize = 10_000;
/// Facts read at once when an answer is looked up in the record.
const OUTCOME_LOOKUP_PAGE: usize = 500;

impl ExecutionActor {
    pub(super) fn perform(&mut self, order: Order, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else {
            order.refuse(Unavailable::ActorLost);
            return;
        };
        if !order.is_for(&life.header) {
            order.not_found();
            return;
        }
        self.is_wanted |= !matches!(order, Order::Continue);
        match order {
            Order::Start(order) => self.exists_already(*order),
            Order::Suspend { reason, by, answer, .. } => self.suspend((reason, by), answer, ctx),
            Order::Resume(order) => self.resume(*order, ctx),
            Order::Cancel { reason, by, answer, .. } => self.cancel((reason, by), answer, ctx),
            Order::Describe { answer, .. } => {
                let state = Box::new(describe(&life.header, &life.machine));
                self.answer_when_durable(answer, Ok(state));
            }
            Order::Why { answer, .. } => {
                let is_at_work = life.deciding.is_busy() || !life.pending.is_empty();
                let look = if is_at_work { Shared::waits_at_work } else { Shared::waits_of };
                let wait_report = look(&self.shared, &life.header, &life.machine);
                self.answer_when_durable(answer, Ok(Box::new(wait_report)));
            }
            Order::Copy { from, answer, .. } => {
                let original = Original::of(&life.machine, from);
                self.answer_when_durable(answer, original);
            }
            Order::Subscribe { subscriber, answer, .. } => self.subscribe(subscriber, answer, ctx),
            Order::AwaitOutcome { after_seq, answer, .. } => {
                self.await_outcome(after_seq, OutcomeAnswer::Again(answer), ctx);
            }
            Order::Timer(key) => self.time_has_come(key, ctx),
            Order::ChildReported { path, report } => self.hear_child(path, report, ctx),
            Order::Report { answer } => {
                let report = report_of(&life.machine);
                self.answer_when_durable(answer, Ok(report));
            }
            Order::PassResume { resume, idempotency, answer } => {
                self.take_passed_resume(resume, idempotency, answer, ctx);
            }
            Order::Continue => self.tell_machine(Command::Recover, ctx),
            Order::Abort { error, kind } => {
                self.tell_machine(Command::Abort { error, kind }, ctx);
            }
            Order::Stop { answer } => self.stop(answer, ctx),
        }
    }

    /// The first order of a new execution.
    pub(super) fn begin(&mut self, order: StartOrder, ctx: &mut Context<Self>) {
        let StartOrder { plan, mut start, idempotency, subscriber, claim, answer, .. } = order;
        self.claim = Some(claim);
        let row = self.shared.store.next_row();
        start.trace = start.trace.anchored(RootRow::Execution(row));
        let header = self.header(&start);
        let id = self.id.clone();
        let (machine, batch) =
            self.shared.at_moment(|moment| Machine::start(plan, id, start, moment));
        let header = Arc::new(Header { created_at: machine.state().created_at, ..header });
        self.life = Some(Life::new(row, header, machine));
        if let Some(subscriber) = subscriber {
            self.add_reader(subscriber, ctx);
        }
        self.record(batch, Along { idempotency, timers: Vec::new() }, ctx);
        self.answer_start(answer);
    }

    fn answer_start(&mut self, answer: StartAnswer) {
        let Some(life) = &mut self.life else { return };
        // The start's own append also tells waiters why it was not taken, so all of them wait.
        match answer {
            StartAnswer::OnSettled(_) => {
                self.wait_for_outcome(0, OutcomeAnswer::Start(answer), Owns::NextAppend);
            }
            StartAnswer::AtStart(answer) => {
                let id = self.id.clone();
                self.answer_when_durable(answer, Ok(id));
            }
            StartAnswer::Parent(answer) => {
                let report = report_of(&life.machine);
                self.answer_when_durable(answer, Ok(report));
            }
        }
    }

    fn header(&self, start: &Start) -> Header {
        Header {
            id: self.id.clone(),
            workflow_id: Arc::clone(&start.workflow_id),
            definition_hash: Arc::clone(&start.definition_hash),
            user_id: start.user_id.clone(),
            conversation_id: start.conversation_id.clone(),
            parent: start.parent.clone(),
            trace: start.trace.clone(),
            created_at: Timestamp::default(),
        }
    }

    fn exists_already(&mut self, order: StartOrder) {
        let Some(life) = &self.life else { return };
        let StartOrder { start, answer, .. } = order;
        match answer {
            StartAnswer::Parent(answer) if start.parent == life.header.parent => {
                let report = report_of(&life.machine);
                self.answer_when_durable(answer, Ok(report));
            }
            other => {
                let refusal = StartRefusal::Error(StartError::Exists(self.id.clone()));
                self.when_durable(Box::new(move |durable| match durable {
                    Ok(()) => other.refuse(refusal),
                    Err(why) => other.refuse(why.into()),
                }));
            }
        }
    }

    fn suspend(
        &mut self,
        (reason, by): (Option<String>, Option<Arc<Principal>>),
        answer: Answer<Suspended, ControlError>,
        ctx: &mut Context<Self>,
    ) {
        let reason: Arc<str> = reason.map_or_else(|| "Suspended on request".into(), Arc::from);
        let command = Command::Suspend { reason: Arc::clone(&reason), by };
        self.decide(command, ctx, |actor, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => {
                actor.record(batch, Along::default(), ctx);
                let suspended_at = actor.updated_at();
                let (execution_id, trace_id) = (actor.id.clone(), actor.trace_id());
                let (suspension_id, by) = actor.hold_placed();
                let suspended =
                    Suspended { suspension_id, execution_id, trace_id, reason, suspended_at, by };
                actor.answer_when_durable(answer, Ok(suspended));
            }
            Err(Refusal::Already(status)) => {
                actor.answer_when_durable(answer, Err(ControlError::Already(status)));
            }
            Ok(Decision::Forward { .. }) | Err(_) => {
                drop(answer.send(Err(ControlError::NotFound)));
            }
        });
    }

    fn cancel(
        &mut self,
        (reason, by): (Option<String>, Option<Arc<Principal>>),
        answer: Answer<Cancelled, ControlError>,
        ctx: &mut Context<Self>,
    ) {
        let reason: Arc<str> = reason.map_or_else(|| "Cancelled on request".into(), Arc::from);
        let command = Command::Cancel { reason: Arc::clone(&reason), by: by.clone() };
        self.decide(command, ctx, |actor, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => {
                actor.record(batch, Along::default(), ctx);
                let cancelled_at = actor.updated_at();
                let (execution_id, trace_id) = (actor.id.clone(), actor.trace_id());
                let cancelled = Cancelled { execution_id, trace_id, reason, cancelled_at, by };
                actor.answer_when_durable(answer, Ok(cancelled));
            }
            Err(Refusal::Already(status)) => {
                actor.answer_when_durable(answer, Err(ControlError::Already(status)));
            }
            Ok(Decision::Forward { .. }) | Err(_) => {
                drop(answer.send(Err(ControlError::NotFound)));
            }
        });
    }

    /// The hold that was just placed, and by whom.
    fn hold_placed(&self) -> (Arc<str>, Option<Arc<Principal>>) {
        let hold = self.life.as_ref().and_then(|life| life.machine.state().hold.as_ref());
        hold.map(|hold| (Arc::clone(&hold.id), hold.by.clone())).unwrap_or_default()
    }

    fn trace_id(&self) -> Arc<str> {
        self.life.as_ref().map(|life| Arc::clone(&life.header.trace.id)).unwrap_or_default()
    }

    fn updated_at(&self) -> Timestamp {
        self.life.as_ref().map(|life| life.machine.state().updated_at).unwrap_or_default()
    }

    fn resume(&mut self, order: ResumeOrder, ctx: &mut Context<Self>) {
        let ResumeOrder { resume, idempotency, answer, .. } = order;
        let Some(life) = &self.life else { return };
        if life.keys.know(idempotency.as_ref()) {
            self.answer_when_durable(answer, Err(ResumeRefusal::KeyTaken));
            return;
        }
        if life.deciding.is_full() {
            drop(answer.send(Err(Unavailable::Busy { execution: None }.into())));
            return;
        }
        self.decide(Command::Resume(resume), ctx, |actor, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => {
                let before = batch.facts.first().map_or(0, |first| first.seq - 1);
                actor.wait_for_outcome(before, OutcomeAnswer::Resume(answer), Owns::NextAppend);
                actor.record(batch, with_key(idempotency, before), ctx);
                actor.go_on(ctx);
            }
            Ok(Decision::Forward { path, child, resume }) => {
                actor.forward_resume(path, child, resume, idempotency, answer, ctx);
            }
            Err(refusal) => {
                actor.answer_when_durable(answer, Err(resume_error(refusal).into()));
            }
        });
    }

    pub(super) fn wait_for_outcome(&mut self, after_seq: u64, answer: OutcomeAnswer, owns: Owns) {
        let Some(life) = &mut self.life else { return };
        if life.is_stopping {
            let execution = Some(self.id.clone());
            answer.refuse(Unavailable::Draining { execution });
            return;
        }
        // Callers that have gone leave their places.
        life.waiters.retain(|waiter| !waiter.answer.is_closed());
        if life.waiters.len() >= WAITERS_MAX {
            let execution = Some(self.id.clone());
            answer.refuse(Unavailable::Busy { execution });
            return;
        }
        let own_append = match owns {
            Owns::NextAppend => Some(life.machine.state().last_seq()),
            Owns::Nothing => None,
        };
        life.waiters.push(Waiter { after_seq, own_append, answer });
    }

    /// A resume of the parent's andWorkflow step: this record is the one decision.
    fn take_passed_resume(
        &mut self,
        resume: Resume,
        idempotency: Option<IdempotencyRecord>,
        answer: Answer<u64, ResumeError>,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else { return };
        if life.keys.know(idempotency.as_ref()) {
            self.answer_when_durable(answer, Err(ResumeError::KeyReused));
            return;
        }
        if life.deciding.is_full() {
            drop(answer.send(Err(Unavailable::Busy { execution: None }.into())));
            return;
        }
        let command = Command::Resume(resume);
        self.decide(command, ctx, |actor, decision, ctx| match decision {
            Ok(Decision::Recorded(batch)) => {
                let resumed = batch.facts.first().map_or(0, |recorded| recorded.seq);
                actor.record(batch, Along { idempotency, timers: Vec::new() }, ctx);
                actor.answer_when_durable(answer, Ok(resumed));
                actor.go_on(ctx);
            }
            Ok(Decision::Forward { path, child, resume }) => {
                actor.pass_on(path, child, resume, idempotency, answer, ctx);
            }
            Err(refusal) => {
                actor.answer_when_durable(answer, Err(resume_error(refusal)));
            }
        });
    }

    /// Answers with the first outcome after a number: from the journal if it is there, else when
    /// it becomes durable.
    pub(super) fn await_outcome(
        &mut self,
        after_seq: u64,
        answer: OutcomeAnswer,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else { return };
        let durable = life.durable_seq;
        let store = Arc::clone(&self.shared.store);
        let header = Arc::clone(&life.header);
        let look_up = async move { first_outcome(&*store, &header, after_seq, durable).await };
        self.errand(look_up, ctx, move |actor, found, ctx| match found {
            Ok(Some(outcome)) => answer.give(&outcome),
            // More became durable while the record was read.
            Ok(None) if actor.life.as_ref().is_some_and(|life| life.durable_seq > durable) => {
                actor.await_outcome(durable, answer, ctx);
            }
            Ok(None) => actor.wait_for_outcome(durable, answer, Owns::Nothing),
            Err(why) => answer.refuse(why.into()),
        });
    }

    fn time_has_come(&mut self, key: TimerKey, ctx: &mut Context<Self>) {
        match key {
            TimerKey::Node(path) => {
                let known = self.life.as_ref().is_some_and(|life| {
                    life.machine.node(&path).is_some_and(|(_, node)| node.armed_timer().is_some())
                });
                if known {
                    self.tell_machine(Command::TimerFired { path }, ctx);
                } else {
                    self.forget_timer(TimerKey::Node(path));
                }
            }
            TimerKey::AskChild(child) => self.ask_child(child, ctx),
            TimerKey::Abandoned => self.abandoned(ctx),
        }
    }

    /// Nobody waits for this execution any more.
    fn abandoned(&mut self, ctx: &mut Context<Self>) {
        let reason = Arc::from("The execution that started it no longer needs it");
        self.decide(
            Command::Cancel { reason, by: None },
            ctx,
            |actor, decision, ctx| match decision {
                Ok(Decision::Recorded(batch)) => actor.record(batch, Along::default(), ctx),
                Ok(Decision::Forward { .. }) | Err(_) => {
                    actor.forget_timer(TimerKey::Abandoned);
                }
            },
        );
    }

    /// Nobody needs the timer, and the record says so. While memory is ahead of it, the timer
    /// stays and comes up again: what was recorded meanwhile may yet be refused.
    pub(super) fn forget_timer(&self, key: TimerKey) {
        if self.life.as_ref().is_none_or(|life| !life.pending.is_empty()) {
            return;
        }
        let execution = self.id.clone();
        self.shared.store.change_timers(vec![TimerChange::Disarm { execution, key }]);
    }

    fn stop(&mut self, answer: tokio::sync::oneshot::Sender<()>, ctx: &mut Context<Self>) {
        if let Some(life) = &mut self.life {
            life.is_stopping = true;
        }
        self.drop_bodies(ctx);
        self.decide_ends_only(ctx);
        self.tell_machine(Command::Release, ctx);
        let Some(life) = &mut self.life else { return };
        let execution = Some(self.id.clone());
        for waiter in life.waiters.drain(..) {
            let execution = execution.clone();
            waiter.answer.refuse(Unavailable::Draining { execution });
        }
        life.stop = Some(answer);
    }
}

/// Returns the first outcome in the journal after one number, up to another.
async fn first_outcome(
    store: &dyn Store,
    header: &Header,
    after: u64,
    upto: u64,
) -> Result<Option<ExecutionOutcome>, ReadError> {
    let mut after = after;
    while after < upto {
        let page = store.facts(&header.id, after, OUTCOME_LOOKUP_PAGE).await?;
        let durable = page.iter().filter(|recorded| recorded.seq <= upto);
        if let Some(outcome) = durable.filter_map(|recorded| outcome_of(header, recorded)).next() {
            return Ok(Some(outcome));
        }
        after = page.last().map_or(upto, |last| last.next_seq() - 1);
    }
    Ok(None)
}

fn with_key(idempotency: Option<IdempotencyRecord>, after_seq: u64) -> Along {
    let idempotency = idempotency.map(|record| IdempotencyRecord { after_seq, ..record });
    Along { idempotency, timers: Vec::new() }
}

pub(super) fn resume_error(refusal: Refusal) -> ResumeError {
    match refusal {
        Refusal::Already(_) | Refusal::NotSuspended => ResumeError::NotSuspended,
        Refusal::UnknownStep(step) => ResumeError::UnknownStep(step),
        Refusal::StepNotSuspended(step) => ResumeError::StepNotSuspended(step),
        Refusal::Ambiguous { step, paths } => ResumeError::Ambiguous { step, paths },
        Refusal::SeveralWait { paths } => ResumeError::SeveralWait { paths },
        Refusal::SuspensionPassed { id, waiting } => ResumeError::SuspensionPassed { id, waiting },
        Refusal::InvalidData(detail) => ResumeError::InvalidData(detail),
    }
}

impl From<ResumeRefusal> for ResumeError {
    fn from(refusal: ResumeRefusal) -> Self {
        match refusal {
            ResumeRefusal::Error(error) => error,
            ResumeRefusal::KeyTaken => Self::KeyReused,
        }
    }
}
