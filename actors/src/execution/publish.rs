//! Readers of an execution, and telling them what has become durable.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::dev::SendError;
use actix::{AsyncContext, Context};
use tokio::time::Instant;

use crate::commands::Answer;
use crate::domain::event::events_of;
use crate::domain::fact::Recorded;
use crate::execution::ExecutionActor;
use crate::requests::Subscription;
use crate::requests::{
    DescribeError, EventBatch, EventsRecorded, ProgressBatch, StepProgressed, Subscriber,
    Unavailable,
};

/// Readers of one execution.
const READERS_MAX: usize = 20_000;

impl ExecutionActor {
    pub(super) fn subscribe(
        &mut self,
        subscriber: Subscriber,
        answer: Answer<Subscription, DescribeError>,
        ctx: &mut Context<Self>,
    ) {
        let Some(life) = &self.life else { return };
        if life.readers.count() >= READERS_MAX {
            drop(answer.send(Err(Unavailable::Busy { execution: None }.into())));
            return;
        }
        let durable_seq = life.durable_seq;
        let ended = life.machine.state().end.is_some() && life.pending.is_empty();
        if !ended {
            self.add_reader(subscriber, ctx);
        }
        drop(answer.send(Ok(Subscription { durable_seq, ended })));
    }

    pub(super) fn add_reader(&mut self, subscriber: Subscriber, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        life.readers.add(subscriber);
        self.look_for_who_has_left(ctx);
    }

    /// Readers and waiting callers keep the execution in memory; those who have left are noticed
    /// here.
    pub(super) fn look_for_who_has_left(&mut self, ctx: &mut Context<Self>) {
        let every = self.shared.limits.passivate_after.max(Duration::from_millis(100));
        let Some(life) = &mut self.life else { return };
        life.prune.get_or_insert_with(|| {
            ctx.run_interval(every, |actor, ctx| actor.forget_who_has_left(ctx))
        });
    }

    fn forget_who_has_left(&mut self, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        life.readers.forget_gone();
        life.waiters.retain(|waiter| !waiter.answer.is_closed());
        if life.readers.is_empty()
            && life.waiters.is_empty()
            && let Some(handle) = life.prune.take()
        {
            ctx.cancel_future(handle);
        }
        self.rest_if_idle(ctx);
    }
}

/// Everybody who reads an execution. Shared, on one thread, with those who pass on what its
/// agents say: that comes too often to go through the execution's own mailbox.
#[derive(Clone, Default)]
pub(super) struct Readers {
    all: Rc<RefCell<Vec<Reader>>>,
}

/// A subscriber, and since when it takes nothing.
struct Reader {
    subscriber: Subscriber,
    full_since: Option<Instant>,
}

impl Readers {
    pub(super) fn add(&self, subscriber: Subscriber) {
        self.all.borrow_mut().push(Reader { subscriber, full_since: None });
    }

    pub(super) fn count(&self) -> usize {
        self.all.borrow().len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.borrow().is_empty()
    }

    pub(super) fn want_progress(&self) -> bool {
        self.all.borrow().iter().any(|reader| reader.subscriber.progress.is_some())
    }

    pub(super) fn clear(&self) {
        self.all.borrow_mut().clear();
    }

    pub(super) fn forget_gone(&self) {
        self.all.borrow_mut().retain(|reader| reader.subscriber.events.connected());
    }

    /// Offers progress to whoever has room for it.
    pub(super) fn tell_progress(&self, batch: ProgressBatch) {
        let batch = Arc::new(batch);
        for reader in self.all.borrow().iter() {
            if let Some(progress) = &reader.subscriber.progress {
                // Full or closed: recorded events say whether the reader is slow or has gone.
                let _ = progress.try_send(StepProgressed(Arc::clone(&batch)));
            }
        }
    }

    /// Offers facts to everybody; one that has taken nothing for `stall` is cut.
    fn tell_events(&self, batch: &Arc<EventBatch>, stall: Duration) {
        self.all.borrow_mut().retain_mut(|reader| {
            match reader.subscriber.events.try_send(EventsRecorded(Arc::clone(batch))) {
                Ok(()) => {
                    reader.full_since = None;
                    true
                }
                Err(SendError::Closed(_)) => false,
                Err(SendError::Full(_)) => {
                    let since = *reader.full_since.get_or_insert_with(Instant::now);
                    let gone = since.elapsed() >= stall;
                    if gone {
                        (reader.subscriber.cut)();
                    }
                    !gone
                }
            }
        });
    }
}

impl ExecutionActor {
    /// Offers the facts to every reader; waits for none.
    pub(super) fn publish(&self, facts: &Arc<[Recorded]>) {
        let Some(life) = &self.life else { return };
        if life.readers.is_empty() || facts.iter().all(|r| events_of(&r.fact).is_empty()) {
            return;
        }
        let batch = Arc::new(EventBatch {
            execution_id: life.header.id.clone(),
            facts: Arc::clone(facts),
            rendered: OnceLock::new(),
        });
        life.readers.tell_events(&batch, self.shared.limits.subscriber_stall_timeout);
    }
}
