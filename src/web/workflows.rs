//! Handlers of workflows.

use std::borrow::Cow;

use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;
use greenroom_actors::domain::definition::WorkflowDefinition;

use crate::api::caller::Caller;
use crate::api::wire::execution::ExecutionView;
use crate::api::{ApiError, workflows};
use crate::web::body::Body;
use crate::web::server::Settings;
use crate::web::sse::Begin;
use crate::web::{ids, respond, sse};

/// `GET /workflows`.
pub(crate) async fn list(runtime: web::Data<Runtime>) -> HttpResponse {
    std::future::ready(respond::json(workflows::list(&runtime))).await
}

/// `GET /workflows/:id`.
pub(crate) async fn describe(
    request: HttpRequest,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let id = ids::workflow(&request)?;
    std::future::ready(workflows::describe(&runtime, &id).map(respond::json)).await
}

/// `POST /workflows/:id/execute`.
pub(crate) async fn execute(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (definition, body) = body.read_for(find(&request, &runtime)).await?;
    let key = idempotency_key(request.headers());
    let rest = workflows::execute(&runtime, definition, &body, key.as_deref(), &caller).await?;
    Ok(respond::about(&rest.execution_id, Ok(respond::json(ExecutionView::of(&rest)))))
}

/// `POST /workflows/:id/stream`.
pub(crate) async fn stream(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let (definition, body) = body.read_for(find(&request, &runtime)).await?;
    let start = workflows::read_start(definition, &body, None, &caller)?;
    let reader = sse::open(&request, &runtime, &settings, &definition.id, Begin::Live);
    match workflows::stream(&runtime, start, reader.subscriber()).await {
        Ok(id) => Ok(respond::about(&id, Ok(reader.respond()))),
        Err(refusal) => {
            reader.abandon();
            Err(refusal)
        }
    }
}

fn find<'a>(
    request: &HttpRequest,
    runtime: &'a Runtime,
) -> Result<&'a WorkflowDefinition, ApiError> {
    workflows::find(runtime, &ids::workflow(request)?)
}

/// The caller's `Idempotency-Key`; one that is no text is kept wrong, to be refused.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    headers.get("idempotency-key").map(|value| String::from_utf8_lossy(value.as_bytes()))
}
