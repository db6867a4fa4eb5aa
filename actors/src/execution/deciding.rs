//! Decisions that cost more than a turn are made elsewhere, and the actor answers meanwhile.
//!
//! A copy of the machine goes along; the one here stays as it is until the copy comes back. What
//! would change it waits its turn, but for orders that end or hold the execution: they are decided
//! at once, and what was being decided is begun again after them, if it still matters.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use actix::Context;

use crate::core::Core;
use crate::domain::effort::{Effort, within};
use crate::domain::ids::StepPath;
use crate::domain::machine::{Command, Decision, Machine, Moment, Refusal};
use crate::evaluation::Cancel;
use crate::execution::record::Along;
use crate::execution::{EXECUTION_MAILBOX, ExecutionActor};
use crate::ports::crash_marks::MarkedWork;
use crate::quarantine::MarkGuard;

/// What is done with a decision.
pub(super) type Then =
    Box<dyn FnOnce(&mut ExecutionActor, Result<Decision, Refusal>, &mut Context<ExecutionActor>)>;

/// A decision that is being made elsewhere.
pub(super) struct Deciding {
    number: u64,
    cancel: Cancel,
    /// What it is about, in case it is cut short.
    command: Command,
    then: Then,
    /// What is to be decided after it.
    queue: VecDeque<(Command, Then)>,
}

impl Deciding {
    /// Whether the end of this attempt is known and waits to be decided.
    pub(super) fn is_about(&self, path: &StepPath, attempt: u32) -> bool {
        let is_it = |command: &Command| match command {
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
        };
        is_it(&self.command) || self.queue.iter().any(|(command, _)| is_it(command))
    }

    pub(super) fn is_full(&self) -> bool {
        self.queue.len() >= EXECUTION_MAILBOX
    }
}

/// Whether a command does not wait for what is being decided.
fn is_urgent(command: &Command) -> bool {
    match command {
        Command::Suspend { .. }
        | Command::Cancel { .. }
        | Command::Release
        | Command::Abort { .. } => true,
        Command::Resume { .. }
        | Command::ChildTookResume { .. }
        | Command::StepFinished { .. }
        | Command::TimerFired { .. }
        | Command::ChildReported { .. }
        | Command::Recover => false,
    }
}

impl ExecutionActor {
    /// Asks the machine, and does something with what it says: at once where that is cheap.
    pub(super) fn decide(
        &mut self,
        command: Command,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, Result<Decision, Refusal>, &mut Context<Self>) + 'static,
    ) {
        self.decide_in_turn(command, Box::new(then), ctx);
    }

    fn decide_in_turn(&mut self, command: Command, then: Then, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        let is_urgent = is_urgent(&command);
        let cut_short = match &mut life.deciding {
            Some(deciding) if !is_urgent => {
                deciding.queue.push_back((command, then));
                return;
            }
            Some(_) => life.deciding.take(),
            None => None,
        };
        let core = Arc::clone(&self.core);
        let mark = || core.quarantine.mark(&self.id, life.restored_seq, MarkedWork::Decide);
        let marked = life.has_got_nowhere().then(mark);
        let decision = core.at_moment(|moment| life.machine.handle(command, moment));
        drop(marked);
        match decision {
            Ok(Decision::PutOff(command)) => self.decide_elsewhere(command, then, ctx),
            decision => then(self, decision, ctx),
        }
        if let Some(cut_short) = cut_short {
            self.begin_again(cut_short, ctx);
        }
    }

    /// What was cut short follows what cut it short, and all that waited for it.
    fn begin_again(&mut self, cut_short: Deciding, ctx: &mut Context<Self>) {
        let Deciding { cancel, command, then, queue, .. } = cut_short;
        cancel.store(true, Ordering::Relaxed);
        for (command, then) in std::iter::once((command, then)).chain(queue) {
            if self.life.as_ref().is_some_and(|life| !life.is_stopping) {
                self.decide_in_turn(command, then, ctx);
            }
        }
    }

    pub(super) fn decide_elsewhere(
        &mut self,
        command: Command,
        then: Then,
        ctx: &mut Context<Self>,
    ) {
        self.decisions += 1;
        let number = self.decisions;
        let Some(life) = &mut self.life else { return };
        let cancel = Cancel::default();
        let mut machine = life.machine.clone();
        life.deciding = Some(Deciding {
            number,
            cancel: Arc::clone(&cancel),
            command: command.clone(),
            then,
            queue: VecDeque::new(),
        });
        let core = Arc::clone(&self.core);
        let work = async move {
            let deciding = Arc::clone(&core);
            let decided = core.evaluations.evaluate(cancel, move |budget| {
                let _marked = deciding.mark_decision(&machine);
                let decision =
                    deciding.at_moment_within(budget, |moment| machine.handle(command, moment));
                (machine, decision)
            });
            decided.await
        };
        self.errand(work, ctx, move |actor, decided, ctx| {
            // Nothing when the process ends.
            if let Some((machine, decision)) = decided {
                actor.decided(number, machine, decision, ctx);
            }
        });
    }

    fn decided(
        &mut self,
        number: u64,
        machine: Machine,
        decision: Result<Decision, Refusal>,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &mut self.life else { return };
        let is_awaited = |deciding: &mut Deciding| deciding.number == number;
        let Some(deciding) = life.deciding.take_if(is_awaited) else { return };
        life.machine = machine;
        (deciding.then)(self, decision, ctx);
        for (command, then) in deciding.queue {
            self.decide_in_turn(command, then, ctx);
        }
    }

    /// Tells the machine what cannot be refused.
    pub(super) fn tell_machine(&mut self, command: Command, ctx: &mut Context<Self>) {
        self.decide(command, ctx, Self::take_decision);
    }

    fn take_decision(&mut self, decision: Result<Decision, Refusal>, ctx: &mut Context<Self>) {
        if let Ok(Decision::Recorded(batch)) = decision {
            self.record(batch, Along::default(), ctx);
        }
        self.start_bodies(ctx);
        self.go_on(ctx);
    }

    /// Goes on where the machine stopped: to let others have their turn, or because what follows
    /// costs more than one.
    pub(super) fn go_on(&mut self, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let is_busy = !life.pending.is_empty() || life.deciding.is_some() || life.is_stopping;
        if is_busy || !life.machine.goes_on() {
            return;
        }
        if life.machine.is_costly() {
            self.decide_elsewhere(Command::Recover, Box::new(Self::take_decision), ctx);
        } else {
            self.tell_machine(Command::Recover, ctx);
        }
    }

    /// Finds out what an attempt is to do, where that is cheap, and goes on with it.
    pub(super) fn prepare<T: Send + 'static>(
        &mut self,
        path: &StepPath,
        attempt: u32,
        ask: impl Fn(&Machine, &str, &Moment<'_>) -> T + Send + 'static,
        then: impl FnOnce(&mut Self, T, Effort, &mut Context<Self>) + 'static,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &mut self.life else { return };
        let (asked, effort) = asked(&self.core, &life.machine, path, &ask);
        if !effort.is_exceeded {
            then(self, asked, effort, ctx);
            return;
        }
        let cancel = Cancel::default();
        let place = (Arc::clone(path), attempt);
        life.preparing.insert(place.clone());
        let (core, machine, path) =
            (Arc::clone(&self.core), life.machine.clone(), Arc::clone(path));
        let work = async move {
            let asking = Arc::clone(&core);
            let asked = core.evaluations.evaluate(cancel, move |budget| {
                let _marked = asking.mark_decision(&machine);
                asking.at_moment_within(budget, |moment| {
                    within(budget, || ask(&machine, &path, moment))
                })
            });
            asked.await
        };
        self.errand(work, ctx, move |actor, asked, ctx| {
            let Some(life) = &mut actor.life else { return };
            life.preparing.remove(&place);
            let (path, attempt) = place;
            let effects = life.machine.effects(life.durable_seq);
            let is_wanted = effects.iter().any(|it| it.path == path && it.attempt == attempt);
            if let Some((asked, effort)) = asked.filter(|_| is_wanted && !life.is_stopping) {
                then(actor, asked, effort, ctx);
            }
        });
    }
}

impl Core {
    /// Notes what is about to cost much.
    fn mark_decision(&self, machine: &Machine) -> Option<MarkGuard<'_>> {
        let state = machine.state();
        self.quarantine.mark(&state.id, state.last_seq(), MarkedWork::Decide)
    }
}

fn asked<T>(
    core: &Core,
    machine: &Machine,
    path: &str,
    ask: impl Fn(&Machine, &str, &Moment<'_>) -> T,
) -> (T, Effort) {
    core.at_moment(|moment| within(moment.budget, || ask(machine, path, moment)))
}
