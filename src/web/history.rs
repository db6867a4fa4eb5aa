//! Handler of agents' history.

use crate::api::history::HistoryQuery;
use crate::api::wire::history::HistoryView;
use crate::api::{agents, history};
use crate::web::call::{Answer, Call};
use crate::web::{ids, respond};

/// `GET /agents/:id/history`.
pub(crate) async fn page(call: Call) -> Answer {
    let agent = ids::agent(&call.request).and_then(|id| agents::find(&call.runtime, &id))?;
    let query = HistoryQuery::parse(&call.pairs()?)?;
    let (page, limit) = history::page(&call.runtime, &agent, query, &call.caller).await?;
    Ok(respond::json(HistoryView::of(&page, query.page, limit)))
}
