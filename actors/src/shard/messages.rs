//! Messages that supervisors and their executions, the scheduler and the store exchange.

use actix::Message;

use crate::ports::store::{Acknowledgement, Timer};

/// The outcomes of one commit.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Committed(pub(crate) Vec<Acknowledgement>);

/// What the actor of an execution tells its supervisor.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ExecutionReport {
    /// The actor's number.
    pub(crate) key: u64,
    pub(crate) event: ExecutionEvent,
}

#[derive(Debug)]
pub(crate) enum ExecutionEvent {
    /// The actor has stopped, or can no longer be trusted.
    Exited(ExitCause),
    Idle(Idle),
    /// Its snapshot is queued and it has nothing to do: it may leave memory, if no command was passed
    /// to it since the `handled` ones.
    SnapshotQueued {
        handled: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCause {
    /// The last address was dropped.
    Forgotten,
    Panicked,
    /// The store refused what the actor recorded: memory and record differ.
    RecordRefused,
    /// The store knows another execution of this id: this one never was.
    NeverWas,
}

/// An execution has nothing to do: it may leave memory at once (`ended`) or after a while, if no
/// command was passed to it since the `handled` ones.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Idle {
    pub(crate) handled: u64,
    pub(crate) ended: bool,
    /// Its state is to be kept before it is forgotten.
    pub(crate) needs_snapshot: bool,
    /// It came back to go on, and there was nothing to go on with.
    pub(crate) idle: bool,
}

/// Announces a timer that has just become durable.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct TimerArmed(pub(crate) Timer);

/// Ends an actor, and all below it, without a word.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct KillForTest;
