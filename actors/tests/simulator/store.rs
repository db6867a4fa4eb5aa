//! A store with a writer that takes its time, a disk that can be full, and an end that comes when
//! it comes.
//!
//! What is on the disk is a [`MemoryStore`]. Appends wait in a queue as they do before the thread
//! of a real store; one transaction takes all that waits. A crash loses what waits; whether it
//! loses the transaction under way, of which nobody has heard, is chance.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{
    Acknowledgement, Append, AppendError, CommitSink, CountsOfUser, Cursor, Definitions,
    ExecutionCount, ExecutionFilter, Executions, GenerationWrite, Generations, Header,
    IdempotencyRecord, Journal, Projection, Read, ReadError, Row, Snapshot, StoredExecution, Timer,
    TimerChange,
};
use greenroom_actors::ports::store::{Place, Portion};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use crate::simulator::dice::Dice;

/// What is wrong with the disk just now; the script turns it on and off.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    pub(crate) is_full: AtomicBool,
    /// How long a commit, the word of it, and a read may take.
    pub(crate) slowness_ms: AtomicU64,
    /// Transactions, of a hundred, that fail by themselves.
    pub(crate) failing_percent: AtomicU64,
    /// Reads, of a hundred, that fail.
    pub(crate) unreadable_percent: AtomicU64,
    /// Something was refused.
    did_fail: AtomicBool,
}

impl Faults {
    /// Whether the disk ever refused anything.
    pub(crate) fn were_any(&self) -> bool {
        self.did_fail.load(Ordering::SeqCst)
    }

    pub(crate) fn heal(&self) {
        self.is_full.store(false, Ordering::SeqCst);
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
    under_way: Mutex<Vec<Write>>,
    come: Notify,
    faults: Arc<Faults>,
    dice: Mutex<Dice>,
    is_dead: AtomicBool,
}

enum Write {
    Append(Box<Append>),
    Timers(Vec<TimerChange>),
    State(Snapshot),
    Generation(Box<GenerationWrite>, oneshot::Sender<Result<(), AppendError>>),
}

/// What of a transaction somebody is to hear.
enum Done {
    Appended(Acknowledgement, Arc<Header>, Arc<[Recorded]>),
    Generation(oneshot::Sender<Result<(), AppendError>>, Result<(), AppendError>),
}

/// Catches what the disk says at once, so that it can be said later.
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
    /// Opens a disk. Call from within the simulation's thread: the writer lives on it.
    pub(crate) fn open(disk: MemoryStore, faults: Arc<Faults>, dice: Dice) -> Arc<Self> {
        let outcomes = Arc::new(Outcomes::default());
        disk.attach(Arc::clone(&outcomes) as _);
        let store = Arc::new(Self {
            disk: Arc::new(disk),
            outcomes,
            sink: OnceLock::new(),
            waiting: Mutex::default(),
            under_way: Mutex::default(),
            come: Notify::new(),
            faults,
            dice: Mutex::new(dice),
            is_dead: AtomicBool::new(false),
        });
        actix::spawn(write(Arc::clone(&store)));
        store
    }

    /// The process ends here and now; gives what the next one finds.
    pub(crate) fn crash(&self) -> MemoryStore {
        if self.dice.lock().unwrap().chance(50) {
            self.commit();
        }
        self.end()
    }

    /// The process closes the store in order.
    pub(crate) fn closed(&self) -> MemoryStore {
        self.commit();
        self.under_way.lock().unwrap().extend(self.waiting.lock().unwrap().drain(..));
        self.commit();
        self.end()
    }

    fn end(&self) -> MemoryStore {
        self.is_dead.store(true, Ordering::SeqCst);
        self.come.notify_one();
        self.disk.reopened()
    }

    fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::SeqCst)
    }

    fn queue(&self, write: Write) {
        if !self.is_dead() {
            self.waiting.lock().unwrap().push_back(write);
            self.come.notify_one();
        }
    }

    fn chance(&self, percent: &AtomicU64) -> bool {
        self.dice.lock().unwrap().chance(percent.load(Ordering::SeqCst))
    }

    fn pause(&self) -> Duration {
        let most = self.faults.slowness_ms.load(Ordering::SeqCst);
        Duration::from_millis(self.dice.lock().unwrap().millis(most))
    }

    /// All that is under way becomes durable, or is refused.
    fn commit(&self) -> Vec<Done> {
        let writes = std::mem::take(&mut *self.under_way.lock().unwrap());
        let fails = !self.is_writable() || self.chance(&self.faults.failing_percent);
        self.faults.did_fail.fetch_or(fails, Ordering::SeqCst);
        writes.into_iter().filter_map(|write| self.commit_one(write, fails)).collect()
    }

    fn commit_one(&self, write: Write, fails: bool) -> Option<Done> {
        let refusal = || AppendError::Unavailable(Arc::from("the disk is full"));
        match write {
            Write::Append(append) => {
                let header = Arc::clone(&append.projection.header);
                let facts = Arc::clone(&append.facts);
                let (ticket, upto) = (append.ticket, append.projection.last_seq);
                let outcome = if fails {
                    Acknowledgement { ticket, upto, result: Err(refusal()) }
                } else {
                    self.disk.append(*append);
                    self.outcomes.0.lock().unwrap().pop().unwrap()
                };
                self.faults.did_fail.fetch_or(outcome.result.is_err(), Ordering::SeqCst);
                Some(Done::Appended(outcome, header, facts))
            }
            Write::Timers(changes) => {
                if !fails {
                    self.disk.change_timers(changes);
                }
                None
            }
            Write::State(kept) => {
                if !fails {
                    self.disk.store_snapshot(kept);
                }
                None
            }
            Write::Generation(write, answer) if fails => {
                drop(write);
                Some(Done::Generation(answer, Err(refusal())))
            }
            Write::Generation(write, answer) => {
                let result = self.disk.record_generation(*write).now_or_never().unwrap();
                Some(Done::Generation(answer, result))
            }
        }
    }

    fn tell(&self, done: Vec<Done>) {
        let Some(sink) = self.sink.get() else { return };
        let mut told = Vec::new();
        for done in done {
            match done {
                Done::Appended(outcome, header, facts) => {
                    if outcome.result.is_ok() && sink.wants_facts() {
                        sink.publish(vec![(header, facts)]);
                    }
                    told.push(outcome);
                }
                Done::Generation(answer, result) => drop(answer.send(result)),
            }
        }
        if let Some(shard) = told.first().map(|outcome| outcome.ticket.shard) {
            sink.committed(shard, told);
        }
    }

    /// What was read, some time later: others go on meanwhile, and it is old when it comes.
    pub(super) fn late<'a, T: Send + 'a>(&'a self, read: Read<'a, T>) -> Read<'a, T> {
        let pause = self.pause();
        let fails = self.chance(&self.faults.unreadable_percent);
        self.faults.did_fail.fetch_or(fails, Ordering::SeqCst);
        Box::pin(async move {
            wait(pause).await;
            match self.is_dead() {
                true => std::future::pending().await,
                false if fails => {
                    Err(ReadError::Unavailable(Arc::from("the disk does not answer")))
                }
                false => read.await,
            }
        })
    }
}

async fn write(store: Arc<SimStore>) {
    loop {
        while store.waiting.lock().unwrap().is_empty() && !store.is_dead() {
            store.come.notified().await;
        }
        if store.is_dead() {
            return;
        }
        store.under_way.lock().unwrap().extend(store.waiting.lock().unwrap().drain(..));
        wait(store.pause()).await;
        if store.is_dead() {
            return;
        }
        let done = store.commit();
        wait(store.pause()).await;
        if store.is_dead() {
            return;
        }
        store.tell(done);
    }
}

async fn wait(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

impl Journal for SimStore {
    fn attach(&self, sink: Arc<dyn CommitSink>) {
        assert!(self.sink.set(sink).is_ok(), "attached twice");
    }

    fn close(&self) {}

    fn next_row(&self) -> Row {
        self.disk.next_row()
    }

    fn append(&self, append: Append) {
        self.queue(Write::Append(Box::new(append)));
    }

    fn store_snapshot(&self, kept: Snapshot) {
        self.queue(Write::State(kept));
    }

    fn is_writable(&self) -> bool {
        !self.faults.is_full.load(Ordering::SeqCst)
    }

    fn change_timers(&self, changes: Vec<TimerChange>) {
        self.queue(Write::Timers(changes));
    }
}

impl Executions for SimStore {
    fn load<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<StoredExecution>> {
        self.late(self.disk.load(id))
    }

    fn describe<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<Projection>> {
        self.late(Executions::describe(&*self.disk, id))
    }

    fn facts<'a>(
        &'a self,
        id: &'a ExecutionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<Recorded>> {
        self.late(self.disk.facts(id, after, limit))
    }

    fn portion<'a>(&'a self, id: &'a ExecutionId, from: Place, bytes: usize) -> Read<'a, Portion> {
        self.late(self.disk.portion(id, from, bytes))
    }

    fn list<'a>(
        &'a self,
        filter: &'a ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Read<'a, (Vec<Projection>, Option<Cursor>)> {
        self.late(self.disk.list(filter, after, limit))
    }

    fn counts(&self) -> Read<'_, Vec<ExecutionCount>> {
        self.late(self.disk.counts())
    }

    fn counts_of_user<'a>(&'a self, user_id: &'a str, limit: usize) -> Read<'a, CountsOfUser> {
        self.late(self.disk.counts_of_user(user_id, limit))
    }

    fn running<'a>(&'a self, after: Row, limit: usize) -> Read<'a, Vec<(Row, ExecutionId)>> {
        self.late(self.disk.running(after, limit))
    }

    fn timers_due<'a>(&'a self, until: Timestamp, limit: usize) -> Read<'a, Vec<Timer>> {
        self.late(self.disk.timers_due(until, limit))
    }

    fn timers_of<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Vec<Timer>> {
        self.late(self.disk.timers_of(id))
    }

    fn idempotency<'a>(
        &'a self,
        scope: &'a str,
        now: Timestamp,
    ) -> Read<'a, Option<IdempotencyRecord>> {
        self.late(self.disk.idempotency(scope, now))
    }
}

impl Definitions for SimStore {
    fn put_definition<'a>(&'a self, hash: &'a str, definition: &'a Value) -> Read<'a, ()> {
        self.disk.put_definition(hash, definition)
    }

    fn definition<'a>(&'a self, hash: &'a str) -> Read<'a, Option<Value>> {
        self.late(self.disk.definition(hash))
    }
}

impl SimStore {
    /// Queues the record of a generation beside the appends.
    pub(super) fn queue_generation(
        &self,
        write: GenerationWrite,
    ) -> BoxFuture<'static, Result<(), AppendError>> {
        let (answer, heard) = oneshot::channel();
        self.queue(Write::Generation(Box::new(write), answer));
        Box::pin(async move {
            match heard.await {
                Ok(result) => result,
                // The process has ended: nobody hears of it.
                Err(_) => std::future::pending().await,
            }
        })
    }
}
