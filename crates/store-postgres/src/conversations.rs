//! Changes of conversations by callers.
//!
//! A conversation is in a memory, which belongs to one owner and one agent. A memory without
//! conversations is deleted, so a change that adds a conversation locks the memory's row first. All
//! changes lock a memory before its conversations.
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

/// Finds a conversation and its memory.
pub(crate) const FIND: &str =
    concat!("SELECT n, memory FROM conversations WHERE memory = ", memory!(), " AND id = $3");

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

/// Locks a memory and a conversation in it, in this order.
pub(crate) const LOCK: &str = "SELECT c.n FROM memories m JOIN conversations c ON c.n = $2
    WHERE m.n = $1 FOR UPDATE OF m, c";

pub(crate) const DROP_MESSAGES: &str = "DELETE FROM messages WHERE conversation = $1
    AND place = ANY (ARRAY(
        SELECT place FROM messages WHERE conversation = $1 ORDER BY place LIMIT $2))";

pub(crate) const DROP: &str = "DELETE FROM conversations WHERE n = $1";

pub(crate) const DROP_EMPTY_MEMORY: &str = "DELETE FROM memories
    WHERE n = $1 AND NOT EXISTS (SELECT FROM conversations WHERE memory = $1)";

/// Numbers of a conversation and of its memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) conversation: i64,
    pub(crate) memory: i64,
}

impl Numbers {
    /// Decodes the conversation and the memory.
    pub(crate) fn of(row: &Stored) -> Result<Self, Failure> {
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
    let Some(numbers) = pool.change(|changing| find(changing, key)).await? else {
        return Ok(false);
    };
    pool.change_in_parts(|changing| delete_part(changing, numbers)).await?;
    Ok(true)
}

async fn find(changing: Changing, key: &ConversationKey) -> Result<Option<Numbers>, Failure> {
    let (owner, agent) = memory_of(key);
    let row = changing.row(FIND, &[&owner, &agent, &Text(&*key.conversation_id)]).await?;
    row.as_ref().map(Numbers::of).transpose()
}

async fn delete_part(mut changing: Changing, numbers: Numbers) -> Result<Part, Failure> {
    let change = changing.begin().await?;
    let dropped = drop_some(&change, numbers, PART).await?;
    change.commit().await?;
    Ok(Part { changed: dropped as u64, is_last: dropped < PART })
}

/// Deletes up to `limit` messages of a conversation, and the conversation once it has none. Returns
/// the number of messages: the deletion is complete when it is less than `limit`.
pub(crate) async fn drop_some(
    change: &Change<'_>,
    numbers: Numbers,
    limit: usize,
) -> Result<usize, Failure> {
    let Numbers { conversation, memory } = numbers;
    if change.row(LOCK, &[&memory, &conversation]).await?.is_none() {
        // another change has deleted it
        return Ok(0);
    }
    let dropped = change.execute(DROP_MESSAGES, &[&conversation, &limit_of(limit)]).await?;
    let dropped = usize::try_from(dropped).unwrap_or(usize::MAX);
    if dropped < limit {
        change.execute(DROP, &[&conversation]).await?;
        change.execute(DROP_EMPTY_MEMORY, &[&memory]).await?;
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
