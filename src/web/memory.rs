//! Handlers of conversations and working memory.

use std::borrow::Cow;

use actix_web::web::Bytes;

use crate::api::wire::conversation::{
    ConversationsView, DeletedView, MessagesView, OneConversationView, SearchResultView,
    UpdatedView, WorkingMemoryView,
};
use crate::api::{ApiError, memory};
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::{ids, respond};

type Pairs = Vec<(String, String)>;

impl Call {
    /// Reads the id of the conversation and the query.
    fn conversation(&self) -> Result<(Cow<'_, str>, Pairs), ApiError> {
        Ok((ids::remembered(&self.request)?, self.pairs()?))
    }

    fn memory<'a>(&'a self, pairs: &'a Pairs) -> memory::Request<'a> {
        memory::Request { runtime: &self.runtime, caller: &self.caller, pairs }
    }

    /// Reads the id of the conversation, the body and the query. A refusal of the body is reported
    /// after a missing conversation.
    async fn conversation_with(
        &self,
        body: Body,
    ) -> Result<(Cow<'_, str>, Pairs, Result<Bytes, ApiError>), ApiError> {
        let (id, body) = body.take_for(ids::remembered(&self.request)).await?;
        Ok((id, self.pairs()?, body))
    }
}

/// `GET /api/memory/conversations`.
pub(crate) async fn list(call: Call) -> Answer {
    let page = memory::list(call.memory(&call.pairs()?)).await?;
    let memory::ConversationPage { conversations, total, limit, offset } = page;
    Ok(respond::json(ConversationsView::of(&conversations, total, limit, offset)))
}

/// `POST /api/memory/conversations`.
pub(crate) async fn create(call: Call, body: Body) -> Answer {
    let (pairs, body) = body.take_for(call.pairs()).await?;
    let conversation = memory::create(call.memory(&pairs), body.as_deref()).await?;
    Ok(respond::created(OneConversationView::of(&conversation)))
}

/// `GET /api/memory/conversations/:id`.
pub(crate) async fn describe(call: Call) -> Answer {
    let (id, pairs) = call.conversation()?;
    let conversation = memory::describe(call.memory(&pairs), &id).await?;
    Ok(respond::json(OneConversationView::of(&conversation)))
}

/// `PATCH /api/memory/conversations/:id`.
pub(crate) async fn change(call: Call, body: Body) -> Answer {
    let (id, pairs, body) = call.conversation_with(body).await?;
    let conversation = memory::change(call.memory(&pairs), &id, body.as_deref()).await?;
    Ok(respond::json(OneConversationView::of(&conversation)))
}

/// `DELETE /api/memory/conversations/:id`.
pub(crate) async fn delete(call: Call) -> Answer {
    let (id, pairs) = call.conversation()?;
    memory::delete(call.memory(&pairs), &id).await?;
    Ok(respond::json(DeletedView { deleted: true }))
}

/// `GET /api/memory/conversations/:id/messages`.
pub(crate) async fn messages(call: Call) -> Answer {
    let (id, pairs) = call.conversation()?;
    let memory::Messages { messages, limit, approvals, asks } =
        memory::messages(call.memory(&pairs), &id).await?;
    Ok(respond::json(MessagesView::of(&messages, limit, approvals, &asks)))
}

/// `GET /api/memory/conversations/:id/working-memory`.
pub(crate) async fn working_memory(call: Call) -> Answer {
    let (id, pairs) = call.conversation()?;
    let conversation = memory::describe(call.memory(&pairs), &id).await?;
    Ok(respond::json(WorkingMemoryView::of(&conversation)))
}

/// `POST /api/memory/conversations/:id/working-memory`.
pub(crate) async fn set_working_memory(call: Call, body: Body) -> Answer {
    let (id, pairs, body) = call.conversation_with(body).await?;
    memory::set_working_memory(call.memory(&pairs), &id, body.as_deref()).await?;
    Ok(respond::json(UpdatedView { updated: true }))
}

/// `POST /api/memory/conversations/:id/clone`.
pub(crate) async fn copy(call: Call, body: Body) -> Answer {
    let (id, pairs, body) = call.conversation_with(body).await?;
    let conversation = memory::copy(call.memory(&pairs), &id, body.as_deref()).await?;
    Ok(respond::created(OneConversationView::of(&conversation)))
}

/// `GET /api/memory/search`.
pub(crate) async fn search(call: Call) -> Answer {
    let memory::SearchResult { approvals, query, messages, limit } =
        memory::search(call.memory(&call.pairs()?)).await?;
    Ok(respond::json(SearchResultView::of(&query, &messages, limit, approvals)))
}

/// `DELETE /api/memory/users/:userId`.
pub(crate) async fn forget_user(call: Call) -> Answer {
    let user_id = ids::user(&call.request)?;
    let deleted = memory::forget_user(&call.runtime, &call.caller, &user_id).await?;
    Ok(respond::json(DeletedView { deleted }))
}
