//! Handlers of executions.

use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;
use greenroom_actors::requests::Target;

use crate::api::caller::Caller;
use crate::api::query::{CountQuery, ExecutionQuery, read_position};
use crate::api::wire::counts::CountsView;
use crate::api::wire::execution::{CancelView, SuspendView};
use crate::api::wire::state::{ExecutionsView, StateView};
use crate::api::wire::why::WhyView;
use crate::api::{ApiError, executions};
use crate::web::body::Body;
use crate::web::peer::while_there;
use crate::web::query::query_pairs;
use crate::web::settings::Settings;
use crate::web::sse::Begin;
use crate::web::workflows::{idempotency_key, respond_outcome};
use crate::web::{ids, respond, sse, trace};

/// `GET /workflows/executions`.
pub(crate) async fn list(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    page(&request, &caller, &runtime, None).await
}

/// `GET /workflows/:id/executions`. A workflow that is no longer configured keeps its list as long as
/// an execution of it is kept.
pub(crate) async fn list_of_workflow(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let id = ids::workflow(&request)?.into_owned();
    page(&request, &caller, &runtime, Some(id)).await
}

async fn page(
    request: &HttpRequest,
    caller: &Caller,
    runtime: &Runtime,
    workflow_id: Option<String>,
) -> Result<HttpResponse, ApiError> {
    let query = ExecutionQuery::parse(&query_pairs(request)?)?;
    let (rows, next) = executions::list(runtime, workflow_id, query, caller).await?;
    Ok(respond::json(ExecutionsView::of(&rows, next)))
}

/// `GET /workflows/executions/counts`.
pub(crate) async fn counts(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let query = CountQuery::parse(&query_pairs(&request)?)?;
    let counted = executions::counts(&runtime, query, &caller).await?;
    Ok(respond::json(CountsView::of(&counted.counts, counted.is_complete)))
}

/// `GET /workflows/:id/executions/:executionId/state`.
pub(crate) async fn describe(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let target = ids::target(&request, &caller)?;
    let state = executions::describe(&runtime, &target).await;
    let answer = state
        .map(|state| respond::traced(&state.header.trace.id, respond::json(StateView::of(&state))));
    Ok(respond::about(&target.execution_id, answer))
}

/// `GET /workflows/:id/executions/:executionId/why`.
pub(crate) async fn why(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let target = ids::target(&request, &caller)?;
    let wait_report = executions::why(&runtime, &target).await;
    let answer = wait_report.map(|wait_report| {
        respond::traced(&wait_report.header.trace.id, respond::json(WhyView::of(&wait_report)))
    });
    Ok(respond::about(&target.execution_id, answer))
}

/// `POST /workflows/:id/executions/:executionId/suspend`.
pub(crate) async fn suspend(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (target, body) = body.take_for(ids::target(&request, &caller)).await?;
    let suspended = executions::suspend(&runtime, &target, body.as_deref(), &caller).await;
    let answer = suspended.map(|suspended| {
        respond::traced(&suspended.trace_id, respond::json(SuspendView::of(&suspended)))
    });
    Ok(respond::about(&target.execution_id, answer))
}

/// `POST /workflows/:id/executions/:executionId/cancel`.
pub(crate) async fn cancel(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (target, body) = body.take_for(ids::target(&request, &caller)).await?;
    let cancelled = executions::cancel(&runtime, &target, body.as_deref(), &caller).await;
    let answer = cancelled.map(|cancelled| {
        respond::traced(&cancelled.trace_id, respond::json(CancelView::of(&cancelled)))
    });
    Ok(respond::about(&target.execution_id, answer))
}

/// `POST /workflows/:id/executions/:executionId/resume`.
pub(crate) async fn resume(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (target, body) = body.take_for(ids::target(&request, &caller)).await?;
    let key = idempotency_key(request.headers());
    let (body, key) = (body.as_deref(), key.as_deref());
    let resuming = executions::resume(&runtime, &target, body, key, &caller);
    let rest = while_there(&request, resuming).await;
    Ok(respond::about(&target.execution_id, rest.map(respond_outcome)))
}

/// `POST /workflows/:id/executions/:executionId/replay`. The answer is about the new execution.
pub(crate) async fn replay(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (target, body) = body.take_for(ids::target(&request, &caller)).await?;
    let key = idempotency_key(request.headers());
    let origin = (&caller, trace::origin_of(request.headers()));
    let (body, key) = (body.as_deref(), key.as_deref());
    let replaying = executions::replay(&runtime, &target, body, key, origin);
    Ok(respond_outcome(while_there(&request, replaying).await?))
}

/// `GET /workflows/:id/executions/:executionId/stream`. 204 for one who has read to the end.
pub(crate) async fn attach(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let target = ids::target(&request, &caller)?;
    let answer = attach_to(&request, &runtime, &settings, &target).await;
    Ok(respond::about(&target.execution_id, answer))
}

async fn attach_to(
    request: &HttpRequest,
    runtime: &web::Data<Runtime>,
    settings: &web::Data<Settings>,
    target: &Target,
) -> Result<HttpResponse, ApiError> {
    let after = executions::existing(runtime, target, position(request)).await?;
    let reader = sse::open(request, runtime, settings, &target.workflow_id, Begin::WhenTold)?;
    match executions::subscribe(runtime, target, reader.subscriber()).await {
        // nothing will come: an EventSource would ask for it again and again
        Ok(subscription) if subscription.ended && subscription.durable_seq <= after => {
            reader.abandon();
            Ok(HttpResponse::NoContent().finish())
        }
        Ok(subscription) => {
            reader.read_from(&target.execution_id, after, subscription);
            Ok(reader.respond())
        }
        Err(refusal) => {
            reader.abandon();
            Err(refusal)
        }
    }
}

fn position(request: &HttpRequest) -> Result<u64, ApiError> {
    let header = request.headers().get("last-event-id");
    let last_event_id = header.map(|value| String::from_utf8_lossy(value.as_bytes()));
    read_position(last_event_id.as_deref(), &query_pairs(request)?)
}
