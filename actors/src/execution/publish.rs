//! Subscribers of an execution, and the publication of durable facts.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::dev::SendError;
use tokio::time::Instant;

use crate::domain::event::events_of;
use crate::domain::fact::Recorded;
use crate::execution::ExecutionActor;
use crate::requests::{EventBatch, EventsRecorded, ProgressBatch, StepProgressed, Subscriber};

/// The subscribers of an execution. Shared, on one thread, with the relays of its steps: progress
/// is too frequent for the execution's own mailbox.
#[derive(Clone, Default)]
pub(crate) struct Subscribers {
    all: Rc<RefCell<Vec<Connection>>>,
}

/// A subscriber, and the time since when its mailbox is full.
struct Connection {
    subscriber: Subscriber,
    full_since: Option<Instant>,
}

impl Subscribers {
    pub(crate) fn add(&self, subscriber: Subscriber) {
        self.all.borrow_mut().push(Connection { subscriber, full_since: None });
    }

    pub(super) fn count(&self) -> usize {
        self.all.borrow().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.borrow().is_empty()
    }

    pub(super) fn want_progress(&self) -> bool {
        self.all.borrow().iter().any(|connection| connection.subscriber.progress.is_some())
    }

    pub(super) fn clear(&self) {
        self.all.borrow_mut().clear();
    }

    pub(crate) fn remove_disconnected(&self) {
        self.all.borrow_mut().retain(|connection| connection.subscriber.events.connected());
    }

    /// Sends progress to the subscribers that have room for it.
    pub(crate) fn publish_progress(&self, batch: ProgressBatch) {
        let batch = Arc::new(batch);
        for connection in self.all.borrow().iter() {
            if let Some(progress) = &connection.subscriber.progress {
                // Full or closed: durable events show whether the subscriber is slow or gone.
                let _ = progress.try_send(StepProgressed(Arc::clone(&batch)));
            }
        }
    }

    /// Sends facts to all subscribers; disconnects those that read nothing for `stall`.
    pub(crate) fn publish_events(&self, batch: &Arc<EventBatch>, stall: Duration) {
        self.all.borrow_mut().retain_mut(|connection| {
            match connection.subscriber.events.try_send(EventsRecorded(Arc::clone(batch))) {
                Ok(()) => {
                    connection.full_since = None;
                    true
                }
                Err(SendError::Closed(_)) => false,
                Err(SendError::Full(_)) => {
                    let since = *connection.full_since.get_or_insert_with(Instant::now);
                    let has_stalled = since.elapsed() >= stall;
                    if has_stalled {
                        (connection.subscriber.disconnect)();
                    }
                    !has_stalled
                }
            }
        });
    }
}

impl ExecutionActor {
    /// Sends facts to every subscriber without waiting.
    pub(super) fn publish(&self, facts: &Arc<[Recorded]>) {
        let Some(life) = &self.life else { return };
        if life.subscribers.is_empty() || facts.iter().all(|r| events_of(&r.fact).is_empty()) {
            return;
        }
        let batch = Arc::new(EventBatch::new(life.header.id.clone(), Arc::clone(facts)));
        life.subscribers.publish_events(&batch, self.shared.limits.subscriber_stall_timeout);
    }
}
