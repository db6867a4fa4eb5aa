//! Continuations and asks that generations change, in the transaction of their batch.
//!
//! The generations are stored first, which locks them against other changes of their continuations.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::try_join5;
use greenroom_actors::ports::store::{ConversationKey, Row, StoredContinuation, UserCursor};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::{limit_of, signed};
use greenroom_store_codec::prepared::{PreparedContinuation, PreparedGeneration};
use tokio_postgres::{Client, Error, Statement, Transaction};

use crate::changes::Changing;
use crate::columns::Stored;
use crate::lane::asks::{FoldedAsks, Owner};
use crate::lane::parameters::Parameters;
use crate::pool::{Failure, Reading, Values};
use crate::shared::Shared;
use crate::text::Text;

/// Fails by a division by zero unless all continuations have the expected revisions.
pub(crate) const CHECK: &str = "SELECT 1 / CASE WHEN EXISTS (
        SELECT FROM unnest($1::text[], $2::bigint[]) AS u (id, expected)
        WHERE u.expected <> coalesce((SELECT revision FROM continuations
            WHERE generation = (SELECT n FROM generations WHERE id = u.id)), 0))
    THEN 0 ELSE 1 END";

pub(crate) const PUT: &str = "INSERT INTO continuations AS c (generation, revision, body)
    SELECT (SELECT n FROM generations WHERE id = u.id), 1, u.body
    FROM unnest($1::text[], $2::text[]) AS u (id, body)
    ON CONFLICT (generation) DO UPDATE SET revision = c.revision + 1, body = excluded.body";

pub(crate) const REMOVE: &str = "DELETE FROM continuations
    WHERE generation = ANY (ARRAY(SELECT n FROM generations WHERE id = ANY ($1::text[])))";

/// Closes asks. Names no state: a plan that was made over an empty table could read all open asks.
pub(crate) const CLOSE_ASKS: &str = "UPDATE asks a SET state = u.state, closed = u.closed,
        answer = u.answer, answered_by = u.answered_by
    FROM unnest($1::text[], $2::smallint[], $3::bigint[], $4::text[], $5::text[])
        AS u (id, state, closed, answer, answered_by)
    WHERE a.id = ANY (ARRAY[u.id]) AND a.closed IS NULL";

pub(crate) const OPEN_ASKS: &str = "INSERT INTO asks (id, opened, due, closed, kind, state, path,
        user_id, reason, rules, next_due, details, answer, answered_by, generation, agent, tool,
        workflow)
    SELECT u.id, opened, due, closed, kind, state, path, user_id, reason, rules, next_due, details,
        answer, answered_by, (SELECT n FROM generations WHERE id = u.generation), agent, tool,
        (SELECT workflow FROM executions WHERE id = u.execution)
    FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[],
        $6::smallint[], $7::text[], $8::text[], $9::text[], $10::text[], $11::bigint[],
        $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[],
        $18::text[])
        AS u (id, opened, due, closed, kind, state, path, user_id, reason, rules, next_due,
            details, answer, answered_by, generation, agent, tool, execution)
    ON CONFLICT (id) DO NOTHING";

/// Changes of continuations and asks in a batch.
#[derive(Default)]
pub(super) struct FoldedContinuations<'b> {
    /// Generations, and the revisions that their continuations must have.
    expected: Vec<(&'b str, u64)>,
    put: Vec<(&'b str, &'b str)>,
    removed: Vec<&'b str>,
    asks: FoldedAsks<'b>,
}

impl<'b> FoldedContinuations<'b> {
    /// Adds the change of a generation; `revision` is that which its continuation must have.
    pub(super) fn add(&mut self, write: &'b PreparedGeneration, revision: Option<u64>) {
        let id = &*write.record.id;
        self.expected.extend(revision.map(|revision| (id, revision)));
        match &write.continuation {
            PreparedContinuation::Keep => {}
            PreparedContinuation::Put { body, .. } => self.put.push((id, body)),
            PreparedContinuation::Remove { .. } => self.removed.push(id),
        }
        self.asks.add(Owner::Generation(&write.record), write.continuation.asks());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.expected.is_empty() && self.put.is_empty() && self.removed.is_empty()
    }

    fn expected(&self) -> Parameters<'b> {
        let mut values = Parameters::default();
        values.column(&self.expected, |(id, _)| Text(*id));
        values.column(&self.expected, |(_, revision)| signed(*revision));
        values
    }

    fn put(&self) -> Parameters<'b> {
        let mut values = Parameters::default();
        values.column(&self.put, |(id, _)| Text(*id));
        values.column(&self.put, |(_, body)| Text(*body));
        values
    }

    fn removed(&self) -> Parameters<'b> {
        let mut values = Parameters::default();
        values.column(&self.removed, |id| Text(*id));
        values
    }

    fn closed(&self) -> Parameters<'b> {
        let mut values = Parameters::default();
        values.close_asks(&self.asks);
        values
    }

    fn opened(&self) -> Parameters<'b> {
        let opened = self.asks.opened_by_generations();
        let asks: Vec<_> = opened.iter().map(|(ask, _)| *ask).collect();
        let mut values = Parameters::default();
        values.open_asks(&asks);
        values.column(&opened, |(_, of)| Text(&*of.id));
        values.column(&opened, |(_, of)| Text(&*of.agent_id));
        values.column(&opened, |(ask, _)| ask.tool_name().map(Text));
        values.column(&opened, |(_, of)| {
            of.origin.as_ref().map(|step| Text(step.execution_id.as_str()))
        });
        values
    }
}

/// The statements, prepared.
pub(super) struct Continuations {
    check: Statement,
    put: Statement,
    remove: Statement,
    close: Statement,
    open: Statement,
}

impl Continuations {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            check: client.prepare(CHECK).await?,
            put: client.prepare(PUT).await?,
            remove: client.prepare(REMOVE).await?,
            close: client.prepare(CLOSE_ASKS).await?,
            open: client.prepare(OPEN_ASKS).await?,
        })
    }

    /// Makes the changes of stored generations. Sends all statements at once.
    pub(super) async fn change(
        &self,
        transaction: &Transaction<'_>,
        folded: &FoldedContinuations<'_>,
    ) -> Result<(), Error> {
        let run = async |statement: &Statement, values: Parameters<'_>| {
            transaction.execute(statement, &values.values()).await
        };
        // polled, and so sent, in this order
        try_join5(
            run(&self.check, folded.expected()),
            run(&self.put, folded.put()),
            run(&self.remove, folded.removed()),
            run(&self.close, folded.closed()),
            run(&self.open, folded.opened()),
        )
        .await
        .map(drop)
    }
}

pub(crate) const FIND: &str = "SELECT revision, body FROM continuations
    WHERE generation = (SELECT n FROM generations WHERE id = $1)";

pub(crate) const SUSPENDED_IN: &str = "SELECT id FROM generations
    WHERE status = 4 AND conversation = $1 AND agent = $2 AND user_id IS NOT DISTINCT FROM $3
    ORDER BY n";

/// Finds generations of a user that have not ended, in the order of an index. Of the few statuses that
/// are left PostgreSQL would read all rows, and sort them.
pub(crate) const UNFINISHED_OF_USER: &str = "SELECT agent, number, id FROM generations
    WHERE user_id <= $1 AND (user_id, agent, number) > ($1, $2, $3) AND status NOT IN (1, 2, 3)
    ORDER BY user_id, agent, number LIMIT $4";

/// Finds generations with a continuation behind a row whose process is gone, or is the given one.
pub(crate) const ABANDONED: &str = "WITH working AS MATERIALIZED (
        SELECT n, node FROM generations WHERE status = 0)
    SELECT w.n FROM working w
    WHERE w.n > $1 AND (w.node = $2
            OR NOT EXISTS (SELECT FROM nodes WHERE nodes.node = w.node AND state < 2))
        AND (SELECT revision FROM continuations WHERE generation = w.n) IS NOT NULL
    ORDER BY w.n LIMIT $3";

/// Takes over those of the generations whose process is gone, or is `$3`, if this one (`$2`) is not
/// gone itself.
pub(crate) const ADOPT: &str = "WITH own AS (
        SELECT node FROM nodes WHERE node = $2 AND state < 2 FOR KEY SHARE)
    UPDATE generations g SET node = $2
    WHERE n = ANY ($1::bigint[]) AND status = 0 AND EXISTS (SELECT FROM own)
        AND (node = $3 OR NOT EXISTS (SELECT FROM nodes WHERE nodes.node = g.node AND state < 2))
    RETURNING n, id";

pub(crate) async fn continuation(
    reading: Reading,
    id: &str,
) -> Result<Option<StoredContinuation>, Failure> {
    let row = reading.row(FIND, &[&Text(id)]).await?;
    let read =
        |row: Stored| Ok(StoredContinuation { revision: row.unsigned(0)?, body: row.shared(1)? });
    row.map(read).transpose()
}

pub(crate) async fn suspended_in(
    reading: Reading,
    key: &ConversationKey,
) -> Result<Vec<String>, Failure> {
    let ConversationKey { agent_id, user_id, conversation_id } = key;
    let (conversation, agent) = (Text(&**conversation_id), Text(&**agent_id));
    let user = user_id.as_deref().map(Text);
    let rows = reading.rows(SUSPENDED_IN, &[&conversation, &agent, &user]).await?;
    rows.iter().map(|row| row.string(0)).collect()
}

pub(crate) async fn unfinished_of_user(
    reading: Reading,
    user: &str,
    after: Option<&UserCursor>,
    limit: usize,
) -> Result<Vec<(UserCursor, String)>, Failure> {
    let (agent, number) = after.map_or(("", 0), |cursor| (&*cursor.agent_id, cursor.number));
    let cursor: Values<'_> = &[&Text(user), &Text(agent), &number, &limit_of(limit)];
    let rows = reading.rows(UNFINISHED_OF_USER, cursor).await?;
    let read = |row: &Stored| {
        let cursor = UserCursor { agent_id: row.string(0)?, number: row.integer(1)? };
        Ok((cursor, row.string(2)?))
    };
    rows.iter().map(read).collect()
}

/// Takes over generations that have a continuation and no process, by row. A server that has the
/// database alone has just started; a member may be running its own.
pub(crate) async fn adopt_interrupted(
    shared: &Shared,
    after: Row,
    limit: usize,
) -> Result<Vec<(Row, String)>, Failure> {
    let own = shared.membership.cluster.is_none().then_some(shared.node);
    let (mut adopted, mut after) = (Vec::new(), after);
    while adopted.len() < limit {
        let sought = limit - adopted.len();
        let find = async |changing: Changing| {
            changing.rows(ABANDONED, &[&after, &own, &limit_of(sought)]).await
        };
        let found = shared.pool.change(find).await?;
        let found: Vec<Row> = found.iter().map(|row| row.integer(0)).collect::<Result<_, _>>()?;
        let Some(last) = found.last() else { break };
        after = *last;
        adopted.extend(adopt(shared, &found, own).await?);
        if found.len() < sought {
            break;
        }
    }
    Ok(adopted)
}

/// Takes over those of abandoned generations that no other process has taken over meanwhile.
async fn adopt(
    shared: &Shared,
    rows: &[Row],
    own: Option<i64>,
) -> Result<Vec<(Row, String)>, Failure> {
    let is_repeated = AtomicBool::new(false);
    let adopt = async |changing: Changing| {
        // a first attempt, whose answer is unknown, may have taken them over
        let was_tried = is_repeated.swap(true, Ordering::Relaxed);
        let own = own.or_else(|| was_tried.then_some(shared.node));
        changing.rows(ADOPT, &[&rows, &shared.node, &own]).await
    };
    let adopted = shared.pool.change(adopt).await?;
    let adopted = adopted.iter().map(|row| Ok((row.integer(0)?, row.string(1)?)));
    let mut adopted = adopted.collect::<Result<Vec<_>, Failure>>()?;
    adopted.sort();
    Ok(adopted)
}
