//! Writes of conversations, their messages and the full-text index.

use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::ports::store::{
    AppendError, Conversation, ConversationKey, ConversationPatch, StoredMessage,
};
use greenroom_store_codec::prepared::{
    PreparedConversation, PreparedMessage, PreparedMessages, PreparedPatch,
};
use rusqlite::{Connection, OptionalExtension, Result, Statement, params};
use serde_json::{Map, Value};

use super::codec::{limit_of, message_of, role_code, user_text};
use super::defects::is_defect;

/// Messages read at once when a conversation is copied or truncated.
const PAGE: usize = 256;

/// Rows of a conversation and its memory, if they exist.
struct Place {
    memory: Option<i64>,
    conversation: Option<i64>,
}

/// The prepared statements of the writer.
pub(super) struct Conversations<'c> {
    connection: &'c Connection,
    find: Statement<'c>,
    add_memory: Statement<'c>,
    drop_empty_memory: Statement<'c>,
    add: Statement<'c>,
    touch: Statement<'c>,
    patch: Statement<'c>,
    copy: Statement<'c>,
    drop_row: Statement<'c>,
    of_user: Statement<'c>,
    last_message: Statement<'c>,
    find_message: Statement<'c>,
    put_message: Statement<'c>,
    numbers: Statement<'c>,
    page: Statement<'c>,
    drop_message: Statement<'c>,
    put_text: Statement<'c>,
    drop_text: Statement<'c>,
}

const FIND: &str = "SELECT memories.n, conversations.n FROM memories LEFT JOIN conversations
    ON conversations.memory = memories.n AND conversations.id = ?3
    WHERE memories.user = ?1 AND memories.agent = ?2";

const ADD_MEMORY: &str = "INSERT INTO memories (user, agent) VALUES (?1, ?2)";

const DROP_EMPTY_MEMORY: &str = "DELETE FROM memories
    WHERE n = ?1 AND NOT EXISTS (SELECT 1 FROM conversations WHERE memory = ?1)";

const ADD: &str = "INSERT INTO conversations
    (memory, id, agent, user, title, metadata, working_memory, created, updated)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

const TOUCH: &str = "UPDATE conversations SET updated = ?2,
    approved = iif(?3 IS NULL, approved, json_patch(ifnull(approved, '{}'), ?3)) WHERE n = ?1";

const PATCH: &str = "UPDATE conversations SET updated = ?2,
    title = iif(?3, ?4, title), metadata = ifnull(?5, metadata),
    working_memory = iif(?6, ?7, working_memory) WHERE n = ?1";

const COPY: &str = "INSERT INTO conversations
    (memory, id, agent, user, title, metadata, working_memory, created, updated)
    SELECT memory, ?2, agent, user, title, metadata, working_memory, ?3, ?3
    FROM conversations WHERE n = ?1";

const DROP_ROW: &str = "DELETE FROM conversations WHERE n = ?1";

const OF_USER: &str = "SELECT n, memory FROM conversations INDEXED BY conversations_by_user
    WHERE user = ?1 LIMIT 1";

const LAST_MESSAGE: &str =
    "SELECT n FROM messages WHERE n BETWEEN ?1 AND ?2 ORDER BY n DESC LIMIT 1";

const FIND_MESSAGE: &str = "SELECT n FROM messages WHERE conversation = ?1 AND id = ?2";

/// Writes a message; an existing one keeps its number, and so its position.
const PUT_MESSAGE: &str = "INSERT INTO messages
    (n, conversation, id, role, parts, created, generation) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (conversation, id) DO UPDATE SET role = excluded.role, parts = excluded.parts,
        created = excluded.created, generation = excluded.generation
    RETURNING n";

const NUMBERS: &str = "SELECT n FROM messages INDEXED BY messages_by_conversation
    WHERE conversation = ?1 AND n > ?2 ORDER BY n LIMIT ?3";

const MESSAGES: &str = "SELECT n, id, role, parts, created, generation
    FROM messages INDEXED BY messages_by_conversation
    WHERE conversation = ?1 AND n > ?2 ORDER BY n LIMIT ?3";

const DROP_MESSAGE: &str = "DELETE FROM messages WHERE n = ?1";

const PUT_TEXT: &str = "INSERT OR REPLACE INTO messages_text (rowid, text) VALUES (?1, ?2)";

const DROP_TEXT: &str = "DELETE FROM messages_text WHERE rowid = ?1";

/// Returns the range of numbers of the messages of a memory; the first is never used.
pub(super) fn messages_of(memory: i64) -> (i64, i64) {
    let first = memory << 32;
    (first, first | i64::from(u32::MAX))
}

impl<'c> Conversations<'c> {
    pub(super) fn prepare(connection: &'c Connection) -> Result<Self> {
        Ok(Self {
            connection,
            find: connection.prepare(FIND)?,
            add_memory: connection.prepare(ADD_MEMORY)?,
            drop_empty_memory: connection.prepare(DROP_EMPTY_MEMORY)?,
            add: connection.prepare(ADD)?,
            touch: connection.prepare(TOUCH)?,
            patch: connection.prepare(PATCH)?,
            copy: connection.prepare(COPY)?,
            drop_row: connection.prepare(DROP_ROW)?,
            of_user: connection.prepare(OF_USER)?,
            last_message: connection.prepare(LAST_MESSAGE)?,
            find_message: connection.prepare(FIND_MESSAGE)?,
            put_message: connection.prepare(PUT_MESSAGE)?,
            numbers: connection.prepare(NUMBERS)?,
            page: connection.prepare(MESSAGES)?,
            drop_message: connection.prepare(DROP_MESSAGE)?,
            put_text: connection.prepare(PUT_TEXT)?,
            drop_text: connection.prepare(DROP_TEXT)?,
        })
    }

    /// Adds messages to a conversation, which is created if needed.
    pub(super) fn write(&mut self, write: &PreparedMessages) -> Result<()> {
        let PreparedMessages { key, cut_after, messages, approved_tools, at } = write;
        let place = self.find(key)?;
        let (memory, conversation) = match (place.memory, place.conversation) {
            (Some(memory), Some(conversation)) => (memory, conversation),
            (memory, _) => {
                let memory = self.memory(key, memory)?;
                let row = Conversation {
                    key: key.clone(),
                    title: None,
                    metadata: Map::<String, Value>::new(),
                    working_memory: None,
                    created_at: *at,
                    updated_at: *at,
                };
                (memory, self.add(memory, &row, b"{}")?)
            }
        };
        self.touch.execute(params![conversation, at.0, approved_tools])?;
        if let Some(id) = cut_after {
            self.cut(conversation, id)?;
        }
        let mut next = self.last_message(memory)? + 1;
        for message in messages {
            next = self.put_message(conversation, next, message)?;
        }
        Ok(())
    }

    pub(super) fn create(
        &mut self,
        prepared: &PreparedConversation,
    ) -> Result<std::result::Result<(), AppendError>> {
        let PreparedConversation { conversation, metadata } = prepared;
        let place = self.find(&conversation.key)?;
        if place.conversation.is_some() {
            return Ok(Err(AppendError::Exists));
        }
        let memory = self.memory(&conversation.key, place.memory)?;
        self.add(memory, conversation, metadata)?;
        Ok(Ok(()))
    }

    /// Changes a conversation. Returns false if it does not exist.
    pub(super) fn change(
        &mut self,
        key: &ConversationKey,
        prepared: &PreparedPatch,
        at: Timestamp,
    ) -> Result<bool> {
        let Some(conversation) = self.find(key)?.conversation else { return Ok(false) };
        let PreparedPatch { patch: ConversationPatch { title, working_memory, .. }, metadata } =
            prepared;
        self.patch.execute(params![
            conversation,
            at.0,
            title.is_some(),
            title.as_ref().and_then(Option::as_ref),
            metadata,
            working_memory.is_some(),
            working_memory.as_ref().and_then(Option::as_ref),
        ])?;
        Ok(true)
    }

    /// Copies a conversation. Returns false if it does not exist.
    pub(super) fn copy(
        &mut self,
        from: &ConversationKey,
        to: &ConversationKey,
        at: Timestamp,
    ) -> Result<std::result::Result<bool, AppendError>> {
        let place = self.find(from)?;
        let (Some(memory), Some(original)) = (place.memory, place.conversation) else {
            return Ok(Ok(false));
        };
        if self.find(to)?.conversation.is_some() {
            return Ok(Err(AppendError::Exists));
        }
        self.copy.execute(params![original, to.conversation_id, at.0])?;
        let copy = self.connection.last_insert_rowid();
        let mut next = self.last_message(memory)? + 1;
        let mut after = i64::MIN;
        loop {
            let messages = self.page(original, after)?;
            let Some((last, _)) = messages.last() else { return Ok(Ok(true)) };
            after = *last;
            for message in messages.into_iter().filter_map(|(_, message)| message) {
                let prepared = PreparedMessage::new(message)
                    .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))?;
                next = self.put_message(copy, next, &prepared)?;
            }
        }
    }

    /// Deletes up to `limit` messages of a conversation, and the conversation once it has none.
    /// Returns the number of messages: the deletion is complete when it is less than `limit`.
    /// `None` if the conversation does not exist.
    pub(super) fn delete(&mut self, key: &ConversationKey, limit: usize) -> Result<Option<usize>> {
        let place = self.find(key)?;
        let (Some(memory), Some(conversation)) = (place.memory, place.conversation) else {
            return Ok(None);
        };
        self.drop_some(memory, conversation, limit).map(Some)
    }

    /// Deletes up to `limit` messages of a user, and conversations without messages. Returns the
    /// number of rows and of conversations: the deletion is complete when the rows are less than
    /// `limit`.
    pub(super) fn forget(&mut self, user: &str, limit: usize) -> Result<(usize, u64)> {
        let user = user_text(Some(user));
        let (mut rows, mut conversations) = (0, 0);
        while rows < limit {
            let found = self.of_user.query_row([&user], |row| Ok((row.get(0)?, row.get(1)?)));
            let Some((conversation, memory)) = found.optional()? else { break };
            let left = limit - rows;
            let dropped = self.drop_some(memory, conversation, left)?;
            conversations += u64::from(dropped < left);
            // a conversation counts as a row: there may be many without messages
            rows += if dropped < left { dropped + 1 } else { dropped };
        }
        Ok((rows, conversations))
    }

    fn drop_some(&mut self, memory: i64, conversation: i64, limit: usize) -> Result<usize> {
        let dropped = self.drop_messages(conversation, i64::MIN, limit)?;
        if dropped < limit {
            self.drop_row.execute([conversation])?;
            self.drop_empty_memory.execute([memory])?;
        }
        Ok(dropped)
    }

    fn find(&mut self, key: &ConversationKey) -> Result<Place> {
        let user = user_text(key.user_id.as_deref());
        let found = self.find.query_row(params![user, key.agent_id, key.conversation_id], |row| {
            Ok(Place { memory: row.get(0)?, conversation: row.get(1)? })
        });
        Ok(found.optional()?.unwrap_or(Place { memory: None, conversation: None }))
    }

    fn memory(&mut self, key: &ConversationKey, known: Option<i64>) -> Result<i64> {
        match known {
            Some(memory) => Ok(memory),
            None => {
                let user = user_text(key.user_id.as_deref());
                self.add_memory.insert(params![user, key.agent_id])
            }
        }
    }

    fn add(&mut self, memory: i64, row: &Conversation, metadata: &[u8]) -> Result<i64> {
        let Conversation { key, title, working_memory, created_at, updated_at, .. } = row;
        self.add.insert(params![
            memory,
            key.conversation_id,
            key.agent_id,
            user_text(key.user_id.as_deref()),
            title,
            metadata,
            working_memory,
            created_at.0,
            updated_at.0,
        ])
    }

    /// Returns the number of the newest message of a memory, or the number before its first.
    fn last_message(&mut self, memory: i64) -> Result<i64> {
        let (first, last) = messages_of(memory);
        let found = self.last_message.query_row([first, last], |row| row.get(0)).optional()?;
        Ok(found.unwrap_or(first))
    }

    /// Writes a message; returns the next free number.
    fn put_message(
        &mut self,
        conversation: i64,
        next: i64,
        message: &PreparedMessage,
    ) -> Result<i64> {
        let PreparedMessage { id, role, parts, created_at, generation_id, text } = message;
        let values =
            params![next, conversation, id, role_code(*role), parts, created_at.0, generation_id];
        let n: i64 = self.put_message.query_row(values, |row| row.get(0))?;
        let is_new = n == next;
        if !text.is_empty() {
            self.put_text.execute(params![n, text])?;
        } else if !is_new {
            self.drop_text.execute([n])?;
        }
        Ok(if is_new { next + 1 } else { next })
    }

    /// Deletes the messages after a message; none if it does not exist.
    fn cut(&mut self, conversation: i64, id: &str) -> Result<()> {
        let found = self.find_message.query_row(params![conversation, id], |row| row.get(0));
        let Some(last) = found.optional()? else { return Ok(()) };
        while self.drop_messages(conversation, last, PAGE)? == PAGE {}
        Ok(())
    }

    fn drop_messages(&mut self, conversation: i64, after: i64, limit: usize) -> Result<usize> {
        let page = params![conversation, after, limit_of(limit)];
        let numbers = self.numbers.query_map(page, |row| row.get::<_, i64>(0))?;
        let numbers = numbers.collect::<Result<Vec<_>>>()?;
        for n in &numbers {
            self.drop_message.execute([n])?;
            self.drop_text.execute([n])?;
        }
        Ok(numbers.len())
    }

    /// Reads messages with their numbers; `None` for a damaged message.
    fn page(&mut self, conversation: i64, after: i64) -> Result<Vec<(i64, Option<StoredMessage>)>> {
        let page = params![conversation, after, limit_of(PAGE)];
        let messages = self.page.query_map(page, |row| {
            let message = match message_of(row) {
                Err(error) if is_defect(&error) => None,
                read => Some(read?),
            };
            Ok((row.get(0)?, message))
        })?;
        messages.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::reader::assert_uses_indexes;
    use super::*;

    #[test]
    fn changes_find_their_rows_by_an_index() {
        for sql in [
            FIND,
            DROP_EMPTY_MEMORY,
            ADD,
            TOUCH,
            PATCH,
            COPY,
            DROP_ROW,
            OF_USER,
            LAST_MESSAGE,
            FIND_MESSAGE,
            PUT_MESSAGE,
            NUMBERS,
            MESSAGES,
            DROP_MESSAGE,
            PUT_TEXT,
            DROP_TEXT,
        ] {
            assert_uses_indexes(sql);
        }
    }
}
