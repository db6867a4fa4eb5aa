//! Handlers of traces and the log.

use actix_web::web;
use greenroom_actors::Runtime;

use crate::api::caller::Caller;
use crate::api::logs::LogQuery;
use crate::api::observability::TraceQuery;
use crate::api::wire::log::{EntriesView, RecordsView};
use crate::api::wire::observability::{TraceView, TracesView};
use crate::api::wire::span::SpanView;
use crate::api::{logs, observability};
use crate::web::call::{Answer, Call};
use crate::web::settings::Settings;
use crate::web::{ids, respond};

/// `GET /observability/status`.
pub(crate) async fn status(
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Answer {
    let (config, visibility) = (&settings.config, caller.visibility());
    let (storage, is_exported) = (config.storage, config.is_telemetry_enabled);
    let status =
        observability::status(&runtime, storage, is_exported, config.environment, &visibility);
    Ok(respond::json(status.await?))
}

/// `GET /observability/traces`.
pub(crate) async fn traces(call: Call) -> Answer {
    let query = TraceQuery::parse(&call.pairs()?, call.caller.visibility())?;
    let page = observability::list(&call.runtime, &query).await?;
    Ok(respond::json(TracesView::of(&page.traces, page.next)))
}

/// `GET /observability/traces/:traceId`.
pub(crate) async fn trace(call: Call) -> Answer {
    let id = ids::trace(&call.request)?;
    let trace = observability::trace(&call.runtime, &id, &call.caller.visibility()).await?;
    let content = call.settings.config.observed_content;
    let views: Vec<_> = trace.spans.iter().map(|span| SpanView::of(span, content)).collect();
    Ok(respond::json(TraceView::of(&id, &trace.spans, &views, trace.is_cut)))
}

/// `GET /observability/spans/:spanId`.
pub(crate) async fn span(call: Call) -> Answer {
    let (id, visibility) = (ids::span(&call.request)?, call.caller.visibility());
    let span = observability::span(&call.runtime, id, &visibility).await?;
    Ok(respond::json(SpanView::of(&span, call.settings.config.observed_content)))
}

/// `GET /observability/traces/:traceId/logs`.
pub(crate) async fn trace_logs(call: Call) -> Answer {
    let (id, pairs) = (ids::trace(&call.request)?, call.pairs()?);
    let visibility = call.caller.visibility();
    let page = observability::trace_logs(&call.runtime, &id, &pairs, visibility).await?;
    Ok(respond::json(RecordsView::of(&page)))
}

/// `GET /observability/spans/:spanId/logs`.
pub(crate) async fn span_logs(call: Call) -> Answer {
    let (id, pairs) = (ids::span(&call.request)?, call.pairs()?);
    let visibility = call.caller.visibility();
    let page = observability::span_logs(&call.runtime, id, &pairs, visibility).await?;
    Ok(respond::json(RecordsView::of(&page)))
}

/// `GET /observability/logs`.
pub(crate) async fn records(call: Call) -> Answer {
    let query = LogQuery::of_records(&call.pairs()?, call.caller.visibility())?;
    Ok(respond::json(RecordsView::of(&logs::page(&call.runtime, &query).await?)))
}

/// `GET /api/logs`.
pub(crate) async fn entries(call: Call) -> Answer {
    let pairs = call.pairs()?;
    let query = LogQuery::of_entries(&pairs, call.caller.visibility())?;
    let page = logs::page(&call.runtime, &query).await?;
    Ok(respond::bare(&EntriesView::of(&page, &pairs, query.limit)))
}
