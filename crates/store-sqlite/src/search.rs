//! Queries of conversations and their messages, and the search in them.

use std::sync::Arc;

use greenroom_actors::ports::store::{
    ApprovedTools, Conversation, ConversationFilter, ConversationKey, PageSize,
    SCANNED_MESSAGES_MAX, StoredMessage, is_too_short_for_index, sought_text,
};
use greenroom_store_codec::records;
use rusqlite::{Connection, OptionalExtension, Result, ToSql, params};

use super::codec::{Stored, limit_of, message_of, named, signed, unsigned_of, user_text};
use super::conversations::messages_of;
use super::defects::Reading;
use super::page::take_room;
use super::reader::bind;

/// Columns of [`conversation_of`], in its order.
macro_rules! columns {
    () => {
        "agent, user, id, title, metadata, working_memory, created, updated"
    };
}

macro_rules! page {
    () => {
        " ORDER BY updated DESC, n DESC LIMIT :limit OFFSET :offset"
    };
}

/// Finds a memory by its user and agent.
macro_rules! memory {
    () => {
        "(SELECT n FROM memories WHERE user = :user AND agent = :agent)"
    };
}

const BY_KEY: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM conversations WHERE memory = ",
    memory!(),
    " AND id = :id"
);

const APPROVED: &str =
    concat!("SELECT approved FROM conversations WHERE memory = ", memory!(), " AND id = :id");

/// Statements for a page of a list and for its total.
struct Listing {
    page: &'static str,
    count: &'static str,
}

macro_rules! listing {
    ($range:literal) => {
        Listing {
            page: concat!(
                "SELECT ",
                columns!(),
                " FROM conversations INDEXED BY ",
                $range,
                page!()
            ),
            count: concat!("SELECT count(*) FROM conversations INDEXED BY ", $range),
        }
    };
}

const OF_ALL: Listing = listing!("conversations_by_change");

const OF_AGENT: Listing = listing!("conversations_by_agent WHERE agent = :agent");

const OF_USER: Listing = listing!("conversations_by_user WHERE user = :user");

/// Filters the user's rows by agent, which keeps them in the order of the index.
const OF_AGENT_AND_USER: Listing = Listing {
    page: concat!(
        "SELECT ",
        columns!(),
        " FROM conversations INDEXED BY conversations_by_user
        WHERE user = :user AND agent = :agent",
        page!()
    ),
    count: concat!("SELECT count(*) FROM conversations WHERE memory = ", memory!()),
};

const CONVERSATION: &str =
    concat!("SELECT n FROM conversations WHERE memory = ", memory!(), " AND id = :id");

const PLACE: &str = "SELECT n FROM messages WHERE conversation = ?1 AND id = ?2";

const MESSAGES: &str = "SELECT n, id, role, parts, created, generation
    FROM messages INDEXED BY messages_by_conversation
    WHERE conversation = ?1 AND n < ?2 ORDER BY n DESC LIMIT ?3";

const MEMORY: &str = "SELECT n FROM memories WHERE user = ?1 AND agent = ?2";

const FOUND: &str = "SELECT messages.n, messages.id, role, parts, messages.created, generation,
    conversations.id FROM messages_text
    CROSS JOIN messages ON messages.n = messages_text.rowid
    CROSS JOIN conversations ON conversations.n = messages.conversation
    WHERE messages_text MATCH ?1 AND messages_text.rowid BETWEEN ?2 AND ?3
    ORDER BY messages_text.rowid DESC LIMIT ?4";

const NEWEST: &str = "SELECT messages.n, messages.id, role, parts, messages.created, generation,
    conversations.id FROM messages
    CROSS JOIN conversations ON conversations.n = messages.conversation
    WHERE messages.n BETWEEN ?1 AND ?2 ORDER BY messages.n DESC LIMIT ?3";

fn conversation_of(row: &rusqlite::Row<'_>) -> Result<Conversation> {
    records::conversation_of(&Stored(row))
}

/// Reads the row of a conversation.
fn by_key<T>(
    connection: &Connection,
    sql: &str,
    key: &ConversationKey,
    read: impl FnOnce(&rusqlite::Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let user = user_text(key.user_id.as_deref());
    let values: [(&str, &dyn ToSql); 3] =
        [(":user", &user), (":agent", &key.agent_id), (":id", &key.conversation_id)];
    statement.query_row(&values, read).optional()
}

pub(super) fn conversation(
    connection: &Connection,
    key: &ConversationKey,
) -> Result<Option<Conversation>> {
    by_key(connection, BY_KEY, key, conversation_of)
}

pub(super) fn approved_tools(
    connection: &Connection,
    key: &ConversationKey,
) -> Result<ApprovedTools> {
    Ok(by_key(connection, APPROVED, key, |row| records::approved_tools_of(&Stored(row)))?
        .unwrap_or_default())
}

pub(super) fn conversations(
    reading: &Reading<'_>,
    filter: &ConversationFilter,
    offset: u64,
    size: PageSize,
) -> Result<(Vec<Conversation>, u64)> {
    let listing = match (&filter.agent_id, &filter.owner) {
        (None, None) => &OF_ALL,
        (Some(_), None) => &OF_AGENT,
        (None, Some(_)) => &OF_USER,
        (Some(_), Some(_)) => &OF_AGENT_AND_USER,
    };
    let user = filter.owner.as_ref().map(|owner| user_text(owner.as_deref()));
    let (limit, offset) = (limit_of(size.records), signed(offset));
    let values: [(&str, &dyn ToSql); 4] =
        [(":user", &user), (":agent", &filter.agent_id), (":limit", &limit), (":offset", &offset)];
    let transaction = reading.unchecked_transaction()?;
    let mut statement = transaction.prepare_cached(listing.count)?;
    bind(&mut statement, &values)?;
    let mut rows = statement.raw_query();
    let total = rows.next()?.map_or(Ok(0), |row| unsigned_of(row, 0))?;
    let mut statement = transaction.prepare_cached(listing.page)?;
    bind(&mut statement, &values)?;
    let mut rows = statement.raw_query();
    let name = |row: &rusqlite::Row<'_>| named("conversation", row, 2);
    let mut room = size.room();
    let page = reading.defects.readable_rows(&mut rows, name, |row| {
        take_room(&mut room, row, 0)?;
        conversation_of(row)
    })?;
    Ok((page, total))
}

pub(super) fn messages(
    reading: &Reading<'_>,
    key: &ConversationKey,
    before: Option<&str>,
    size: PageSize,
) -> Result<Vec<StoredMessage>> {
    let transaction = reading.unchecked_transaction()?;
    let found = by_key(&transaction, CONVERSATION, key, |row| row.get::<_, i64>(0))?;
    let Some(conversation) = found else { return Ok(Vec::new()) };
    let end = match before {
        None => Some(i64::MAX),
        Some(id) => {
            let mut statement = transaction.prepare_cached(PLACE)?;
            statement.query_row(params![conversation, id], |row| row.get(0)).optional()?
        }
    };
    let Some(end) = end else { return Ok(Vec::new()) };
    let mut statement = transaction.prepare_cached(MESSAGES)?;
    let mut rows = statement.query(params![conversation, end, limit_of(size.records)])?;
    let mut room = size.room();
    let mut page = reading.defects.readable_rows(&mut rows, message_name, |row| {
        take_room(&mut room, row, 0)?;
        message_of(row)
    })?;
    page.reverse();
    Ok(page)
}

pub(super) fn has_message(reading: &Reading<'_>, key: &ConversationKey, id: &str) -> Result<bool> {
    let transaction = reading.unchecked_transaction()?;
    let found = by_key(&transaction, CONVERSATION, key, |row| row.get::<_, i64>(0))?;
    let Some(conversation) = found else { return Ok(false) };
    let mut statement = transaction.prepare_cached(PLACE)?;
    statement.exists(params![conversation, id])
}

fn message_name(row: &rusqlite::Row<'_>) -> String {
    named("message", row, 1)
}

pub(super) fn search(
    reading: &Reading<'_>,
    agent: &str,
    user: Option<&str>,
    text: &str,
    size: PageSize,
) -> Result<Vec<(ConversationKey, StoredMessage)>> {
    let transaction = reading.unchecked_transaction()?;
    let mut statement = transaction.prepare_cached(MEMORY)?;
    let found = statement.query_row(params![user_text(user), agent], |row| row.get(0));
    let Some(memory) = found.optional()? else { return Ok(Vec::new()) };
    let (first, last) = messages_of(memory);
    let agent_id: Arc<str> = Arc::from(agent);
    let user_id: Option<Arc<str>> = user.map(Arc::from);
    let hit = |row: &rusqlite::Row<'_>| {
        let (agent_id, user_id) = (Arc::clone(&agent_id), user_id.clone());
        let key = ConversationKey { agent_id, user_id, conversation_id: row.get(6)? };
        Ok((key, message_of(row)?))
    };
    let mut room = size.room();
    let sought = sought_text(text);
    if is_too_short_for_index(&sought) {
        let mut statement = transaction.prepare_cached(NEWEST)?;
        let mut newest = statement.query(params![first, last, limit_of(SCANNED_MESSAGES_MAX)])?;
        let mut found = Vec::new();
        while found.len() < size.records
            && let Some(row) = newest.next()?
        {
            let read = reading.defects.readable(|| message_name(row), hit(row))?;
            let read = read.filter(|(_, it)| it.searched_text().contains(&sought));
            if read.is_some() {
                take_room(&mut room, row, 0)?;
            }
            found.extend(read);
        }
        return Ok(found);
    }
    // one phrase, whatever it contains: only a quote could end it, and quotes are doubled
    let phrase = format!("\"{}\"", sought.replace('"', "\"\""));
    let mut statement = transaction.prepare_cached(FOUND)?;
    let mut found = statement.query(params![phrase, first, last, limit_of(size.records)])?;
    reading.defects.readable_rows(&mut found, message_name, |row| {
        take_room(&mut room, row, 0)?;
        hit(row)
    })
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn reads_find_their_rows_by_an_index() {
        for sql in [BY_KEY, APPROVED, CONVERSATION, PLACE, MESSAGES, MEMORY, FOUND, NEWEST] {
            assert_uses_indexes(sql);
        }
        for Listing { page, count } in [OF_AGENT, OF_USER, OF_AGENT_AND_USER] {
            assert_uses_indexes(page);
            assert_uses_indexes(count);
        }
    }
}
