//! Shared state of a simulated world: the clock, the disk, and the log of events.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use futures_util::FutureExt;
use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::ports::memory::MemoryStore;
use greenroom_actors::ports::store::{ExecutionFilter, Executions, Projection};
use tokio::sync::watch;

use crate::simulator::clock::SimClock;
use crate::simulator::cluster::book::Book;
use crate::simulator::store::Faults;

pub(crate) struct Stage {
    pub(crate) seed: u64,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) plans: BTreeMap<String, Arc<Plan>>,
    /// Durable state.
    disk: Mutex<Arc<MemoryStore>>,
    /// True once faults have stopped and everything ends soon.
    healed: watch::Sender<bool>,
    /// Number of processes so far.
    pub(crate) process: AtomicU64,
    /// Owners of slots, in a world of several processes.
    pub(crate) book: Book,
    tokens: AtomicU64,
    notes: Mutex<Notes>,
}

#[derive(Default)]
struct Notes {
    story: Vec<String>,
    violations: Vec<String>,
    /// Counts of events.
    counts: BTreeMap<String, u64>,
    /// Attempts whose body was called.
    called: BTreeSet<(ExecutionId, Arc<str>, u32)>,
    /// Running bodies, by step, with their processes.
    running: BTreeSet<RunningStep>,
    /// Idempotency keys of calls, by generation and call.
    keys: BTreeMap<(String, String), String>,
}

/// A step, and the process that runs its body; 0 if there is one process at a time.
type RunningStep = (ExecutionId, Arc<str>, u64);

impl Stage {
    pub(crate) fn new(
        seed: u64,
        plans: BTreeMap<String, Arc<Plan>>,
        disk: Arc<MemoryStore>,
    ) -> Arc<Self> {
        Arc::new(Self {
            seed,
            clock: Arc::new(SimClock::new()),
            faults: Arc::default(),
            plans,
            disk: Mutex::new(disk),
            healed: watch::Sender::new(false),
            process: AtomicU64::new(0),
            book: Book::default(),
            tokens: AtomicU64::new(0),
            notes: Mutex::default(),
        })
    }

    /// Adds a line to the story.
    pub(crate) fn note(&self, line: &str) {
        let mut notes = self.notes.lock().unwrap();
        let now = self.clock.elapsed_ms();
        notes.story.push(format!("{now:>9} {line}"));
    }

    /// Records a violated invariant.
    pub(crate) fn violated(&self, what: &str) {
        self.note(&format!("VIOLATED {what}"));
        self.notes.lock().unwrap().violations.push(what.to_owned());
    }

    pub(crate) fn require(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.violated(&what());
        }
    }

    /// Counts an event, to show that the simulation covers it.
    pub(crate) fn count(&self, what: &str) {
        self.count_many(what, 1);
    }

    pub(crate) fn count_many(&self, what: &str, times: u64) {
        *self.notes.lock().unwrap().counts.entry(what.to_owned()).or_default() += times;
    }

    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.notes.lock().unwrap().counts.clone()
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.notes.lock().unwrap().violations.clone()
    }

    pub(crate) fn story(&self) -> String {
        let mut text = String::new();
        for line in &self.notes.lock().unwrap().story {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Returns a unique number, by which a request is found in the record.
    pub(crate) fn token(&self) -> u64 {
        self.tokens.fetch_add(1, Ordering::Relaxed) + 100
    }

    pub(crate) fn put_disk(&self, disk: Arc<MemoryStore>) {
        *self.disk.lock().unwrap() = disk;
    }

    pub(crate) fn disk(&self) -> Arc<MemoryStore> {
        Arc::clone(&self.disk.lock().unwrap())
    }

    /// Returns the durable facts of an execution.
    pub(crate) fn facts(&self, id: &ExecutionId) -> Vec<Recorded> {
        self.disk().facts(id, 0, usize::MAX).now_or_never().unwrap().unwrap()
    }

    pub(crate) fn projection(&self, id: &ExecutionId) -> Option<Projection> {
        Executions::describe(&*self.disk(), id).now_or_never().unwrap().unwrap()
    }

    /// Returns every execution on the disk, oldest first.
    pub(crate) fn executions(&self) -> Vec<Projection> {
        let filter = ExecutionFilter::default();
        let listed = self.disk().list(&filter, None, usize::MAX - 1).now_or_never();
        let (mut all, _) = listed.unwrap().unwrap();
        all.reverse();
        all
    }

    pub(crate) fn heal(&self) {
        self.faults.heal();
        self.healed.send_replace(true);
    }

    pub(crate) fn is_healed(&self) -> bool {
        *self.healed.borrow()
    }

    pub(crate) async fn healing(&self) {
        let mut healed = self.healed.subscribe();
        let _ = healed.wait_for(|healed| *healed).await;
    }

    /// Records the start of a body in a process, and its end when the guard is dropped.
    pub(crate) fn called(
        self: &Arc<Self>,
        process: u64,
        id: &ExecutionId,
        path: &Arc<str>,
        attempt: u32,
    ) -> RunningBody {
        let step = (id.clone(), Arc::clone(path), process);
        let mut notes = self.notes.lock().unwrap();
        let is_first = notes.called.insert((id.clone(), Arc::clone(path), attempt));
        let is_other = |(of, at, _): &&RunningStep| of == id && at == path;
        let others: Vec<u64> =
            notes.running.iter().filter(is_other).map(|(_, _, process)| *process).collect();
        notes.running.insert(step.clone());
        drop(notes);
        self.require(is_first, || format!("attempt {attempt} of {id} {path} was called twice"));
        for other in others {
            // a process that is gone may not know it yet
            let is_gone = other != process && !self.book.is_member(other);
            self.require(is_gone, || format!("two bodies of {id} {path} are running"));
            self.count("body beside one of a process that is gone");
        }
        RunningBody { stage: Arc::clone(self), step }
    }

    /// Returns the idempotency key that a call of a generation was first made with.
    pub(crate) fn key_of_call(&self, call: (String, String), key: &str) -> String {
        let mut notes = self.notes.lock().unwrap();
        notes.keys.entry(call).or_insert_with(|| key.to_owned()).clone()
    }

    pub(crate) fn running(&self) -> usize {
        self.notes.lock().unwrap().running.len()
    }
}

/// A running body.
pub(crate) struct RunningBody {
    stage: Arc<Stage>,
    step: RunningStep,
}

impl Drop for RunningBody {
    fn drop(&mut self) {
        self.stage.notes.lock().unwrap().running.remove(&self.step);
    }
}

thread_local! {
    /// The world that runs on this thread.
    static WORLD: RefCell<Weak<Stage>> = const { RefCell::new(Weak::new()) };
}

impl Stage {
    /// Adds log records of this thread to the story.
    pub(crate) fn capture_logs(self: &Arc<Self>) {
        // fails if it is set already, by another world
        let _ = log::set_logger(&StoryLogger);
        log::set_max_level(log::LevelFilter::Info);
        WORLD.with(|played| *played.borrow_mut() = Arc::downgrade(self));
    }
}

/// Writes log records into the story.
struct StoryLogger;

impl log::Log for StoryLogger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if let Some(stage) = WORLD.with(|played| played.borrow().upgrade()) {
            stage.note(&format!("log {} {}", record.level(), record.args()));
        }
    }

    fn flush(&self) {}
}
