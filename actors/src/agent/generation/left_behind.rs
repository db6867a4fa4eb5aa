//! Generations that can continue and do not yet, because the store did not answer or their steps had
//! not suspended. They are tried again until they continue or have ended.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Ids of generations to try again.
#[derive(Debug, Default)]
pub(crate) struct LeftBehind {
    ids: Mutex<Vec<String>>,
    added: Notify,
}

impl LeftBehind {
    pub(crate) fn add(&self, id: String) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        self.added.notify_one();
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.ids.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Resolves once one was added since the last call.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }
}
