//! The queue of executions that are loaded without a caller: a few are read at once, and none while
//! the memory of executions is used up.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use actix::Context;

use crate::commands::ExecutionCommand;
use crate::domain::ids::ExecutionId;
use crate::requests::Unavailable;
use crate::shard::supervisor::{Entry, LOADING_QUEUE_MAX, Loading, Supervisor};

/// Executions from the queue that are read at once.
const READ_AT_ONCE: usize = 4;

/// The queue of executions to be read.
#[derive(Default)]
pub(super) struct Turns {
    /// Waiting executions, each once; some are being read already for a caller.
    queue: VecDeque<ExecutionId>,
    reading: usize,
    /// Execution that was loaded without room. One at a time is, so that timers still fire when
    /// idle executions hold all memory.
    beyond: Option<ExecutionId>,
}

/// Reason for reading an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Waiting, not read yet.
    Waits,
    /// Read in its turn.
    Came,
    /// Read for a caller.
    Requested,
    /// Read for a caller while it waited: it keeps its place in the queue.
    RequestedEarly,
}

impl Turn {
    /// Returns true if it is read for a caller.
    pub(super) fn is_requested(self) -> bool {
        matches!(self, Self::Requested | Self::RequestedEarly)
    }
}

impl Supervisor {
    /// Queues an execution, whose turn may be at once.
    pub(super) fn await_turn(
        &mut self,
        id: ExecutionId,
        loading: Loading,
        ctx: &mut Context<Self>,
    ) {
        if loading.turn != Turn::RequestedEarly {
            self.turns.queue.push_back(id.clone());
        }
        self.shared.memory.waiting.fetch_add(1, Ordering::Relaxed);
        self.entries.insert(id, Entry::Loading(Loading { turn: Turn::Waits, ..loading }));
        self.take_turns(ctx);
    }

    /// Reads executions from the queue, within the limits.
    pub(super) fn take_turns(&mut self, ctx: &mut Context<Self>) {
        while !self.stopping && self.turns.reading < READ_AT_ONCE && !self.turns.queue.is_empty() {
            let is_beyond = self.shared.memory.is_used_up();
            if is_beyond && (self.turns.reading > 0 || self.has_one_beyond()) {
                return;
            }
            let Some(id) = self.turns.queue.pop_front() else { return };
            if !self.end_wait(&id, Turn::Came) {
                continue;
            }
            self.turns.reading += 1;
            if is_beyond {
                self.turns.beyond = Some(id.clone());
            }
            self.read(id, ctx);
        }
    }

    /// Returns true if an execution that was loaded without room is still in memory.
    fn has_one_beyond(&self) -> bool {
        let beyond = self.turns.beyond.as_ref();
        beyond.is_some_and(|id| self.entries.contains_key(id))
    }

    /// Counts an execution as read.
    pub(super) fn end_turn(&mut self, turn: Turn) {
        if turn == Turn::Came {
            self.turns.reading -= 1;
        }
    }

    /// Marks a waiting execution as being read. Returns false if it is read already, or gone.
    fn end_wait(&mut self, id: &ExecutionId, turn: Turn) -> bool {
        let Some(Entry::Loading(loading)) = self.entries.get_mut(id) else { return false };
        if loading.turn != Turn::Waits {
            // It has left the queue.
            loading.turn =
                if loading.turn == Turn::RequestedEarly { Turn::Requested } else { loading.turn };
            return false;
        }
        loading.turn = turn;
        self.shared.memory.waiting.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Passes a command to a waiting execution; for a caller's command it is read at once.
    pub(super) fn pass_to_waiting(
        &mut self,
        id: &ExecutionId,
        command: ExecutionCommand,
        ctx: &mut Context<Self>,
    ) {
        let Some(Entry::Loading(Loading { commands, .. })) = self.entries.get_mut(id) else {
            return;
        };
        let is_full = commands.len() >= LOADING_QUEUE_MAX;
        match command {
            command if command.needs_room() && self.shared.memory.is_used_up() => {
                command.refuse(self.shared.no_memory());
            }
            // The watchdog: a waiting execution needs no check.
            ExecutionCommand::Why { subject: None, .. } => {
                command.refuse(Unavailable::Busy { execution: None })
            }
            ExecutionCommand::Continue
                if commands.iter().any(|command| matches!(command, ExecutionCommand::Continue)) => {
            }
            command if is_full => command.refuse(Unavailable::Busy { execution: None }),
            command => {
                let is_patient = command.is_patient();
                commands.push(command);
                if !is_patient && self.end_wait(id, Turn::RequestedEarly) {
                    self.read(id.clone(), ctx);
                }
            }
        }
    }
}
