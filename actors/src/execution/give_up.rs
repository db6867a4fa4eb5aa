//! The end of an actor whose append was refused.

use std::sync::Arc;

use actix::Context;

use crate::commands::{ExecutionCommand, Refuse as _};
use crate::execution::ExecutionActor;
use crate::execution::outcome::Waiter;
use crate::mailbox::report;
use crate::ports::store::AppendError;
use crate::requests::Unavailable;
use crate::shard::messages::{ExecutionEvent, ExecutionReport, ExitCause};

impl ExecutionActor {
    /// Gives the execution up, because memory and journal differ. Callers and subscribers are
    /// refused after the supervisor was notified: when they try again, they find the actor's
    /// successor. Commands that are still in the mailbox are returned to the supervisor, which then
    /// ends the actor.
    pub(super) fn give_up(&mut self, error: &AppendError, ctx: &mut Context<Self>) {
        let Some(life) = &self.life else { return };
        let (id, is_new) = (&self.id, life.durable_seq == 0);
        let recorded = (!is_new).then(|| id.clone());
        let why = match error {
            AppendError::Unavailable(reason) => {
                Unavailable::Store { reason: Arc::clone(reason), execution: recorded }
            }
            AppendError::Exists | AppendError::Stale | AppendError::KeyTaken => {
                Unavailable::Busy { execution: recorded }
            }
            AppendError::Lost => Unavailable::Moved { execution: recorded },
            AppendError::Unsettled => Unavailable::Moved { execution: Some(id.clone()) },
        };
        let was_never_stored = match error {
            AppendError::Exists => true,
            AppendError::KeyTaken => is_new,
            AppendError::Stale
            | AppendError::Unavailable(_)
            | AppendError::Lost
            | AppendError::Unsettled => false,
        };
        let cause = if *error == AppendError::Unsettled {
            ExitCause::Lost
        } else if was_never_stored || is_new {
            ExitCause::NeverStored
        } else if *error == AppendError::Lost {
            ExitCause::Lost
        } else {
            ExitCause::RecordRefused
        };
        let level = match error {
            // The store logs once that it rejects writes, or what it no longer owns.
            AppendError::Unavailable(_) | AppendError::Lost | AppendError::Unsettled => {
                log::Level::Debug
            }
            AppendError::Exists | AppendError::Stale | AppendError::KeyTaken => log::Level::Warn,
        };
        if !was_never_stored {
            log::log!(level, "execution {id}: {error}");
        }
        self.report_exit(cause);
        self.forsake(&why, Some(error), ctx);
    }

    /// Drops everything that works or waits for the execution. Callers are refused; if an append was
    /// rejected, its own caller with the specific refusal.
    pub(super) fn forsake(
        &mut self,
        why: &Unavailable,
        error: Option<&AppendError>,
        ctx: &mut Context<Self>,
    ) {
        self.drop_bodies(ctx);
        let Some(mut life) = self.life.take() else { return };
        let undecided = life.deciding.take_all();
        self.leave_undecided(undecided, why.clone(), ctx);
        // Only one append was rejected; the others are just not known to be durable.
        let refused = life.pending.front().map(|pending| pending.upto);
        for pending in life.pending.drain(..) {
            pending.then.into_iter().for_each(|then| then(Err(why.clone())));
        }
        for Waiter { own_append, answer, .. } in life.waiters.drain(..) {
            match error.filter(|_| own_append.is_some() && own_append == refused) {
                Some(error) => answer.refuse_append(&self.id, error, why),
                None => answer.refuse(why.clone()),
            }
        }
    }

    pub(super) fn report_exit(&self, cause: ExitCause) {
        let event = ExecutionEvent::Exited(cause);
        report(&self.supervisor, ExecutionReport { key: self.key, event });
    }

    /// Handles a command after the actor gave up: it has done nothing, and the supervisor passes it
    /// to the actor's successor, or to the process that serves the execution.
    pub(super) fn return_command(&self, command: ExecutionCommand) {
        match command {
            // there is nothing left to stop
            ExecutionCommand::Stop { answer, .. } => drop(answer.send(())),
            command => self.shared.deliver(self.id.clone(), command),
        }
    }
}
