//! Handlers of workflows.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::HeaderMap;
use actix_web::{FromRequest, HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::requests::{ExecutionOutcome, StartExecution};

use crate::api::caller::Caller;
use crate::api::wire::execution::ExecutionView;
use crate::api::workflows::{StartBody, succeeded};
use crate::api::{ApiError, workflows};
use crate::web::body::Body;
use crate::web::ids::Subject;
use crate::web::peer::while_there;
use crate::web::settings::Settings;
use crate::web::sse::Begin;
use crate::web::{ids, respond, sse, trace};

/// What a route starts, and what it makes of a body.
#[derive(Debug, Clone)]
pub(crate) struct Started {
    pub(crate) workflow: Subject,
    pub(crate) body: StartBody,
}

impl FromRequest for Started {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(_: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self { workflow: Subject::InPath, body: StartBody::Request }))
    }
}

/// `GET /workflows`.
pub(crate) async fn list(runtime: web::Data<Runtime>) -> HttpResponse {
    std::future::ready(respond::json(workflows::list(&runtime, &runtime.registry()))).await
}

/// `GET /workflows/:id`.
pub(crate) async fn describe(
    request: HttpRequest,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let id = ids::workflow(&request)?;
    let registry = runtime.registry();
    std::future::ready(workflows::describe(&runtime, &registry, &id).map(respond::json)).await
}

/// `POST /workflows/:id/execute`.
pub(crate) async fn execute(
    request: HttpRequest,
    started: Started,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (plan, body) = body.read_for(find(&started, &request, &runtime)).await?;
    let key = idempotency_key(request.headers());
    let start = started.body.read(&plan.definition, &body, key.as_deref(), &caller)?;
    let start = StartExecution { trace: trace::origin_of(request.headers()), ..start };
    Ok(respond_outcome(while_there(&request, workflows::execute(&runtime, start)).await?))
}

/// Answers with how an execution left `running`.
pub(crate) fn respond_outcome(outcome: ExecutionOutcome) -> HttpResponse {
    let (id, trace_id) = (outcome.execution_id.clone(), Arc::clone(&outcome.trace_id));
    let answer = succeeded(outcome).map(|outcome| respond::json(ExecutionView::of(&outcome)));
    respond::traced(&trace_id, respond::about(&id, answer))
}

/// `POST /workflows/:id/stream`.
pub(crate) async fn stream(
    request: HttpRequest,
    started: Started,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let (plan, body) = body.read_for(find(&started, &request, &runtime)).await?;
    let start = started.body.read(&plan.definition, &body, None, &caller)?;
    let origin = trace::origin_of(request.headers());
    let start = StartExecution { trace: origin.clone(), ..start };
    let reader = sse::open(&request, &runtime, &settings, &plan.definition.id, Begin::Live)?;
    match workflows::stream(&runtime, start, reader.subscriber()).await {
        Ok(id) => {
            let answer = respond::about(&id, Ok(reader.respond()));
            Ok(respond::traced(&origin.trace_id(id.as_str()), answer))
        }
        Err(refusal) => {
            reader.abandon();
            Err(refusal)
        }
    }
}

fn find(
    started: &Started,
    request: &HttpRequest,
    runtime: &Runtime,
) -> Result<Arc<Plan>, ApiError> {
    workflows::find(runtime, &started.workflow.workflow(request)?)
}

/// The caller's `Idempotency-Key`; one that is no text is kept wrong, to be refused.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    headers.get("idempotency-key").map(|value| String::from_utf8_lossy(value.as_bytes()))
}
