//! The store in one SQLite file.
//!
//! One thread writes (see `writer`), any number of threads read on connections of their own.
//! An append costs its caller the JSON of its facts and a queue entry.

mod acted;
mod agents;
mod answers;
mod backup;
mod changes;
mod codec;
mod conversations;
mod counts;
mod crash_file;
mod defects;
mod generations;
mod guard;
mod history;
mod job;
mod key_purge;
mod list;
mod log_writes;
mod logs;
mod portions;
mod prepared;
mod reader;
mod recall;
mod retention;
mod schema;
mod session;
mod shrinking;
#[cfg(test)]
mod tests;
mod trace_codec;
mod trace_record;
mod traces;
mod writer;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::meter::{JournalMeter, NoMeter};
use greenroom_actors::ports::store::{
    Acknowledgement, Append, AppendError, CommitSink, CountsOfUser, Cursor, Definitions,
    ExecutionCount, ExecutionFilter, Executions, IdempotencyRecord, Journal, Place, Portion,
    Projection, Read, ReadError, Row, Snapshot, StoredExecution, Timer, TimerChange, Written,
};
use serde_json::Value;
use tokio::sync::oneshot;

pub use self::backup::{Backup, BackupError, back_up};
pub use self::crash_file::CrashFile;
use self::defects::Reading;
pub use self::guard::OpenError;
pub use self::guard::beside;
use self::job::Job;
use self::reader::{Lane, Readers};
use self::session::{PreparedAppend, Session, Verdict};
use self::writer::{Shared, Writer};

/// What an acknowledgement promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives a power cut: every commit is synced to the disk.
    #[default]
    Full,
    /// Survives the end of the process; a power cut may take the last commits.
    Normal,
}

/// What the store takes on the disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSizes {
    pub database: u64,
    /// Of the write-ahead log, which comes and goes.
    pub log: u64,
}

/// Keeps everything in one SQLite file, which no other process uses meanwhile.
///
/// Dropping it writes what is queued, empties the write-ahead log and gives the file free.
pub struct SqliteStore {
    path: PathBuf,
    shared: Arc<Shared>,
    readers: Arc<Readers>,
    last_row: AtomicI64,
    last_generation: AtomicI64,
    /// `None` once it is closed: the end of the queue ends the writer.
    jobs: Mutex<Option<Sender<Job>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Held for as long as the file is open.
    _lock: File,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("writable", &self.is_writable()).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store at the path, or makes one where there is no file; brings older files up to
    /// date. What cannot be used is refused and left as it is.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, OpenError> {
        Self::open_measured(path, durability, Arc::new(NoMeter))
    }

    /// The same, with somebody who counts and times the commits.
    pub fn open_measured(
        path: &Path,
        durability: Durability,
        meter: Arc<dyn JournalMeter>,
    ) -> Result<Self, OpenError> {
        Self::open_with(path, durability, writer::PROBE_EVERY, meter)
    }

    fn open_with(
        path: &Path,
        durability: Durability,
        probe_every: Duration,
        meter: Arc<dyn JournalMeter>,
    ) -> Result<Self, OpenError> {
        let path = &guard::resolved(path)?;
        let lock = guard::lock(path)?;
        guard::inspect(path)?;
        let refused = |error: rusqlite::Error| guard::refusal(path, &error);
        let mut connection = schema::open_writer(path, durability).map_err(refused)?;
        schema::migrate(&mut connection).map_err(refused)?;
        let last_row = Session::last_row(&connection).map_err(refused)?;
        let last_generation = generations::last_row(&connection).map_err(refused)?;

        let failed = |error: io::Error| OpenError::Failed {
            path: path.into(),
            reason: format!("cannot start a thread: {error}"),
        };
        let shared = Arc::new(Shared::new(meter));
        let readers = Readers::start(path.into(), Arc::clone(&shared.defects)).map_err(failed)?;
        let (jobs, queue) = channel();
        let writer = Writer {
            path: path.into(),
            durability,
            probe_every,
            jobs: queue,
            shared: shared.clone(),
        };
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer.run(connection))
            .map_err(failed)?;
        Ok(Self {
            path: path.into(),
            shared,
            readers: Arc::new(readers),
            last_row: AtomicI64::new(last_row),
            last_generation: AtomicI64::new(last_generation),
            jobs: Mutex::new(Some(jobs)),
            writer: Mutex::new(Some(writer)),
            _lock: lock,
        })
    }

    /// Requests that wait for the writer.
    pub fn queued(&self) -> usize {
        self.shared.queued.load(Ordering::Relaxed)
    }

    /// What the files take now; 0 for one that is not there.
    pub fn file_sizes(&self) -> FileSizes {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        FileSizes { database: size(&self.path), log: size(&guard::beside(&self.path, "-wal")) }
    }

    /// Gives the job back when there is no writer any more, which only a defect can cause.
    fn queue(&self, job: Job) -> Result<(), Job> {
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(jobs) = &*jobs else { return Err(job) };
        self.shared.queued.fetch_add(1, Ordering::Relaxed);
        jobs.send(job).map_err(|unsent| {
            self.shared.queued.fetch_sub(1, Ordering::Relaxed);
            self.shared.writable.store(false, Ordering::SeqCst);
            unsent.0
        })
    }

    /// Queues a job that answers once, and waits for it.
    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(oneshot::Sender<Verdict<T>>) -> Job,
    ) -> Written<T> {
        let (done, answer) = oneshot::channel();
        // A job that is not taken drops its sender, and the answer below says so.
        let _ = self.queue(job(done));
        Box::pin(async move { answer.await.unwrap_or_else(|_| Err(writer_is_gone())) })
    }

    fn acknowledge_here(&self, outcome: Acknowledgement) {
        if let Some(sink) = self.shared.sink.get() {
            sink.committed(outcome.ticket.shard, vec![outcome]);
        }
    }
}

fn name_of(id: &ExecutionId) -> String {
    format!("execution {id}")
}

fn writer_is_gone() -> AppendError {
    AppendError::Unavailable(Arc::from("the writer has ended"))
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.close();
    }
}

impl Journal for SqliteStore {
    fn attach(&self, sink: Arc<dyn CommitSink>) {
        if self.shared.sink.set(sink).is_err() {
            log::error!("a second listener of commits was ignored");
        }
    }

    fn close(&self) {
        self.readers.close();
        *self.jobs.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer else { return };
        // The last owner may be the sink, on the writer's own thread.
        let is_writer = writer.thread().id() == std::thread::current().id();
        if !is_writer && writer.join().is_err() {
            log::error!("the store's writer panicked");
        }
    }

    fn next_row(&self) -> Row {
        self.last_row.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn append(&self, append: Append) {
        let (ticket, upto) = (append.ticket, append.projection.last_seq);
        let refusal = |error| Acknowledgement { ticket, upto, result: Err(error) };
        let job = match PreparedAppend::new(append) {
            Ok(prepared) => Job::Append(Box::new(prepared)),
            Err(error) => {
                let reason = AppendError::Unavailable(Arc::from(error.to_string()));
                Job::Refuse(refusal(reason))
            }
        };
        if self.queue(job).is_err() {
            self.acknowledge_here(refusal(writer_is_gone()));
        }
    }

    fn store_snapshot(&self, kept: Snapshot) {
        // Without a writer nothing is kept any more.
        let _ = self.queue(Job::State(kept));
    }

    fn is_writable(&self) -> bool {
        self.shared.writable.load(Ordering::SeqCst)
    }

    fn change_timers(&self, changes: Vec<TimerChange>) {
        if self.queue(Job::Timers(changes)).is_err() {
            log::error!("a change of timers was lost: the writer has ended");
        }
    }
}

impl Executions for SqliteStore {
    fn load<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<StoredExecution>> {
        Box::pin(async move {
            if !self.readers.read(|| name_of(id), |it| portions::is_large(it, id))? {
                return self.readers.read(|| name_of(id), |it| reader::load(it, id));
            }
            let (id, record) = (id.clone(), name_of(id));
            self.readers.read_aside(Lane::Loads, || record, move |it| reader::load(it, &id)).await
        })
    }

    fn describe<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<Projection>> {
        Box::pin(async move { self.readers.read(|| name_of(id), |it| reader::describe(it, id)) })
    }

    fn facts<'a>(
        &'a self,
        id: &'a ExecutionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<Recorded>> {
        Box::pin(async move {
            self.readers.read(|| name_of(id), |it| reader::facts(it, id, after, limit))
        })
    }

    fn portion<'a>(&'a self, id: &'a ExecutionId, from: Place, bytes: usize) -> Read<'a, Portion> {
        Box::pin(async move {
            if !self.readers.read(|| name_of(id), |it| portions::is_large(it, id))? {
                let query = |it: &Reading<'_>| portions::portion(it, id, from, bytes);
                return self.readers.read(|| name_of(id), query);
            }
            let (id, record) = (id.clone(), name_of(id));
            let query = move |it: &Reading<'_>| portions::portion(it, &id, from, bytes);
            self.readers.read_aside(Lane::Portions, || record, query).await
        })
    }

    fn list<'a>(
        &'a self,
        filter: &'a ExecutionFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Read<'a, (Vec<Projection>, Option<Cursor>)> {
        Box::pin(async move {
            let record = || "the list of executions".to_owned();
            if filter.is_of_ends() {
                let filter = filter.clone();
                let list =
                    move |reading: &Reading<'_>| list::list_of_ends(reading, &filter, after, limit);
                return self.readers.read_aside(Lane::Lists, record, list).await;
            }
            self.readers.read(record, |reading| list::list(reading, filter, after, limit))
        })
    }

    fn counts(&self) -> Read<'_, Vec<ExecutionCount>> {
        let record = || "the counts".to_owned();
        Box::pin(async move { self.readers.read(record, counts::all) })
    }

    fn counts_of_user<'a>(&'a self, user_id: &'a str, limit: usize) -> Read<'a, CountsOfUser> {
        let user = user_id.to_owned();
        let record = || "the counts of a user".to_owned();
        let query = move |reading: &Reading<'_>| counts::of_user(reading, &user, limit);
        Box::pin(self.readers.read_aside(Lane::Lists, record, query))
    }

    fn running<'a>(&'a self, after: Row, limit: usize) -> Read<'a, Vec<(Row, ExecutionId)>> {
        Box::pin(async move {
            let record = || "what is running".to_owned();
            self.readers.read(record, |reading| reader::running(reading, after, limit))
        })
    }

    fn timers_due<'a>(&'a self, until: Timestamp, limit: usize) -> Read<'a, Vec<Timer>> {
        Box::pin(async move {
            let record = || "the timers".to_owned();
            self.readers.read(record, |reading| reader::timers_due(reading, until, limit))
        })
    }

    fn timers_of<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Vec<Timer>> {
        Box::pin(async move { self.readers.read(|| name_of(id), |it| reader::timers_of(it, id)) })
    }

    fn idempotency<'a>(
        &'a self,
        scope: &'a str,
        now: Timestamp,
    ) -> Read<'a, Option<IdempotencyRecord>> {
        Box::pin(async move {
            let record = || "an idempotency key".to_owned();
            self.readers.read(record, |reading| reader::idempotency(reading, scope, now))
        })
    }
}

impl Definitions for SqliteStore {
    fn put_definition<'a>(&'a self, hash: &'a str, definition: &'a Value) -> Read<'a, ()> {
        Box::pin(async move {
            match self.definition(hash).await {
                // Every start puts all definitions, and most are there: spare the disk.
                Ok(Some(_)) => return Ok(()),
                // One that makes no sense is put in order: its hash says what it was.
                Ok(None) | Err(ReadError::Corrupt(_)) => {}
                Err(error @ ReadError::Unavailable(_)) => return Err(error),
            }
            let failed = |error: &dyn std::error::Error| {
                ReadError::Unavailable(Arc::from(error.to_string()))
            };
            let body = serde_json::to_vec(definition).map_err(|error| failed(&error))?;
            let hash = hash.to_owned();
            let put = self.ask(|done| Job::Definition { hash, body, done }).await;
            put.map_err(|error| failed(&error))
        })
    }

    fn definition<'a>(&'a self, hash: &'a str) -> Read<'a, Option<Value>> {
        Box::pin(async move {
            self.readers.read(|| format!("definition {hash}"), |it| reader::definition(it, hash))
        })
    }
}
