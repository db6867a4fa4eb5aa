//! Handlers of traces and the log.

use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;

use crate::api::caller::Caller;
use crate::api::logs::LogQuery;
use crate::api::observability::TraceQuery;
use crate::api::wire::log::{EntriesView, RecordsView};
use crate::api::wire::observability::{TraceView, TracesView};
use crate::api::wire::span::SpanView;
use crate::api::{ApiError, logs, observability};
use crate::web::query::query_pairs;
use crate::web::settings::Settings;
use crate::web::{ids, respond};

/// `GET /observability/status`.
pub(crate) async fn status(
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let (config, visibility) = (&settings.config, caller.visibility());
    let (storage, is_exported) = (config.storage, config.is_telemetry_enabled);
    let status =
        observability::status(&runtime, storage, is_exported, config.environment, &visibility);
    Ok(respond::json(status.await?))
}

/// `GET /observability/traces`.
pub(crate) async fn traces(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let query = TraceQuery::parse(&query_pairs(&request)?, caller.visibility())?;
    let page = observability::list(&runtime, &query).await?;
    Ok(respond::json(TracesView::of(&page.traces, page.next)))
}

/// `GET /observability/traces/:traceId`.
pub(crate) async fn trace(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let id = ids::trace(&request)?;
    let trace = observability::trace(&runtime, &id, &caller.visibility()).await?;
    let content = settings.config.observed_content;
    let views: Vec<_> = trace.spans.iter().map(|span| SpanView::of(span, content)).collect();
    Ok(respond::json(TraceView::of(&id, &trace.spans, &views, trace.is_cut)))
}

/// `GET /observability/spans/:spanId`.
pub(crate) async fn span(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let span = observability::span(&runtime, ids::span(&request)?, &caller.visibility()).await?;
    Ok(respond::json(SpanView::of(&span, settings.config.observed_content)))
}

/// `GET /observability/traces/:traceId/logs`.
pub(crate) async fn trace_logs(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (id, pairs) = (ids::trace(&request)?, query_pairs(&request)?);
    let page = observability::trace_logs(&runtime, &id, &pairs, caller.visibility()).await?;
    Ok(respond::json(RecordsView::of(&page)))
}

/// `GET /observability/spans/:spanId/logs`.
pub(crate) async fn span_logs(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (id, pairs) = (ids::span(&request)?, query_pairs(&request)?);
    let page = observability::span_logs(&runtime, id, &pairs, caller.visibility()).await?;
    Ok(respond::json(RecordsView::of(&page)))
}

/// `GET /observability/logs`.
pub(crate) async fn records(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let query = LogQuery::of_records(&query_pairs(&request)?, caller.visibility())?;
    Ok(respond::json(RecordsView::of(&logs::page(&runtime, &query).await?)))
}

/// `GET /api/logs`.
pub(crate) async fn entries(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let pairs = query_pairs(&request)?;
    let query = LogQuery::of_entries(&pairs, caller.visibility())?;
    let page = logs::page(&runtime, &query).await?;
    Ok(respond::bare(&EntriesView::of(&page, &pairs, query.limit)))
}
