//! Loading an execution from its rows.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use actix::{ActorFutureExt, AsyncContext, Context, WrapFuture};
use futures_util::FutureExt;

use crate::commands::{Deliver, ExecutionCommand, StartAnswer, StartCommand, StartRefusal};
use crate::counters::Counters;
use crate::domain::ids::ExecutionId;
use crate::domain::machine::Machine;
use crate::execution::{ExecutionSeed, Restored, SnapshotMark, describe, read_snapshot, report_of};
use crate::observe::log_record::LogScope;
use crate::ports::crash_marks::MarkedWork;
use crate::ports::store::{StoredExecution, TimerChange};
use crate::replay::Original;
use crate::requests::{StartError, Subscription, Unavailable};
use crate::shard::supervisor::turns::Turn;
use crate::shard::supervisor::{Entry, Loading, RELOAD_AFTER, Supervisor};
use crate::shared::Shared;

impl Supervisor {
    /// Loads an execution, now or in turn; commands that arrive in between wait.
    pub(super) fn load(
        &mut self,
        id: ExecutionId,
        command: ExecutionCommand,
        ctx: &mut Context<Self>,
    ) {
        if self.shared.quarantine.is_unreadable(&id) {
            let why = format!("{} (earlier processes died while reading it)", name_of(&id));
            command.refuse(Unavailable::Corrupt(Arc::from(why)));
            return;
        }
        if command.needs_room() && self.shared.memory.is_used_up() {
            command.refuse(self.shared.no_memory());
            return;
        }
        let is_patient = command.is_patient();
        let end = self.shared.quarantine.error_of(&id).map(ExecutionCommand::set_aside);
        let commands = end.into_iter().chain([command]).collect();
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
        let scope = LogScope::of_execution(&id);
        let rows = scope.during(async move {
            // A panic on one record must not end the supervisor of all the others.
            let restored = AssertUnwindSafe(restore(&shared, &id)).catch_unwind().await;
            let panicked = |_| Err(shared.corrupt(name_of(&id), "it cannot be rebuilt"));
            let restored = restored.unwrap_or_else(panicked);
            (id, restored)
        });
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
                (command, true) => self.pass(id, command),
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
        let answer = |command| {
            let answer = AssertUnwindSafe(|| answer_from_rows(&self.shared, &restored, command));
            std::panic::catch_unwind(answer).unwrap_or(None)
        };
        let mut left: Vec<ExecutionCommand> = commands.into_iter().filter_map(answer).collect();
        let memory = &self.shared.memory;
        let bytes = restored.machine.state().memory;
        let room = memory.claim(bytes);
        if room.is_none() {
            let refused = left.extract_if(.., |command| command.needs_room());
            refused.for_each(|command| command.refuse(self.shared.no_memory()));
        }
        if left.is_empty() {
            return;
        }
        if room.is_none() && turn.is_requested() && left.iter().all(ExecutionCommand::is_patient) {
            // The caller has been answered, and the other commands can wait.
            let loading = Loading { turn, commands: left, forgotten: Vec::new() };
            self.await_turn(id.clone(), loading, ctx);
            return;
        }
        let claim = room.unwrap_or_else(|| memory.claim_anyway(bytes));
        Counters::add_one(&self.shared.counters.rebuilt);
        self.spawn(id, ExecutionSeed::Restored(Box::new(restored), claim), ctx);
        left.into_iter().for_each(|command| self.pass(id, command));
    }

    pub(super) fn continue_later(&self, id: ExecutionId, ctx: &mut Context<Self>) {
        ctx.run_later(RELOAD_AFTER, move |supervisor, ctx| {
            if supervisor.shared.store.is_writable() {
                ctx.notify(Deliver { id, command: ExecutionCommand::Continue });
            } else {
                supervisor.continue_later(id, ctx);
            }
        });
    }
}

async fn restore(shared: &Shared, id: &ExecutionId) -> Result<Option<Restored>, Unavailable> {
    let stored = shared.store.load(id).await?;
    let Some(stored) = stored else { return Ok(None) };
    let plan = shared.plan(&stored.projection.header.definition_hash).await;
    let plan = plan.map_err(|why| match why {
        // The execution is named as the corrupt record; the definition is already logged.
        Unavailable::Corrupt(definition) => {
            Unavailable::Corrupt(Arc::from(format!("{} with {definition}", name_of(id))))
        }
        other => other,
    })?;
    let StoredExecution { row, revision, projection, snapshot, facts } = stored;
    let last_seq = projection.last_seq;
    let header = projection.header;
    let mark = || shared.quarantine.mark(id, last_seq, MarkedWork::Load);
    let facts = match snapshot {
        Some((_, bytes)) => {
            let marked = mark();
            let read = read_snapshot(&bytes).and_then(|state| {
                let mark = SnapshotMark::of(&state, bytes.len());
                Some((Machine::restore(Arc::clone(&plan), state, &facts).ok()?, mark))
            });
            if let Some((machine, snapshot)) =
                read.filter(|(machine, _)| machine.state().last_seq() == last_seq)
            {
                return Ok(Some(Restored { row, revision, header, machine, snapshot }));
            }
            drop(marked);
            log::debug!("cannot use the snapshot of execution {id}: applying all facts instead");
            shared.store.facts(id, 0, usize::MAX).await?
        }
        None => facts,
    };
    let _marked = mark();
    let machine = Machine::replay(plan, id.clone(), &facts)
        .map_err(|why| shared.corrupt(name_of(id), &why.to_string()))?;
    Ok(Some(Restored { row, revision, header, machine, snapshot: SnapshotMark::default() }))
}

fn name_of(id: &ExecutionId) -> String {
    format!("execution {id}")
}

/// Answers a command that needs no actor; returns any other.
fn answer_from_rows(
    shared: &Shared,
    restored: &Restored,
    command: ExecutionCommand,
) -> Option<ExecutionCommand> {
    let Restored { header, machine, .. } = restored;
    if !command.is_for(header) {
        command.not_found();
        return None;
    }
    let ended = machine.state().end.is_some();
    match command {
        ExecutionCommand::Start(start) => return answer_start(restored, *start),
        ExecutionCommand::Describe { answer, .. } => {
            drop(answer.send(Ok(Box::new(describe(header, machine)))));
        }
        ExecutionCommand::Why { answer, .. } => {
            drop(answer.send(Ok(Box::new(shared.report_now(header, machine)))));
        }
        ExecutionCommand::Copy { from, answer, .. } => {
            drop(answer.send(Original::of(machine, from)));
        }
        ExecutionCommand::Report { answer } => drop(answer.send(Ok(report_of(machine)))),
        ExecutionCommand::Abort { .. } if ended => {}
        ExecutionCommand::Subscribe { answer, .. } if ended => {
            let durable_seq = machine.state().last_seq();
            drop(answer.send(Ok(Subscription { durable_seq, ended })));
        }
        other @ (ExecutionCommand::Suspend(_)
        | ExecutionCommand::Resume(_)
        | ExecutionCommand::Cancel(_)
        | ExecutionCommand::Subscribe { .. }
        | ExecutionCommand::AwaitOutcome { .. }
        | ExecutionCommand::Timer(_)
        | ExecutionCommand::ChildReported { .. }
        | ExecutionCommand::PassResume { .. }
        | ExecutionCommand::Continue
        | ExecutionCommand::Abort { .. }
        | ExecutionCommand::Stop { .. }) => return Some(other),
    }
    None
}

/// Refuses a repeated start; the execution's own parent gets its status.
fn answer_start(restored: &Restored, command: StartCommand) -> Option<ExecutionCommand> {
    let StartCommand { start, answer, .. } = command;
    match answer {
        StartAnswer::Parent(answer) if start.parent == restored.header.parent => {
            drop(answer.send(Ok(report_of(&restored.machine))));
            // It may have been running when the process ended.
            (!restored.machine.state().announced.is_terminal())
                .then_some(ExecutionCommand::Continue)
        }
        other => {
            let id = restored.header.id.clone();
            other.refuse(StartRefusal::Error(StartError::Exists(id)));
            None
        }
    }
}
