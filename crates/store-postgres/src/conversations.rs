//! Changes of conversations by callers.
//!
//! A conversation is in a memory, which belongs to one owner and one agent. A memory without
//! conversations is deleted, so a change that adds a conversation locks the memory's row first.
//!
//! A transaction locks conversations that exist before memories, both in the order of their keys, as
//! that of generations does, which add messages to some conversations and create others. So two of
//! them do not wait for each other, except for a conversation that is created in between: then
//! PostgreSQL ends one of them, and it is repeated.
//!
//! A repetition after an outage recognizes what an earlier attempt committed: a new conversation
//! has a number that was taken before the first attempt, and a deletion is of the number that was
//! found before it.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{AppendError, Conversation, ConversationKey};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::numbers::limit_of;
use greenroom_store_codec::prepared::{PreparedConversation, PreparedPatch};

use crate::changes::{Change, Changing, PART, Part, Verdict};
use crate::columns::Stored;
use crate::pool::{Failure, Pool, Values};
use crate::search::{memory, memory_of};
use crate::text::Text;

pub(crate) const NEXT_NUMBER: &str = "SELECT nextval('conversations_n_seq')";

/// Finds a conversation.
pub(crate) const FIND: &str =
    concat!("SELECT n FROM conversations WHERE memory = ", memory!(), " AND id = $3");

/// Adds a conversation under a number. Returns the number of the conversation that has its id, if
/// that can be seen: not of one that another transaction is adding.
pub(crate) const CREATE: &str = "WITH own AS (
        INSERT INTO memories (owner, agent) VALUES ($1, $2)
        ON CONFLICT (owner, agent) DO UPDATE SET agent = excluded.agent RETURNING n),
    made AS (
        INSERT INTO conversations
            (n, memory, created, updated, next, id, agent, owner, title, metadata, working_memory)
        OVERRIDING SYSTEM VALUE
        SELECT $4, n, $5, $6, 1, $3, $2, $1, $7, $8, $9 FROM own
        ON CONFLICT (memory, id) DO NOTHING RETURNING n)
    SELECT coalesce((SELECT n FROM made),
        (SELECT n FROM conversations WHERE memory = (SELECT n FROM own) AND id = $3))";

/// Changes a conversation. Made again, it changes nothing more, unless another change or a deletion
/// came between: as if it had been made after that.
pub(crate) const PATCH: &str = concat!(
    "UPDATE conversations SET updated = $4,
        title = CASE WHEN $5 THEN $6 ELSE title END, metadata = coalesce($7, metadata),
        working_memory = CASE WHEN $8 THEN $9 ELSE working_memory END
    WHERE memory = ",
    memory!(),
    " AND id = $3"
);

/// Copies a conversation and its messages under a number. All parts see one state, so the original
/// need not be locked. Returns true if there is an original, and the number of the conversation
/// that has the id of the copy, like [`CREATE`].
pub(crate) const COPY: &str = "WITH own AS (
        SELECT n FROM memories WHERE owner = $1 AND agent = $2 FOR KEY SHARE),
    original AS MATERIALIZED (
        SELECT * FROM conversations WHERE memory = (SELECT n FROM own) AND id = $3),
    copy AS (
        INSERT INTO conversations
            (n, memory, created, updated, next, id, agent, owner, title, metadata, working_memory)
        OVERRIDING SYSTEM VALUE
        SELECT $4, memory, $5, $5, next, $6, agent, owner, title, metadata, working_memory
        FROM original ON CONFLICT (memory, id) DO NOTHING RETURNING n),
    copied AS (
        INSERT INTO messages
            (conversation, place, memory, created, role, id, generation, parts, folded)
        SELECT $4, place, memory, created, role, id, generation, parts, folded FROM messages
        WHERE conversation = (SELECT n FROM original) AND EXISTS (SELECT FROM copy)
        ORDER BY place)
    SELECT EXISTS (SELECT FROM original), coalesce((SELECT n FROM copy),
        (SELECT n FROM conversations WHERE memory = (SELECT n FROM own) AND id = $6))";

/// Locks those of the conversations that still exist, in the order of the parameter.
pub(crate) const LOCK: &str = "SELECT c.n, c.memory FROM unnest($1::bigint[]) AS u (n)
    CROSS JOIN LATERAL (SELECT n, memory FROM conversations WHERE n = u.n FOR UPDATE) AS c";

pub(crate) const DROP_MESSAGES: &str = "DELETE FROM messages WHERE conversation = $1
    AND place = ANY (ARRAY(
        SELECT place FROM messages WHERE conversation = $1 ORDER BY place LIMIT $2))";

pub(crate) const DROP: &str = "DELETE FROM conversations WHERE n = $1";

/// Locks memories, after which what others have added to them is seen.
pub(crate) const LOCK_MEMORIES: &str = "SELECT m.n FROM unnest($1::bigint[]) AS u (n)
    CROSS JOIN LATERAL (SELECT n FROM memories WHERE n = u.n FOR UPDATE) AS m";

/// Deletes those of the memories that are empty. The subquery is asked for each of them: a join
/// could read all conversations.
pub(crate) const DROP_EMPTY_MEMORIES: &str = "DELETE FROM memories m
    WHERE n = ANY ($1::bigint[])
        AND (SELECT c.n FROM conversations c WHERE c.memory = m.n LIMIT 1) IS NULL";

/// Numbers of a conversation and of its memory.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    conversation: i64,
    memory: i64,
}

/// Part of a deletion.
#[derive(Debug)]
pub(crate) struct Dropped {
    /// Number of deleted messages and conversations.
    pub(crate) rows: usize,
    pub(crate) conversations: u64,
}

impl Numbers {
    /// Decodes the conversation and the memory.
    fn of(row: &Stored) -> Result<Self, Failure> {
        Ok(Self { conversation: row.integer(0)?, memory: row.integer(1)? })
    }
}

/// Creates a conversation; refuses to if there is one.
pub(crate) async fn create(
    pool: &Pool,
    prepared: &PreparedConversation,
) -> Result<Verdict<()>, Failure> {
    let number = next_number(pool).await?;
    let found = pool.change(|changing| insert(changing, prepared, number)).await?;
    Ok(if found == Some(number) { Ok(()) } else { Err(AppendError::Exists) })
}

/// Returns the number of the conversation that exists now.
async fn insert(
    changing: Changing,
    prepared: &PreparedConversation,
    number: i64,
) -> Result<Option<i64>, Failure> {
    let PreparedConversation { conversation, metadata } = prepared;
    let Conversation { key, title, working_memory, created_at, updated_at, .. } = conversation;
    let (owner, agent) = memory_of(key);
    let (created, updated) = (created_at.0, updated_at.0);
    let (title, memory) = (title.as_deref().map(Text), working_memory.as_deref().map(Text));
    let id = Text(&*key.conversation_id);
    let values: Values<'_> =
        &[&owner, &agent, &id, &number, &created, &updated, &title, metadata, &memory];
    let row = changing.row(CREATE, values).await?;
    row.map_or(Ok(None), |row| row.optional_integer(0))
}

/// Changes a conversation. Returns false if it does not exist.
pub(crate) async fn patch(
    pool: &Pool,
    key: &ConversationKey,
    prepared: &PreparedPatch,
    at: Timestamp,
) -> Result<bool, Failure> {
    Ok(pool.change(|changing| update(changing, key, prepared, at)).await? > 0)
}

async fn update(
    changing: Changing,
    key: &ConversationKey,
    prepared: &PreparedPatch,
    at: Timestamp,
) -> Result<u64, Failure> {
    let PreparedPatch { patch, metadata } = prepared;
    let (owner, agent) = memory_of(key);
    let id = Text(&*key.conversation_id);
    let (has_title, title) = text_of(patch.title.as_ref());
    let (has_memory, memory) = text_of(patch.working_memory.as_ref());
    let values: Values<'_> =
        &[&owner, &agent, &id, &at.0, &has_title, &title, metadata, &has_memory, &memory];
    changing.execute(PATCH, values).await
}

/// Returns true if a text changes, and the new one.
fn text_of(field: Option<&Option<String>>) -> (bool, Option<Text<&str>>) {
    (field.is_some(), field.and_then(Option::as_deref).map(Text))
}

/// Copies a conversation; refuses to if there is one with the id of the copy. Returns false if
/// there is none to copy.
pub(crate) async fn copy(
    pool: &Pool,
    from: &ConversationKey,
    to: &str,
    at: Timestamp,
) -> Result<Verdict<bool>, Failure> {
    let number = next_number(pool).await?;
    let (exists, found) =
        pool.change(|changing| insert_copy(changing, from, to, number, at)).await?;
    Ok(match found {
        Some(found) if found == number => Ok(true),
        _ if exists => Err(AppendError::Exists),
        _ => Ok(false),
    })
}

/// Returns true if there is an original, and the number of the conversation that has the id of the
/// copy now.
async fn insert_copy(
    changing: Changing,
    from: &ConversationKey,
    to: &str,
    number: i64,
    at: Timestamp,
) -> Result<(bool, Option<i64>), Failure> {
    let (owner, agent) = memory_of(from);
    let (from, to) = (Text(&*from.conversation_id), Text(to));
    let row = changing.row(COPY, &[&owner, &agent, &from, &number, &at.0, &to]).await?;
    row.map_or(Ok((false, None)), |row| Ok((row.value(0)?, row.optional_integer(1)?)))
}

/// Deletes a conversation and its messages, in parts. Returns false if it does not exist.
pub(crate) async fn delete(pool: &Pool, key: &ConversationKey) -> Result<bool, Failure> {
    let Some(number) = pool.change(|changing| find(changing, key)).await? else {
        return Ok(false);
    };
    pool.change_in_parts(|changing| delete_part(changing, number)).await?;
    Ok(true)
}

/// Returns the number of a conversation.
async fn find(changing: Changing, key: &ConversationKey) -> Result<Option<i64>, Failure> {
    let (owner, agent) = memory_of(key);
    let row = changing.row(FIND, &[&owner, &agent, &Text(&*key.conversation_id)]).await?;
    row.map(|row| row.integer(0)).transpose()
}

async fn delete_part(mut changing: Changing, number: i64) -> Result<Part, Failure> {
    let change = changing.begin().await?;
    let Dropped { rows, conversations } = drop_some(&change, &[number]).await?;
    change.commit().await?;
    // another change may have deleted it
    let is_last = conversations == 1 || rows == 0;
    Ok(Part { changed: rows as u64, is_last })
}

/// Deletes up to [`PART`] messages of conversations, which are in the order of their keys, those of
/// them that have none left, and memories that are empty then.
pub(crate) async fn drop_some(change: &Change<'_>, numbers: &[i64]) -> Result<Dropped, Failure> {
    let (mut dropped, mut memories) = (Dropped { rows: 0, conversations: 0 }, Vec::new());
    for row in change.rows(LOCK, &[&numbers]).await? {
        let Numbers { conversation, memory } = Numbers::of(&row)?;
        let left = PART.saturating_sub(dropped.rows);
        let messages = change.execute(DROP_MESSAGES, &[&conversation, &limit_of(left)]).await?;
        let messages = usize::try_from(messages).unwrap_or(usize::MAX);
        dropped.rows = dropped.rows.saturating_add(messages);
        if messages >= left {
            break;
        }
        change.execute(DROP, &[&conversation]).await?;
        // a conversation counts as a row: there may be many without messages
        dropped.rows += 1;
        dropped.conversations += 1;
        // so these are in the order of their keys, too
        memories.push(memory);
    }
    if !memories.is_empty() {
        change.rows(LOCK_MEMORIES, &[&memories]).await?;
        change.execute(DROP_EMPTY_MEMORIES, &[&memories]).await?;
    }
    Ok(dropped)
}

/// Takes a number for a new conversation.
async fn next_number(pool: &Pool) -> Result<i64, Failure> {
    let take = |changing: Changing| async move { changing.row(NEXT_NUMBER, &[]).await };
    let row = pool.change(take).await?;
    row.map_or_else(|| Err(Failure::Damaged("no number".to_owned())), |row| row.integer(0))
}

#[cfg(test)]
mod tests;
