//! The store in one SQLite file.
//!
//! One thread writes (see `writer`), any number of threads read on separate connections. An append
//! costs its caller the JSON of its facts and a queue entry.

mod acted;
mod agents;
mod ask_writes;
mod asks;
mod backup;
mod changes;
mod codec;
mod continuations;
mod conversations;
mod counts;
mod defects;
mod dump;
mod files;
mod generations;
mod guard;
mod history;
mod job;
mod key_purge;
mod known_tools;
mod list;
mod log_writes;
mod logs;
mod notify;
mod page;
mod portions;
mod queue;
mod reader;
mod restore;
mod retention;
mod schema;
mod search;
mod session;
#[cfg(test)]
mod tests;
mod trace_record;
mod traces;
mod vacuum;
mod writer;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::slot::SlotSet;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::meter::{JournalMeter, NoMeter};
use greenroom_actors::ports::store::{
    Acknowledgement, Append, AppendError, CommitSink, CountsOfUser, Cursor, Definitions, EndRange,
    ExecutionCount, ExecutionEnd, ExecutionFilter, ExecutionStart, Executions, FactCursor,
    IdempotencyRecord, Journal, Portion, Projection, Read, Row, Snapshot, StartRange,
    StoredExecution, Timer, TimerChange,
};
use greenroom_store_codec::definitions;
use greenroom_store_codec::prepared::PreparedAppend;
use serde_json::Value;

pub use self::backup::{Backup, BackupError, back_up};
use self::defects::Reading;
pub use self::dump::{FileSource, FileTarget};
pub use self::files::beside;
use self::files::{OpenFiles, log_bytes};
pub use self::guard::{Look, OpenError, look};
use self::job::Job;
use self::queue::Queue;
use self::reader::{Lane, Readers};
pub use self::restore::{RestoreError, Restored, restore};
use self::session::Session;
use self::writer::{Shared, Writer};

/// Guarantee of an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Survives a power loss: every commit is synced to the disk.
    #[default]
    Full,
    /// Survives the end of the process; a power loss may undo the last commits.
    Normal,
}

/// Sizes of the store's files, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSizes {
    pub database: u64,
    /// Size of the write-ahead log, 0 if there is none.
    pub log: u64,
}

/// A store in one SQLite file, which it locks against other processes.
///
/// Dropping it writes what is queued, empties the write-ahead log and releases the lock.
pub struct SqliteStore {
    path: PathBuf,
    shared: Arc<Shared>,
    readers: Arc<Readers>,
    last_row: AtomicI64,
    last_generation: AtomicI64,
    queue: Arc<Queue>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Held while the file is open.
    _lock: guard::Lock,
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteStore").field("writable", &self.is_writable()).finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens the store at the path, or creates it; migrates files of older versions. A file that
    /// cannot be used is rejected and left unchanged.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, OpenError> {
        Self::open_measured(path, durability, Arc::new(NoMeter))
    }

    /// Opens the store like [`SqliteStore::open`], and reports commits to a meter.
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
        let is_gone = guard::is_gone(path);
        let mut lock = guard::lock(path)?;
        guard::inspect(path)?;
        if is_gone {
            log::warn!(
                "the store {} is not there, though its lock is: a new one is made. If it was moved, \
                 stop the server, remove the new one with its -wal and -shm, and put it back",
                path.display()
            );
        }
        let refused = |error: rusqlite::Error| guard::refusal(path, &error);
        let mut connection = schema::open_writer(path, durability).map_err(refused)?;
        lock.extend(path)?;
        schema::migrate(&mut connection).map_err(refused)?;
        let last_row = Session::last_row(&connection).map_err(refused)?;
        let last_generation = generations::last_row(&connection).map_err(refused)?;

        let unseen =
            |error: io::Error| OpenError::Failed { path: path.into(), reason: error.to_string() };
        let files = OpenFiles::of(path).map_err(unseen)?;
        let failed = |error: io::Error| OpenError::Failed {
            path: path.into(),
            reason: format!("cannot start a thread: {error}"),
        };
        let shared = Arc::new(Shared::new(meter));
        let defects = Arc::clone(&shared.defects);
        let readers = Readers::start(path.into(), files.database(), defects).map_err(failed)?;
        let (jobs, taken) = channel();
        let writer = Writer {
            path: path.into(),
            files,
            durability,
            probe_every,
            jobs: taken,
            shared: shared.clone(),
        };
        let queue = Arc::new(Queue::new(jobs, Arc::clone(&shared)));
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
            queue,
            writer: Mutex::new(Some(writer)),
            _lock: lock,
        })
    }

    /// Returns the number of requests queued for the writer.
    pub fn queued(&self) -> usize {
        self.shared.queued.load(Ordering::Relaxed)
    }

    /// Returns the current sizes of the files.
    pub fn file_sizes(&self) -> FileSizes {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
        FileSizes { database: size(&self.path), log: log_bytes(&self.path) }
    }

    /// Runs a read as [`Readers::read`] does, as a future of the ports.
    fn read<'a, T: Send + 'a>(
        &'a self,
        record: impl FnOnce() -> String + Send + 'a,
        query: impl FnOnce(&Reading<'_>) -> rusqlite::Result<T> + Send + 'a,
    ) -> Read<'a, T> {
        Box::pin(async move { self.readers.read(record, query) })
    }

    /// Runs a long read as [`Readers::read_aside`] does, as a future of the ports.
    fn read_aside<T: Send + 'static>(
        &self,
        lane: Lane,
        record: impl FnOnce() -> String + Send + 'static,
        query: impl FnOnce(&Reading<'_>) -> rusqlite::Result<T> + Send + 'static,
    ) -> Read<'_, T> {
        Box::pin(self.readers.read_aside(lane, record, query))
    }

    fn acknowledge_here(&self, outcome: Acknowledgement) {
        if let Some(sink) = self.shared.sink.get() {
            sink.committed(outcome.ticket.shard, vec![outcome]);
        }
    }
}

/// Returns the name of the record of an execution, for errors.
fn record_of(id: &ExecutionId) -> String {
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
    fn technology(&self) -> &'static str {
        "sqlite"
    }

    fn attach(&self, sink: Arc<dyn CommitSink>) {
        if self.shared.sink.set(sink).is_err() {
            log::error!("ignored a second commit sink");
        }
    }

    fn close(&self) {
        self.readers.close();
        self.queue.close();
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(writer) = writer else { return };
        // the last owner may be the sink, on the writer's thread
        let is_writer = writer.thread().id() == std::thread::current().id();
        if !is_writer && writer.join().is_err() {
            log::error!("the store's writer panicked");
        }
    }

    fn next_row(&self) -> Option<Row> {
        Some(self.last_row.fetch_add(1, Ordering::Relaxed) + 1)
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
        if self.queue.put(job).is_err() {
            self.acknowledge_here(refusal(writer_is_gone()));
        }
    }

    fn store_snapshot(&self, _: usize, snapshot: Snapshot) {
        // snapshots are optional: lost if the writer has ended
        let _ = self.queue.put(Job::Snapshot(snapshot));
    }

    fn is_writable(&self) -> bool {
        self.shared.writable.load(Ordering::SeqCst)
    }

    fn change_timers(&self, _: usize, changes: Vec<TimerChange>) {
        if self.queue.put(Job::Timers(changes)).is_err() {
            log::error!("lost a change of timers: the store's writer has ended");
        }
    }
}

impl Executions for SqliteStore {
    fn load<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<StoredExecution>> {
        Box::pin(async move {
            if !self.readers.read(|| record_of(id), |it| portions::is_large(it, id))? {
                return self.readers.read(|| record_of(id), |it| reader::load(it, id));
            }
            let (id, record) = (id.clone(), record_of(id));
            self.readers.read_aside(Lane::Loads, || record, move |it| reader::load(it, &id)).await
        })
    }

    fn describe<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Option<Projection>> {
        self.read(move || record_of(id), move |it| reader::describe(it, id))
    }

    fn facts<'a>(
        &'a self,
        id: &'a ExecutionId,
        after: u64,
        limit: usize,
    ) -> Read<'a, Vec<Recorded>> {
        self.read(move || record_of(id), move |it| reader::facts(it, id, after, limit))
    }

    fn portion<'a>(
        &'a self,
        id: &'a ExecutionId,
        from: FactCursor,
        bytes: usize,
    ) -> Read<'a, Portion> {
        Box::pin(async move {
            if !self.readers.read(|| record_of(id), |it| portions::is_large(it, id))? {
                let query = |it: &Reading<'_>| portions::portion(it, id, from, bytes);
                return self.readers.read(|| record_of(id), query);
            }
            let (id, record) = (id.clone(), record_of(id));
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
        let record = || "the list of executions".to_owned();
        if filter.is_of_ends() {
            let filter = filter.clone();
            let list = move |it: &Reading<'_>| list::list_of_ends(it, &filter, after, limit);
            return self.read_aside(Lane::Lists, record, list);
        }
        if filter.is_search() {
            let filter = filter.clone();
            let list = move |it: &Reading<'_>| list::list(it, &filter, after, limit);
            return self.read_aside(Lane::Lists, record, list);
        }
        self.read(record, move |it| list::list(it, filter, after, limit))
    }

    fn counts(&self) -> Read<'_, Vec<ExecutionCount>> {
        self.read(|| "the counts".to_owned(), counts::all)
    }

    fn counts_of_user<'a>(&'a self, user_id: &'a str, limit: usize) -> Read<'a, CountsOfUser> {
        let user = user_id.to_owned();
        let query = move |it: &Reading<'_>| counts::of_user(it, &user, limit);
        self.read_aside(Lane::Lists, || "the counts of a user".to_owned(), query)
    }

    fn ends<'a>(&'a self, range: &'a EndRange, limit: usize) -> Read<'a, Vec<ExecutionEnd>> {
        let range = range.clone();
        let query = move |it: &Reading<'_>| list::ends(it, &range, limit);
        self.read_aside(Lane::Lists, || "the ends of executions".to_owned(), query)
    }

    fn starts<'a>(&'a self, range: &'a StartRange, limit: usize) -> Read<'a, Vec<ExecutionStart>> {
        let range = range.clone();
        let query = move |it: &Reading<'_>| list::starts(it, &range, limit);
        self.read_aside(Lane::Lists, || "the starts of executions".to_owned(), query)
    }

    fn running<'a>(
        &'a self,
        slots: &'a SlotSet,
        after: Row,
        limit: usize,
    ) -> Read<'a, Vec<(Row, ExecutionId)>> {
        let record = || "the running executions".to_owned();
        self.read(record, move |it| reader::running(it, slots, after, limit))
    }

    fn timers_due<'a>(
        &'a self,
        slots: &'a SlotSet,
        until: Timestamp,
        limit: usize,
    ) -> Read<'a, Vec<Timer>> {
        self.read(|| "the timers".to_owned(), move |it| reader::timers_due(it, slots, until, limit))
    }

    fn timers_of<'a>(&'a self, id: &'a ExecutionId) -> Read<'a, Vec<Timer>> {
        self.read(move || record_of(id), move |it| reader::timers_of(it, id))
    }

    fn idempotency<'a>(
        &'a self,
        scope: &'a str,
        now: Timestamp,
    ) -> Read<'a, Option<IdempotencyRecord>> {
        let record = || "an idempotency key".to_owned();
        self.read(record, move |it| reader::idempotency(it, scope, now))
    }
}

impl Definitions for SqliteStore {
    fn put_definition<'a>(&'a self, hash: &'a str, definition: &'a Value) -> Read<'a, ()> {
        let put = async move |body| {
            let hash = hash.to_owned();
            self.queue.ask(|done| Job::Definition { hash, body, done }).await
        };
        Box::pin(definitions::put(self.definition(hash), definition, put))
    }

    fn definition<'a>(&'a self, hash: &'a str) -> Read<'a, Option<Value>> {
        self.read(move || format!("definition {hash}"), move |it| reader::definition(it, hash))
    }
}
