//! Handlers of what agents remember.

use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;

use crate::api::caller::Caller;
use crate::api::wire::conversation::{
    ConversationsView, DeletedView, MessagesView, OneConversationView, SearchResultView,
    UpdatedView, WorkingMemoryView,
};
use crate::api::{ApiError, memory};
use crate::web::body::Body;
use crate::web::query::query_pairs;
use crate::web::{ids, respond};

type Answer = Result<HttpResponse, ApiError>;

/// `GET /api/memory/conversations`.
pub(crate) async fn list(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let page = memory::list(&runtime, &caller, &query_pairs(&request)?).await?;
    let memory::ConversationPage { conversations, total, limit, offset } = page;
    Ok(respond::json(ConversationsView::of(&conversations, total, limit, offset)))
}

/// `POST /api/memory/conversations`.
pub(crate) async fn create(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let (pairs, body) = body.read_for(query_pairs(&request)).await?;
    let conversation = memory::create(&runtime, &caller, &pairs, &body).await?;
    Ok(respond::created(OneConversationView::of(&conversation)))
}

/// `GET /api/memory/conversations/:id`.
pub(crate) async fn describe(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let (id, pairs) = (ids::remembered(&request)?, query_pairs(&request)?);
    let conversation = memory::describe(&runtime, &caller, &pairs, &id).await?;
    Ok(respond::json(OneConversationView::of(&conversation)))
}

/// `PATCH /api/memory/conversations/:id`.
pub(crate) async fn change(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let (id, body) = body.read_for(ids::remembered(&request)).await?;
    let pairs = query_pairs(&request)?;
    let conversation = memory::change(&runtime, &caller, &pairs, &id, &body).await?;
    Ok(respond::json(OneConversationView::of(&conversation)))
}

/// `DELETE /api/memory/conversations/:id`.
pub(crate) async fn delete(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let (id, pairs) = (ids::remembered(&request)?, query_pairs(&request)?);
    memory::delete(&runtime, &caller, &pairs, &id).await?;
    Ok(respond::json(DeletedView { deleted: true }))
}

/// `GET /api/memory/conversations/:id/messages`.
pub(crate) async fn messages(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let (id, pairs) = (ids::remembered(&request)?, query_pairs(&request)?);
    let messages = memory::messages(&runtime, &caller, &pairs, &id).await?;
    Ok(respond::json(MessagesView::of(&messages)))
}

/// `GET /api/memory/conversations/:id/working-memory`.
pub(crate) async fn working_memory(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let (id, pairs) = (ids::remembered(&request)?, query_pairs(&request)?);
    let conversation = memory::describe(&runtime, &caller, &pairs, &id).await?;
    Ok(respond::json(WorkingMemoryView::of(&conversation)))
}

/// `POST /api/memory/conversations/:id/working-memory`.
pub(crate) async fn set_working_memory(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let (id, body) = body.read_for(ids::remembered(&request)).await?;
    let pairs = query_pairs(&request)?;
    memory::set_working_memory(&runtime, &caller, &pairs, &id, &body).await?;
    Ok(respond::json(UpdatedView { updated: true }))
}

/// `POST /api/memory/conversations/:id/clone`.
pub(crate) async fn copy(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let (id, body) = body.read_for(ids::remembered(&request)).await?;
    let pairs = query_pairs(&request)?;
    let conversation = memory::copy(&runtime, &caller, &pairs, &id, &body).await?;
    Ok(respond::created(OneConversationView::of(&conversation)))
}

/// `GET /api/memory/search`.
pub(crate) async fn search(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let found = memory::search(&runtime, &caller, &query_pairs(&request)?).await?;
    Ok(respond::json(SearchResultView::of(&found.query, &found.messages)))
}

/// `DELETE /api/memory/users/:userId`.
pub(crate) async fn forget_user(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Answer {
    let user_id = ids::user(&request)?;
    let deleted = memory::forget_user(&runtime, &caller, &user_id).await?;
    Ok(respond::json(DeletedView { deleted }))
}
