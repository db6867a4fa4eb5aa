//! The one thread that writes: it drains what is queued into one transaction, commits, and only
//! then tells anybody.
//!
//! While the database does not take writes, every request is refused at once, and about twice a
//! second a write is really tried on a new connection: after a failed fsync the old one's idea of
//! the file cannot be trusted.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use greenroom_actors::domain::fact::Recorded;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    Acknowledgement, AppendError, CommitSink, Header, TimerChange,
};
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use super::changes::{Change, Part};
use super::generations::PreparedGeneration;
use super::session::{PreparedAppend, Session, Verdict};
use super::{Durability, schema};

/// Most requests in one transaction.
const BATCH_MAX: usize = 512;

/// Pause between real attempts while writes fail.
pub(super) const PROBE_EVERY: Duration = Duration::from_millis(500);

/// Expired keys are looked for when the newest append is this much later than at the last look.
const PURGE_EVERY_MS: u64 = 10_000;

/// Expired keys dropped in one go, so that a request waits for a few milliseconds at most.
const PURGE_BATCH: usize = 100;

/// What the writer is asked to do.
pub(super) enum Job {
    Append(Box<PreparedAppend>),
    /// An append that could not even be written down; it keeps its place among the others.
    Refuse(Acknowledgement),
    Timers(Vec<TimerChange>),
    Definition {
        hash: String,
        body: Vec<u8>,
        done: oneshot::Sender<Verdict>,
    },
    Generation {
        write: Box<PreparedGeneration>,
        done: oneshot::Sender<Verdict>,
    },
    /// Comes back to the queue's head until its last part is made.
    Change {
        change: Change,
        /// What its parts so far have changed.
        changed: u64,
        done: oneshot::Sender<Verdict<u64>>,
    },
    Interrupt {
        now: Timestamp,
        done: oneshot::Sender<Verdict>,
    },
    /// Waits until the test lets go of the other end, so that a known queue builds up.
    #[cfg(test)]
    Pause(Receiver<()>),
}

/// What the writer and the store's owner both see.
#[derive(Default)]
pub(super) struct Shared {
    pub writable: AtomicBool,
    pub sink: OnceLock<Arc<dyn CommitSink>>,
    #[cfg(test)]
    pub faults: super::tests::Faults,
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
                    match self.jobs.recv() {
                        Ok(first) => self.gather(vec![first]),
                        Err(_) => return End::Closed,
                    }
                }
            };
            keys.note(&batch);
            unfinished = match self.commit(&mut session, batch) {
                Ok(unfinished) => unfinished,
                Err(reason) => return End::Failed(reason),
            };
        }
    }

    /// Takes what has queued up meanwhile; never waits for more.
    fn gather(&self, first: Vec<Job>) -> Vec<Job> {
        let mut batch = first;
        while batch.len() < BATCH_MAX {
            let Ok(job) = self.jobs.try_recv() else { break };
            batch.push(job);
        }
        batch
    }

    /// Makes a batch durable and tells everybody concerned; gives what has further parts. Fails
    /// when the store cannot write.
    fn commit(&self, session: &mut Session<'_>, batch: Vec<Job>) -> Result<Vec<Job>, Arc<str>> {
        match self.try_commit(session, &batch) {
            Ok(verdicts) => Ok(self.answer(batch, verdicts)),
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

    /// Finds the request that spoils the batch for the others.
    fn commit_one_by_one(
        &self,
        session: &mut Session<'_>,
        batch: Vec<Job>,
        reason: &Arc<str>,
    ) -> Result<Vec<Job>, Arc<str>> {
        if batch.len() == 1 {
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
        for job in batch {
            let verdict = match job {
                Job::Append(prepared) => session.append(prepared)?,
                Job::Refuse(outcome) => outcome.result.clone(),
                Job::Timers(changes) => session.change_timers(changes).map(Ok)?,
                Job::Definition { hash, body, .. } => session.put_definition(hash, body).map(Ok)?,
                Job::Generation { write, .. } => session.put_generation(write).map(Ok)?,
                Job::Interrupt { now, .. } => {
                    session.generations.interrupt_working(*now).map(Ok)?
                }
                Job::Change { change, .. } => {
                    verdicts.push(session.change(change)?);
                    continue;
                }
                #[cfg(test)]
                Job::Pause(until) => {
                    let _ = until.recv();
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

    /// Tells observers, then the shards in commit order, then who waits for a single answer. Gives
    /// back what has further parts.
    fn answer(&self, batch: Vec<Job>, verdicts: Vec<Verdict<Part>>) -> Vec<Job> {
        let sink = self.shared.sink.get();
        let wants_facts = sink.is_some_and(|sink| sink.wants_facts());
        let mut facts: Vec<(Arc<Header>, Arc<[Recorded]>)> = Vec::new();
        let mut by_shard: Vec<(usize, Vec<Acknowledgement>)> = Vec::new();
        let (mut waiting, mut changes) = (Vec::new(), Vec::new());
        let mut unfinished = Vec::new();
        for (job, verdict) in batch.into_iter().zip(verdicts) {
            let result = verdict.clone().map(drop);
            match job {
                Job::Append(prepared) => {
                    let append = prepared.append;
                    let (ticket, upto) = (append.ticket, append.projection.last_seq);
                    if wants_facts && result.is_ok() {
                        facts.push((append.projection.header, append.facts));
                    }
                    add(&mut by_shard, Acknowledgement { ticket, upto, result });
                }
                Job::Refuse(outcome) => add(&mut by_shard, outcome),
                Job::Timers(changes) => {
                    if let Err(error) = result {
                        // What is due stays due and is brought up again.
                        log::warn!("{} changes of timers were lost: {error}", changes.len());
                    }
                }
                Job::Definition { done, .. }
                | Job::Generation { done, .. }
                | Job::Interrupt { done, .. } => waiting.push((done, result)),
                Job::Change { change, changed, done } => match verdict {
                    Ok(part) if !part.is_last => {
                        let changed = changed + part.changed;
                        unfinished.push(Job::Change { change, changed, done });
                    }
                    ended => changes.push((done, ended.map(|part| changed + part.changed))),
                },
                #[cfg(test)]
                Job::Pause(_) => {}
            }
        }
        if let Some(sink) = sink {
            if !facts.is_empty() {
                sink.publish(facts);
            }
            for (shard, outcomes) in by_shard {
                sink.committed(shard, outcomes);
            }
        }
        for (done, result) in waiting {
            // Who no longer waits does not need the answer.
            let _ = done.send(result);
        }
        for (done, result) in changes {
            let _ = done.send(result);
        }
        unfinished
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

fn add(by_shard: &mut Vec<(usize, Vec<Acknowledgement>)>, outcome: Acknowledgement) {
    let shard = outcome.ticket.shard;
    // A handful of shards: a search beats a map.
    match by_shard.iter_mut().find(|(known, _)| *known == shard) {
        Some((_, outcomes)) => outcomes.push(outcome),
        None => by_shard.push((shard, vec![outcome])),
    }
}

fn reason_of(error: &rusqlite::Error) -> Arc<str> {
    Arc::from(error.to_string())
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

/// When expired keys are dropped. The time is that of the newest append: the writer has no clock.
#[derive(Default)]
struct KeyPurge {
    newest: Timestamp,
    looked_at: Timestamp,
}

impl KeyPurge {
    fn note(&mut self, batch: &[Job]) {
        for job in batch {
            if let Job::Append(prepared) = job {
                self.newest = self.newest.max(prepared.append.projection.updated_at);
            }
        }
    }

    /// Drops one batch if it is time to; tells whether it did.
    fn run_if_due(&mut self, session: &mut Session<'_>) -> rusqlite::Result<bool> {
        if self.newest.ms_since(self.looked_at) < PURGE_EVERY_MS {
            return Ok(false);
        }
        if session.purge_keys(self.newest, PURGE_BATCH)? < PURGE_BATCH {
            self.looked_at = self.newest;
        }
        Ok(true)
    }
}
