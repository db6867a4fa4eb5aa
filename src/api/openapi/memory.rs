//! Routes of conversations and memory.

use greenroom_actors::registry::Registry;
use serde_json::{Value, json};

use super::components::Components;
use super::described::Described;
use super::{configured, parts};
use crate::api::error::ApiError;
use crate::api::wire::conversation::{
    ConversationsView, MessagesView, OneConversationView, SearchResultView, UpdatedView,
    WorkingMemoryView,
};
use crate::api::wire::shape::ID_PATTERN;

/// Describes a route that needs an agent and a user.
fn remembering(
    operation_id: &'static str,
    registry: &Registry,
    components: &mut Components,
) -> Described {
    let user = "The user; overridden by that of a token";
    Described::new(operation_id)
        .with_query([
            configured::remembering_agent(registry, components),
            parts::query("userId", user, parts::any_id()),
        ])
        .refusing([
            ApiError::AgentNotFound("assistant".to_owned().into()),
            ApiError::AgentRequired("one of assistant, editor".to_owned()),
            ApiError::NoMemory("assistant".to_owned()),
        ])
        .using_runtime()
}

/// Describes a route of one conversation.
fn of_conversation(
    operation_id: &'static str,
    registry: &Registry,
    components: &mut Components,
) -> Described {
    remembering(operation_id, registry, components)
        .with([parts::path("id", "Id of the conversation", parts::any_id())])
        .refusing([ApiError::ConversationNotFound])
}

fn limit() -> Value {
    parts::query("limit", "Maximum number of results", parts::number(1, 200, 50))
}

fn id_or_null() -> Value {
    json!({ "type": ["string", "null"], "minLength": 1, "maxLength": 200, "pattern": ID_PATTERN })
}

fn body(properties: Value) -> Value {
    let mut body = json!({
        "type": "object",
        "description": "`agentId` and `userId` may be set here as well, and override those of the \
                        query.",
    });
    body["properties"] = properties;
    body
}

fn title() -> Value {
    json!({ "type": ["string", "null"], "maxLength": 500 })
}

fn metadata() -> Value {
    json!({ "type": ["object", "null"] })
}

pub(super) fn list(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<ConversationsView<'_>>();
    let offset =
        parts::query("offset", "Number of conversations to skip", parts::number(0, u32::MAX, 0));
    remembering("listConversations", registry, components)
        .about("Without `userId`, the conversations of all users.")
        .with([limit(), offset])
        .answering(200, parts::json_answer("A page, newest change first", data))
}

pub(super) fn create(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<OneConversationView<'_>>();
    let body = body(json!({
        "conversationId": id_or_null(), "title": title(), "metadata": metadata(),
    }));
    remembering("createConversation", registry, components)
        .with_body(body, false, json!({ "title": "Holidays" }))
        .answering(201, parts::json_answer("The new conversation", data))
        .refusing([ApiError::ConversationExists("holidays".to_owned())])
}

pub(super) fn describe(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<OneConversationView<'_>>();
    of_conversation("describeConversation", registry, components)
        .answering(200, parts::json_answer("The conversation", data))
}

pub(super) fn change(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<OneConversationView<'_>>();
    let mut body = body(json!({ "title": title(), "metadata": metadata() }));
    body["anyOf"] = json!([{ "required": ["title"] }, { "required": ["metadata"] }]);
    of_conversation("changeConversation", registry, components)
        .about("`null` clears a value.")
        .with_body(body, true, json!({ "title": "Holidays" }))
        .answering(200, parts::json_answer("The changed conversation", data))
}

pub(super) fn delete(registry: &Registry, components: &mut Components) -> Described {
    let data = json!({ "type": "object", "required": ["deleted"],
                       "properties": { "deleted": { "const": true } } });
    of_conversation("deleteConversation", registry, components)
        .answering(200, parts::json_answer("The conversation is deleted", data))
}

pub(super) fn messages(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<MessagesView<'_>>();
    let about = "Only messages before the one with this id";
    of_conversation("listMessages", registry, components)
        .with([limit(), parts::query("before", about, json!({ "type": "string" }))])
        .answering(200, parts::json_answer("The newest messages, oldest first", data))
}

pub(super) fn working_memory(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<WorkingMemoryView<'_>>();
    of_conversation("showWorkingMemory", registry, components)
        .answering(200, parts::json_answer("The working memory", data))
}

pub(super) fn set_working_memory(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<UpdatedView>();
    let content = json!({ "type": ["string", "object", "null"],
                          "description": "A text; an object becomes JSON; null clears it" });
    let mode = json!({ "enum": ["replace", null] });
    let mut body = body(json!({ "content": content, "mode": mode }));
    body["required"] = json!(["content"]);
    of_conversation("setWorkingMemory", registry, components)
        .with_body(body, true, json!({ "content": "likes tea" }))
        .answering(200, parts::json_answer("The working memory is set", data))
}

pub(super) fn copy(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<OneConversationView<'_>>();
    of_conversation("cloneConversation", registry, components)
        .with_body(body(json!({ "newId": id_or_null() })), false, json!({ "newId": "holidays-2" }))
        .answering(201, parts::json_answer("The copy", data))
        .refusing([ApiError::ConversationExists("holidays-2".to_owned())])
}

pub(super) fn search(registry: &Registry, components: &mut Components) -> Described {
    let data = components.answer::<SearchResultView<'_>>();
    let text = json!({ "type": "string", "minLength": 1, "maxLength": 500 });
    remembering("searchMessages", registry, components)
        .with([parts::required_query("q", "Text to search for", text), limit()])
        .answering(200, parts::json_answer("The messages, newest first", data))
}

pub(super) fn forget_user() -> Described {
    let data = json!({ "type": "object", "required": ["deleted"],
                       "properties": { "deleted": { "type": "integer", "minimum": 0 } } });
    let path = "/api/memory/users/%00".to_owned();
    Described::new("forgetUser")
        .with([parts::path("userId", "The user", parts::any_id())])
        .answering(200, parts::json_answer("Number of deleted conversations", data))
        .refusing([
            ApiError::NotYours,
            ApiError::PathNotFound { method: "DELETE".to_owned(), path },
            ApiError::ServerUnreachable,
        ])
        .using_runtime()
}
