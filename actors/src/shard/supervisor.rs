//! One per arbiter: finds or loads the actor of an execution, rebuilds it after a panic, and
//! unloads it when idle.
//!
//! Contains no rule of execution and nothing that can fail: it loads, passes on and unloads.

mod forget;
mod idle;
mod load;
mod registry;
mod stop;
mod turns;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actix::dev::SendError;
use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use tokio::time::Instant;

use crate::cluster::figures::Forwarded;
use crate::cluster::forward::forward;
use crate::commands::{Deliver, ExecutionCommand, StartCommand};
use crate::counters::Counters;
use crate::domain::failure::ErrorKind;
use crate::domain::ids::ExecutionId;
use crate::execution::{EXECUTION_MAILBOX, End, ExecutionActor, ExecutionSeed, Perform};
use crate::mailbox::force_send;
use crate::observe::log_record::LogScope;
use crate::requests::Unavailable;
use crate::shard::messages::{Committed, ExecutionEvent, ExecutionReport, ExitCause};
use crate::shard::supervisor::idle::{IdleEntry, IdleSince};
use crate::shard::supervisor::turns::{Turn, Turns};
use crate::shared::{OutageWatch, Shared};

pub(crate) use registry::RegistryChanged;
pub(crate) use stop::StopAll;

/// Mailbox capacity of a supervisor, in commands.
const SUPERVISOR_MAILBOX: usize = 16_384;
/// Commands that may wait for one execution to be loaded.
const LOADING_QUEUE_MAX: usize = 128;
/// Interval between checks of idle executions.
const SWEEP_EVERY: Duration = Duration::from_millis(500);
/// Time span in which restarts of an actor are counted.
const RESTART_WINDOW: Duration = Duration::from_secs(60);
/// Delay before an execution is loaded again whose append was rejected.
const RELOAD_AFTER: Duration = Duration::from_secs(1);

pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    index: usize,
    entries: HashMap<ExecutionId, Entry>,
    keys: HashMap<u64, ExecutionId>,
    next_key: u64,
    /// Idle executions with the time when they may be unloaded, oldest first.
    idle_queue: VecDeque<IdleEntry>,
    outage: OutageWatch,
    /// Number of callers refused for lack of memory, at the last sweep.
    refused_before: u64,
    turns: Turns,
    /// Times at which actors panicked.
    deaths: HashMap<ExecutionId, Vec<Instant>>,
    stopping: bool,
}

enum Entry {
    Loading(Loading),
    Live(Live),
}

/// Commands for an execution whose rows are being read, or will be.
struct Loading {
    turn: Turn,
    commands: Vec<ExecutionCommand>,
    /// Users forgotten since then: the rows may be older.
    forgotten: Vec<Arc<str>>,
}

struct Live {
    key: u64,
    address: Addr<ExecutionActor>,
    /// Commands passed to the actor so far.
    delivered: u64,
    /// Set while the actor is idle; it then has a place in the queue.
    idle: Option<IdleSince>,
}

/// Answered when the actor is up and its mailbox has its capacity.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct ReportReady;

impl Supervisor {
    pub(crate) fn new(shared: Arc<Shared>, index: usize) -> Self {
        Self {
            shared,
            index,
            entries: HashMap::new(),
            keys: HashMap::new(),
            next_key: 0,
            idle_queue: VecDeque::new(),
            outage: OutageWatch::default(),
            refused_before: 0,
            turns: Turns::default(),
            deaths: HashMap::new(),
            stopping: false,
        }
    }

    /// Starts the actor of an execution on this thread.
    fn spawn(&mut self, id: &ExecutionId, seed: ExecutionSeed, ctx: &Context<Self>) {
        self.next_key += 1;
        let key = self.next_key;
        let actor = ExecutionActor::new(
            Arc::clone(&self.shared),
            self.index,
            key,
            ctx.address().recipient(),
            id.clone(),
            seed,
        );
        // Set before the first command can arrive: the default capacity is 16.
        let address = ExecutionActor::create(|ctx| {
            ctx.set_mailbox_capacity(EXECUTION_MAILBOX);
            actor
        });
        self.shared.live.fetch_add(1, Ordering::AcqRel);
        self.keys.insert(key, id.clone());
        self.entries
            .insert(id.clone(), Entry::Live(Live { key, address, delivered: 0, idle: None }));
    }

    fn begin(&mut self, id: &ExecutionId, command: Box<StartCommand>, ctx: &Context<Self>) {
        let is_child = command.start.parent.is_some();
        let live = self.shared.live.load(Ordering::Acquire);
        if live >= self.shared.limits.executions_live_max && !is_child {
            command.answer.refuse(Unavailable::Busy { execution: None }.into());
            return;
        }
        let Some(row) = self.shared.store.next_row() else {
            command.answer.refuse(Unavailable::no_rows().into());
            return;
        };
        self.spawn(id, ExecutionSeed::New(command, row), ctx);
    }

    /// Sends a command to the member that serves the execution.
    fn pass_elsewhere(&self, deliver: Deliver, ctx: &Context<Self>) {
        let Some(permit) = self.shared.ownership.reserve_forwarding() else {
            self.shared.ownership.counters.forwarded(Forwarded::Refused);
            deliver.command.refuse(Unavailable::Busy { execution: None });
            return;
        };
        // not in this actor's context, which polls all of its futures whenever it is awake
        let (shared, here) = (Arc::clone(&self.shared), ctx.address().recipient());
        actix::spawn(forward(shared, here, deliver, permit));
    }

    fn pass(&mut self, id: &ExecutionId, command: ExecutionCommand, ctx: &mut Context<Self>) {
        let Some(Entry::Live(live)) = self.entries.get_mut(id) else {
            command.refuse(Unavailable::ActorLost);
            return;
        };
        if !live.address.connected() {
            // it panicked, and its report is on its way to this actor
            ctx.notify(Deliver { id: id.clone(), command });
            return;
        }
        if command.must_arrive() {
            force_send(&live.address, Perform(command));
            live.delivered += 1;
            return;
        }
        match live.address.try_send(Perform(command)) {
            Ok(()) => live.delivered += 1,
            Err(SendError::Full(Perform(command)) | SendError::Closed(Perform(command))) => {
                command.refuse(Unavailable::Busy { execution: None });
            }
        }
    }

    /// Forgets an actor. Once its address is dropped, it handles the rest of its mailbox, and ends if
    /// it is idle.
    fn unload(&mut self, key: u64) -> Option<Live> {
        let id = self.keys.remove(&key)?;
        self.shared.live.fetch_sub(1, Ordering::AcqRel);
        if !matches!(self.entries.get(&id), Some(Entry::Live(live)) if live.key == key) {
            return None;
        }
        match self.entries.remove(&id) {
            Some(Entry::Live(live)) => Some(live),
            Some(Entry::Loading(_)) | None => None,
        }
    }

    /// Returns true if no command was passed to the actor after the ones that it has handled.
    fn is_settled(&self, key: u64, delivered: u64) -> bool {
        let id = self.keys.get(&key);
        matches!(
            id.and_then(|id| self.entries.get(id)),
            Some(Entry::Live(live)) if live.key == key && live.delivered == delivered
        )
    }

    /// Reloads the execution of an actor that panicked. If that happens too often, the execution is
    /// failed; if failing it panics as well, it stays unloaded until a request needs it.
    fn rebuild(&mut self, id: ExecutionId, ctx: &mut Context<Self>) {
        let now = Instant::now();
        let deaths = self.deaths.entry(id.clone()).or_default();
        deaths.retain(|at| now.duration_since(*at) < RESTART_WINDOW);
        deaths.push(now);
        Counters::add_one(&self.shared.counters.panicked);
        let restarts = usize::try_from(self.shared.limits.actor_restarts_max).unwrap_or(usize::MAX);
        let died = deaths.len();
        let scope = LogScope::of_execution(&id);
        let log = |what: std::fmt::Arguments<'_>| scope.within(|| log::error!("{what}"));
        let command = if died <= restarts {
            log(format_args!("the actor of execution {id} panicked; reloading the execution"));
            ExecutionCommand::Continue
        } else if died == restarts + 1 {
            log(format_args!(
                "the actor of execution {id} panicked too often; failing the execution"
            ));
            let error = format!("the execution's actor failed more than {restarts} times");
            ExecutionCommand::Abort { error: error.into(), kind: ErrorKind::Internal }
        } else {
            log(format_args!("execution {id} stays as it is: failing it panics, too"));
            return;
        };
        self.fire_again(id.clone());
        ctx.notify(Deliver { id, command });
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(SUPERVISOR_MAILBOX);
        ctx.run_interval(self.shared.limits.every(SWEEP_EVERY), |supervisor, ctx| {
            supervisor.shared.pulse.beat(supervisor.index);
            supervisor.outage.check(&supervisor.shared);
            supervisor.sweep();
            supervisor.take_turns(ctx);
        });
    }
}

impl Handler<ReportReady> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: ReportReady, _: &mut Self::Context) {}
}

impl Handler<Deliver> for Supervisor {
    type Result = ();

    fn handle(&mut self, message: Deliver, ctx: &mut Self::Context) {
        let Deliver { id, command } = message;
        if self.stopping {
            command.refuse(match self.shared.ownership.members() {
                // nothing was recorded, and another member is about to serve the execution
                Some(_) => Unavailable::Moved { execution: None },
                None => Unavailable::Draining { execution: Some(id) },
            });
            return;
        }
        if !self.shared.ownership.serves(&id) {
            self.pass_elsewhere(Deliver { id, command }, ctx);
            return;
        }
        match self.entries.get_mut(&id) {
            Some(Entry::Live(_)) => self.pass(&id, command, ctx),
            Some(Entry::Loading(loading)) if loading.turn == Turn::Waits => {
                self.pass_to_waiting(&id, command, ctx);
            }
            Some(Entry::Loading(Loading { commands, .. }))
                if commands.len() < LOADING_QUEUE_MAX =>
            {
                commands.push(command);
            }
            Some(Entry::Loading(_)) => command.refuse(Unavailable::Busy { execution: None }),
            None => match command {
                ExecutionCommand::Start(start) if !start.chosen_id => self.begin(&id, start, ctx),
                command => self.load(id, command, ctx),
            },
        }
    }
}

impl Handler<Committed> for Supervisor {
    type Result = ();

    fn handle(&mut self, message: Committed, _: &mut Self::Context) {
        for outcome in message.0 {
            let id = self.keys.get(&outcome.ticket.key);
            if let Some(Entry::Live(live)) = id.and_then(|id| self.entries.get(id)) {
                force_send(&live.address, crate::execution::Appended(outcome));
            }
        }
    }
}

impl Handler<ExecutionReport> for Supervisor {
    type Result = ();

    fn handle(&mut self, message: ExecutionReport, ctx: &mut Self::Context) {
        let ExecutionReport { key, event } = message;
        match event {
            ExecutionEvent::Exited(cause) => self.exited(key, cause, ctx),
            ExecutionEvent::Idle(idle) => self.idle(key, idle, ctx),
            ExecutionEvent::SnapshotQueued { handled } => self.snapshot_queued(key, handled, ctx),
        }
    }
}

impl Supervisor {
    fn exited(&mut self, key: u64, cause: ExitCause, ctx: &mut Context<Self>) {
        let Some(id) = self.keys.get(&key).cloned() else { return };
        let ended = self.unload(key);
        if let Some(live) = ended.filter(|_| cause != ExitCause::Panicked) {
            force_send(&live.address, End);
        }
        match cause {
            ExitCause::NeverStored | ExitCause::Lost => {}
            ExitCause::RecordRefused => self.continue_later(id, ctx),
            ExitCause::Panicked => self.rebuild(id, ctx),
        }
    }
}
