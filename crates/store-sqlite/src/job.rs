//! What the writer is asked to do.

#[cfg(test)]
use std::sync::mpsc::Receiver;

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{Acknowledgement, Snapshot, TimerChange};
use tokio::sync::oneshot;

use super::changes::Change;
use super::generations::PreparedGeneration;
use super::log_writes::PreparedLog;
use super::session::{PreparedAppend, Verdict};

/// One request to the writer.
pub(super) enum Job {
    Append(Box<PreparedAppend>),
    /// An append that could not even be written down; it keeps its place among the others.
    Refuse(Acknowledgement),
    Timers(Vec<TimerChange>),
    /// The state of an execution that leaves memory.
    State(Snapshot),
    Definition {
        hash: String,
        body: Vec<u8>,
        done: oneshot::Sender<Verdict>,
    },
    Generation {
        write: Box<PreparedGeneration>,
        done: oneshot::Sender<Verdict>,
    },
    /// Comes back to the queue's head until its last part is made.
    Change {
        change: Change,
        /// What its parts so far have changed.
        changed: u64,
        done: oneshot::Sender<Verdict<u64>>,
    },
    Interrupt {
        now: Timestamp,
        done: oneshot::Sender<Verdict>,
    },
    /// Comes back, too, until all is written: a commit takes so many records of all batches.
    Logs {
        logs: Vec<PreparedLog>,
        /// How many of them are written.
        written: usize,
        done: oneshot::Sender<Verdict>,
    },
    /// Waits until the test lets go of the other end, so that a known queue builds up.
    #[cfg(test)]
    Pause(Receiver<()>),
}

impl Job {
    pub(super) fn is_logs(&self) -> bool {
        matches!(self, Self::Logs { .. })
    }
}
