//! Writes of generations, by a lane of their own.
//!
//! They have one because an agent's row, which has the newest number of its history, stays locked
//! for the length of a commit: executions do not wait for that. A batch without messages is one
//! statement. With messages it is a transaction: their conversations are locked first.

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
use tokio_postgres::{Client, Error, Statement};

use self::messages::Messages;
use self::statement::{STORE, parameters};
use crate::changes::{Changing, Verdict};
use crate::lane::parameters::code;
use crate::lane::session::{Answer, Fence};
use crate::lane::work::Work;
use crate::pool::Failure;
use crate::store::Shared;

/// Marks generations without a workflow step as failed if the process that worked on them has
/// ended, or is the given one.
pub(crate) const INTERRUPT: &str = "UPDATE generations g SET status = $1, ended = $2,
    error = 'interrupted by a restart'
    WHERE status = 0 AND execution IS NULL AND (node = $3
        OR NOT EXISTS (SELECT FROM nodes n WHERE n.node = g.node AND n.state < 2))";

/// A request to record a generation.
pub(crate) struct GenerationJob {
    pub(crate) write: Box<PreparedGeneration>,
    pub(crate) done: oneshot::Sender<Verdict<()>>,
}

/// Records of generations, with their messages.
pub(crate) struct Generations {
    store: Statement,
    messages: Messages,
}

/// Generations of a batch: no two have the same id, or messages for the same conversation, because
/// a statement must not write a row twice.
#[derive(Default)]
pub(crate) struct Folded<'b> {
    generations: Vec<&'b PreparedGeneration>,
    ids: HashSet<&'b str>,
    conversations: HashSet<&'b ConversationKey>,
}

impl<'b> Folded<'b> {
    /// Adds a generation; returns false if one that is there must be committed first.
    fn add(&mut self, write: &'b PreparedGeneration) -> bool {
        let key = write.messages.as_ref().map(|messages| &messages.key);
        if self.ids.contains(&*write.record.id)
            || key.is_some_and(|key| self.conversations.contains(key))
        {
            return false;
        }
        self.ids.insert(&write.record.id);
        self.conversations.extend(key);
        self.generations.push(write);
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
        let PreparedGeneration { input, output, steps, messages, .. } = &*job.write;
        let messages = messages.iter().flat_map(|it| &it.messages);
        input.len()
            + output.as_ref().map_or(0, Vec::len)
            + steps.iter().map(|(_, body)| body.len()).sum::<usize>()
            + messages.map(|it| it.parts.len() + it.text.len()).sum::<usize>()
    }

    fn name(job: &GenerationJob) -> String {
        format!("generation {}", job.write.record.id)
    }

    fn fold(jobs: &[GenerationJob]) -> (Folded<'_>, usize) {
        let mut folded = Folded::default();
        let count = jobs.iter().take_while(|job| folded.add(&job.write)).count();
        (folded, count)
    }

    fn is_empty(folded: &Folded<'_>) -> bool {
        folded.generations.is_empty()
    }

    async fn prepare(client: &Client) -> Result<Self, Error> {
        let store = client.prepare(STORE).await?;
        Ok(Self { store, messages: Messages::prepare(client).await? })
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

    async fn reason_of(
        &self,
        _: &Client,
        _: &GenerationJob,
        _: &Error,
    ) -> Result<Option<AppendError>, Error> {
        Ok(None)
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
        if folded.conversations.is_empty() {
            return Answer::of(&client.query_one(&self.store, &values).await?);
        }
        // dropping it undoes everything
        let transaction = client.transaction().await?;
        let additions = self.messages.lock(&transaction, folded.messages()).await?;
        let adding = self.messages.add(&transaction, &additions);
        let storing = transaction.query_one(&self.store, &values);
        let ((), row) = try_join(adding, storing).await?;
        let answer = Answer::of(&row)?;
        if answer == Answer::Stored {
            transaction.commit().await?;
        }
        Ok(answer)
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
