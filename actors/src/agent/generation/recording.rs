//! The time since when a run waits for a record.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// Time since when a run waits for the store to record it; shared by the run and its handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recording(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    since: Mutex<Option<Instant>>,
    /// Notified when a record has ended.
    ended: Notify,
}

impl Recording {
    /// Returns since when the run waits for a record; `None` while it does something else.
    pub(crate) fn since(&self) -> Option<Instant> {
        *self.0.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a record.
    pub(super) async fn during<T>(&self, record: impl Future<Output = T>) -> T {
        self.set(Some(Instant::now()));
        let recorded = record.await;
        self.set(None);
        self.0.ended.notify_waiters();
        recorded
    }

    /// Waits until the record that is under way has ended; not for later ones.
    pub(super) async fn ended(&self) {
        let mut ended = pin!(self.0.ended.notified());
        // before the look, so that no notification is missed
        ended.as_mut().enable();
        if self.since().is_some() {
            ended.await;
        }
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}
