//! Requests to the writer.

#[cfg(test)]
use std::sync::mpsc::Receiver;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Acknowledgement, Snapshot, TimerChange};
use greenroom_store_codec::prepared::{PreparedAppend, PreparedGeneration, PreparedLog};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::changes::Change;
use super::session::Verdict;

/// One request to the writer.
pub(super) enum Job {
    Append(Box<PreparedAppend>),
    /// An append that could not be serialized; refused in the order of the queue.
    Refuse(Acknowledgement),
    Timers(Vec<TimerChange>),
    /// The snapshot of an execution to unload.
    Snapshot(Snapshot),
    Definition {
        hash: String,
        body: Vec<u8>,
        done: oneshot::Sender<Verdict>,
    },
    Generation {
        write: Box<PreparedGeneration>,
        done: oneshot::Sender<Verdict>,
    },
    /// A change; returned to the head of the queue until its last part is made.
    Change {
        change: Change,
        /// Sum of the results of its parts so far.
        changed: u64,
        done: oneshot::Sender<Verdict<u64>>,
        /// Freed with the job.
        room: OwnedSemaphorePermit,
    },
    Interrupt {
        now: Timestamp,
        done: oneshot::Sender<Verdict>,
    },
    /// Log records; returned to the head of the queue until all are written, because a commit
    /// takes a limited number.
    Logs {
        logs: Vec<PreparedLog>,
        /// Number of records written so far.
        written: usize,
        done: oneshot::Sender<Verdict>,
    },
    /// Pauses the writer until the test drops the sender, so that a known queue builds up.
    #[cfg(test)]
    Pause(Receiver<()>),
}

impl Job {
    pub(super) fn is_logs(&self) -> bool {
        matches!(self, Self::Logs { .. })
    }
}
