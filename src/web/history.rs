//! Handler of agents' history.

use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;

use crate::api::caller::Caller;
use crate::api::history::HistoryQuery;
use crate::api::wire::history::HistoryView;
use crate::api::{ApiError, agents, history};
use crate::web::query::query_pairs;
use crate::web::{ids, respond};

/// `GET /agents/:id/history`.
pub(crate) async fn page(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let agent = ids::agent(&request).and_then(|id| agents::find(&runtime, &id))?;
    let query = HistoryQuery::parse(&query_pairs(&request)?)?;
    let page = history::page(&runtime, &agent, query, &caller).await?;
    Ok(respond::json(HistoryView::of(&page, query.page, query.limit)))
}
