//! Outages of the store, as callers see them: new commands are refused at once, and those that wait
//! for a write are answered when the patience is over.

use std::sync::Arc;

use log::Level;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::domain::ids::ExecutionId;
use crate::requests::Unavailable;
use crate::shared::Shared;

/// Callers who wait during an outage.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    /// Notified at every check of an outage that outlasts the patience.
    outlasts: Notify,
}

impl Shared {
    /// Resolves when an outage outlasts the patience, and the caller has waited for as long.
    pub(crate) async fn patience_is_over(&self) {
        let begun = Instant::now();
        self.patience_is_over_since(|| Some(begun)).await;
    }

    /// Resolves when an outage outlasts the patience, and the caller has waited for the store for
    /// as long; `None` while it waits for something else.
    pub(crate) async fn patience_is_over_since(&self, waits_since: impl Fn() -> Option<Instant>) {
        loop {
            self.outage_outlasts_patience().await;
            if waits_since().is_some_and(|since| since.elapsed() >= self.limits.store_patience) {
                return;
            }
        }
    }

    /// Resolves when an outage outlasts the patience; soon if one does already.
    pub(crate) async fn outage_outlasts_patience(&self) {
        self.outage.outlasts.notified().await;
    }

    /// Returns the level of a record about a failed request to the store: that of others, but low
    /// during an outage, which the store logs once.
    pub(crate) fn level_of_failure(&self, usual: Level) -> Level {
        if self.store.is_writable() { usual } else { Level::Debug }
    }

    /// Waits for an answer that follows from a write, but for no outage that outlasts the patience:
    /// then returns the refusal, with the execution that may be recorded.
    pub(crate) async fn unless_outage<T>(
        &self,
        execution: Option<&ExecutionId>,
        answer: impl Future<Output = T>,
    ) -> Result<T, Unavailable> {
        tokio::select! {
            biased;
            answer = answer => Ok(answer),
            () = self.patience_is_over() => Err(refusal(execution.cloned())),
        }
    }

    /// Refuses a new command while the store accepts no writes. Whatever the store already has
    /// queued is bounded by the executions in memory; commands from outside are not.
    pub(crate) fn accepts_writes(&self) -> Result<(), Unavailable> {
        match self.store.is_writable() {
            true => Ok(()),
            false => Err(refusal(None)),
        }
    }
}

/// Returns the refusal of a command, with the execution if it is recorded or still may be.
pub(crate) fn refusal(execution: Option<ExecutionId>) -> Unavailable {
    Unavailable::Store { reason: Arc::from("it accepts no writes"), execution }
}

/// Time since when the store accepts no writes, as one thread sees it.
#[derive(Debug, Default)]
pub(crate) struct OutageWatch {
    since: Option<Instant>,
}

impl OutageWatch {
    /// Answers callers when an outage outlasts the patience. To be called at every sweep.
    pub(crate) fn check(&mut self, shared: &Shared) {
        self.since = match shared.store.is_writable() {
            true => None,
            false => self.since.or_else(|| Some(Instant::now())),
        };
        if self.since.is_some_and(|since| since.elapsed() >= shared.limits.store_patience) {
            shared.outage.outlasts.notify_waiters();
        }
    }
}
