//! Queries of conversations and their messages, and the search in them.

use std::sync::Arc;

use greenroom_actors::ports::store::{
    ApprovedTools, Conversation, ConversationFilter, ConversationKey, PageSize,
    SCANNED_MESSAGES_MAX, StoredMessage, is_too_short_for_index, sought_text,
};
use greenroom_store_codec::columns::Columns as _;
use greenroom_store_codec::keys::user_text;
use greenroom_store_codec::numbers::{limit_of, signed};
use greenroom_store_codec::records::{approved_tools_of, conversation_of, message_of};

use crate::columns::Stored;
use crate::defects::Defects;
use crate::pool::{Failure, Reading, Values};
use crate::text::Text;

/// Columns of [`conversation_of`], in its order.
macro_rules! columns {
    () => {
        "agent, owner, id, title, metadata, working_memory, created, updated"
    };
}

/// Columns of [`message_of`], in its order.
macro_rules! message_columns {
    () => {
        "n, id, role, parts, created, generation"
    };
}

/// Finds a memory by its owner and agent.
macro_rules! memory {
    () => {
        "(SELECT n FROM memories WHERE owner = $1 AND agent = $2)"
    };
}
pub(crate) use memory;

pub(crate) const BY_KEY: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM conversations WHERE memory = ",
    memory!(),
    " AND id = $3"
);

pub(crate) const APPROVED: &str =
    concat!("SELECT approved FROM conversations WHERE memory = ", memory!(), " AND id = $3");

/// Returns a page, whose rows all have the length of the list; an empty page is one row without the
/// rest.
macro_rules! listing {
    ($of_page:expr, $of_count:expr) => {
        concat!(
            "SELECT ",
            columns!(),
            ", total FROM (SELECT count(*) AS total FROM conversations WHERE ",
            $of_count,
            ") AS counted LEFT JOIN LATERAL (SELECT ",
            columns!(),
            ", n FROM conversations WHERE ",
            $of_page,
            "updated DESC, n DESC LIMIT $3 OFFSET $4) AS page ON true
            ORDER BY updated DESC, n DESC"
        )
    };
}

/// Column of the length of the list, after those of [`columns`].
const TOTAL: usize = 8;

/// Lists all conversations. Mentions the owner and the agent, which are null, so that all lists
/// have the same parameters.
pub(crate) const OF_ALL: &str = listing!(
    "$1::text IS NULL AND $2::text IS NULL ORDER BY ",
    "$1::text IS NULL AND $2::text IS NULL"
);

/// The range of three columns has the same rows as an equality of the first, but only one index has
/// its order: with two, PostgreSQL could take that of all conversations.
pub(crate) const OF_AGENT: &str = listing!(
    "$1::text IS NULL AND agent >= $2
        AND (agent, updated, n) <= ($2, 9223372036854775807, 9223372036854775807)
    ORDER BY agent DESC, ",
    "$1::text IS NULL AND agent = $2"
);

/// Selects conversations of an owner, from the newest, in the same way.
macro_rules! of_owner {
    ($and:literal) => {
        concat!(
            "owner >= $1 AND (owner, updated, n) <= ($1, 9223372036854775807, 9223372036854775807)
                AND ",
            $and,
            " ORDER BY owner DESC, "
        )
    };
}

pub(crate) const OF_OWNER: &str =
    listing!(of_owner!("$2::text IS NULL"), "owner = $1 AND $2::text IS NULL");

/// Filters the owner's rows by agent, which keeps them in the order of the index.
pub(crate) const OF_AGENT_AND_OWNER: &str =
    listing!(of_owner!("agent = $2"), concat!("memory = ", memory!()));

/// Selects the messages of a memory, from the newest.
///
/// The range of two columns has the same rows as `memory = …`. But for that, PostgreSQL could expect
/// few rows, and read and sort all of them.
macro_rules! newest {
    () => {
        concat!(
            " FROM messages WHERE memory >= ",
            memory!(),
            " AND (memory, n) <= (",
            memory!(),
            ", 9223372036854775807) ORDER BY memory DESC, n DESC "
        )
    };
}

/// Returns the messages before one, from the newest; none before one that is not there.
pub(crate) const MESSAGES: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM (SELECT n AS conversation FROM conversations WHERE memory = ",
    memory!(),
    " AND id = $3) AS c CROSS JOIN LATERAL (
        SELECT * FROM messages WHERE conversation = c.conversation
            AND place < CASE WHEN $4::text IS NULL THEN 9223372036854775807 ELSE
                (SELECT place FROM messages WHERE conversation = c.conversation AND id = $4) END
        ORDER BY place DESC LIMIT $5) AS page
    ORDER BY place DESC"
);

/// Finds a message of a conversation.
pub(crate) const PLACE: &str = concat!(
    "SELECT place FROM messages WHERE id = $4 AND conversation =
        (SELECT n FROM conversations WHERE memory = ",
    memory!(),
    " AND id = $3)"
);

/// Column of the conversation's id in a search, after those of [`message_columns`].
const CONVERSATION: usize = 6;
/// Column of [`FOUND_IN_NEWEST`] that shows if there are older messages.
const HAS_OLDER: usize = 7;

/// Searches the newest messages: all of most users, and enough of them for frequent words. Without
/// a hit it returns one row without the rest.
pub(crate) const FOUND_IN_NEWEST: &str = concat!(
    "SELECT ",
    message_columns!(),
    ", (SELECT id FROM conversations WHERE n = conversation), has_older FROM (
        SELECT EXISTS (SELECT",
    newest!(),
    "OFFSET $5) AS has_older) AS counted
    LEFT JOIN LATERAL (SELECT * FROM (
            SELECT *",
    newest!(),
    "LIMIT $5) AS newest
        WHERE position($3 IN folded) > 0 ORDER BY memory DESC, n DESC LIMIT $4) AS found ON true
    ORDER BY n DESC"
);

/// Searches all messages by trigrams. The cost is bounded by the messages of the memory.
pub(crate) const FOUND: &str = concat!(
    "SELECT ",
    message_columns!(),
    ", (SELECT id FROM conversations WHERE n = conversation) FROM (
        SELECT * FROM messages WHERE memory = ",
    memory!(),
    " AND folded LIKE $3 ORDER BY n DESC LIMIT $4) AS found ORDER BY n DESC"
);

pub(crate) async fn conversation(
    reading: Reading,
    key: &ConversationKey,
) -> Result<Option<Conversation>, Failure> {
    let (owner, agent) = memory_of(key);
    let row = reading.row(BY_KEY, &[&owner, &agent, &Text(&*key.conversation_id)]).await?;
    row.as_ref().map(conversation_of).transpose()
}

pub(crate) async fn approved_tools(
    reading: Reading,
    key: &ConversationKey,
) -> Result<ApprovedTools, Failure> {
    let (owner, agent) = memory_of(key);
    let row = reading.row(APPROVED, &[&owner, &agent, &Text(&*key.conversation_id)]).await?;
    row.as_ref().map_or_else(|| Ok(ApprovedTools::new()), approved_tools_of)
}

/// Returns the owner and the agent of a conversation as parameters.
pub(crate) fn memory_of(key: &ConversationKey) -> (Text<String>, Text<&str>) {
    (Text(user_text(key.user_id.as_deref())), Text(&*key.agent_id))
}

pub(crate) async fn conversations(
    reading: Reading,
    filter: &ConversationFilter,
    offset: u64,
    size: PageSize,
) -> Result<(Vec<Conversation>, u64), Failure> {
    let listing = match (&filter.agent_id, &filter.owner) {
        (None, None) => OF_ALL,
        (Some(_), None) => OF_AGENT,
        (None, Some(_)) => OF_OWNER,
        (Some(_), Some(_)) => OF_AGENT_AND_OWNER,
    };
    let owner = filter.owner.as_ref().map(|owner| Text(user_text(owner.as_deref())));
    let agent = filter.agent_id.as_deref().map(Text);
    let values: Values<'_> = &[&owner, &agent, &limit_of(size.records), &signed(offset)];
    let rows = reading.page(listing, values, size).await?;
    reading.decoded(rows, list).await
}

fn list(rows: &[Stored], defects: &Defects) -> Result<(Vec<Conversation>, u64), Failure> {
    let total = rows.first().map_or(Ok(0), |row| row.unsigned(TOTAL))?;
    let mut page = Vec::with_capacity(rows.len());
    for row in rows {
        if row.optional_text(2)?.is_some() {
            let name = || row.named("conversation", 2);
            page.extend(defects.readable(name, conversation_of(row))?);
        }
    }
    Ok((page, total))
}

pub(crate) async fn messages(
    reading: Reading,
    key: &ConversationKey,
    before: Option<&str>,
    size: PageSize,
) -> Result<Vec<StoredMessage>, Failure> {
    let (owner, agent) = memory_of(key);
    let (id, before) = (Text(&*key.conversation_id), before.map(Text));
    let values: Values<'_> = &[&owner, &agent, &id, &before, &limit_of(size.records)];
    let mut rows = reading.page(MESSAGES, values, size).await?;
    rows.reverse();
    let decode =
        |rows: &[Stored], defects: &Defects| defects.readable_rows(rows, message_name, message_of);
    reading.decoded(rows, decode).await
}

pub(crate) async fn has_message(
    reading: Reading,
    key: &ConversationKey,
    id: &str,
) -> Result<bool, Failure> {
    let (owner, agent) = memory_of(key);
    let (conversation, id) = (Text(&*key.conversation_id), Text(id));
    let rows = reading.rows(PLACE, &[&owner, &agent, &conversation, &id]).await?;
    Ok(!rows.is_empty())
}

fn message_name(row: &Stored) -> String {
    row.named("message", 1)
}

pub(crate) async fn search(
    reading: Reading,
    agent: &str,
    user: Option<&str>,
    text: &str,
    size: PageSize,
) -> Result<Vec<(ConversationKey, StoredMessage)>, Failure> {
    let (owner, agent_id) = (Text(user_text(user)), Text(agent));
    let limit = limit_of(size.records);
    // folded texts have no null characters, so they are stored as they are
    let sought = sought_text(text);
    let scanned = limit_of(SCANNED_MESSAGES_MAX);
    let values: Values<'_> = &[&owner, &agent_id, &sought, &limit, &scanned];
    let mut rows = reading.page(FOUND_IN_NEWEST, values, size).await?;
    let has_older = rows.first().map_or(Ok(false), |row| row.value(HAS_OLDER))?;
    rows.retain(|row| !matches!(row.optional_integer(0), Ok(None)));
    let is_short = signed(rows.len() as u64) < limit;
    if has_older && is_short && !is_too_short_for_index(&sought) && has_trigram(&sought) {
        let values: Values<'_> = &[&owner, &agent_id, &pattern(&sought), &limit];
        rows = reading.page(FOUND, values, size).await?;
    }
    let agent_id: Arc<str> = Arc::from(agent);
    let user_id: Option<Arc<str>> = user.map(Arc::from);
    let hit = move |row: &Stored| {
        let (agent_id, user_id) = (Arc::clone(&agent_id), user_id.clone());
        let conversation_id = row.shared(CONVERSATION)?;
        Ok((ConversationKey { agent_id, user_id, conversation_id }, message_of(row)?))
    };
    let decode =
        |rows: &[Stored], defects: &Defects| defects.readable_rows(rows, message_name, hit);
    reading.decoded(rows, decode).await
}

/// Returns true if the index has trigrams of a text that may begin and end within words. They are
/// of letters and digits: of a word, and of the two blanks before it and the one after it where it
/// does not touch the ends of the text.
fn has_trigram(sought: &str) -> bool {
    let is_of_word = |char: &char| char.is_alphanumeric();
    let first = sought.chars().take_while(is_of_word).count();
    let mut rest = sought.chars().skip(first).peekable();
    let is_bounded = rest.peek().is_some();
    let has_first = first > 2 || (first == 2 && is_bounded);
    has_first || rest.any(|char| is_of_word(&char))
}

/// Returns the pattern of texts that contain this one.
fn pattern(sought: &str) -> String {
    let mut pattern = String::with_capacity(sought.len() + 8);
    pattern.push('%');
    for char in sought.chars() {
        if matches!(char, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_with_trigrams_use_the_index() {
        for (text, expected) in [
            ("tea", true),
            ("喝绿茶", true),
            ("100%", true),
            ("qq is", true),
            ("qq ", true),
            ("q i", true),
            (" i ", true),
            ("\"a", true),
            ("茶。", false),
            ("q %", false),
            ("a b", true),
            ("   ", false),
            ("\\ _ %", false),
            ("\"\"\"", false),
            ("ab", false),
            ("", false),
        ] {
            assert_eq!(has_trigram(text), expected, "{text:?}");
        }
    }

    #[test]
    fn patterns_match_their_text_only() {
        assert_eq!(pattern("100% \\o_o"), "%100\\% \\\\o\\_o%");
    }
}
