//! Decisions that cost more than a turn are made on another thread; the actor stays free.
//!
//! They are made by a copy of the machine, which replaces the machine here when it is done. Other
//! commands that would change it wait in a queue. Those that end or pause the execution do not
//! wait; afterwards the interrupted decision is made again, if it still applies.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::Context;

use crate::domain::ids::StepPath;
use crate::domain::machine::{Command, Decision, Handled, Machine, Moment, Refusal};
use crate::domain::plan::{Step, WorkClass};
use crate::execution::record::AppendExtras;
use crate::execution::{EXECUTION_MAILBOX, ExecutionActor};
use crate::ports::crash_marks::MarkedWork;
use crate::ports::workers::Lane;
use crate::requests::Unavailable;
use crate::shard::evaluation::Cancel;
use crate::shard::quarantine::MarkGuard;
use crate::shared::{NotPassed, Shared};

/// Continuation that gets a decision.
type Then = Box<
    dyn FnOnce(&mut ExecutionActor, Result<Decision, NotRecorded>, &mut Context<ExecutionActor>),
>;

/// Reason why nothing of a command is recorded.
pub(super) enum NotRecorded {
    Refused(Refusal),
    /// The program let the answer not pass.
    NotPassed(NotPassed),
    /// The actor stops, or has given up, before its turn.
    Dropped(Unavailable),
}

/// The decision made elsewhere, and the commands that wait for it.
#[derive(Default)]
pub(super) struct Deciding {
    elsewhere: Option<Elsewhere>,
    /// Next commands, in order.
    queue: VecDeque<Request>,
    /// Decisions made elsewhere so far.
    count: u64,
}

/// A command for the machine, and what follows its decision.
pub(super) struct Request {
    command: Command,
    then: Then,
}

/// A decision that is being made on another thread.
struct Elsewhere {
    number: u64,
    cancel: Cancel,
    request: Request,
}

impl Deciding {
    /// Returns true if the end of this attempt is known and waits to be decided.
    pub(super) fn is_about(&self, path: &StepPath, attempt: u32) -> bool {
        let now = self.elsewhere.iter().map(|elsewhere| &elsewhere.request);
        now.chain(&self.queue).any(|request| {
            matches!(
                &request.command,
                Command::StepFinished { path: finished, attempt: number, .. }
                    if finished == path && *number == attempt
            )
        })
    }

    pub(super) fn is_busy(&self) -> bool {
        self.elsewhere.is_some() || !self.queue.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= EXECUTION_MAILBOX
    }

    /// Takes out the commands that are meant, in order, and gives up deciding them.
    fn take_out(&mut self, is_meant: impl Fn(&Command) -> bool) -> Vec<Request> {
        let begun = self.elsewhere.take_if(|it| is_meant(&it.request.command));
        let begun = begun.map(|Elsewhere { cancel, request, .. }| {
            cancel.store(true, Ordering::Relaxed);
            request
        });
        let (meant, kept): (VecDeque<_>, _) =
            self.queue.drain(..).partition(|it| is_meant(&it.command));
        self.queue = kept;
        begun.into_iter().chain(meant).collect()
    }

    /// Takes out all commands.
    pub(super) fn take_all(&mut self) -> Vec<Request> {
        self.take_out(|_| true)
    }
}

/// Returns true if a command does not wait for the decision under way.
fn is_urgent(command: &Command) -> bool {
    match command {
        Command::Suspend { .. } | Command::Cancel { .. } | Command::Abort { .. } => true,
        Command::Resume { .. }
        | Command::ChildTookResume { .. }
        | Command::StepFinished { .. }
        | Command::NoteStep { .. }
        | Command::TimerFired { .. }
        | Command::ChildReported { .. }
        | Command::Recover
        | Command::Release => false,
    }
}

fn is_end_of_body(command: &Command) -> bool {
    matches!(command, Command::StepFinished { .. })
}

impl ExecutionActor {
    /// Decides a command, at once if that is cheap, and passes the decision to `then`.
    pub(super) fn decide(
        &mut self,
        command: Command,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, Result<Decision, NotRecorded>, &mut Context<Self>) + 'static,
    ) {
        let Some(life) = &mut self.life else { return };
        let request = Request { command, then: Box::new(then) };
        if life.deciding.is_busy() && !is_urgent(&request.command) {
            life.deciding.queue.push_back(request);
            return;
        }
        self.decide_now(request, ctx);
    }

    fn decide_now(&mut self, request: Request, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        let Request { command, then } = request;
        let shared = Arc::clone(&self.shared);
        let mark = || shared.quarantine.mark(&self.id, life.restored_seq, MarkedWork::Decide);
        let marked = life.has_recorded_nothing().then(mark);
        let (machine, stopping) = (Arc::make_mut(&mut life.machine), life.stopping.as_ref());
        let handled = shared.at_moment(&self.id, |moment| {
            let missing =
                |step: &Step| (moment.missing)(step).or_else(|| left_to_next(step, stopping));
            machine.handle(command, &Moment { missing: &missing, ..*moment })
        });
        drop(marked);
        match handled {
            Ok(Handled::PutOff(command)) => self.decide_elsewhere(Request { command, then }, ctx),
            Ok(Handled::Decided(decision)) => {
                let interrupted = life.deciding.elsewhere.take_if(|_| decision.has_facts());
                then(self, Ok(decision), ctx);
                self.repeat_decision(interrupted, ctx);
            }
            Err(refusal) => then(self, Err(NotRecorded::Refused(refusal)), ctx),
        }
    }

    /// Repeats an interrupted decision with the changed machine, before those in the queue.
    fn repeat_decision(&mut self, interrupted: Option<Elsewhere>, ctx: &mut Context<Self>) {
        let Some(Elsewhere { cancel, request, .. }) = interrupted else { return };
        cancel.store(true, Ordering::Relaxed);
        let Some(life) = &mut self.life else { return };
        life.deciding.queue.push_front(request);
        self.decide_queue(ctx);
    }

    /// Decides the queue, up to the next command that is decided elsewhere.
    fn decide_queue(&mut self, ctx: &mut Context<Self>) {
        while let Some(request) = self.next_to_decide() {
            self.decide_now(request, ctx);
        }
        self.continue_run(ctx);
    }

    /// Takes one command only: `is_about` must find the others in the queue.
    fn next_to_decide(&mut self) -> Option<Request> {
        let deciding = &mut self.life.as_mut()?.deciding;
        if deciding.elsewhere.is_some() {
            return None;
        }
        deciding.queue.pop_front()
    }

    fn decide_elsewhere(&mut self, request: Request, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        if life.deciding.elsewhere.is_some() {
            life.deciding.queue.push_back(request);
            return;
        }
        life.deciding.count += 1;
        let (number, cancel) = (life.deciding.count, Cancel::default());
        let (mut machine, command) = (Arc::clone(&life.machine), request.command.clone());
        let begun = Elsewhere { number, cancel: Arc::clone(&cancel), request };
        life.deciding.elsewhere = Some(begun);
        let (shared, lane) = (Arc::clone(&self.shared), lane_of(&life.machine));
        let work = async move {
            let deciding = Arc::clone(&shared);
            let decided = shared.evaluations.evaluate(lane, cancel, move |budget| {
                let _marked = deciding.mark_decision(&machine);
                // Copying costs as well, so it happens on that thread.
                let copy = Arc::make_mut(&mut machine);
                let id = copy.state().id.clone();
                let handled =
                    deciding.at_moment_within(&id, budget, |moment| copy.handle(command, moment));
                (machine, handled)
            });
            decided.await
        };
        self.background_query(work, ctx, move |actor, decided, ctx| {
            // `None` when it was cancelled or the process ends.
            if let Some((machine, handled)) = decided {
                actor.decided(number, machine, handled, ctx);
            }
        });
    }

    fn decided(
        &mut self,
        number: u64,
        machine: Arc<Machine>,
        handled: Result<Handled, Refusal>,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &mut self.life else { return };
        let is_awaited = |elsewhere: &mut Elsewhere| elsewhere.number == number;
        let Some(Elsewhere { request, .. }) = life.deciding.elsewhere.take_if(is_awaited) else {
            return;
        };
        let before = std::mem::replace(&mut life.machine, machine);
        self.shared.evaluations.drop_elsewhere(lane_of(&before), before);
        let Request { command: _, then } = request;
        match handled {
            Ok(Handled::PutOff(command)) => self.decide_elsewhere(Request { command, then }, ctx),
            Ok(Handled::Decided(decision)) => then(self, Ok(decision), ctx),
            Err(refusal) => then(self, Err(NotRecorded::Refused(refusal)), ctx),
        }
        self.decide_queue(ctx);
    }

    /// Repeats the decision under way, because its copy of the machine is out of date.
    pub(super) fn decide_again(&mut self, ctx: &mut Context<Self>) {
        let interrupted = self.life.as_mut().and_then(|life| life.deciding.elsewhere.take());
        self.repeat_decision(interrupted, ctx);
    }

    /// Decides only the ends of bodies among the waiting commands; otherwise their steps would run
    /// again. The callers of the others are refused with this reason.
    pub(super) fn decide_ends_only(&mut self, why: Unavailable, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        let others = life.deciding.take_out(|command| !is_end_of_body(command));
        self.leave_undecided(others, why, ctx);
        self.decide_queue(ctx);
    }

    /// Refuses the callers of commands that are not decided any longer.
    pub(super) fn leave_undecided(
        &mut self,
        requests: Vec<Request>,
        why: Unavailable,
        ctx: &mut Context<Self>,
    ) {
        let why = why.about(None);
        for Request { then, .. } in requests {
            then(self, Err(NotRecorded::Dropped(why.clone())), ctx);
        }
    }

    /// Decides and records a command that cannot be refused.
    pub(super) fn decide_and_record(&mut self, command: Command, ctx: &mut Context<Self>) {
        self.decide(command, ctx, Self::take_decision);
    }

    /// Records a decision; what its facts begin is started once they are durable. Without facts,
    /// starts what waited for the decision.
    pub(super) fn take_decision(
        &mut self,
        decision: Result<Decision, NotRecorded>,
        ctx: &mut Context<Self>,
    ) {
        let has_facts = decision.as_ref().is_ok_and(Decision::has_facts);
        if let Ok(Decision::Recorded(batch)) = decision {
            self.record(batch, AppendExtras::default(), ctx);
        }
        if !has_facts {
            self.start_bodies(ctx);
        }
        self.continue_run(ctx);
    }

    /// Recovers the execution, or continues it, and starts every body that has begun: a function that
    /// was missing may be registered since.
    pub(super) fn recover(&mut self, ctx: &mut Context<Self>) {
        self.decide(Command::Recover, ctx, |actor, decision, ctx| {
            let has_facts = decision.as_ref().is_ok_and(Decision::has_facts);
            actor.take_decision(decision, ctx);
            // without facts it has just done so
            if has_facts {
                actor.start_bodies(ctx);
            }
        });
    }

    /// Continues a run that the machine interrupted: to give others a turn, or because the next
    /// step costs more than one.
    pub(super) fn continue_run(&mut self, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let is_busy =
            !life.pending.is_empty() || life.deciding.is_busy() || life.stopping.is_some();
        if is_busy || !life.machine.has_more() {
            return;
        }
        if life.machine.is_costly() {
            let request =
                Request { command: Command::Recover, then: Box::new(Self::take_decision) };
            self.decide_elsewhere(request, ctx);
        } else {
            self.decide_and_record(Command::Recover, ctx);
        }
    }
}

/// Returns why a step does not begin in an execution that stops here: its body would never run, and
/// its attempt would count as interrupted at the next owner.
fn left_to_next(step: &Step, stopping: Option<&Unavailable>) -> Option<String> {
    match step.work.class() {
        WorkClass::Outside | WorkClass::Child => stopping.map(ToString::to_string),
        WorkClass::Pure | WorkClass::Container(_) | WorkClass::Timer => None,
    }
}

/// Returns the lane of an execution's evaluations.
pub(super) fn lane_of(machine: &Machine) -> Lane {
    let start = &machine.state().start;
    Lane::of(&start.workflow_id, start.user_id.as_deref())
}

impl Shared {
    /// Sets a crash mark for a costly evaluation.
    pub(super) fn mark_decision(&self, machine: &Machine) -> Option<MarkGuard<'_>> {
        let state = machine.state();
        self.quarantine.mark(&state.id, state.last_seq(), MarkedWork::Decide)
    }
}
