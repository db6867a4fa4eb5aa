//! A store with a slow writer, a disk that can be full, and crashes at any time.
//!
//! The disk is a [`MemoryStore`]. Appends are queued as in a real store; one transaction takes all
//! that are queued. A crash loses the queue, and by chance the transaction in progress, which is
//! not acknowledged yet.
//!
//! Several processes have a store each over one disk. What passes between such a store and the disk
//! waits while its process is silent and while the database does not answer, so that a transaction
//! may be committed long before its process knows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Either;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{
    Acknowledgement, Append, AppendError, CommitSink, Header, Journal, Read, ReadError, Row,
    Snapshot, TimerChange, Written,
};
use tokio::sync::{Notify, oneshot};

use crate::simulator::cluster::members::SimMembers;
use crate::simulator::dice::Dice;

/// Interval between attempts to reach a database that is down.
pub(super) const ATTEMPT_EVERY: Duration = Duration::from_millis(500);
/// Time after which a read fails for which the database does not answer.
const READ_PATIENCE: Duration = Duration::from_secs(5);

/// Faults of the disk, switched by the script.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) is_full: AtomicBool,
    /// True while transactions wait, as for a database that does not answer.
    pub(crate) is_down: AtomicBool,
    /// Maximum duration of a commit, of its acknowledgement, and of a read.
    pub(crate) slowness_ms: AtomicU64,
    /// Percentage of transactions that fail.
    pub(crate) failing_percent: AtomicU64,
    /// Percentage of reads that fail.
    pub(crate) unreadable_percent: AtomicU64,
    /// True once a request failed.
    did_fail: AtomicBool,
}

impl Faults {
    /// Returns true if a request ever failed.
    pub(crate) fn were_any(&self) -> bool {
        self.did_fail.load(Ordering::SeqCst)
    }

    pub(crate) fn heal(&self) {
        self.is_full.store(false, Ordering::SeqCst);
        self.is_down.store(false, Ordering::SeqCst);
        for number in [&self.slowness_ms, &self.failing_percent, &self.unreadable_percent] {
            number.store(0, Ordering::SeqCst);
        }
    }
}

pub(crate) struct SimStore {
    pub(super) disk: Arc<MemoryStore>,
    outcomes: Arc<Outcomes>,
    sink: OnceLock<Arc<dyn CommitSink>>,
    waiting: Mutex<VecDeque<Write>>,
    committing: Mutex<Vec<Write>>,
    queued: Notify,
    faults: Arc<Faults>,
    dice: Mutex<Dice>,
    is_dead: AtomicBool,
    /// This process among those that share the disk; `None` if there is one at a time.
    member: Option<Arc<SimMembers>>,
}

enum Write {
    Append(Box<Append>),
    Timers(usize, Vec<TimerChange>),
    Snapshot(usize, Snapshot),
    /// A write with a separate reply.
    Replied(Box<dyn Replied>),
}

/// A write with a reply.
trait Replied: Send {
    /// Commits it, or fails it. Returns what sends the reply.
    fn commit(self: Box<Self>, disk: &MemoryStore, fails: bool) -> Box<dyn FnOnce() + Send>;
}

struct ReplyTo<T, F>(F, oneshot::Sender<Result<T, AppendError>>);

impl<T, F> Replied for ReplyTo<T, F>
where
    T: Send + 'static,
    F: FnOnce(&MemoryStore) -> Written<T> + Send,
{
    fn commit(self: Box<Self>, disk: &MemoryStore, fails: bool) -> Box<dyn FnOnce() + Send> {
        let Self(write, reply) = *self;
        let result = match fails {
            true => Err(refusal()),
            false => write(disk).now_or_never().unwrap(),
        };
        Box::new(move || drop(reply.send(result)))
    }
}

fn refusal() -> AppendError {
    AppendError::Unavailable(Arc::from("the disk is full"))
}

/// Outcome of a write, to be acknowledged.
enum Done {
    Appended(Acknowledgement, Arc<Header>, Arc<[Recorded]>),
    Replied(Box<dyn FnOnce() + Send>),
}

/// Collects outcomes of the disk, to be acknowledged later.
#[derive(Default)]
struct Outcomes(Mutex<Vec<Acknowledgement>>);

impl CommitSink for Outcomes {
    fn committed(&self, _: usize, outcomes: Vec<Acknowledgement>) {
        self.0.lock().unwrap().extend(outcomes);
    }

    fn wants_facts(&self) -> bool {
        false
    }

    fn publish(&self, _: Vec<(Arc<Header>, Arc<[Recorded]>)>) {}
}

impl SimStore {
    /// Opens a disk. Call on the simulation's thread, where the writer runs.
    pub(crate) fn open(disk: MemoryStore, faults: Arc<Faults>, dice: Dice) -> Arc<Self> {
        Self::of_member(Arc::new(disk), faults, dice, None)
    }

    /// Opens the disk of several processes for one of them.
    pub(crate) fn of_member(
        disk: Arc<MemoryStore>,
        faults: Arc<Faults>,
        dice: Dice,
        member: Option<Arc<SimMembers>>,
    ) -> Arc<Self> {
        let outcomes = Arc::new(Outcomes::default());
        disk.attach(Arc::clone(&outcomes) as _);
        let store = Arc::new(Self {
            disk,
            outcomes,
            sink: OnceLock::new(),
            waiting: Mutex::default(),
            committing: Mutex::default(),
            queued: Notify::new(),
            faults,
            dice: Mutex::new(dice),
            is_dead: AtomicBool::new(false),
            member,
        });
        actix::spawn(write(Arc::clone(&store)));
        store
    }

    /// Crashes the process.
    pub(crate) fn crash(&self) {
        if self.dice.lock().unwrap().chance(50) {
            self.commit();
        }
        self.end();
    }

    /// Closes the store in order.
    pub(crate) fn close_in_order(&self) {
        self.commit();
        self.committing.lock().unwrap().extend(self.waiting.lock().unwrap().drain(..));
        self.commit();
        self.end();
    }

    fn end(&self) {
        self.is_dead.store(true, Ordering::SeqCst);
        self.queued.notify_one();
    }

    /// Returns the disk for the next process.
    pub(crate) fn reopened(&self) -> MemoryStore {
        self.disk.reopened()
    }

    fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    fn queue(&self, write: Write) {
        if !self.is_dead() {
            self.waiting.lock().unwrap().push_back(write);
            self.queued.notify_one();
        }
    }

    fn chance(&self, percent: &AtomicU64) -> bool {
        self.dice.lock().unwrap().chance(percent.load(Ordering::SeqCst))
    }

    fn pause(&self) -> Duration {
        let most = self.faults.slowness_ms.load(Ordering::SeqCst);
        Duration::from_millis(self.dice.lock().unwrap().millis(most))
    }

    /// Commits the transaction in progress, or fails it.
    fn commit(&self) -> Vec<Done> {
        let writes = std::mem::take(&mut *self.committing.lock().unwrap());
        let fails =
            self.faults.is_full.load(Ordering::SeqCst) || self.chance(&self.faults.failing_percent);
        self.faults.did_fail.fetch_or(fails, Ordering::SeqCst);
        writes.into_iter().filter_map(|write| self.commit_one(write, fails)).collect()
    }

    fn commit_one(&self, write: Write, fails: bool) -> Option<Done> {
        match write {
            Write::Append(append) => {
                let header = Arc::clone(&append.projection.header);
                let facts = Arc::clone(&append.facts);
                let (ticket, upto) = (append.ticket, append.projection.last_seq);
                let status = append.projection.status;
                let outcome = if fails {
                    Acknowledgement { ticket, upto, result: Err(refusal()) }
                } else if self.member.as_ref().is_some_and(|member| !member.may_write(&header.id)) {
                    Acknowledgement { ticket, upto, result: Err(AppendError::Lost) }
                } else {
                    self.disk.append(*append);
                    self.outcomes.0.lock().unwrap().pop().unwrap()
                };
                if let Some(member) = self.member.as_ref().filter(|_| outcome.result.is_ok()) {
                    member.committed(&header.id, status);
                }
                self.faults.did_fail.fetch_or(outcome.result.is_err(), Ordering::SeqCst);
                Some(Done::Appended(outcome, header, facts))
            }
            Write::Timers(shard, changes) => {
                if !fails {
                    self.disk.change_timers(shard, changes);
                }
                None
            }
            Write::Snapshot(shard, snapshot) => {
                if !fails {
                    self.disk.store_snapshot(shard, snapshot);
                }
                None
            }
            Write::Replied(write) => Some(Done::Replied(write.commit(&self.disk, fails))),
        }
    }

    fn acknowledge(&self, done: Vec<Done>) {
        let Some(sink) = self.sink.get() else { return };
        let mut outcomes = Vec::new();
        for done in done {
            match done {
                Done::Appended(outcome, header, facts) => {
                    if let Some(member) = self.member.as_ref().filter(|_| outcome.result.is_ok()) {
                        member.stage.book.acknowledged(&header.id, outcome.upto);
                    }
                    if outcome.result.is_ok() && sink.wants_facts() {
                        sink.publish(vec![(header, facts)]);
                    }
                    outcomes.push(outcome);
                }
                Done::Replied(reply) => reply(),
            }
        }
        if let Some(shard) = outcomes.first().map(|outcome| outcome.ticket.shard) {
            sink.committed(shard, outcomes);
        }
    }

    pub(super) fn now<T>(&self, call: impl FnOnce() -> T) -> T {
        call()
    }

    /// Delays the result of a read, which is outdated when it arrives, or fails.
    pub(super) fn late<'a, T: Send + 'a>(
        &'a self,
        call: impl FnOnce() -> Read<'a, T> + Send + 'a,
    ) -> Read<'a, T> {
        let pause = self.pause();
        let fails = self.chance(&self.faults.unreadable_percent);
        self.faults.did_fail.fetch_or(fails, Ordering::SeqCst);
        let is_cut_off = self.member.as_ref().is_some_and(|member| !member.line.is_open());
        let read = if is_cut_off { Either::Right(call) } else { Either::Left(call()) };
        Box::pin(async move {
            wait(pause).await;
            let is_answered = self.is_reached().await;
            self.faults.did_fail.fetch_or(!is_answered, Ordering::SeqCst);
            match self.is_dead() {
                true => std::future::pending().await,
                false if fails || !is_answered => {
                    Err(ReadError::Unavailable(Arc::from("the disk does not answer")))
                }
                false => match read {
                    Either::Left(read) => read.await,
                    Either::Right(call) => call().await,
                },
            }
        })
    }

    /// Waits until the database answers a read; false if that takes too long.
    async fn is_reached(&self) -> bool {
        let Some(member) = &self.member else { return true };
        tokio::time::timeout(READ_PATIENCE, member.line.opened()).await.is_ok()
    }
}

async fn write(store: Arc<SimStore>) {
    loop {
        while store.waiting.lock().unwrap().is_empty() && !store.is_dead() {
            store.queued.notified().await;
        }
        if store.is_dead() {
            return;
        }
        store.committing.lock().unwrap().extend(store.waiting.lock().unwrap().drain(..));
        wait(store.pause()).await;
        while store.faults.is_down.load(Ordering::SeqCst) && !store.is_dead() {
            wait(ATTEMPT_EVERY).await;
        }
        store.opened().await;
        if store.is_dead() {
            return;
        }
        let done = store.commit();
        wait(store.pause()).await;
        store.opened().await;
        if store.is_dead() {
            return;
        }
        store.acknowledge(done);
    }
}

impl SimStore {
    /// Waits until the disk can be reached, if that is that of several processes.
    async fn opened(&self) {
        if let Some(member) = &self.member {
            member.line.opened().await;
        }
    }
}

pub(super) async fn wait(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

impl Journal for SimStore {
    fn attach(&self, sink: Arc<dyn CommitSink>) {
        assert!(self.sink.set(sink).is_ok(), "attached twice");
    }

    fn close(&self) {}

    fn next_row(&self) -> Option<Row> {
        self.disk.next_row()
    }

    fn append(&self, append: Append) {
        self.queue(Write::Append(Box::new(append)));
    }

    fn store_snapshot(&self, shard: usize, snapshot: Snapshot) {
        self.queue(Write::Snapshot(shard, snapshot));
    }

    fn is_writable(&self) -> bool {
        let faults = &self.faults;
        let is_noticed = self.member.as_ref().is_some_and(|member| member.line.is_missed());
        !is_noticed
            && !faults.is_full.load(Ordering::SeqCst)
            && !faults.is_down.load(Ordering::SeqCst)
    }

    fn settled(&self) -> Written<()> {
        self.queued(MemoryStore::settled)
    }

    fn change_timers(&self, shard: usize, changes: Vec<TimerChange>) {
        self.queue(Write::Timers(shard, changes));
    }
}

impl SimStore {
    /// Queues a write beside the appends.
    pub(super) fn queued<T: Send + 'static>(
        &self,
        write: impl FnOnce(&MemoryStore) -> Written<T> + Send + 'static,
    ) -> Written<T> {
        let (reply, result) = oneshot::channel();
        self.queue(Write::Replied(Box::new(ReplyTo(write, reply))));
        Box::pin(async move {
            match result.await {
                Ok(result) => result,
                // the process has ended
                Err(_) => std::future::pending().await,
            }
        })
    }
}
