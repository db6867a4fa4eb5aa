//! A connection of a lane, which is the only one that may commit its batches.

use std::time::Duration;

use greenroom_actors::ports::store::AppendError;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};

use super::work::Work;
use crate::connector::{Connector, Purpose, SessionError, answered};
use crate::replication::{CanceledWaits, explained};

/// Takes the lane over: what older connections still send is refused from then on. Numbers of
/// sessions grow, so that none of them can take it back. Waits for a transaction of theirs, for the
/// time that [`IMPATIENT`] allows.
const BEGIN: &str = "UPDATE lanes SET session = $3
    WHERE node = $1 AND lane = $2 AND session < $3 RETURNING batch";

const IMPATIENT: &str = "SET lock_timeout = '2s'";
const PATIENT: &str = "SET lock_timeout = '5s'";

/// Ends older connections of the lane that hold locks on its row. They are found by name: a stored
/// process id could be that of another connection after a failover. One that waits for a replica
/// has committed, and would not be on that replica.
pub(super) const END_OLDER: &str =
    "SELECT pg_terminate_backend(a.pid, 2000) FROM pg_stat_activity a
    WHERE a.datname = current_database()
        AND starts_with(a.application_name, $1) AND a.pid <> pg_backend_pid()
        AND a.wait_event IS DISTINCT FROM 'SyncRep'
        AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid
            AND l.relation = 'lanes'::regclass)";

/// Commits the last batch again, as it were: waits for the replicas that did not confirm it.
const CONFIRM: &str = "UPDATE lanes SET batch = batch
    WHERE node = $1 AND lane = $2 AND session = $3 AND batch = $4";

/// Maximum wait for an answer, which the database has given up long before.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Number of batches after which the last plan is made. Plans made over empty tables may use
/// another index.
const PLANNED_MAX: u64 = 1024;

/// A lane, as the database knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneKey {
    pub(super) node: i64,
    pub(super) lane: i16,
}

/// Values by which a commit moves its lane's row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fence {
    pub(crate) node: i64,
    pub(crate) lane: i16,
    pub(crate) session: i64,
    /// Number of the batch; the row has the one before it.
    pub(crate) batch: i64,
}

/// A connection that owns its lane, unless a newer one took it over.
pub(super) struct Session<W> {
    client: Client,
    waits: CanceledWaits,
    key: LaneKey,
    number: i64,
    work: W,
    /// Number of batches sent.
    sent: u64,
}

/// Answer of the database to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Stored,
    /// Stored on this server, but the wait for its replicas was canceled.
    StoredHere,
    /// The row of the lane is gone or not as expected; nothing was stored.
    Fenced,
    /// The lane has committed less than was confirmed.
    HistoryLost,
}

impl Answer {
    /// Returns the answer of a statement that counts the fence's rows in its first column.
    pub(crate) fn of(row: &Row) -> Result<Self, Error> {
        let fenced: i64 = row.try_get(0)?;
        Ok(if fenced == 1 { Self::Stored } else { Self::Fenced })
    }
}

impl<W: Work> Session<W> {
    /// Connects, and takes the lane over from older sessions. Returns the number of the lane's last
    /// committed batch, and false if that may be on no replica; `None` if the lane is gone.
    pub(super) async fn begin(
        connector: &Connector,
        key: LaneKey,
        number: i64,
    ) -> Result<Option<(Self, i64, bool)>, SessionError> {
        let LaneKey { node, lane } = key;
        let all = format!("greenroom/{node}/{lane}/");
        let name = format!("{all}{number}");
        let waits = CanceledWaits::default();
        let connecting = connector.connect_to_any(name, Purpose::Lane, waits.clone());
        let (client, _driving) = connecting.await?;
        answered(ANSWER_MAX, Self::take_over(client, waits, key, number, &all)).await
    }

    /// Takes the lane over on a new connection. The names of its connections begin with `all`.
    async fn take_over(
        client: Client,
        waits: CanceledWaits,
        key: LaneKey,
        number: i64,
        all: &str,
    ) -> Result<Option<(Self, i64, bool)>, SessionError> {
        let LaneKey { node, lane } = key;
        client.batch_execute(IMPATIENT).await?;
        let begun = match client.query_opt(BEGIN, &[&node, &lane, &number]).await {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                client.query(END_OLDER, &[&all]).await?;
                match client.query_opt(BEGIN, &[&node, &lane, &number]).await {
                    Err(error) => return Err(explained(&client, error, all).await),
                    Ok(begun) => begun,
                }
            }
            begun => begun?,
        };
        let Some(row) = begun else { return Ok(None) };
        // what older sessions committed precedes this commit
        let is_confirmed = waits.count() == 0;
        client.batch_execute(PATIENT).await?;
        let work = W::prepare(&client).await?;
        let session = Self { client, waits, key, number, work, sent: 0 };
        Ok(Some((session, row.try_get(0)?, is_confirmed)))
    }

    /// Commits a batch. A failure leaves the outcome open unless the database itself reports it.
    pub(super) async fn commit(
        &mut self,
        batch: i64,
        folded: &W::Folded<'_>,
    ) -> Result<Answer, Error> {
        if self.sent.is_power_of_two() && self.sent <= PLANNED_MAX {
            answered(ANSWER_MAX, self.client.batch_execute("DISCARD PLANS")).await?;
        }
        self.sent += 1;
        let LaneKey { node, lane } = self.key;
        let fence = Fence { node, lane, session: self.number, batch };
        let canceled = self.waits.count();
        let committing = self.work.commit(&mut self.client, folded, fence);
        let answer = answered(ANSWER_MAX, committing).await?;
        Ok(self.after_waiting(answer, canceled))
    }

    /// Waits for the replicas that did not confirm the last batch, which is stored.
    pub(super) async fn confirm(&self, batch: i64) -> Result<Answer, Error> {
        let LaneKey { node, lane } = self.key;
        let canceled = self.waits.count();
        let values: [&(dyn ToSql + Sync); 4] = [&node, &lane, &self.number, &batch];
        let rows = answered(ANSWER_MAX, self.client.execute(CONFIRM, &values)).await?;
        let answer = if rows == 1 { Answer::Stored } else { Answer::Fenced };
        Ok(self.after_waiting(answer, canceled))
    }

    /// Returns the answer to a commit, before which so many waits were canceled.
    fn after_waiting(&self, answer: Answer, canceled: u64) -> Answer {
        match answer {
            Answer::Stored if self.waits.count() != canceled => Answer::StoredHere,
            other => other,
        }
    }

    /// Returns the reason why a request that failed alone does not fit; `None` if it is at fault
    /// itself.
    pub(super) async fn reason_of(
        &self,
        job: &W::Job,
        error: &Error,
    ) -> Result<Option<AppendError>, Error> {
        answered(ANSWER_MAX, self.work.reason_of(&self.client, job, error)).await
    }
}
