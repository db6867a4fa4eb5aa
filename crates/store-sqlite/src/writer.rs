//! The only thread that writes: it commits all queued requests in one transaction, and only then
//! notifies callers.
//!
//! While the database rejects writes, every request is refused at once, and about twice a second a
//! write is tried on a new connection: after a failed fsync the old connection's view of the file
//! cannot be trusted. Files that were removed, renamed or replaced are the exception: the old connection
//! is kept until they are in place again, because only open files still reach what is in them.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use greenroom_actors::ports::meter::JournalMeter;
use greenroom_actors::ports::store::{AppendError, CommitSink, LOG_BATCH_MAX};
use rusqlite::{Connection, ErrorCode};

use super::changes::Part;
use super::defects::Defects;
use super::files::OpenFiles;
use super::job::Job;
use super::key_purge::KeyPurge;
use super::session::{Session, Verdict};
use super::vacuum::Vacuum;
use super::{Durability, schema};

/// Maximum number of requests of a transaction.
const BATCH_MAX: usize = 512;

/// Pause between attempts to write while writes fail.
pub(super) const PROBE_EVERY: Duration = Duration::from_millis(500);

/// The files of an idle store are checked once in this many pauses between attempts to write.
const PROBES_PER_LOOK: u32 = 10;

/// State shared by the writer and the store.
pub(super) struct Shared {
    pub writable: AtomicBool,
    pub sink: OnceLock<Arc<dyn CommitSink>>,
    pub meter: Arc<dyn JournalMeter>,
    /// Reporter of damaged rows, for the writer and the readers.
    pub defects: Arc<Defects>,
    /// Number of requests that the writer has not taken yet.
    pub queued: AtomicUsize,
    #[cfg(test)]
    pub faults: super::tests::Faults,
}

impl Shared {
    pub(super) fn new(meter: Arc<dyn JournalMeter>) -> Self {
        Self {
            writable: AtomicBool::new(true),
            sink: OnceLock::new(),
            defects: Arc::new(Defects::new(Arc::clone(&meter))),
            meter,
            queued: AtomicUsize::new(0),
            #[cfg(test)]
            faults: super::tests::Faults::default(),
        }
    }
}

/// The writer's side of the store.
pub(super) struct Writer {
    pub path: PathBuf,
    pub files: OpenFiles,
    pub durability: Durability,
    pub probe_every: Duration,
    pub jobs: Receiver<Job>,
    pub shared: Arc<Shared>,
}

/// Reason for the end of work on a connection.
enum End {
    /// The store was dropped and its queue is empty.
    Closed,
    Failed(Arc<str>),
}

impl Writer {
    /// Serves requests until the store is closed.
    pub(super) fn run(mut self, connection: Connection) {
        let mut connection = connection;
        loop {
            match self.serve(&connection) {
                End::Closed => return close(connection),
                End::Failed(reason) => {
                    self.shared.writable.store(false, Ordering::SeqCst);
                    self.shared.meter.failed();
                    log::error!("the store rejects writes, retrying: {reason}");
                    match self.wait_until_writable(connection, reason) {
                        Some(working) => connection = working,
                        None => return,
                    }
                    self.files = self.files.reopened();
                    self.shared.writable.store(true, Ordering::SeqCst);
                    log::info!("the store accepts writes again");
                }
            }
        }
    }

    fn serve(&self, connection: &Connection) -> End {
        let mut session = match Session::prepare(connection) {
            Ok(session) => session,
            Err(error) => return End::Failed(reason_of(&error)),
        };
        let mut keys = KeyPurge::default();
        let mut vacuum = Vacuum::default();
        let mut unfinished = Vec::new();
        loop {
            let batch = match self.jobs.try_recv() {
                Ok(next) => {
                    unfinished.push(next);
                    self.gather(unfinished)
                }
                Err(_) if !unfinished.is_empty() => unfinished,
                Err(TryRecvError::Disconnected) => return End::Closed,
                Err(TryRecvError::Empty) => {
                    // idle: clean up, or wait for the next request
                    match keys.run_if_due(&mut session) {
                        Ok(true) => continue,
                        Ok(false) => {}
                        Err(error) => return End::Failed(reason_of(&error)),
                    }
                    match vacuum.step(connection) {
                        Ok(true) => continue,
                        Ok(false) => {}
                        Err(error) => return End::Failed(reason_of(&error)),
                    }
                    match self.jobs.recv_timeout(self.probe_every * PROBES_PER_LOOK) {
                        Ok(first) => self.gather(vec![first]),
                        Err(RecvTimeoutError::Disconnected) => return End::Closed,
                        Err(RecvTimeoutError::Timeout) => match self.files.check() {
                            Ok(()) => continue,
                            Err(error) => return End::Failed(reason_of(&error)),
                        },
                    }
                }
            };
            keys.note(&batch);
            vacuum.note(&batch);
            unfinished = match self.commit(&mut session, batch) {
                Ok(unfinished) => unfinished,
                Err(reason) => return End::Failed(reason),
            };
        }
    }

    /// Adds all queued requests to `first`, whose last one has just been taken from the queue.
    /// Never waits.
    fn gather(&self, first: Vec<Job>) -> Vec<Job> {
        let mut batch = first;
        let more = self.jobs.try_iter().take(BATCH_MAX - 1);
        let known = batch.len();
        batch.extend(more);
        self.shared.queued.fetch_sub(batch.len() - known + 1, Ordering::Relaxed);
        batch
    }

    /// Commits a batch and notifies callers; returns the jobs that have further parts. Fails if the
    /// store cannot write.
    fn commit(&self, session: &mut Session<'_>, batch: Vec<Job>) -> Result<Vec<Job>, Arc<str>> {
        let began = Instant::now();
        match self.try_commit(session, &batch) {
            Ok(verdicts) => {
                self.shared.meter.committed(batch.len(), began.elapsed());
                Ok(self.answer(batch, verdicts))
            }
            Err(error) if is_full(&error) && batch.iter().any(Job::is_logs) => {
                self.commit_without_logs(session, batch, &reason_of(&error))
            }
            Err(error) if is_fault_of_one(&error) => {
                if let Err(error) = session.roll_back() {
                    return Err(self.refuse(batch, &reason_of(&error)));
                }
                self.commit_one_by_one(session, batch, &reason_of(&error))
            }
            Err(error) => {
                // report the first error; the connection is dropped in any case
                let _ = session.roll_back();
                Err(self.refuse(batch, &reason_of(&error)))
            }
        }
    }

    /// Commits a batch without its log records, so that they alone are refused when the disk is
    /// full.
    fn commit_without_logs(
        &self,
        session: &mut Session<'_>,
        batch: Vec<Job>,
        reason: &Arc<str>,
    ) -> Result<Vec<Job>, Arc<str>> {
        if let Err(error) = session.roll_back() {
            return Err(self.refuse(batch, &reason_of(&error)));
        }
        self.shared.meter.failed();
        let (logs, rest): (Vec<_>, Vec<_>) = batch.into_iter().partition(Job::is_logs);
        let refused = vec![Err(AppendError::Unavailable(Arc::clone(reason))); logs.len()];
        self.answer(logs, refused);
        if rest.is_empty() { Ok(Vec::new()) } else { self.commit(session, rest) }
    }

    /// Commits requests one by one, so that only those at fault are refused.
    fn commit_one_by_one(
        &self,
        session: &mut Session<'_>,
        batch: Vec<Job>,
        reason: &Arc<str>,
    ) -> Result<Vec<Job>, Arc<str>> {
        if batch.len() == 1 {
            self.shared.meter.failed();
            log::error!("the store rejected a write: {reason}");
            let refused = vec![Err(AppendError::Unavailable(reason.clone()))];
            return Ok(self.answer(batch, refused));
        }
        let mut unfinished = Vec::new();
        let mut jobs = batch.into_iter();
        while let Some(job) = jobs.next() {
            match self.commit(session, vec![job]) {
                Ok(parts) => unfinished.extend(parts),
                Err(reason) => {
                    unfinished.extend(jobs);
                    return Err(self.refuse(unfinished, &reason));
                }
            }
        }
        Ok(unfinished)
    }

    /// Refuses a batch; returns the reason.
    fn refuse(&self, batch: Vec<Job>, reason: &Arc<str>) -> Arc<str> {
        // before the answers: a caller that receives the failure must not see a writable store
        self.shared.writable.store(false, Ordering::SeqCst);
        let verdicts = vec![Err(AppendError::Unavailable(reason.clone())); batch.len()];
        self.answer(batch, verdicts);
        reason.clone()
    }

    fn try_commit(
        &self,
        session: &mut Session<'_>,
        batch: &[Job],
    ) -> rusqlite::Result<Vec<Verdict<Part>>> {
        #[cfg(test)]
        self.shared.faults.before_batch(session.connection)?;
        session.begin()?;
        let mut verdicts = Vec::with_capacity(batch.len());
        // so that they delay other requests by a millisecond at most
        let mut logs_left = LOG_BATCH_MAX;
        for job in batch {
            let verdict = match job {
                Job::Append(prepared) => session.append(prepared)?,
                Job::Refuse(outcome) => outcome.result.clone(),
                Job::Snapshot(snapshot) => session.store_snapshot(snapshot).map(Ok)?,
                Job::Timers(changes) => session.change_timers(changes).map(Ok)?,
                Job::Definition { hash, body, .. } => session.put_definition(hash, body).map(Ok)?,
                Job::Generation { write, .. } => session.put_generation(write).map(Ok)?,
                Job::Interrupt { now, .. } => {
                    session.generations.interrupt_working(*now).map(Ok)?
                }
                Job::Change { change, .. } => {
                    verdicts.push(session.change(change, &self.shared.defects)?);
                    continue;
                }
                Job::Logs { logs, written, .. } => {
                    let upto = logs.len().min(written + logs_left);
                    let part = &logs[*written..upto];
                    session.logs.put(part)?;
                    logs_left -= part.len();
                    let is_last = upto == logs.len();
                    verdicts.push(Ok(Part { changed: part.len() as u64, is_last }));
                    continue;
                }
                #[cfg(test)]
                Job::Pause(until) => {
                    while until.recv().is_ok() {}
                    Ok(())
                }
            };
            verdicts.push(verdict.map(|()| Part::whole(0)));
        }
        #[cfg(test)]
        self.shared.faults.before_commit()?;
        // what is committed to files without a name is lost with the process
        self.files.check()?;
        session.commit()?;
        Ok(verdicts)
    }

    /// Refuses requests until a write succeeds; returns its connection. `None` if the store was
    /// closed.
    fn wait_until_writable(&self, failed: Connection, reason: Arc<str>) -> Option<Connection> {
        let mut displaced = self.files.check().is_err().then_some(failed);
        // so that the database alone has all that was acknowledged
        let mut is_log_empty = displaced.as_ref().is_none_or(empty_log);
        let mut reason = reason;
        let mut tried_at = Instant::now();
        loop {
            // counted from the last attempt: a stream of requests must not delay the next one
            let pause = self.probe_every.saturating_sub(tried_at.elapsed());
            match self.jobs.recv_timeout(pause) {
                Ok(first) => {
                    let batch = self.gather(vec![first]);
                    // the returned reason is known
                    let _ = self.refuse(batch, &reason);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => {
                    displaced.into_iter().for_each(close);
                    return None;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            is_log_empty = is_log_empty || displaced.as_ref().is_none_or(empty_log);
            let probed = match &displaced {
                Some(_) => self.files.check(),
                None => Ok(()),
            };
            let probed = probed.and_then(|()| {
                displaced = None;
                self.probe()
            });
            match probed {
                Ok(connection) => return Some(connection),
                Err(error) => reason = reason_of(&error),
            }
            tried_at = Instant::now();
        }
    }

    fn probe(&self) -> rusqlite::Result<Connection> {
        // a file that is gone must not be made anew
        self.files.database().check_at(&self.path)?;
        let connection = schema::open_writer(&self.path, self.durability)?;
        #[cfg(test)]
        self.shared.faults.before_batch(&connection)?;
        Session::prepare(&connection)?.probe()?;
        self.files.database().check_at(&self.path)?;
        Ok(connection)
    }
}

/// Moves the write-ahead log into the database. Returns false if that is not possible now, for
/// instance because of a reader.
fn empty_log(connection: &Connection) -> bool {
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    match connection.query_row(checkpoint, [], |row| row.get::<_, i64>(0)) {
        Ok(is_busy) => is_busy == 0,
        Err(error) => {
            log::warn!("cannot empty the write-ahead log: {error}");
            false
        }
    }
}

/// Closes the connection, after moving the write-ahead log into the database.
fn close(connection: Connection) {
    if !empty_log(&connection) {
        log::warn!("the write-ahead log is not empty: the next start needs it beside the database");
    }
    if let Err((_, error)) = connection.close() {
        log::warn!("cannot close the store cleanly: {error}");
    }
}

fn reason_of(error: &rusqlite::Error) -> Arc<str> {
    Arc::from(error.to_string())
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Returns true if an error concerns one request rather than the store.
fn is_fault_of_one(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => {
            matches!(
                code,
                ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch
            )
        }
        // not from SQLite: a value that could not be bound
        None => true,
    }
}
