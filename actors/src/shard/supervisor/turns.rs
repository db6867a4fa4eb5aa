//! Executions that come back from their rows without a caller wait for their turn: a few are read at
//! once, and none while the executions in memory hold all that they may.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use actix::Context;

use crate::commands::ExecutionCommand;
use crate::domain::ids::ExecutionId;
use crate::requests::Unavailable;
use crate::shard::supervisor::{Entry, LOADING_QUEUE_MAX, Loading, Supervisor};

/// Executions that are read at once because it is their turn.
const READ_AT_ONCE: usize = 4;

/// Whose turn it is to be read.
#[derive(Default)]
pub(super) struct Turns {
    /// Those that wait, once each; also such as are read meanwhile because somebody asked.
    queue: VecDeque<ExecutionId>,
    reading: usize,
    /// The one that was let in although there was no room: one at a time is, so that whoever holds
    /// all memory and does nothing keeps no timer from what it is for.
    beyond: Option<ExecutionId>,
}

/// How an execution came to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is not read yet.
    Waits,
    /// It waited, and its turn came.
    Came,
    /// Somebody asked for it.
    Asked,
    /// Somebody asked for it while it waited: it keeps its place in the queue.
    AskedEarly,
}

impl Turn {
    /// Whether nothing but the command of a caller brought it to be read.
    pub(super) fn was_asked(self) -> bool {
        matches!(self, Self::Asked | Self::AskedEarly)
    }
}

impl Supervisor {
    /// Lets an execution wait for its turn, which may be now.
    pub(super) fn await_turn(
        &mut self,
        id: ExecutionId,
        loading: Loading,
        ctx: &mut Context<Self>,
    ) {
        if loading.turn != Turn::AskedEarly {
            self.turns.queue.push_back(id.clone());
        }
        self.shared.memory.waiting.fetch_add(1, Ordering::Relaxed);
        self.entries.insert(id, Entry::Loading(Loading { turn: Turn::Waits, ..loading }));
        self.take_turns(ctx);
    }

    /// Reads those whose turn it is.
    pub(super) fn take_turns(&mut self, ctx: &mut Context<Self>) {
        while !self.stopping && self.turns.reading < READ_AT_ONCE && !self.turns.queue.is_empty() {
            let is_beyond = self.shared.memory.is_used_up();
            if is_beyond && (self.turns.reading > 0 || self.is_one_beyond()) {
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

    /// Whether one that was let in without room is still in memory.
    fn is_one_beyond(&self) -> bool {
        let beyond = self.turns.beyond.as_ref();
        beyond.is_some_and(|id| self.entries.contains_key(id))
    }

    /// Counts one as read.
    pub(super) fn end_turn(&mut self, turn: Turn) {
        if turn == Turn::Came {
            self.turns.reading -= 1;
        }
    }

    /// Says that an execution is read now; not if it is already, or gone.
    fn end_wait(&mut self, id: &ExecutionId, turn: Turn) -> bool {
        let Some(Entry::Loading(loading)) = self.entries.get_mut(id) else { return false };
        if loading.turn != Turn::Waits {
            // It has lost its place.
            loading.turn =
                if loading.turn == Turn::AskedEarly { Turn::Asked } else { loading.turn };
            return false;
        }
        loading.turn = turn;
        self.shared.memory.waiting.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Passes a command to an execution that waits for its turn; a caller does not wait for that.
    pub(super) fn ask_one_that_waits(
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
            // Whoever looks after it: there is nothing to be looked after.
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
                if !is_patient && self.end_wait(id, Turn::AskedEarly) {
                    self.read(id.clone(), ctx);
                }
            }
        }
    }
}
