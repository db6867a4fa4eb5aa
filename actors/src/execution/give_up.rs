//! The end of an actor whose append was refused.

use std::sync::Arc;

use actix::{ActorContext, Context};

use crate::domain::ids::ExecutionId;
use crate::execution::{ExecutionActor, LiveExecution};
use crate::ports::store::AppendError;
use crate::requests::Unavailable;
use crate::shard::messages::ExitCause;

/// Callers and subscribers of an actor that gave up. They get the refusal after the supervisor was
/// notified of its end: when they try again, they find its successor.
pub(super) struct Forsaken {
    life: LiveExecution,
    error: AppendError,
    why: Unavailable,
}

impl Forsaken {
    /// Refuses all waiting callers, and drops the subscribers.
    pub(super) fn refuse(mut self, id: &ExecutionId) {
        // Only one append was rejected; the others are just not known to be durable.
        let refused = self.life.pending.front().map(|pending| pending.upto);
        for pending in self.life.pending.drain(..) {
            pending.then.into_iter().for_each(|then| then(Err(self.why.clone())));
        }
        for waiter in self.life.waiters.drain(..) {
            if waiter.own_append.is_some() && waiter.own_append == refused {
                waiter.answer.refuse_append(id, &self.error, &self.why);
            } else {
                waiter.answer.refuse(self.why.clone());
            }
        }
    }
}

impl ExecutionActor {
    /// Ends the actor, because memory and journal differ.
    pub(super) fn give_up(&mut self, error: AppendError, ctx: &mut Context<Self>) {
        let Some(life) = self.life.take() else { return };
        let (id, is_new) = (&self.id, life.durable_seq == 0);
        let recorded = (!is_new).then(|| id.clone());
        let why = match &error {
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
        self.exit = if error == AppendError::Unsettled {
            ExitCause::Lost
        } else if was_never_stored || is_new {
            ExitCause::NeverStored
        } else if error == AppendError::Lost {
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
        self.forsaken = Some(Forsaken { life, error, why });
        ctx.stop();
    }
}
