//! Use cases of memory: conversations, their messages and working memory.

mod owner;
mod values;

use std::sync::Arc;

use greenroom_actors::Runtime;
use greenroom_actors::agent::PendingAsk;
use greenroom_actors::domain::message::{Part, ToolCall};
use greenroom_actors::ports::store::{
    Conversation, ConversationFilter, ConversationKey, ConversationPatch, PageSize, PageTooLarge,
    ReadError, StoredMessage,
};

use self::owner::Owner;
use crate::api::caller::Caller;
use crate::api::error::ApiError;
use crate::api::executions::Sent;
use crate::api::json;
use crate::api::query::{Pairs, digits, read, read_limit, refuse_unknown, value_of};
use crate::api::wire::conversation::{ChangeBody, CloneBody, CreateBody, WorkingMemoryBody};
use crate::api::wire::pending_ask::ApprovalForm;

/// Default number of rows of a page.
const LIMIT_DEFAULT: usize = 50;
const LIMIT_MAX: usize = 200;
/// Maximum length of a search text, in characters.
const QUERY_CHARS_MAX: usize = 500;

/// A request about conversations: who asks, and the query.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub runtime: &'a Runtime,
    pub caller: &'a Caller,
    pub pairs: &'a Pairs,
}

/// A page of conversations.
#[derive(Debug)]
pub struct ConversationPage {
    pub conversations: Vec<Conversation>,
    /// Number of conversations on all pages.
    pub total: u64,
    pub limit: usize,
    pub offset: u64,
}

/// Messages of a conversation, oldest first.
#[derive(Debug)]
pub struct Messages {
    pub messages: Vec<StoredMessage>,
    pub limit: usize,
    pub approvals: ApprovalForm,
    /// Open asks of the last message.
    pub asks: Vec<PendingAsk>,
}

/// Result of a search: the matching messages, newest first.
#[derive(Debug)]
pub struct SearchResult {
    pub approvals: ApprovalForm,
    pub query: String,
    pub messages: Vec<(ConversationKey, StoredMessage)>,
    pub limit: usize,
}

/// Lists an agent's conversations, newest change first; those of one user if it is named. Only
/// callers that may name any user list those of all users.
pub async fn list(request: Request<'_>) -> Result<ConversationPage, ApiError> {
    refuse_unknown(request.pairs, &["agentId", "userId", "limit", "offset"])?;
    let Owner { agent_id, user_id, sees_nothing } = Owner::of_query(request)?;
    let size = size_of(request)?;
    let offset = read(request.pairs, "offset", "must be a number of at least 0", digits::<u32>)?;
    let offset = offset.map_or(0, u64::from);
    if sees_nothing {
        let limit = size.records;
        return Ok(ConversationPage { conversations: Vec::new(), total: 0, limit, offset });
    }
    let of_all_users = user_id.is_none() && request.caller.may_name_any_user();
    let owner = (!of_all_users).then_some(user_id);
    let filter = ConversationFilter { agent_id: Some(agent_id.to_string()), owner };
    let all = request.runtime.conversations();
    let page = fitting(request, size, async |size| all.conversations(&filter, offset, size).await);
    let ((conversations, total), limit) = page.await?;
    Ok(ConversationPage { conversations, total, limit, offset })
}

/// Creates a conversation, with a new id unless the caller chooses one.
pub async fn create(request: Request<'_>, body: Sent<'_>) -> Result<Conversation, ApiError> {
    let (owner, bytes) = Owner::of_body(request, body)?;
    let body: CreateBody = json::parse_or_empty(bytes?)?;
    let metadata = body.metadata.unwrap_or_default();
    values::check_size(request.runtime, "metadata", &metadata)?;
    let id = values::new_id(request.runtime, "conversationId", body.conversation_id)?;
    let now = request.runtime.clock().now();
    let conversation = Conversation {
        // A caller that sees nothing could not see it again.
        key: owner.key(&id).map_err(|_| ApiError::NotYours)?,
        title: values::title(body.title)?,
        metadata,
        working_memory: None,
        created_at: now,
        updated_at: now,
    };
    let created = request.runtime.conversations().create_conversation(conversation.clone()).await;
    created.map_err(|error| ApiError::from_change(&id, error))?;
    Ok(conversation)
}

/// Shows a conversation.
pub async fn describe(request: Request<'_>, id: &str) -> Result<Conversation, ApiError> {
    find(request.runtime, &Owner::of_query(request)?.key(id)?).await
}

/// Changes the title or the metadata of a conversation.
pub async fn change(
    request: Request<'_>,
    id: &str,
    body: Sent<'_>,
) -> Result<Conversation, ApiError> {
    let (key, bytes) = find_for(request, id, body).await?;
    let ChangeBody { title, metadata } = json::parse_or_empty(bytes)?;
    if title.is_none() && metadata.is_none() {
        let what = "nothing to change, send title or metadata";
        return Err(ApiError::InvalidBody(what.to_owned()));
    }
    let metadata = metadata.map(Option::unwrap_or_default);
    if let Some(metadata) = &metadata {
        values::check_size(request.runtime, "metadata", metadata)?;
    }
    let title = title.map(values::title).transpose()?;
    apply(request.runtime, &key, ConversationPatch { title, metadata, working_memory: None })
        .await?;
    find(request.runtime, &key).await
}

/// Deletes a conversation with its messages.
pub async fn delete(request: Request<'_>, id: &str) -> Result<(), ApiError> {
    let key = Owner::of_query(request)?.key(id)?;
    was_there(request.runtime.delete_conversation(key).await?)
}

/// Returns the newest messages of a conversation (before the message `before`), oldest first.
pub async fn messages(request: Request<'_>, id: &str) -> Result<Messages, ApiError> {
    let key = describe(request, id).await?.key;
    refuse_unknown(request.pairs, &["agentId", "userId", "limit", "before"])?;
    let size = size_of(request)?;
    let before = value_of(request.pairs, "before");
    let conversations = request.runtime.conversations();
    let page =
        fitting(request, size, async |size| conversations.messages(&key, before, size).await);
    let (messages, limit) = page.await?;
    if let Some(id) = before
        && messages.is_empty()
        && !conversations.has_message(&key, id).await?
    {
        let what = "must be the id of a message of this conversation".to_owned();
        return Err(ApiError::InvalidQuery { name: "before".to_owned(), what });
    }
    let asks = match messages.last().and_then(waiting) {
        Some(generation) => request.runtime.pending_asks(generation).await?,
        None => Vec::new(),
    };
    Ok(Messages { messages, limit, approvals: form_of(request.runtime, &key.agent_id), asks })
}

/// Returns the generation of a message that has calls without results.
fn waiting(message: &StoredMessage) -> Option<&str> {
    let is_answered = |call: &ToolCall| {
        let id = &call.tool_call_id;
        let is_result =
            |part: &Part| matches!(part, Part::ToolResult(it) if it.tool_call_id == *id);
        message.parts.iter().any(is_result)
    };
    let is_open = |part: &Part| matches!(part, Part::ToolCall(call) if !is_answered(call));
    message.generation_id.as_deref().filter(|_| message.parts.iter().any(is_open))
}

fn form_of(runtime: &Runtime, agent_id: &str) -> ApprovalForm {
    let registry = runtime.registry();
    registry.agents.get(agent_id).map(|agent| ApprovalForm::of(agent)).unwrap_or_default()
}

/// Sets the working memory of a conversation.
pub async fn set_working_memory(
    request: Request<'_>,
    id: &str,
    body: Sent<'_>,
) -> Result<(), ApiError> {
    let (key, bytes) = find_for(request, id, body).await?;
    let WorkingMemoryBody { content, mode } = json::parse_or_empty(bytes)?;
    if mode.is_some_and(|mode| mode != "replace") {
        // Treating another mode as a replacement would lose data.
        return Err(ApiError::body("mode", "must be replace"));
    }
    let content = content.ok_or_else(|| ApiError::body("content", "missing"))?;
    let working_memory = Some(values::working_memory(request.runtime, content)?);
    apply(
        request.runtime,
        &key,
        ConversationPatch { working_memory, ..ConversationPatch::default() },
    )
    .await
}

/// Copies a conversation with its messages, with a new id unless the caller chooses one.
pub async fn copy(
    request: Request<'_>,
    id: &str,
    body: Sent<'_>,
) -> Result<Conversation, ApiError> {
    let (from, bytes) = find_for(request, id, body).await?;
    let CloneBody { new_id } = json::parse_or_empty(bytes)?;
    let to = values::new_id(request.runtime, "newId", new_id)?;
    let copy = ConversationKey { conversation_id: Arc::clone(&to), ..from.clone() };
    let now = request.runtime.clock().now();
    let copied =
        request.runtime.conversations().clone_conversation(from, Arc::clone(&to), now).await;
    was_there(copied.map_err(|error| ApiError::from_change(&to, error))?)?;
    find(request.runtime, &copy).await
}

/// Finds messages that contain a text, newest first.
pub async fn search(request: Request<'_>) -> Result<SearchResult, ApiError> {
    refuse_unknown(request.pairs, &["agentId", "userId", "limit", "q", "searchQuery"])?;
    let Owner { agent_id, user_id, sees_nothing } = Owner::of_query(request)?;
    let size = size_of(request)?;
    let query = value_of(request.pairs, "q")
        .or_else(|| value_of(request.pairs, "searchQuery"))
        .unwrap_or_default();
    if !(1..=QUERY_CHARS_MAX).contains(&query.chars().count()) {
        let what = format!("must be a text of 1 to {QUERY_CHARS_MAX} characters");
        return Err(ApiError::InvalidQuery { name: "q".to_owned(), what });
    }
    let approvals = form_of(request.runtime, &agent_id);
    if sees_nothing {
        let (query, limit) = (query.to_owned(), size.records);
        return Ok(SearchResult { approvals, query, messages: Vec::new(), limit });
    }
    let (conversations, user) = (request.runtime.conversations(), user_id.as_deref());
    let found = fitting(request, size, async |size| {
        conversations.search_messages(&agent_id, user, query, size).await
    });
    let (messages, limit) = found.await?;
    Ok(SearchResult { approvals, query: query.to_owned(), messages, limit })
}

/// Deletes all conversations and generations of a user; returns the number of conversations.
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

fn size_of(request: Request<'_>) -> Result<PageSize, ApiError> {
    Ok(request.runtime.page_size(read_limit(request.pairs, LIMIT_DEFAULT, LIMIT_MAX)?))
}

/// Reads a page; returns it with its limit. Without `limit`, it has as many records as fit.
async fn fitting<T>(
    request: Request<'_>,
    size: PageSize,
    read: impl AsyncFn(PageSize) -> Result<T, ReadError>,
) -> Result<(T, usize), ApiError> {
    match read(size).await {
        Err(ReadError::TooLarge(PageTooLarge { fits }))
            if value_of(request.pairs, "limit").is_none() =>
        {
            Ok((read(PageSize { records: fits, ..size }).await?, fits))
        }
        page => Ok((page?, size.records)),
    }
}

/// Finds the conversation of a request with a body. A missing conversation is reported before an
/// invalid body.
async fn find_for<'b>(
    request: Request<'_>,
    id: &str,
    body: Sent<'b>,
) -> Result<(ConversationKey, &'b [u8]), ApiError> {
    let (owner, bytes) = Owner::of_body(request, body)?;
    let conversation = find(request.runtime, &owner.key(id)?).await?;
    Ok((conversation.key, bytes?))
}

/// Finds a conversation by key. The key includes the user, so that those of others are not found.
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
