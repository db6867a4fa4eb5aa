//! Messages that generations add to conversations, in the transaction of their batch.
//!
//! A conversation is locked first, so that what follows sees its messages as they are. It keeps its
//! memory. Memories of new conversations are locked after those that exist
//! ([`conversations`](crate::conversations)).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use futures_util::future::try_join3;
use greenroom_actors::ports::store::ConversationKey;
use greenroom_store_codec::codes::role_code;
use greenroom_store_codec::keys::user_text;
use greenroom_store_codec::numbers::signed;
use greenroom_store_codec::prepared::{PreparedMessage, PreparedMessages};
use tokio_postgres::{Client, Error, Row, Statement, Transaction};

use crate::lane::parameters::{Parameters, code};
use crate::text::Text;

/// Locks those of the conversations that exist, in order.
pub(crate) const LOCK: &str = "SELECT u.item, c.n, c.memory, c.next
    FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS u (owner, agent, id, item)
    CROSS JOIN LATERAL (
        SELECT n, memory, next FROM conversations WHERE id = u.id
            AND memory = (SELECT n FROM memories WHERE owner = u.owner AND agent = u.agent)
        FOR UPDATE) AS c";

/// Creates the other ones, and locks those that another transaction has just created.
pub(crate) const CREATE: &str = "WITH u AS MATERIALIZED (
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[])
            WITH ORDINALITY AS u (owner, agent, id, at, item)),
    own AS (
        INSERT INTO memories (owner, agent) SELECT DISTINCT owner, agent FROM u
        ORDER BY owner, agent
        ON CONFLICT (owner, agent) DO UPDATE SET agent = excluded.agent
        RETURNING n, owner, agent),
    made AS (
        INSERT INTO conversations AS c
            (memory, created, updated, next, id, agent, owner, metadata)
        SELECT n, at, at, 1, id, agent, owner, '{}' FROM u JOIN own USING (owner, agent)
        ORDER BY item
        ON CONFLICT (memory, id) DO UPDATE SET updated = c.updated
        RETURNING n, memory, next, owner, agent, id)
    SELECT item, n, memory, next FROM u JOIN made USING (owner, agent, id)";

/// Deletes the messages after a message; none if it does not exist.
pub(crate) const CUT: &str = "DELETE FROM messages m
    USING unnest($1::bigint[], $2::text[]) AS u (conversation, id)
    WHERE m.conversation = ANY (ARRAY[u.conversation]) AND m.place > (
        SELECT l.place FROM messages l WHERE l.conversation = u.conversation AND l.id = u.id)";

/// Writes messages; an existing one keeps its place and its number.
pub(crate) const PUT: &str = "INSERT INTO messages
        (conversation, place, memory, created, role, id, generation, parts, folded)
    SELECT conversation, place, memory, created, role, id, generation, parts, folded
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::smallint[],
        $6::text[], $7::text[], $8::bytea[], $9::text[]) WITH ORDINALITY
        AS u (conversation, place, memory, created, role, id, generation, parts, folded, item)
    ORDER BY item
    ON CONFLICT (conversation, id) DO UPDATE SET created = excluded.created,
        role = excluded.role, generation = excluded.generation, parts = excluded.parts,
        folded = excluded.folded";

/// Moves the times of conversations and the places of their next messages, and adds approved tools.
pub(crate) const TOUCH: &str = "UPDATE conversations SET
        updated = ($2::bigint[])[array_position($1::bigint[], n)],
        next = ($3::bigint[])[array_position($1, n)],
        approved = CASE WHEN ($4::text[])[array_position($1, n)] IS NULL THEN approved
            ELSE (coalesce(approved, '{}')::jsonb || ($4)[array_position($1, n)]::jsonb)::text END
    WHERE n = ANY ($1)";

/// The statements, prepared.
pub(super) struct Messages {
    lock: Statement,
    create: Statement,
    cut: Statement,
    put: Statement,
    touch: Statement,
}

/// Messages, and their conversation, which is locked.
pub(super) struct Addition<'b> {
    write: &'b PreparedMessages,
    /// Place among the writes of the batch.
    order: usize,
    conversation: i64,
    memory: i64,
    /// Place of the next message.
    next: i64,
}

impl Messages {
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        Ok(Self {
            lock: client.prepare(LOCK).await?,
            create: client.prepare(CREATE).await?,
            cut: client.prepare(CUT).await?,
            put: client.prepare(PUT).await?,
            touch: client.prepare(TOUCH).await?,
        })
    }

    /// Locks the conversations of writes, which are created if needed. No two writes are to the
    /// same conversation.
    pub(super) async fn lock<'b>(
        &self,
        transaction: &Transaction<'_>,
        writes: impl Iterator<Item = &'b PreparedMessages>,
    ) -> Result<Vec<Addition<'b>>, Error> {
        let mut left: Vec<_> = writes.enumerate().collect();
        // all lanes lock in the same order
        left.sort_by_cached_key(|(_, write)| key_of(&write.key));
        let found = transaction.query(&self.lock, &keys(&left).values()).await?;
        let mut all = take(&mut left, &found)?;
        if !left.is_empty() {
            let mut keys = keys(&left);
            keys.column(&left, |(_, write)| write.at.0);
            let made = transaction.query(&self.create, &keys.values()).await?;
            all.extend(take(&mut left, &made)?);
        }
        // searches return the last recorded message first
        all.sort_by_key(|addition| addition.order);
        Ok(all)
    }

    /// Adds messages to locked conversations. Sends all statements at once.
    pub(super) async fn add(
        &self,
        transaction: &Transaction<'_>,
        all: &[Addition<'_>],
    ) -> Result<(), Error> {
        let (cut, put, touch) = (cut(all), put(all), touch(all));
        let (cut, put, touch) = (cut.values(), put.values(), touch.values());
        let cutting = transaction.execute(&self.cut, &cut);
        let putting = transaction.execute(&self.put, &put);
        let touching = transaction.execute(&self.touch, &touch);
        // polled, and so sent, in this order
        try_join3(cutting, putting, touching).await.map(drop)
    }
}

/// Takes the writes whose conversations are in rows, which begin with the place of the write, from
/// those that are left.
fn take<'b>(
    left: &mut Vec<(usize, &'b PreparedMessages)>,
    rows: &[Row],
) -> Result<Vec<Addition<'b>>, Error> {
    let mut found = HashMap::with_capacity(rows.len());
    for row in rows {
        found.insert(row.try_get::<_, i64>(0)?, row);
    }
    let mut taken = Vec::with_capacity(rows.len());
    for (item, (order, write)) in (1..).zip(std::mem::take(left)) {
        match found.get(&item) {
            Some(row) => taken.push(Addition {
                write,
                order,
                conversation: row.try_get(1)?,
                memory: row.try_get(2)?,
                next: row.try_get(3)?,
            }),
            None => left.push((order, write)),
        }
    }
    Ok(taken)
}

fn key_of(key: &ConversationKey) -> (String, Arc<str>, Arc<str>) {
    let ConversationKey { agent_id, user_id, conversation_id } = key;
    (user_text(user_id.as_deref()), Arc::clone(agent_id), Arc::clone(conversation_id))
}

/// Returns the keys of conversations as parameters.
fn keys<'b>(writes: &[(usize, &'b PreparedMessages)]) -> Parameters<'b> {
    let mut keys = Parameters::default();
    keys.column(writes, |(_, write)| Text(user_text(write.key.user_id.as_deref())));
    keys.column(writes, |(_, write)| Text(&*write.key.agent_id));
    keys.column(writes, |(_, write)| Text(&*write.key.conversation_id));
    keys
}

fn cut<'b>(all: &[Addition<'b>]) -> Parameters<'b> {
    let cuts = all.iter().filter_map(|it| Some((it.conversation, it.write.cut_after.as_deref()?)));
    let cuts: Vec<_> = cuts.collect();
    let mut values = Parameters::default();
    values.column(&cuts, |(conversation, _)| *conversation);
    values.column(&cuts, |(_, id)| Text(*id));
    values
}

fn put<'b>(all: &[Addition<'b>]) -> Parameters<'b> {
    let mut rows: Vec<(&Addition<'b>, i64, &'b PreparedMessage)> = Vec::new();
    for addition in all {
        let messages = (addition.next..).zip(once_each(&addition.write.messages));
        rows.extend(messages.map(|(place, message)| (addition, place, message)));
    }
    let mut values = Parameters::default();
    values.column(&rows, |(addition, ..)| addition.conversation);
    values.column(&rows, |(_, place, _)| *place);
    values.column(&rows, |(addition, ..)| addition.memory);
    values.column(&rows, |(.., message)| message.created_at.0);
    values.column(&rows, |(.., message)| code(role_code(message.role)));
    values.column(&rows, |(.., message)| Text(&*message.id));
    values.column(&rows, |(.., message)| message.generation_id.as_deref().map(Text));
    values.column(&rows, |(.., message)| &*message.parts);
    // folded texts have no null characters
    values.column(&rows, |(.., message)| &*message.text);
    values
}

fn touch<'b>(all: &[Addition<'b>]) -> Parameters<'b> {
    let mut values = Parameters::default();
    values.column(all, |it| it.conversation);
    values.column(all, |it| it.write.at.0);
    values.column(all, |it| it.next + signed(it.write.messages.len() as u64));
    values.column(all, |it| it.write.approved_tools.as_deref().map(Text));
    values
}

/// Returns messages, of several with the same id the last one in the place of the first one: a
/// statement must not write a row twice.
fn once_each(messages: &[PreparedMessage]) -> Vec<&PreparedMessage> {
    let mut places = HashMap::with_capacity(messages.len());
    let mut all: Vec<&PreparedMessage> = Vec::with_capacity(messages.len());
    for message in messages {
        match places.entry(&*message.id) {
            Entry::Occupied(place) => all[*place.get()] = message,
            Entry::Vacant(place) => {
                place.insert(all.len());
                all.push(message);
            }
        }
    }
    all
}
