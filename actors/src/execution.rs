//! The actor of one execution: a thin shell around the machine.
//!
//! In this order, everywhere: decide, record, publish, act. The machine decides; the facts go to
//! the journal; once they are durable, callers, subscribers and the parent get them; then the work
//! that they allow begins. In-memory state may run ahead of the journal; nothing leaves the
//! process, and no outside work starts, until its facts are durable.

mod agent;
mod answer_check;
mod asks;
mod bodies;
mod calls;
mod cancel;
mod child;
mod commands;
mod deciding;
mod describe;
mod forget;
mod give_up;
mod interrupted;
mod keys;
mod logging;
mod measure;
mod note;
mod outcome;
mod polled;
mod preparing;
mod progress;
mod publish;
mod queries;
mod record;
mod restore;
mod resume;
mod reversal;
mod rows;
mod shared_child;
mod snapshot;
mod start;
mod stop;
mod subscribe;
mod suspend;
mod timer;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message, Recipient, SpawnHandle};
use tokio::sync::oneshot::Sender;
use tokio::sync::watch;

use crate::commands::{ExecutionCommand, StartCommand};
use crate::domain::ids::{ExecutionId, StepPath};
use crate::domain::machine::Machine;
use crate::domain::time::Timestamp;
use crate::execution::asks::OpenAsks;
use crate::execution::bodies::{BodyInFlight, TrackedChild};
use crate::execution::deciding::Deciding;
use crate::execution::keys::RecentKeys;
use crate::execution::outcome::Waiter;
use crate::execution::record::Pending;
use crate::mailbox::report;
use crate::observe::log_record::LogScope;
use crate::observe::scope::scope_of;
use crate::observe::trace::execution::open_spans;
use crate::ports::store::{Acknowledgement, Header, Row};
use crate::requests::Unavailable;
use crate::shard::memory_budget::Claim;
use crate::shard::messages::{ExecutionEvent, ExecutionReport, ExitCause, Idle, KillForTest};
use crate::shared::{CountGuard, Shared};
pub(crate) use publish::Subscribers;

pub(crate) use asks::asks_of;
pub(crate) use child::report_of;
pub(crate) use describe::describe;
pub(crate) use restore::{Restored, restore};
pub(crate) use rows::answer_from_rows;
pub(crate) use snapshot::{SnapshotMark, TakeSnapshot};

/// Mailbox capacity of one execution, in messages.
pub(crate) const EXECUTION_MAILBOX: usize = 256;

pub(crate) struct ExecutionActor {
    shared: Arc<Shared>,
    shard: usize,
    key: u64,
    supervisor: Recipient<ExecutionReport>,
    id: ExecutionId,
    /// Set until the actor has started.
    seed: Option<ExecutionSeed>,
    /// `None` once it gave up: then it only returns commands to the supervisor, until its end.
    life: Option<LiveExecution>,
    /// Commands handled so far, by which the supervisor sees whether more are on their way.
    handled: u64,
    /// Memory reserved for it.
    claim: Option<Claim>,
    /// True once it got a command other than `Continue`.
    has_requests: bool,
}

/// State of an actor whose execution exists.
struct LiveExecution {
    row: Row,
    header: Arc<Header>,
    /// Ids attached to log records emitted during its work.
    scope: Arc<LogScope>,
    /// Shared only while a copy decides, or an attempt is prepared, on another thread.
    machine: Arc<Machine>,
    /// Number of the newest append, which may be under way; `None` before the first.
    recorded_revision: Option<u64>,
    durable_seq: u64,
    /// `last_seq` when this actor was rebuilt; 0 for a new execution.
    restored_seq: u64,
    /// The newest snapshot.
    snapshot: SnapshotMark,
    /// Appends under way, oldest first.
    pending: VecDeque<Pending>,
    waiters: Vec<Waiter>,
    keys: RecentKeys,
    asks: OpenAsks,
    subscribers: Subscribers,
    /// Timer that removes disconnected subscribers and callers, while there are any.
    prune: Option<SpawnHandle>,
    deciding: Deciding,
    /// Attempts whose work is being evaluated on another thread.
    preparing: HashSet<(StepPath, u32)>,
    /// Bodies begin when this process knows again that the execution is its own.
    awaits_belief: bool,
    /// The whole execution was looked at once for bodies to start; since then, each append looks at its
    /// own part.
    has_begun_bodies: bool,
    in_flight: HashMap<(StepPath, u32), BodyInFlight>,
    children: HashMap<(StepPath, u32), TrackedChild>,
    /// Pauses and continues generations; set by the first one.
    holds: Option<watch::Sender<bool>>,
    /// Queries whose answers this actor waits for.
    background_queries: usize,
    /// The parent has not been sent the newest durable change.
    parent_report_due: bool,
    /// Time of the durable suspension, while suspended.
    suspended_at: Option<Timestamp>,
    /// Counts the workflow as running while the execution runs.
    running: Option<CountGuard>,
    /// Answered when the last append is durable and nothing more will be recorded; several if the
    /// process ends while the execution is handed over.
    stops: Vec<Sender<()>>,
    /// Interrupted generations record how far they are, which has to come before the answers to `stops`.
    awaits_records: bool,
    /// Reason why the execution stops, when the process ends or another one is to serve it: no body
    /// begins and no caller is kept waiting.
    stopping: Option<Unavailable>,
}

/// The beginning of an actor: a new execution or a stored one.
pub(crate) enum ExecutionSeed {
    New(Box<StartCommand>, Row),
    Restored(Box<Restored>, Claim),
}

/// Runs a command.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Perform(pub(crate) ExecutionCommand);

/// Reports the result of the oldest append under way.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Appended(pub(crate) Acknowledgement);

/// Ends an actor that gave up, or whose execution another process is to serve. It is the last
/// message of its supervisor: every command passed to the actor has been handled or returned before.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct End;

impl ExecutionActor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        shard: usize,
        key: u64,
        supervisor: Recipient<ExecutionReport>,
        id: ExecutionId,
        seed: ExecutionSeed,
    ) -> Self {
        Self {
            shared,
            shard,
            key,
            supervisor,
            id,
            seed: Some(seed),
            life: None,
            handled: 0,
            claim: None,
            has_requests: false,
        }
    }

    fn restore(&mut self, restored: Restored, claim: Claim) {
        let Restored { row, revision, header, machine, snapshot } = restored;
        self.claim = Some(claim);
        if self.shared.feed.is_watched() {
            self.shared
                .feed
                .recall(&header.id, open_spans(&header, machine.plan(), machine.state()));
        }
        let seq = machine.state().last_seq();
        let shown = machine.state().announced_suspension.as_ref();
        let suspended_at = shown.map(|suspension| suspension.suspended_at);
        self.life = Some(LiveExecution {
            recorded_revision: Some(revision),
            durable_seq: seq,
            restored_seq: seq,
            snapshot,
            suspended_at,
            asks: OpenAsks::of(&machine),
            ..LiveExecution::new(row, header, machine)
        });
        self.count_as_running();
    }

    fn trace_id(&self) -> Arc<str> {
        self.life.as_ref().map(|life| Arc::clone(&life.header.trace.id)).unwrap_or_default()
    }

    fn updated_at(&self) -> Timestamp {
        self.life.as_ref().map(|life| life.machine.state().updated_at).unwrap_or_default()
    }

    /// Runs `work` with the execution's ids attached to log records.
    fn in_scope(&mut self, work: impl FnOnce(&mut Self)) {
        match self.life.as_ref().map(|life| Arc::clone(&life.scope)) {
            Some(scope) => scope.within(|| work(self)),
            None => work(self),
        }
    }

    /// Counts the workflow as running exactly while this execution is.
    fn count_as_running(&mut self) {
        let Some(life) = &mut self.life else { return };
        let is_running = life.machine.state().announced == crate::ports::store::Status::Running;
        if is_running == life.running.is_some() {
            return;
        }
        let count = self.shared.running_of(&life.header.workflow_id);
        life.running = count.filter(|_| is_running).as_ref().map(CountGuard::new);
    }

    /// Reports to the supervisor that there is nothing to do but wait for a command.
    fn report_if_idle(&mut self, ctx: &mut Context<Self>) {
        let Some(life) = &mut self.life else { return };
        if !life.pending.is_empty() || life.deciding.is_busy() || life.awaits_records {
            return;
        }
        for stop in life.stops.drain(..) {
            let _ = stop.send(());
        }
        let state = life.machine.state();
        let ended = state.end.is_some();
        let is_busy =
            life.background_queries > 0 || !life.in_flight.is_empty() || life.machine.has_work();
        if is_busy {
            return;
        }
        if !life.waiters.is_empty() {
            self.prune_regularly(ctx);
            return;
        }
        if ended {
            life.subscribers.clear();
        }
        if !life.subscribers.is_empty() {
            return;
        }
        // A future in the actor's context would keep it alive after its last address is dropped.
        if let Some(handle) = life.prune.take() {
            ctx.cancel_future(handle);
        }
        let (key, handled) = (self.key, self.handled);
        let (needs_snapshot, idle) =
            (life.needs_snapshot(), !self.has_requests && life.has_recorded_nothing());
        let event = ExecutionEvent::Idle(Idle { handled, ended, needs_snapshot, idle });
        report(&self.supervisor, ExecutionReport { key, event });
    }
}

impl LiveExecution {
    /// Returns true if nothing was recorded since it was rebuilt.
    fn has_recorded_nothing(&self) -> bool {
        self.restored_seq > 0 && self.machine.state().last_seq() == self.restored_seq
    }

    fn new(row: Row, header: Arc<Header>, machine: Machine) -> Self {
        Self {
            row,
            scope: scope_of(&header),
            header,
            machine: Arc::new(machine),
            recorded_revision: None,
            durable_seq: 0,
            restored_seq: 0,
            snapshot: SnapshotMark::default(),
            pending: VecDeque::new(),
            waiters: Vec::new(),
            keys: RecentKeys::default(),
            asks: OpenAsks::default(),
            subscribers: Subscribers::default(),
            prune: None,
            deciding: Deciding::default(),
            preparing: HashSet::new(),
            awaits_belief: false,
            has_begun_bodies: false,
            in_flight: HashMap::new(),
            children: HashMap::new(),
            holds: None,
            background_queries: 0,
            parent_report_due: false,
            suspended_at: None,
            running: None,
            stops: Vec::new(),
            awaits_records: false,
            stopping: None,
        }
    }
}

impl Actor for ExecutionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        match self.seed.take() {
            Some(ExecutionSeed::New(command, row)) => self.begin(*command, row, ctx),
            Some(ExecutionSeed::Restored(restored, claim)) => self.restore(*restored, claim),
            None => {}
        }
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        if std::thread::panicking() {
            self.interrupt_bodies();
            self.report_exit(ExitCause::Panicked);
        }
    }
}

impl Handler<Perform> for ExecutionActor {
    type Result = ();

    fn handle(&mut self, message: Perform, ctx: &mut Self::Context) {
        self.handled += 1;
        self.in_scope(|actor| {
            actor.perform(message.0, ctx);
            actor.report_if_idle(ctx);
        });
    }
}

impl Handler<Appended> for ExecutionActor {
    type Result = ();

    fn handle(&mut self, message: Appended, ctx: &mut Self::Context) {
        self.in_scope(|actor| {
            actor.appended(message.0, ctx);
            actor.report_if_idle(ctx);
        });
    }
}

impl Handler<End> for ExecutionActor {
    type Result = ();

    /// Lets subscribers know at once, which would keep the actor alive.
    fn handle(&mut self, _: End, ctx: &mut Self::Context) {
        let why = self.shared.ended_unanswered(&self.id);
        self.forsake(&why, None, ctx);
        ctx.stop();
    }
}

impl Handler<KillForTest> for ExecutionActor {
    type Result = ();

    fn handle(&mut self, _: KillForTest, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
