//! The time since when a run waits for a record.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

/// Time since when a run waits for the store to record it; shared by the run and its handle.
#[derive(Debug, Clone, Default)]
pub(crate) struct Recording(Arc<Mutex<Option<Instant>>>);

impl Recording {
    /// Returns since when the run waits for a record; `None` while it does something else.
    pub(crate) fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a record.
    pub(super) async fn during<T>(&self, record: impl Future<Output = T>) -> T {
        self.set(Some(Instant::now()));
        let recorded = record.await;
        self.set(None);
        recorded
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}
