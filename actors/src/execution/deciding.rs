//! Decisions that cost more than a turn are made elsewhere, and the actor answers meanwhile.
//!
//! They are made by a copy of the machine; the one here stays as it is until the copy comes back.
//! What would change it waits its turn, but for commands that end or hold the execution: they are
//! decided at once, and what was being decided is begun again after them, if it still matters.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::Context;

use crate::domain::ids::StepPath;
use crate::domain::machine::{Command, Decision, Handled, Machine, Refusal};
use crate::execution::record::AppendExtras;
use crate::execution::{EXECUTION_MAILBOX, ExecutionActor};
use crate::ports::crash_marks::MarkedWork;
use crate::ports::workers::Lane;
use crate::shard::evaluation::Cancel;
use crate::shard::quarantine::MarkGuard;
use crate::shared::Shared;

/// What is done with a decision.
type Then =
    Box<dyn FnOnce(&mut ExecutionActor, Result<Decision, Refusal>, &mut Context<ExecutionActor>)>;

/// Decisions that take their time, and those that wait for them.
#[derive(Default)]
pub(super) struct Deciding {
    elsewhere: Option<Elsewhere>,
    /// What is to be decided next.
    queue: VecDeque<Asked>,
    /// Decisions made elsewhere so far.
    count: u64,
}

/// What the machine is asked, and what follows.
struct Asked {
    command: Command,
    then: Then,
}

/// A decision that is being made elsewhere.
struct Elsewhere {
    number: u64,
    cancel: Cancel,
    asked: Asked,
}

impl Deciding {
    /// Whether the end of this attempt is known and waits to be decided.
    pub(super) fn is_about(&self, path: &StepPath, attempt: u32) -> bool {
        let now = self.elsewhere.iter().map(|elsewhere| &elsewhere.asked);
        now.chain(&self.queue).any(|asked| match &asked.command {
            Command::StepFinished { path: finished, attempt: number, .. } => {
                finished == path && *number == attempt
            }
            Command::Suspend { .. }
            | Command::Resume { .. }
            | Command::ChildTookResume { .. }
            | Command::Cancel { .. }
            | Command::TimerFired { .. }
            | Command::ChildReported { .. }
            | Command::Recover
            | Command::Release
            | Command::Abort { .. } => false,
        })
    }

    pub(super) fn is_busy(&self) -> bool {
        self.elsewhere.is_some() || !self.queue.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= EXECUTION_MAILBOX
    }

    /// Drops what is not the end of a body.
    fn keep_ends(&mut self) {
        self.queue.retain(|asked| is_end_of_body(&asked.command));
        let is_dropped = |it: &mut Elsewhere| !is_end_of_body(&it.asked.command);
        if let Some(Elsewhere { cancel, .. }) = self.elsewhere.take_if(is_dropped) {
            cancel.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether a command does not wait for what is being decided.
fn is_urgent(command: &Command) -> bool {
    match command {
        Command::Suspend { .. } | Command::Cancel { .. } | Command::Abort { .. } => true,
        Command::Resume { .. }
        | Command::ChildTookResume { .. }
        | Command::StepFinished { .. }
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
    /// Asks the machine, and does something with what it says: at once where that is cheap.
    pub(super) fn decide(
        &mut self,
        command: Command,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, Result<Decision, Refusal>, &mut Context<Self>) + 'static,
    ) {
        let Some(life) = &mut self.life else { return };
        let asked = Asked { command, then: Box::new(then) };
        if life.deciding.is_busy() && !is_urgent(&asked.command) {
            life.deciding.queue.push_back(asked);
            return;
        }
        self.decide_now(asked, ctx);
    }

    fn decide_now(&mut self, asked: Asked, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        let Asked { command, then } = asked;
        let shared = Arc::clone(&self.shared);
        let mark = || shared.quarantine.mark(&self.id, life.restored_seq, MarkedWork::Decide);
        let marked = life.has_got_nowhere().then(mark);
        let machine = Arc::make_mut(&mut life.machine);
        let handled = shared.at_moment(|moment| machine.handle(command, moment));
        drop(marked);
        match handled {
            Ok(Handled::PutOff(command)) => self.decide_elsewhere(Asked { command, then }, ctx),
            Ok(Handled::Decided(decision)) => {
                let cut_short = life.deciding.elsewhere.take_if(|_| decision.has_facts());
                then(self, Ok(decision), ctx);
                self.begin_again(cut_short, ctx);
            }
            Err(refusal) => then(self, Err(refusal), ctx),
        }
    }

    /// Decides with what has become of the machine what was being decided with a copy of it from
    /// before, and then all that waited for that.
    fn begin_again(&mut self, cut_short: Option<Elsewhere>, ctx: &mut Context<Self>) {
        let Some(Elsewhere { cancel, asked, .. }) = cut_short else { return };
        cancel.store(true, Ordering::Relaxed);
        let Some(life) = &mut self.life else { return };
        life.deciding.queue.push_front(asked);
        self.work_off(ctx);
    }

    /// Decides what waits, up to the next that is decided elsewhere.
    fn work_off(&mut self, ctx: &mut Context<Self>) {
        while let Some(asked) = self.next_to_decide() {
            self.decide_now(asked, ctx);
        }
        self.continue_run(ctx);
    }

    /// The queue keeps the others: what they are about must not begin once more.
    fn next_to_decide(&mut self) -> Option<Asked> {
        let deciding = &mut self.life.as_mut()?.deciding;
        if deciding.elsewhere.is_some() {
            return None;
        }
        deciding.queue.pop_front()
    }

    fn decide_elsewhere(&mut self, asked: Asked, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        if life.deciding.elsewhere.is_some() {
            life.deciding.queue.push_back(asked);
            return;
        }
        life.deciding.count += 1;
        let (number, cancel) = (life.deciding.count, Cancel::default());
        let (mut machine, command) = (Arc::clone(&life.machine), asked.command.clone());
        let begun = Elsewhere { number, cancel: Arc::clone(&cancel), asked };
        life.deciding.elsewhere = Some(begun);
        let (shared, lane) = (Arc::clone(&self.shared), lane_of(&life.machine));
        let work = async move {
            let deciding = Arc::clone(&shared);
            let decided = shared.evaluations.evaluate(lane, cancel, move |budget| {
                let _marked = deciding.mark_decision(&machine);
                // The copy is made there, too.
                let copy = Arc::make_mut(&mut machine);
                let handled =
                    deciding.at_moment_within(budget, |moment| copy.handle(command, moment));
                (machine, handled)
            });
            decided.await
        };
        self.background_query(work, ctx, move |actor, decided, ctx| {
            // Nothing when it was cut short, or the process ends.
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
        let Some(Elsewhere { asked, .. }) = life.deciding.elsewhere.take_if(is_awaited) else {
            return;
        };
        let before = std::mem::replace(&mut life.machine, machine);
        self.shared.evaluations.drop_aside(lane_of(&before), before);
        let Asked { command: _, then } = asked;
        match handled {
            Ok(Handled::PutOff(command)) => self.decide_elsewhere(Asked { command, then }, ctx),
            Ok(Handled::Decided(decision)) => then(self, Ok(decision), ctx),
            Err(refusal) => then(self, Err(refusal), ctx),
        }
        self.work_off(ctx);
    }

    /// Has the machine decide anew what a copy of it is deciding, which does not know of a change.
    pub(super) fn decide_anew(&mut self, ctx: &mut Context<Self>) {
        let cut_short = self.life.as_mut().and_then(|life| life.deciding.elsewhere.take());
        self.begin_again(cut_short, ctx);
    }

    /// Decides of what waits only what bodies have given: their steps would run once more. Whoever
    /// asked for the rest hears that the process ends.
    pub(super) fn decide_ends_only(&mut self, ctx: &mut Context<Self>) {
        if let Some(life) = &mut self.life {
            life.deciding.keep_ends();
        }
        self.work_off(ctx);
    }

    /// Tells the machine what cannot be refused.
    pub(super) fn tell_machine(&mut self, command: Command, ctx: &mut Context<Self>) {
        self.decide(command, ctx, Self::take_decision);
    }

    pub(super) fn take_decision(
        &mut self,
        decision: Result<Decision, Refusal>,
        ctx: &mut Context<Self>,
    ) {
        if let Ok(Decision::Recorded(batch)) = decision {
            self.record(batch, AppendExtras::default(), ctx);
        }
        self.start_bodies(ctx);
        self.continue_run(ctx);
    }

    /// Goes on where the machine stopped: to let others have their turn, or because what follows
    /// costs more than one.
    pub(super) fn continue_run(&mut self, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let is_busy = !life.pending.is_empty() || life.deciding.is_busy() || life.is_stopping;
        if is_busy || !life.machine.goes_on() {
            return;
        }
        if life.machine.is_costly() {
            let asked = Asked { command: Command::Recover, then: Box::new(Self::take_decision) };
            self.decide_elsewhere(asked, ctx);
        } else {
            self.tell_machine(Command::Recover, ctx);
        }
    }
}

/// Whose evaluations these are.
pub(super) fn lane_of(machine: &Machine) -> Lane {
    let start = &machine.state().start;
    Lane::of(&start.workflow_id, start.user_id.as_deref())
}

impl Shared {
    /// Notes what is about to cost much.
    pub(super) fn mark_decision(&self, machine: &Machine) -> Option<MarkGuard<'_>> {
        let state = machine.state();
        self.quarantine.mark(&state.id, state.last_seq(), MarkedWork::Decide)
    }
}
