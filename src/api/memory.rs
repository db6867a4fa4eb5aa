//! Use cases of what agents remember: conversations, their messages, their working memory.

mod owner;
mod values;

use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::ports::store::{
    Conversation, ConversationFilter, ConversationKey, ConversationPatch, StoredMessage,
};

use self::owner::{Owner, named_in};
use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::json;
use crate::api::query::{Pairs, digits, read, refuse_unknown, value_of};
use crate::api::wire::conversation::{ChangeBody, CloneBody, CreateBody, WorkingMemoryBody};

/// Rows of a page when the caller names no number.
const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 200;
/// Longest text to search for, in characters.
const QUERY_CHARS_MAX: usize = 500;

/// A page of conversations.
#[derive(Debug)]
pub struct ConversationPage {
    pub conversations: Vec<Conversation>,
    /// Of all pages.
    pub total: u64,
    pub limit: usize,
    pub offset: u64,
}

/// What a search was for, and what it found, newest first.
#[derive(Debug)]
pub struct Found {
    pub query: String,
    pub messages: Vec<(ConversationKey, StoredMessage)>,
}

/// Lists an agent's conversations, newest change first; of one user when it is named. Those of
/// everybody are for callers who may name anybody.
pub async fn list(
    runtime: &Runtime,
    caller: &Caller,
    pairs: &Pairs,
) -> Result<ConversationPage, ApiError> {
    refuse_unknown(pairs, &["agentId", "userId", "limit", "offset"])?;
    let Owner { agent_id, user_id, is_blind } = Owner::of(runtime, caller, pairs, None, None)?;
    let limit = read_limit(pairs)?;
    let offset = read(pairs, "offset", "must be a number from 0 on", digits::<u32>)?;
    let offset = offset.map_or(0, u64::from);
    if is_blind {
        return Ok(ConversationPage { conversations: Vec::new(), total: 0, limit, offset });
    }
    let of_everybody = user_id.is_none() && caller.may_name_anybody();
    let owner = (!of_everybody).then_some(user_id);
    let filter = ConversationFilter { agent_id: Some(agent_id.to_string()), owner };
    let page = runtime.conversations().conversations(&filter, offset, limit).await?;
    let (conversations, total) = page;
    Ok(ConversationPage { conversations, total, limit, offset })
}

/// Creates a conversation, under a fresh id when the caller chooses none.
pub async fn create(
    runtime: &Runtime,
    caller: &Caller,
    pairs: &Pairs,
    bytes: &[u8],
) -> Result<Conversation, ApiError> {
    let named = named_in(bytes)?;
    let body: CreateBody = json::parse_or_empty(bytes)?;
    let owner =
        Owner::of(runtime, caller, pairs, named.agent_id.as_deref(), named.user_id.as_deref())?;
    let metadata = body.metadata.unwrap_or_default();
    values::check_size(runtime, "metadata", &metadata)?;
    let id = values::new_id(runtime, "conversationId", body.conversation_id)?;
    let now = runtime.clock().now();
    let conversation = Conversation {
        // What it makes it could not see again.
        key: owner.key(&id).map_err(|_| ApiError::NotYours)?,
        title: values::title(body.title)?,
        metadata,
        working_memory: None,
        created_at: now,
        updated_at: now,
    };
    let created = runtime.conversations().create_conversation(conversation.clone()).await;
    created.map_err(|error| ApiError::from_change(&id, error))?;
    Ok(conversation)
}

/// Shows a conversation.
pub async fn describe(
    runtime: &Runtime,
    caller: &Caller,
    pairs: &Pairs,
    id: &str,
) -> Result<Conversation, ApiError> {
    find(runtime, &Owner::of(runtime, caller, pairs, None, None)?.key(id)?).await
}

/// Changes the title or the metadata of a conversation.
pub async fn change(
    runtime: &Runtime,
    caller: &Caller,
    pairs: &Pairs,
    id: &str,
    bytes: &[u8],
) -> Result<Conversation, ApiError> {
    let key = find_for(runtime, caller, pairs, id, bytes).await?.key;
    let ChangeBody { title, metadata } = json::parse_or_empty(bytes)?;
    if title.is_none() && metadata.is_none() {
        let what = "nothing to change, send title or metadata";
        return Err(ApiError::InvalidBody(what.to_owned()));
    }
    let metadata = metadata.map(Option::unwrap_or_default);
    if let Some(metadata) = &metadata {
        values::check_size(runtime, "metadata", metadata)?;
    }
    let title = title.map(values::title).transpose()?;
    apply(runtime, &key, ConversationPatch { title, metadata, working_memory: None }).await?;
    find(runtime, &key).await
}

/// Deletes a conversation with its messages.
pub async fn delete(
    runtime: &Runtime,
    caller: &Caller,
    pairs: &Pairs,
    id: &str,
) -> Result<(), ApiError> {
    let key = Owner::of(runtime, caller, pairs, None, None)?.key(id)?;
    let deleted = runtime.conversations().delete_conversation(key).await;
    was_there(deleted.map_err(|error| ApiError::from_change(id, error))?)
}

/// Shows the newest messages of a conversation (of those before `before`), oldest first.
pub async fn messages(
    runtime: &Runtime,
    caller: &Caller,
    pairs: &Pairs,
    id: &str,
) -> Result<Vec<StoredMessage>, ApiError> {
    let Conversation { key, .. } =
        find(runtime, &Owner::of(runtime, caller, pairs, None, None)?.key(id)?).await?;
    refuse_unknown(pairs, &["agentId", "userId", "limit", "before"])?;
    let limit = read_limit(pairs)?;
    let before = value_of(pairs, "before");
    Ok(runtime.conversations().messages(&key, before, limit).await?)
}

/// Sets what an agent keeps in mind of a conversation.
pub async fn set_working_memory(
    runtime: &Runtime,
    caller: &Caller,
    pairs: &Pairs,
    id: &str,
    bytes: &[u8],
) -> Result<(), ApiError> {
    let key = find_for(runtime, caller, pairs, id, bytes).await?.key;
    let WorkingMemoryBody { content, mode } = json::parse_or_empty(bytes)?;
    if mode.is_some_and(|mode| mode != "replace") {
        // Taken for a replacement, it would lose what is there.
        return Err(ApiError::body("mode", "must be replace"));
    }
    let content = content.ok_or_else(|| ApiError::body("content", "missing"))?;
    let working_memory = Some(values::working_memory(runtime, content)?);
    apply(runtime, &key, ConversationPatch { working_memory, ..ConversationPatch::default() }).await
}

/// Copies a conversation with its messages, under a fresh id when the caller chooses none.
pub async fn copy(
    runtime: &Runtime,
    caller: &Caller,
    pairs: &Pairs,
    id: &str,
    bytes: &[u8],
) -> Result<Conversation, ApiError> {
    let from = find_for(runtime, caller, pairs, id, bytes).await?.key;
    let CloneBody { new_id } = json::parse_or_empty(bytes)?;
    let to = values::new_id(runtime, "newId", new_id)?;
    let copy = ConversationKey { conversation_id: Arc::clone(&to), ..from.clone() };
    let now = runtime.clock().now();
    let copied = runtime.conversations().clone_conversation(from, Arc::clone(&to), now).await;
    was_there(copied.map_err(|error| ApiError::from_change(&to, error))?)?;
    find(runtime, &copy).await
}

/// Finds messages that hold a text, newest first.
pub async fn search(runtime: &Runtime, caller: &Caller, pairs: &Pairs) -> Result<Found, ApiError> {
    refuse_unknown(pairs, &["agentId", "userId", "limit", "q", "searchQuery"])?;
    let Owner { agent_id, user_id, is_blind } = Owner::of(runtime, caller, pairs, None, None)?;
    let limit = read_limit(pairs)?;
    let query = value_of(pairs, "q").or_else(|| value_of(pairs, "searchQuery")).unwrap_or_default();
    if !(1..=QUERY_CHARS_MAX).contains(&query.chars().count()) {
        let what = format!("must be a text of 1 to {QUERY_CHARS_MAX} characters");
        return Err(ApiError::InvalidQuery { name: "q".to_owned(), what });
    }
    if is_blind {
        return Ok(Found { query: query.to_owned(), messages: Vec::new() });
    }
    let conversations = runtime.conversations();
    let found = conversations.search_messages(&agent_id, user_id.as_deref(), query, limit).await?;
    Ok(Found { query: query.to_owned(), messages: found })
}

/// Deletes all conversations and generations of a user; gives how many conversations there were.
pub async fn forget_user(
    runtime: &Runtime,
    caller: &Caller,
    user_id: &str,
) -> Result<u64, ApiError> {
    if !caller.may_erase(user_id) {
        return Err(ApiError::NotYours);
    }
    Ok(runtime.forget_user(user_id).await?)
}

fn read_limit(pairs: &Pairs) -> Result<usize, ApiError> {
    let limit = read(pairs, "limit", "must be a number from 1 to 200", |text| {
        digits(text).filter(|limit| (1..=LIMIT_MAX).contains(limit))
    })?;
    Ok(limit.unwrap_or(LIMIT_DEFAULT))
}

/// Finds the conversation that a request with a body is about. A missing one is told before what
/// is wrong with the body.
async fn find_for(
    runtime: &Runtime,
    caller: &Caller,
    pairs: &Pairs,
    id: &str,
    bytes: &[u8],
) -> Result<Conversation, ApiError> {
    let named = named_in(bytes);
    let owner = match &named {
        Ok(named) => {
            Owner::of(runtime, caller, pairs, named.agent_id.as_deref(), named.user_id.as_deref())?
        }
        Err(refusal) => {
            Owner::of(runtime, caller, pairs, None, None).map_err(|_| refusal.clone())?
        }
    };
    let conversation = find(runtime, &owner.key(id)?).await?;
    named.map(|_| conversation)
}

/// Another user's conversation is not found either: its key is another one.
async fn find(runtime: &Runtime, key: &ConversationKey) -> Result<Conversation, ApiError> {
    runtime.conversations().conversation(key).await?.ok_or(ApiError::ConversationNotFound)
}

async fn apply(
    runtime: &Runtime,
    key: &ConversationKey,
    patch: ConversationPatch,
) -> Result<(), ApiError> {
    let now = runtime.clock().now();
    let changed = runtime.conversations().change_conversation(key.clone(), patch, now).await;
    was_there(changed.map_err(|error| ApiError::from_change(&key.conversation_id, error))?)
}

fn was_there(found: bool) -> Result<(), ApiError> {
    if found { Ok(()) } else { Err(ApiError::ConversationNotFound) }
}
