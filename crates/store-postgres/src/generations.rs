//! Writes of generations, by a lane of their own.
//!
//! They have one because an agent's row, which has the newest number of its history, stays locked
//! for the length of a commit: executions do not wait for that. A batch without messages is one
//! statement. With messages it is a transaction: their conversations are locked first. So it is if a
//! continuation changes, after the generations.

pub(crate) mod continuations;
pub(crate) mod messages;
pub(crate) mod statement;

use std::collections::HashSet;

use futures_util::future::try_join;
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{AppendError, ConversationKey, GenerationStatus};
use greenroom_store_codec::codes::generation_code;
use greenroom_store_codec::prepared::{PreparedGeneration, PreparedMessages};
use tokio::sync::oneshot;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement, Transaction};

use self::continuations::{Continuations, FoldedContinuations};
use self::messages::Messages;
use self::statement::{STORE, parameters};
use crate::changes::{Changing, Verdict};
use crate::lane::parameters::code;
use crate::lane::session::{Answer, Fence};
use crate::lane::work::Work;
use crate::pool::Failure;
use crate::shared::Shared;

/// Marks generations without a workflow step and without a continuation as failed if the process
/// that worked on them has ended, or is the given one.
pub(crate) const INTERRUPT: &str = "UPDATE generations g SET status = $1, ended = $2,
    error = 'interrupted by a restart'
    WHERE status = 0 AND execution IS NULL AND (node = $3
        OR NOT EXISTS (SELECT FROM nodes n WHERE n.node = g.node AND n.state < 2))
    AND (SELECT revision FROM continuations WHERE generation = g.n) IS NULL";

/// A request to record a generation.
pub(crate) struct GenerationJob {
    pub(crate) write: Box<PreparedGeneration>,
    /// The revision that the stored continuation must have, if it matters.
    pub(crate) revision: Option<u64>,
    pub(crate) done: oneshot::Sender<Verdict<()>>,
}

/// Records of generations, with their messages and continuations.
pub(crate) struct Generations {
    store: Statement,
    messages: Messages,
    continuations: Continuations,
}

/// Generations of a batch: no two have the same id, or messages for the same conversation, because
/// a statement must not write a row twice.
#[derive(Default)]
pub(crate) struct Folded<'b> {
    generations: Vec<&'b PreparedGeneration>,
    ids: HashSet<&'b str>,
    conversations: HashSet<&'b ConversationKey>,
    continuations: FoldedContinuations<'b>,
}

impl<'b> Folded<'b> {
    /// Adds a generation; returns false if one that is there must be committed first.
    fn add(&mut self, job: &'b GenerationJob) -> bool {
        let write = &*job.write;
        let key = write.messages.as_ref().map(|messages| &messages.key);
        if self.ids.contains(&*write.record.id)
            || key.is_some_and(|key| self.conversations.contains(key))
        {
            return false;
        }
        self.ids.insert(&write.record.id);
        self.conversations.extend(key);
        self.generations.push(write);
        self.continuations.add(write, job.revision);
        true
    }

    fn messages(&self) -> impl Iterator<Item = &'b PreparedMessages> {
        self.generations.iter().filter_map(|write| write.messages.as_ref())
    }
}

impl Work for Generations {
    type Job = GenerationJob;
    type Folded<'b> = Folded<'b>;

    /// Some joins in the statement compare all generations with all turns.
    const BATCH_MAX: usize = 128;

    fn size(job: &GenerationJob) -> usize {
        let PreparedGeneration { input, output, steps, messages, continuation, .. } = &*job.write;
        let messages = messages.iter().flat_map(|it| &it.messages);
        input.len()
            + output.as_ref().map_or(0, Vec::len)
            + steps.iter().map(|(_, body)| body.len()).sum::<usize>()
            + messages.map(|it| it.parts.len() + it.text.len()).sum::<usize>()
            + continuation.size()
    }

    fn name(job: &GenerationJob) -> String {
        format!("generation {}", job.write.record.id)
    }

    fn fold(jobs: &[GenerationJob]) -> (Folded<'_>, usize) {
        let mut folded = Folded::default();
        let count = jobs.iter().take_while(|job| folded.add(job)).count();
        (folded, count)
    }

    fn is_empty(folded: &Folded<'_>) -> bool {
        folded.generations.is_empty()
    }

    async fn prepare(client: &Client) -> Result<Self, Error> {
        let store = client.prepare(STORE).await?;
        let messages = Messages::prepare(client).await?;
        Ok(Self { store, messages, continuations: Continuations::prepare(client).await? })
    }

    async fn commit(
        &self,
        client: &mut Client,
        folded: &Self::Folded<'_>,
        fence: Fence,
    ) -> Result<Answer, Error> {
        match self.try_commit(client, folded, fence).await {
            // another server has just recorded one of them, which is known now
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                self.try_commit(client, folded, fence).await
            }
            committed => committed,
        }
    }

    /// Returns the refusal of a generation whose continuation has another revision.
    async fn reason_of(
        &self,
        _: &Client,
        _: &GenerationJob,
        error: &Error,
    ) -> Result<Option<AppendError>, Error> {
        let is_other = error.code() == Some(&SqlState::DIVISION_BY_ZERO);
        Ok(is_other.then_some(AppendError::Stale))
    }

    fn answer(_: &Shared, jobs: Vec<GenerationJob>, result: &Result<(), AppendError>) {
        for job in jobs {
            // an error: the caller has left
            let _ = job.done.send(result.clone());
        }
    }
}

impl Generations {
    async fn try_commit(
        &self,
        client: &mut Client,
        folded: &Folded<'_>,
        fence: Fence,
    ) -> Result<Answer, Error> {
        let parameters = parameters(&folded.generations, fence);
        let values = parameters.values();
        if folded.conversations.is_empty() && folded.continuations.is_empty() {
            return Answer::of(&client.query_one(&self.store, &values).await?);
        }
        // dropping it undoes everything
        let transaction = client.transaction().await?;
        let answer = self.store(&transaction, folded, &values).await?;
        if answer != Answer::Stored {
            return Ok(answer);
        }
        if !folded.continuations.is_empty() {
            self.continuations.change(&transaction, &folded.continuations).await?;
        }
        transaction.commit().await?;
        Ok(answer)
    }

    /// Stores generations with their messages in a transaction.
    async fn store(
        &self,
        transaction: &Transaction<'_>,
        folded: &Folded<'_>,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Answer, Error> {
        let storing = transaction.query_one(&self.store, values);
        if folded.conversations.is_empty() {
            return Answer::of(&storing.await?);
        }
        let additions = self.messages.lock(transaction, folded.messages()).await?;
        let adding = self.messages.add(transaction, &additions);
        let ((), row) = try_join(adding, storing).await?;
        Answer::of(&row)
    }
}

/// Marks generations that a restart has interrupted as failed. A server that has the database alone
/// has just started; a member may be running its own.
pub(crate) async fn interrupt_working(shared: &Shared, now: Timestamp) -> Result<(), Failure> {
    let node = shared.membership.cluster.is_none().then_some(shared.node);
    let failed = code(generation_code(GenerationStatus::Error));
    let interrupt = |changing: Changing| async move {
        changing.execute(INTERRUPT, &[&failed, &now.0, &node]).await
    };
    shared.pool.change(interrupt).await.map(drop)
}
