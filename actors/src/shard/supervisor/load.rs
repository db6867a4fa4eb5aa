//! Loading an execution from its rows.

use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};

use crate::commands::{Deliver, ExecutionCommand};
use crate::counters::Counters;
use crate::domain::ids::ExecutionId;
use crate::execution::{ExecutionSeed, Restored, answer_from_rows, restore};
use crate::observe::log_record::LogScope;
use crate::ports::store::TimerChange;
use crate::requests::Unavailable;
use crate::shard::supervisor::turns::Turn;
use crate::shard::supervisor::{Entry, Loading, RELOAD_AFTER, Supervisor};

impl Supervisor {
    /// Loads an execution, now or in turn; commands that arrive in between wait.
    pub(super) fn load(
        &mut self,
        id: ExecutionId,
        command: ExecutionCommand,
        ctx: &mut Context<Self>,
    ) {
        if command.needs_room() && self.shared.memory.is_used_up() {
            command.refuse(self.shared.no_memory());
            return;
        }
        let is_patient = command.is_patient();
        let commands = vec![command];
        let loading = Loading { turn: Turn::Requested, commands, forgotten: Vec::new() };
        if is_patient {
            self.await_turn(id, loading, ctx);
        } else {
            self.entries.insert(id.clone(), Entry::Loading(loading));
            self.read(id, ctx);
        }
    }

    pub(super) fn read(&mut self, id: ExecutionId, ctx: &mut Context<Self>) {
        let shared = Arc::clone(&self.shared);
        let rows = async move {
            let restored = restore(&shared, &id).await;
            (id, restored)
        };
        ctx.spawn(rows.into_actor(self).map(|(id, restored), supervisor, ctx| {
            supervisor.loaded(&id, restored, ctx);
        }));
    }

    fn loaded(
        &mut self,
        id: &ExecutionId,
        restored: Result<Option<Restored>, Unavailable>,
        ctx: &mut Context<Self>,
    ) {
        let Some(Entry::Loading(loading)) = self.entries.remove(id) else { return };
        let Loading { turn, commands, forgotten } = loading;
        self.end_turn(turn);
        match restored {
            Ok(Some(mut restored)) => {
                for user in &forgotten {
                    restored.machine.forget(user);
                }
                self.revive(id, restored, (turn, commands), ctx);
            }
            Ok(None) => self.not_stored(id, commands, ctx),
            Err(why) => {
                // A corrupt record was logged, and loading it again gives the same.
                let is_corrupt = matches!(why, Unavailable::Corrupt(_));
                if !is_corrupt {
                    let level = self.shared.level_of_failure(log::Level::Error);
                    LogScope::of_execution(id)
                        .within(|| log::log!(level, "execution {id} cannot be loaded: {why}"));
                }
                if !is_corrupt && commands.iter().any(ExecutionCommand::is_internal) {
                    self.continue_later(id.clone(), ctx);
                }
                commands.into_iter().for_each(|command| command.refuse(why.clone()));
            }
        }
        self.take_turns(ctx);
    }

    /// Handles the commands for an execution that is not stored: only a start is carried out.
    fn not_stored(
        &mut self,
        id: &ExecutionId,
        commands: Vec<ExecutionCommand>,
        ctx: &mut Context<Self>,
    ) {
        for command in commands {
            match (command, self.entries.contains_key(id)) {
                (ExecutionCommand::Start(start), false) => self.begin(id, start, ctx),
                // A child that was abandoned before it started.
                (ExecutionCommand::Timer(key), false) => {
                    let disarm = TimerChange::Disarm { execution: id.clone(), key };
                    self.shared.store.change_timers(self.index, vec![disarm]);
                }
                (command, true) => self.pass(id, command, ctx),
                (command, false) => command.not_found(),
            }
        }
    }

    fn revive(
        &mut self,
        id: &ExecutionId,
        restored: Restored,
        (turn, commands): (Turn, Vec<ExecutionCommand>),
        ctx: &mut Context<Self>,
    ) {
        let answer = |command| answer_from_rows(&self.shared, &restored, command);
        let mut left: Vec<ExecutionCommand> = commands.into_iter().filter_map(answer).collect();
        let last_seq = restored.machine.state().last_seq();
        let end = self.shared.quarantine.error_of(id, last_seq).map(ExecutionCommand::set_aside);
        let memory = &self.shared.memory;
        let bytes = restored.machine.state().memory;
        let room = memory.claim(bytes);
        if room.is_none() {
            let refused = left.extract_if(.., |command| command.needs_room());
            refused.for_each(|command| command.refuse(self.shared.no_memory()));
        }
        if left.is_empty() && end.is_none() {
            return;
        }
        let can_wait = end.is_none() && left.iter().all(ExecutionCommand::is_patient);
        if room.is_none() && turn.is_requested() && can_wait {
            // The caller has been answered, and the other commands can wait.
            let loading = Loading { turn, commands: left, forgotten: Vec::new() };
            self.await_turn(id.clone(), loading, ctx);
            return;
        }
        let claim = room.unwrap_or_else(|| memory.claim_anyway(bytes));
        Counters::add_one(&self.shared.counters.rebuilt);
        self.spawn(id, ExecutionSeed::Restored(Box::new(restored), claim), ctx);
        end.into_iter().chain(left).for_each(|command| self.pass(id, command, ctx));
    }

    /// Continues an execution when the store accepts writes.
    pub(super) fn continue_later(&self, id: ExecutionId, ctx: &mut Context<Self>) {
        ctx.run_later(RELOAD_AFTER, move |supervisor, ctx| {
            if supervisor.shared.store.is_writable() {
                supervisor.fire_again(id.clone());
                ctx.notify(Deliver { id, command: ExecutionCommand::Continue });
            } else {
                supervisor.continue_later(id, ctx);
            }
        });
    }

    /// Announces the timers of an execution whose actor ended before it recorded what had fired.
    pub(super) fn fire_again(&self, id: ExecutionId) {
        let shared = Arc::clone(&self.shared);
        actix::spawn(async move {
            // If they cannot be read, the scheduler finds them at its next poll.
            if let Ok(timers) = shared.store.timers_of(&id).await {
                shared.announce_timers(timers);
            }
        });
    }
}
