//! Readers of an execution, and telling them what has become durable.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use actix::dev::SendError;
use tokio::time::Instant;

use crate::domain::event::events_of;
use crate::domain::fact::Recorded;
use crate::execution::ExecutionActor;
use crate::requests::{EventBatch, EventsRecorded, ProgressBatch, StepProgressed, Subscriber};

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
