//! Conversations and memory on the wire.

use greenroom_actors::agent::PendingAsk;
use greenroom_actors::ports::store::{Conversation, ConversationKey, StoredMessage};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::json::present;
use crate::api::wire::Iso;
use crate::api::wire::pending_ask::ApprovalForm;
use crate::api::wire::shape::{any_object, memory_scope};
use crate::api::wire::ui_message::UiMessageView;

/// A conversation without its messages.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Conversation)]
#[serde(rename_all = "camelCase")]
pub struct ConversationView<'a> {
    id: &'a str,
    agent_id: &'a str,
    #[schema(required)]
    user_id: Option<&'a str>,
    #[schema(required)]
    title: Option<&'a str>,
    #[schema(schema_with = any_object)]
    metadata: &'a Map<String, Value>,
    created_at: Iso,
    updated_at: Iso,
}

impl<'a> ConversationView<'a> {
    fn of(conversation: &'a Conversation) -> Self {
        let ConversationKey { agent_id, user_id, conversation_id } = &conversation.key;
        Self {
            id: conversation_id,
            agent_id,
            user_id: user_id.as_deref(),
            title: conversation.title.as_deref(),
            metadata: &conversation.metadata,
            created_at: Iso(conversation.created_at),
            updated_at: Iso(conversation.updated_at),
        }
    }
}

/// Response with one conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversationAnswer)]
pub struct OneConversationView<'a> {
    conversation: ConversationView<'a>,
}

impl<'a> OneConversationView<'a> {
    /// Shows a conversation.
    pub fn of(conversation: &'a Conversation) -> Self {
        Self { conversation: ConversationView::of(conversation) }
    }
}

/// A page of conversations.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversationPage)]
pub struct ConversationsView<'a> {
    conversations: Vec<ConversationView<'a>>,
    total: u64,
    limit: usize,
    offset: u64,
}

impl<'a> ConversationsView<'a> {
    /// Shows a page; `total` counts all pages.
    pub fn of(page: &'a [Conversation], total: u64, limit: usize, offset: u64) -> Self {
        let conversations = page.iter().map(ConversationView::of).collect();
        Self { conversations, total, limit, offset }
    }
}

/// Messages of a conversation, oldest first.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ConversationMessages)]
pub struct MessagesView<'a> {
    messages: Vec<UiMessageView<'a>>,
    /// Maximum number of messages of this answer. Without `limit` in the request, it is smaller than
    /// the default if more messages have too many bytes for one answer.
    limit: usize,
}

impl<'a> MessagesView<'a> {
    /// Shows messages, the last of which waits for these asks.
    pub fn of(
        messages: &'a [StoredMessage],
        limit: usize,
        approvals: ApprovalForm,
        asks: &'a [PendingAsk],
    ) -> Self {
        let last = messages.len().saturating_sub(1);
        let shown = messages.iter().enumerate().map(|(number, message)| {
            let asks = if number == last { asks } else { &[] };
            UiMessageView::of(message, approvals, asks)
        });
        Self { messages: shown.collect(), limit }
    }
}

/// Working memory of a conversation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkingMemory)]
pub struct WorkingMemoryView<'a> {
    #[schema(required)]
    content: Option<&'a str>,
    #[schema(schema_with = memory_scope)]
    scope: &'static str,
}

impl<'a> WorkingMemoryView<'a> {
    /// Shows the working memory.
    pub fn of(conversation: &'a Conversation) -> Self {
        Self { content: conversation.working_memory.as_deref(), scope: "conversation" }
    }
}

/// Messages that contain a text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FoundMessages)]
pub struct SearchResultView<'a> {
    results: Vec<FoundMessageView<'a>>,
    count: usize,
    /// Maximum number of results of this answer. Without `limit` in the request, it is smaller than
    /// the default if more results have too many bytes for one answer.
    limit: usize,
    query: &'a str,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FoundMessage)]
#[serde(rename_all = "camelCase")]
struct FoundMessageView<'a> {
    conversation_id: &'a str,
    message: UiMessageView<'a>,
}

impl<'a> SearchResultView<'a> {
    /// Shows the messages that contain `text`.
    pub fn of(
        text: &'a str,
        found: &'a [(ConversationKey, StoredMessage)],
        limit: usize,
        approvals: ApprovalForm,
    ) -> Self {
        let results = found.iter().map(|(key, message)| FoundMessageView {
            conversation_id: &key.conversation_id,
            message: UiMessageView::of(message, approvals, &[]),
        });
        Self { results: results.collect(), count: found.len(), limit, query: text }
    }
}

/// `{"deleted":true}`, or the number of deleted items.
#[derive(Debug, Serialize)]
pub struct DeletedView<T> {
    pub deleted: T,
}

/// `{"updated":true}`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Updated)]
pub struct UpdatedView {
    pub updated: bool,
}

/// Owner of a conversation as named in a body, beside its other keys.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerBody {
    pub agent_id: Option<String>,
    pub user_id: Option<String>,
}

/// Body of a new conversation.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateBody {
    #[serde(alias = "id")]
    pub conversation_id: Option<String>,
    pub title: Option<String>,
    pub metadata: Option<Map<String, Value>>,
}

/// Body of a change; `null` clears a value.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeBody {
    #[serde(default, deserialize_with = "present")]
    pub title: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    pub metadata: Option<Option<Map<String, Value>>>,
}

/// Body of a new working memory; `null` clears it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkingMemoryBody {
    #[serde(default, alias = "workingMemory", deserialize_with = "present")]
    pub content: Option<Value>,
    pub mode: Option<String>,
}

/// Body of a copy.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CloneBody {
    #[serde(alias = "newConversationId")]
    pub new_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use greenroom_actors::domain::time::Timestamp;
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn a_conversation_has_its_fields() {
        let conversation = Conversation {
            key: ConversationKey {
                agent_id: "a".into(),
                user_id: Some("u".into()),
                conversation_id: "c".into(),
            },
            title: None,
            metadata: Map::from_iter([("k".to_owned(), json!(1))]),
            working_memory: Some("likes tea".to_owned()),
            created_at: Timestamp(0),
            updated_at: Timestamp(1),
        };
        let expected = json!({
            "id": "c", "agentId": "a", "userId": "u", "title": null, "metadata": { "k": 1 },
            "createdAt": "1970-01-01T00:00:00.000Z", "updatedAt": "1970-01-01T00:00:00.001Z"
        });
        assert_eq!(
            to_value(OneConversationView::of(&conversation)).unwrap(),
            json!({ "conversation": expected })
        );
        assert_eq!(
            to_value(ConversationsView::of(std::slice::from_ref(&conversation), 7, 1, 3)).unwrap(),
            json!({ "conversations": [expected], "total": 7, "limit": 1, "offset": 3 })
        );
        assert_eq!(
            to_value(WorkingMemoryView::of(&conversation)).unwrap(),
            json!({ "content": "likes tea", "scope": "conversation" })
        );
    }

    #[test]
    fn bodies_accept_the_keys_of_original_clients() {
        let body: CreateBody = from_value(json!({ "id": "c" })).unwrap();
        assert_eq!(body.conversation_id.as_deref(), Some("c"));
        let body: CloneBody = from_value(json!({ "newConversationId": "c" })).unwrap();
        assert_eq!(body.new_id.as_deref(), Some("c"));
        let body: WorkingMemoryBody = from_value(json!({ "workingMemory": null })).unwrap();
        assert_eq!(body.content, Some(Value::Null));
        let body: ChangeBody = from_value(json!({ "title": null })).unwrap();
        assert_eq!((body.title, body.metadata), (Some(None), None));
    }
}
