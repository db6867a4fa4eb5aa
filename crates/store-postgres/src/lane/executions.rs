//! Lanes of executions.

use greenroom_actors::ports::store::AppendError;
use greenroom_store_codec::outcomes::Outcomes;
use greenroom_store_codec::prepared::PreparedAppend;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error, Statement};

use super::fold::{Folded, Job, Shape};
use super::session::{Answer, Fence};
use super::statement::{CREATIONS, EVERYTHING, PROGRESS, REASON, parameters};
use super::work::Work;
use crate::shared::Shared;
use crate::text::Text;

/// Appends to executions, with timers and snapshots.
pub(crate) struct Executions {
    creations: Statement,
    progress: Statement,
    everything: Statement,
    reason: Statement,
}

impl Work for Executions {
    type Job = Job;
    type Folded<'b> = Folded<'b>;

    const BATCH_MAX: usize = 512;

    fn size(job: &Job) -> usize {
        job.size()
    }

    fn name(job: &Job) -> String {
        match job {
            Job::Append(prepared) => {
                format!("execution {}", prepared.append.projection.header.id)
            }
            Job::Snapshot(snapshot) => format!("a snapshot of execution {}", snapshot.execution),
            Job::Timers(_) => "timers".to_owned(),
            Job::Refuse(_) | Job::Mark(_) => "nothing".to_owned(),
        }
    }

    fn fold(jobs: &[Job]) -> (Folded<'_>, usize) {
        Folded::of(jobs)
    }

    fn is_empty(folded: &Folded<'_>) -> bool {
        folded.is_empty()
    }

    async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            creations: client.prepare(CREATIONS).await?,
            progress: client.prepare(PROGRESS).await?,
            everything: client.prepare(EVERYTHING).await?,
            reason: client.prepare(REASON).await?,
        })
    }

    async fn commit(
        &self,
        client: &mut Client,
        folded: &Self::Folded<'_>,
        fence: Fence,
    ) -> Result<Answer, Error> {
        let shape = folded.shape();
        let parameters = parameters(folded, shape, fence);
        let statement = match shape {
            Shape::Creations => &self.creations,
            Shape::Progress => &self.progress,
            Shape::Everything => &self.everything,
        };
        // resolves after the commit, not with the row
        let row = client.query_one(statement, &parameters.values()).await?;
        Answer::of(&row)
    }

    async fn reason_of(
        &self,
        client: &Client,
        job: &Job,
        error: &Error,
    ) -> Result<Option<AppendError>, Error> {
        match job {
            Job::Append(prepared) if is_race(error) => {
                self.reason_of_append(client, prepared).await.map(Some)
            }
            _ => Ok(None),
        }
    }

    fn answer(shared: &Shared, jobs: Vec<Job>, result: &Result<(), AppendError>) {
        let mut outcomes = Outcomes::of(shared.sink.get());
        for job in jobs {
            match job {
                Job::Append(prepared) => {
                    outcomes.add_append(prepared.append, result.clone());
                }
                Job::Refuse(outcome) => outcomes.add(outcome),
                Job::Mark(done) => drop(done),
                Job::Snapshot(snapshot) => {
                    if let Err(error) = result {
                        let id = &snapshot.execution;
                        log::debug!("no snapshot of execution {id} was stored: {error}");
                    }
                }
                Job::Timers(changes) => {
                    if let Err(error) = result {
                        // timers that are due stay due and fire again
                        log::warn!("lost {} changes of timers: {error}", changes.len());
                    }
                }
            }
        }
        outcomes.report();
    }
}

impl Executions {
    async fn reason_of_append(
        &self,
        client: &Client,
        prepared: &PreparedAppend,
    ) -> Result<AppendError, Error> {
        let append = &prepared.append;
        let projection = &append.projection;
        let scope = append.idempotency.as_ref().map(|record| Text(&*record.scope));
        let (at, id) = (projection.updated_at.0, Text(projection.header.id.as_str()));
        let row = client.query_one(&self.reason, &[&scope, &at, &id]).await?;
        let (is_taken, is_known): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
        Ok(match (is_taken, append.revision) {
            (true, _) => AppendError::KeyTaken,
            (false, 0) if is_known => AppendError::Exists,
            (false, _) => AppendError::Stale,
        })
    }
}

/// Returns true if an append alone was refused because of what is stored.
fn is_race(error: &Error) -> bool {
    // the assertion of the statement, and the ids of executions
    [SqlState::DIVISION_BY_ZERO, SqlState::UNIQUE_VIOLATION]
        .iter()
        .any(|it| error.code() == Some(it))
}
