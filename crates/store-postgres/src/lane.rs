//! Lanes: connections that write executions, and one that writes generations.
//!
//! An append goes to the lane of its shard. A lane takes what is queued, commits it in one
//! transaction, and notifies the actors when the database has answered. During an outage nothing
//! that is queued is refused: the lane connects again, learns whether the last batch was committed,
//! and continues.

pub(crate) mod asks;
mod executions;
pub(crate) mod fold;
pub(crate) mod outage;
mod panics;
pub(crate) mod parameters;
mod queues;
pub(crate) mod register;
pub(crate) mod session;
pub(crate) mod statement;
#[cfg(test)]
mod tests;
pub(crate) mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use greenroom_actors::ports::meter::SettledOutcome;
use greenroom_actors::ports::store::AppendError;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use self::outage::OutageOfOne;
pub(crate) use self::queues::{Lanes, reached};
pub(crate) use self::register::register;
use self::session::{Answer, LaneKey, Session};
use self::work::Work;
use crate::fault::{Fault, advice_on, fault_of, place_and_reason_of, reason_of};
use crate::membership::Cause;
use crate::shared::Shared;

/// Size from which a batch takes no further requests, in bytes.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Size from which a batch is at fault, not the database, if a statement exceeds its time limit
/// while it answers beats in time. Otherwise it would be repeated for ever.
const SLOW_BYTES_MIN: usize = 1024 * 1024;

/// Number of attempts to store a batch that end in internal errors of the database, each on a new
/// connection. Afterwards the batch is at fault: one damaged page must not hold up a lane for ever.
const INTERNAL_ERRORS_MAX: u32 = 5;

/// Pause before a batch is sent a third time; doubled up to the maximum. The second time follows at
/// once.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Reason for which a stored batch is not acknowledged.
const UNCONFIRMED: &str = "the wait of a commit for synchronous replicas was canceled; it is \
    acknowledged when a replica has confirmed a later one";

/// The writing side of a lane.
struct Lane<W: Work> {
    shared: Arc<Shared>,
    key: LaneKey,
    jobs: UnboundedReceiver<W::Job>,
    /// Number of requests that have no outcome yet.
    queued: Arc<AtomicUsize>,
    session: Option<Session<W>>,
    /// Number of the last session.
    sessions: i64,
    /// True after the first session.
    was_connected: bool,
    /// Number of the last committed batch.
    batch: i64,
    /// True if the batch after that is stored, but may be on no replica.
    is_unconfirmed: bool,
    /// True if it was sent, and the connection failed before the answer.
    is_outcome_unknown: bool,
    outage: OutageOfOne,
}

/// Batches that were taken from the queue, the first one to commit last.
type Batches<W> = Vec<Vec<<W as Work>::Job>>;

/// Reason for storing nothing of a batch.
enum Refusal {
    /// This process may no longer write.
    Lost,
    /// At least one of the requests does not fit.
    Misfit(Error),
}

/// Failure of an attempt to store a batch.
enum Failure {
    /// At least one of the requests does not fit; nothing was stored.
    Misfit(Error),
    /// The batch met another transaction; nothing was stored.
    Conflict(Error),
    /// A statement exceeded its time limit; nothing was stored.
    TooSlow(Error),
    /// The database met an error in itself, as damaged data; nothing was stored.
    Internal(Error),
    /// The database does not answer or accepts no writes, with what to do about it.
    Outage(String),
}

impl<W: Work> Lane<W> {
    /// Serves requests until the store is closed; `taken` has those under way.
    async fn serve(&mut self, taken: &mut Batches<W>) {
        // a failure: the first write tries again
        let _ = self.begin(self.batch + 1).await;
        while let Some(batch) = self.gather().await {
            let count = batch.len();
            taken.push(batch);
            while !taken.is_empty() {
                self.commit(taken).await;
            }
            self.queued.fetch_sub(count, Ordering::Relaxed);
        }
    }

    /// Waits for a request, and takes those queued behind it.
    async fn gather(&mut self) -> Option<Vec<W::Job>> {
        let first = self.jobs.recv().await?;
        let mut bytes = W::size(&first);
        let mut batch = vec![first];
        while batch.len() < W::BATCH_MAX
            && bytes < BATCH_BYTES_MAX
            && let Ok(next) = self.jobs.try_recv()
        {
            bytes += W::size(&next);
            batch.push(next);
        }
        Some(batch)
    }

    /// Commits the last of the batches and notifies the actors. Requests to commit after it are
    /// pushed, those to commit first last.
    async fn commit(&mut self, taken: &mut Batches<W>) {
        let Some(batch) = taken.last() else { return };
        let began = Instant::now();
        let (folded, count) = W::fold(batch);
        let bytes: usize = batch.iter().take(count).map(W::size).sum();
        let written = self.write(&folded, bytes).await;
        drop(folded);
        let Some(mut jobs) = taken.pop() else { return };
        let rest = jobs.split_off(count);
        if !rest.is_empty() {
            taken.push(rest);
        }
        match written {
            Ok(()) => {
                self.shared.meter.committed(jobs.len(), began.elapsed());
                self.answer(jobs, &Ok(()));
            }
            Err(Refusal::Lost) => {
                let loss = self.loss();
                self.answer(jobs, &Err(loss));
            }
            Err(Refusal::Misfit(_)) if jobs.len() > 1 => {
                // in halves, until those that do not fit stand alone
                taken.push(jobs.split_off(jobs.len() / 2));
                taken.push(jobs);
            }
            Err(Refusal::Misfit(error)) => self.refuse(jobs, &error, taken).await,
        }
    }

    /// Returns the refusal of a batch after which nothing is stored.
    fn loss(&mut self) -> AppendError {
        // of this batch alone: no later one is tried
        let is_unknown = std::mem::take(&mut self.is_outcome_unknown);
        let is_unconfirmed = std::mem::take(&mut self.is_unconfirmed);
        if is_unknown || is_unconfirmed { AppendError::Unsettled } else { AppendError::Lost }
    }

    /// Refuses a batch of one request, with the reason.
    async fn refuse(&mut self, batch: Vec<W::Job>, error: &Error, taken: &mut Batches<W>) {
        let found = match (batch.first(), &self.session) {
            (Some(job), Some(session)) => session.reason_of(job, error).await,
            _ => Ok(None),
        };
        let reason = match found {
            Ok(Some(reason)) => reason,
            Ok(None) => self.fault_of_one(&batch, error),
            Err(error) if matches!(fault_of(&error), Fault::Request | Fault::Internal) => {
                self.fault_of_one(&batch, &error)
            }
            Err(_) => {
                // it will be refused again, in another session
                self.session = None;
                taken.push(batch);
                return;
            }
        };
        self.answer(batch, &Err(reason));
    }

    fn fault_of_one(&self, batch: &[W::Job], error: &Error) -> AppendError {
        let of = batch.first().map_or_else(String::new, W::name);
        self.shared.meter.failed();
        log::error!("the store rejected a write of {of}: {}", place_and_reason_of(error));
        AppendError::Unavailable(Arc::from(reason_of(error)))
    }

    /// Writes a batch of so many bytes, whatever outages it meets.
    async fn write(&mut self, folded: &W::Folded<'_>, bytes: usize) -> Result<(), Refusal> {
        let batch = self.batch + 1;
        let (mut failures, mut internal_errors, mut pause) = (0, 0, PAUSE_MIN);
        loop {
            if self.shared.outages.is_lost() {
                return Err(Refusal::Lost);
            }
            if W::is_empty(folded) {
                return Ok(());
            }
            let reason = match self.attempt(batch, folded).await {
                Ok(Answer::Stored) => {
                    (self.batch, self.is_unconfirmed) = (batch, false);
                    self.shared.membership.note_confirmed(self.key.lane, batch);
                    self.end_outage();
                    return Ok(());
                }
                Ok(Answer::StoredHere) => {
                    self.is_unconfirmed = true;
                    Some(UNCONFIRMED.to_owned())
                }
                Ok(Answer::Fenced) => {
                    self.shared.outages.lose();
                    self.shared.membership.beat_now();
                    return Err(Refusal::Lost);
                }
                Ok(Answer::HistoryLost) => {
                    // with less than the batch before, it does not have this one
                    (self.is_outcome_unknown, self.is_unconfirmed) = (false, false);
                    self.shared.meter.lost_history();
                    self.shared.membership.lose(Cause::HistoryLost);
                    return Err(Refusal::Lost);
                }
                Err(Failure::Misfit(error)) => {
                    self.end_outage();
                    return Err(Refusal::Misfit(error));
                }
                Err(Failure::TooSlow(error))
                    if bytes >= SLOW_BYTES_MIN && self.shared.outages.is_beating() =>
                {
                    self.end_outage();
                    return Err(Refusal::Misfit(error));
                }
                Err(Failure::Internal(error)) => {
                    self.session = None;
                    internal_errors += 1;
                    if internal_errors == INTERNAL_ERRORS_MAX {
                        self.end_outage();
                        return Err(Refusal::Misfit(error));
                    }
                    log::warn!("trying a write again: {}", place_and_reason_of(&error));
                    None
                }
                Err(Failure::Conflict(error) | Failure::TooSlow(error)) => Some(advice_on(&error)),
                Err(Failure::Outage(reason)) => {
                    self.session = None;
                    Some(reason)
                }
            };
            failures += 1;
            if failures > 1 || self.is_unconfirmed {
                reason.iter().for_each(|reason| self.begin_outage(reason));
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }

    /// Sends a batch, unless it is stored. One that may be on no replica is confirmed.
    async fn attempt(&mut self, batch: i64, folded: &W::Folded<'_>) -> Result<Answer, Failure> {
        if let Some(answer) = self.begin(batch).await? {
            return Ok(answer);
        }
        let Some(session) = &mut self.session else { return Ok(Answer::Fenced) };
        if self.is_unconfirmed {
            let confirmed = session.confirm(batch).await;
            // whatever the reason, the batch is not at fault
            return confirmed.map_err(|error| match fault_of(&error) {
                Fault::Conflict => Failure::Conflict(error),
                Fault::Outage | Fault::Setup | Fault::Internal | Fault::Request => {
                    Failure::Outage(advice_on(&error))
                }
            });
        }
        let committed = session.commit(batch, folded).await;
        // an error that the database reports means that nothing was stored
        self.is_outcome_unknown = matches!(&committed, Err(error)
            if error.code().is_none() && fault_of(error) == Fault::Outage);
        committed.map_err(|error| match fault_of(&error) {
            _ if error.code() == Some(&SqlState::QUERY_CANCELED) => Failure::TooSlow(error),
            Fault::Request => Failure::Misfit(error),
            Fault::Conflict => Failure::Conflict(error),
            Fault::Internal => Failure::Internal(error),
            Fault::Outage | Fault::Setup => Failure::Outage(advice_on(&error)),
        })
    }

    /// Begins a session if there is none. It learns what older ones have committed: returns the
    /// answer to the batch if that decides it.
    async fn begin(&mut self, batch: i64) -> Result<Option<Answer>, Failure> {
        if self.session.is_some() {
            return Ok(None);
        }
        self.sessions += 1;
        let begun = Session::begin(&self.shared.connector, self.key, self.sessions).await;
        // whatever the reason, the batch is not at fault
        let begun = begun.map_err(|error| {
            if error.lacks_room() {
                // writes come first
                self.shared.pool.close_idle();
            }
            Failure::Outage(error.advice())
        })?;
        let Some((session, stored, is_confirmed)) = begun else {
            return Ok(Some(Answer::Fenced));
        };
        let meter = &self.shared.meter;
        if std::mem::replace(&mut self.was_connected, true) {
            meter.reconnected();
        }
        if stored < self.batch {
            return Ok(Some(Answer::HistoryLost));
        }
        let is_stored = stored == batch;
        if std::mem::take(&mut self.is_outcome_unknown) {
            meter.settled(if is_stored {
                SettledOutcome::Committed
            } else {
                SettledOutcome::NotCommitted
            });
        }
        self.session = Some(session);
        self.is_unconfirmed = is_stored && !is_confirmed;
        let answer = if is_confirmed { Answer::Stored } else { Answer::StoredHere };
        Ok(is_stored.then_some(answer))
    }

    fn begin_outage(&mut self, reason: &str) {
        if self.outage.begin(&self.shared.outages, reason) {
            self.shared.meter.failed();
        }
    }

    fn end_outage(&mut self) {
        self.outage.end(&self.shared.outages);
    }

    fn answer(&self, batch: Vec<W::Job>, result: &Result<(), AppendError>) {
        W::answer(&self.shared, batch, result);
    }
}
