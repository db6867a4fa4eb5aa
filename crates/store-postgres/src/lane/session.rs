//! A connection of a lane, which is the only one that may commit its batches.

use std::time::Duration;

use greenroom_actors::ports::store::AppendError;
use greenroom_store_codec::prepared::PreparedAppend;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Statement};

use super::fold::Folded;
use super::statement::{CREATIONS, EVERYTHING, Parameters, Place, REASON};
use crate::connector::{Connector, Purpose};
use crate::text::Text;

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
const END_OLDER: &str = "SELECT pg_terminate_backend(a.pid, 2000) FROM pg_stat_activity a
    WHERE starts_with(a.application_name, $1) AND a.pid <> pg_backend_pid()
        AND a.wait_event IS DISTINCT FROM 'SyncRep'
        AND EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid
            AND l.relation = 'lanes'::regclass)";

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

/// A connection that owns its lane, unless a newer one took it over.
pub(super) struct Session {
    client: Client,
    key: LaneKey,
    number: i64,
    creations: Statement,
    everything: Statement,
    reason: Statement,
    /// Number of batches sent.
    sent: u64,
}

/// Answer of the database to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Stored,
    /// The row of the lane is gone or not as expected; nothing was stored.
    Fenced,
    /// The lane has committed less than was confirmed.
    HistoryLost,
}

impl Session {
    /// Connects, and takes the lane over from older sessions. Returns the number of the lane's last
    /// committed batch; `None` if the lane is gone.
    pub(super) async fn begin(
        connector: &Connector,
        key: LaneKey,
        number: i64,
    ) -> Result<Option<(Self, i64)>, Error> {
        let LaneKey { node, lane } = key;
        let all = format!("greenroom/{node}/{lane}/");
        let (client, _driving) = connector.connect(format!("{all}{number}"), Purpose::Lane).await?;
        client.batch_execute(IMPATIENT).await?;
        let begun = match client.query_opt(BEGIN, &[&node, &lane, &number]).await {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                client.query(END_OLDER, &[&all]).await?;
                client.query_opt(BEGIN, &[&node, &lane, &number]).await?
            }
            begun => begun?,
        };
        let Some(row) = begun else { return Ok(None) };
        client.batch_execute(PATIENT).await?;
        let creations = client.prepare(CREATIONS).await?;
        let everything = client.prepare(EVERYTHING).await?;
        let reason = client.prepare(REASON).await?;
        let session = Self { client, key, number, creations, everything, reason, sent: 0 };
        Ok(Some((session, row.get(0))))
    }

    /// Commits a batch. A failure leaves the outcome open unless the database itself reports it.
    pub(super) async fn commit(
        &mut self,
        batch: i64,
        folded: &Folded<'_>,
    ) -> Result<Answer, Error> {
        if self.sent.is_power_of_two() && self.sent <= PLANNED_MAX {
            self.client.batch_execute("DISCARD PLANS").await?;
        }
        self.sent += 1;
        let LaneKey { node, lane } = self.key;
        let parameters = Parameters::of(folded, Place { node, lane, session: self.number, batch });
        let statement = if folded.is_of_creations() { &self.creations } else { &self.everything };
        let values = parameters.values();
        // resolves after the commit, not with the row
        let committing = timeout(ANSWER_MAX, self.client.query_one(statement, &values));
        let row = committing.await.unwrap_or_else(|_| Err(Error::__private_api_timeout()))?;
        let fenced: i64 = row.try_get(0)?;
        Ok(if fenced == 1 { Answer::Stored } else { Answer::Fenced })
    }

    /// Returns the reason why an append alone does not fit.
    pub(super) async fn reason_of(&self, prepared: &PreparedAppend) -> Result<AppendError, Error> {
        let append = &prepared.append;
        let projection = &append.projection;
        let scope = append.idempotency.as_ref().map(|record| Text(&*record.scope));
        let (at, id) = (projection.updated_at.0, Text(projection.header.id.as_str()));
        let row = self.client.query_one(&self.reason, &[&scope, &at, &id]).await?;
        let (is_taken, is_known): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
        Ok(match (is_taken, append.revision) {
            (true, _) => AppendError::KeyTaken,
            (false, 0) if is_known => AppendError::Exists,
            (false, _) => AppendError::Stale,
        })
    }
}
