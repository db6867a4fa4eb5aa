//! The one thread that writes: it drains what is queued into one transaction, commits, and only
//! then tells anybody.
//!
//! While the database does not take writes, every request is refused at once, and about twice a
//! second a write is really tried on a new connection: after a failed fsync the old one's idea of
//! the file cannot be trusted.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use greenroom_actors::ports::meter::JournalMeter;
use greenroom_actors::ports::store::{AppendError, CommitSink};
use rusqlite::{Connection, ErrorCode};

use super::changes::Part;
use super::defects::Defects;
use super::job::Job;
use super::key_purge::KeyPurge;
use super::session::{Session, Verdict};
use super::shrinking::Shrinking;
use super::{Durability, schema};

/// Most requests that join a transaction.
const BATCH_MAX: usize = 512;

/// Log records in one transaction: they take a millisecond at most from what waits with them.
const LOGS_MAX: usize = 128;

/// Pause between real attempts while writes fail.
pub(super) const PROBE_EVERY: Duration = Duration::from_millis(500);

/// What the writer and the store's owner both see.
pub(super) struct Shared {
    pub writable: AtomicBool,
    pub sink: OnceLock<Arc<dyn CommitSink>>,
    pub meter: Arc<dyn JournalMeter>,
    /// Told of by the writer and by all that read.
    pub defects: Arc<Defects>,
    /// Requests that the writer has not taken yet.
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
    pub durability: Durability,
    pub probe_every: Duration,
    pub jobs: Receiver<Job>,
    pub shared: Arc<Shared>,
}

/// Why a connection is no longer served.
enum End {
    /// The store was dropped and its queue is empty.
    Closed,
    Failed(Arc<str>),
}

impl Writer {
    /// Works until the store is dropped.
    pub(super) fn run(self, connection: Connection) {
        let mut connection = connection;
        loop {
            match self.serve(&connection) {
                End::Closed => return self.close(connection),
                End::Failed(reason) => {
                    self.shared.writable.store(false, Ordering::SeqCst);
                    self.shared.meter.failed();
                    log::error!("the store does not take writes: {reason}");
                    drop(connection);
                    match self.wait_until_writable(reason) {
                        Some(working) => connection = working,
                        None => return,
                    }
                    self.shared.writable.store(true, Ordering::SeqCst);
                    log::info!("the store takes writes again");
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
        let mut shrinking = Shrinking::default();
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
                    // Nobody waits: time to tidy up, else to sleep.
                    match keys.run_if_due(&mut session) {
                        Ok(true) => continue,
                        Ok(false) => {}
                        Err(error) => return End::Failed(reason_of(&error)),
                    }
                    match shrinking.step(connection) {
                        Ok(true) => continue,
                        Ok(false) => {}
                        Err(error) => return End::Failed(reason_of(&error)),
                    }
                    match self.jobs.recv() {
                        Ok(first) => self.gather(vec![first]),
                        Err(_) => return End::Closed,
                    }
                }
            };
            keys.note(&batch);
            shrinking.note(&batch);
            unfinished = match self.commit(&mut session, batch) {
                Ok(unfinished) => unfinished,
                Err(reason) => return End::Failed(reason),
            };
        }
    }

    /// Takes what has queued up behind the last of these, which has just been taken; never waits
    /// for more.
    fn gather(&self, first: Vec<Job>) -> Vec<Job> {
        let mut batch = first;
        let more = self.jobs.try_iter().take(BATCH_MAX - 1);
        let known = batch.len();
        batch.extend(more);
        self.shared.queued.fetch_sub(batch.len() - known + 1, Ordering::Relaxed);
        batch
    }

    /// Makes a batch durable and tells everybody concerned; gives what has further parts. Fails
    /// when the store cannot write.
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
                // The reason that counts is the first one; the connection is dropped either way.
                let _ = session.roll_back();
                Err(self.refuse(batch, &reason_of(&error)))
            }
        }
    }

    /// Makes room: nothing else is refused, and the store is not given up, because log records find
    /// none.
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

    /// Finds the request that spoils the batch for the others.
    fn commit_one_by_one(
        &self,
        session: &mut Session<'_>,
        batch: Vec<Job>,
        reason: &Arc<str>,
    ) -> Result<Vec<Job>, Arc<str>> {
        if batch.len() == 1 {
            self.shared.meter.failed();
            log::error!("the store refused a write: {reason}");
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

    /// Gives the reason back.
    fn refuse(&self, batch: Vec<Job>, reason: &Arc<str>) -> Arc<str> {
        // Before the answers: who hears of the failure must not find the store writable.
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
        let mut logs_left = LOGS_MAX;
        for job in batch {
            let verdict = match job {
                Job::Append(prepared) => session.append(prepared)?,
                Job::Refuse(outcome) => outcome.result.clone(),
                Job::State(kept) => session.store_snapshot(kept).map(Ok)?,
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
        session.commit()?;
        Ok(verdicts)
    }

    /// Refuses what is asked and tries to write now and then. `None`: the store was dropped.
    fn wait_until_writable(&self, reason: Arc<str>) -> Option<Connection> {
        let mut reason = reason;
        let mut tried_at = Instant::now();
        loop {
            // Counted from the last attempt: a stream of requests must not put the next one off.
            let pause = self.probe_every.saturating_sub(tried_at.elapsed());
            match self.jobs.recv_timeout(pause) {
                Ok(first) => {
                    let batch = self.gather(vec![first]);
                    // The store is known not to take writes; the answer is all that is wanted.
                    let _ = self.refuse(batch, &reason);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            match self.probe() {
                Ok(connection) => return Some(connection),
                Err(error) => reason = reason_of(&error),
            }
            tried_at = Instant::now();
        }
    }

    fn probe(&self) -> rusqlite::Result<Connection> {
        let connection = schema::open_writer(&self.path, self.durability)?;
        #[cfg(test)]
        self.shared.faults.before_batch(&connection)?;
        Session::prepare(&connection)?.probe()?;
        Ok(connection)
    }

    /// Leaves one file behind, without a log.
    fn close(&self, connection: Connection) {
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        if let Err(error) = connection.query_row(checkpoint, [], |_| Ok(())) {
            log::warn!("the write-ahead log was not emptied, the next start reads it: {error}");
        }
        if let Err((_, error)) = connection.close() {
            log::warn!("the store was not closed cleanly: {error}");
        }
    }
}

fn reason_of(error: &rusqlite::Error) -> Arc<str> {
    Arc::from(error.to_string())
}

fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Whether an error speaks of one request rather than of the store.
fn is_fault_of_one(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(code) => {
            matches!(
                code,
                ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch
            )
        }
        // Not from SQLite: a value that could not be bound.
        None => true,
    }
}
