//! Telling readers what has become durable.

use std::sync::{Arc, OnceLock};

use actix::dev::SendError;
use tokio::time::Instant;

use crate::domain::event::events_of;
use crate::domain::fact::Recorded;
use crate::execution::ExecutionActor;
use crate::requests::{EventBatch, EventsRecorded, Subscriber};

/// A subscriber, and since when it takes nothing.
pub(super) struct Reader {
    subscriber: Subscriber,
    full_since: Option<Instant>,
}

impl Reader {
    pub(super) fn new(subscriber: Subscriber) -> Self {
        Self { subscriber, full_since: None }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.subscriber.events.connected()
    }
}

impl ExecutionActor {
    /// Offers the facts to every reader; waits for none.
    pub(super) fn publish(&mut self, facts: &Arc<[Recorded]>) {
        let stall = self.core.limits.subscriber_stall;
        let Some(life) = &mut self.life else { return };
        if life.readers.is_empty() || facts.iter().all(|r| events_of(&r.fact).is_empty()) {
            return;
        }
        let batch = Arc::new(EventBatch {
            execution_id: life.header.id.clone(),
            facts: Arc::clone(facts),
            rendered: OnceLock::new(),
        });
        life.readers.retain_mut(|reader| {
            match reader.subscriber.events.try_send(EventsRecorded(Arc::clone(&batch))) {
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
