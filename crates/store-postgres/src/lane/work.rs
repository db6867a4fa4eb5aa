//! Kinds of requests that lanes commit.

use std::future::Future;

use greenroom_actors::ports::store::AppendError;
use tokio_postgres::{Client, Error};

use super::session::{Answer, Fence};
use crate::shared::Shared;

/// The kind of a lane's requests. A value has the statements, prepared for one session.
pub(crate) trait Work: Sized + Send + Sync + 'static {
    /// One request.
    type Job: Send + Sync;
    /// Requests of a batch that one commit can write.
    type Folded<'b>: Send + Sync;

    /// Maximum number of requests of a batch.
    const BATCH_MAX: usize;

    /// Returns the size of the largest parts of a request, in bytes.
    fn size(job: &Self::Job) -> usize;

    /// Returns what a request is about, for the log.
    fn name(job: &Self::Job) -> String;

    /// Folds requests, from the first on; returns the number of those folded, at least one.
    fn fold(jobs: &[Self::Job]) -> (Self::Folded<'_>, usize);

    /// Returns true if there is nothing to write.
    fn is_empty(folded: &Self::Folded<'_>) -> bool;

    /// Prepares the statements in a new session.
    fn prepare(client: &Client) -> impl Future<Output = Result<Self, Error>> + Send;

    /// Commits requests together with the fence. A failure leaves the outcome open unless the
    /// database itself reports it.
    fn commit(
        &self,
        client: &mut Client,
        folded: &Self::Folded<'_>,
        fence: Fence,
    ) -> impl Future<Output = Result<Answer, Error>> + Send;

    /// Returns the reason why a request that failed alone does not fit; `None` if it is at fault
    /// itself.
    fn reason_of(
        &self,
        client: &Client,
        job: &Self::Job,
        error: &Error,
    ) -> impl Future<Output = Result<Option<AppendError>, Error>> + Send;

    /// Notifies those who made the requests.
    fn answer(shared: &Shared, jobs: Vec<Self::Job>, result: &Result<(), AppendError>);
}
