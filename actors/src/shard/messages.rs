//! Messages between supervisors, their executions, the scheduler and the store.

use std::sync::Arc;

use actix::Message;

use crate::domain::slot::SlotSet;
use crate::ports::store::{Acknowledgement, Timer};

/// The outcomes of one commit.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Committed(pub(crate) Vec<Acknowledgement>);

/// A report of an execution's actor to its supervisor.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ExecutionReport {
    /// The actor's number.
    pub(crate) key: u64,
    pub(crate) event: ExecutionEvent,
}

#[derive(Debug)]
pub(crate) enum ExecutionEvent {
    /// The actor panicked or gave up.
    Exited(ExitCause),
    Idle(Idle),
    /// Its snapshot is queued and it is idle: it may leave memory if no command was passed to it
    /// after the `handled` ones.
    SnapshotQueued {
        handled: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCause {
    Panicked,
    /// The store rejected an append, so memory and journal differ.
    RecordRefused,
    /// The store has another execution with this id, or rejected the start.
    NeverStored,
    /// The execution belongs to another process.
    Lost,
}

/// An execution has nothing to do. It may leave memory, at once if `ended` and otherwise after a
/// while, if no command was passed to it after the `handled` ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Idle {
    pub(crate) handled: u64,
    pub(crate) ended: bool,
    /// A snapshot is due before it leaves memory.
    pub(crate) needs_snapshot: bool,
    /// It was loaded to continue, and there was nothing to do.
    pub(crate) idle: bool,
}

/// Announces a timer that has just become durable.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct TimerArmed(pub(crate) Timer);

/// The slots that this process serves have changed.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct SlotsChanged;

/// Stops the executions of these slots, which another process is to serve; resolves when everything
/// acknowledged is durable.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct LeaveSlots(pub(crate) Arc<SlotSet>);

/// Returns the slots of executions that have work in progress.
#[derive(Message)]
#[rtype(result = "SlotSet")]
pub(crate) struct BusySlots;

/// Erases a user from the state of an execution, as the store does from its facts.
#[derive(Clone, Message)]
#[rtype(result = "()")]
pub(crate) struct ForgetUser(pub(crate) Arc<str>);

/// Ends an actor and everything below it without any record.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct KillForTest;
