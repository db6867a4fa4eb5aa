//! Handlers of workflows.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::http::header::HeaderMap;
use actix_web::{FromRequest, HttpRequest, HttpResponse, web};
use greenroom_actors::Runtime;
use greenroom_actors::domain::plan::Plan;
use greenroom_actors::ports::store::ReplayedFrom;
use greenroom_actors::requests::{ExecutionOutcome, StartExecution, Target};
use greenroom_actors::visibility::Visibility;

use crate::api::ids::encode;
use crate::api::query::read_name;
use crate::api::wire::execution::ExecutionView;
use crate::api::workflows::{StartBody, succeeded};
use crate::api::{ApiError, executions, workflows};
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::ids::Subject;
use crate::web::peer::stop_waiting_on_disconnect;
use crate::web::query::query_pairs;
use crate::web::sse::Begin;
use crate::web::{ids, prefer, respond, sse, trace};

/// Workflow that a route starts, and the way it reads the body.
#[derive(Debug, Clone)]
pub(crate) struct StartRoute {
    pub(crate) workflow: Subject,
    pub(crate) body: StartBody,
}

impl FromRequest for StartRoute {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(_: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self { workflow: Subject::InPath, body: StartBody::Request }))
    }
}

impl StartRoute {
    fn find(&self, call: &Call) -> Result<Arc<Plan>, ApiError> {
        workflows::find(&call.runtime, &self.workflow.workflow(&call.request)?)
    }
}

/// `GET /workflows`.
pub(crate) async fn list(runtime: web::Data<Runtime>) -> HttpResponse {
    let activity = runtime.activity().await;
    respond::json(workflows::list(&activity, &runtime.registry()))
}

/// `GET /workflows/:id`.
pub(crate) async fn describe(request: HttpRequest, runtime: web::Data<Runtime>) -> Answer {
    let id = ids::workflow(&request)?;
    let plan = match read_name(&query_pairs(&request)?, "definitionHash")? {
        Some(hash) => workflows::find_version(&runtime, &id, &hash).await?,
        None => workflows::find_to_show(&runtime, &id)?,
    };
    let activity = runtime.activity().await;
    Ok(respond::json(workflows::describe(&activity, &plan)))
}

/// `POST /workflows/:id/execute`.
pub(crate) async fn execute(call: Call, route: StartRoute, body: Body) -> Answer {
    let Call { request, caller, .. } = &call;
    let (plan, body) = body.read_for(route.find(&call)).await?;
    let key = idempotency_key(request.headers());
    let start = route.body.read(&plan.definition, &body, key.as_deref(), caller)?;
    drop(body);
    let start = StartExecution { trace: trace::origin_of(request.headers()), ..start };
    run(&call, start).await
}

/// Starts an execution, and answers with its outcome as the caller prefers.
pub(crate) async fn run(call: &Call, start: StartExecution) -> Answer {
    let Call { request, runtime, .. } = call;
    if let Some(wait) = prefer::wait_of(request) {
        return begin(call, start, wait).await;
    }
    let executing = workflows::execute(runtime, start);
    Ok(respond_outcome(stop_waiting_on_disconnect(request, executing).await?))
}

/// Starts an execution, and answers with its outcome only if that is there in time.
async fn begin(call: &Call, start: StartExecution, wait: Duration) -> Answer {
    let Call { request, runtime, .. } = call;
    let workflow_id = start.workflow_id.clone();
    let beginning = workflows::begin(runtime, start);
    let execution_id = stop_waiting_on_disconnect(request, beginning).await?;
    // The caller started it: now, or earlier with this key, whose scope has the user.
    let target = Target { workflow_id, execution_id, visibility: Visibility::Everything };
    respond_begun(call, &target, None, wait).await
}

/// Answers about an execution that has begun, with its outcome only if that is there in time; about
/// a replay with its origin.
pub(crate) async fn respond_begun(
    Call { request, runtime, .. }: &Call,
    target: &Target,
    from: Option<&ReplayedFrom>,
    wait: Duration,
) -> Answer {
    let Target { workflow_id, execution_id, .. } = target;
    let place = format!("/workflows/{}/executions/{execution_id}/state", encode(workflow_id));
    let outcome = runtime.first_outcome(target);
    if let Some(Ok(outcome)) = prefer::outcome_within(request, wait, outcome).await? {
        return Ok(respond_replay(outcome, from));
    }
    let describing = executions::describe(runtime, target);
    let answer = match stop_waiting_on_disconnect(request, describing).await {
        Ok(state) => {
            let response = respond::accepted(&place, Some(&ExecutionView::now(&state)));
            respond::traced(&state.header.trace.id, response)
        }
        // It is recorded: a client that is refused would start another one.
        Err(_) => respond::accepted(&place, None),
    };
    Ok(respond::about(execution_id, Ok(answer)))
}

/// Answers with the outcome of an execution that completed, failed or suspended.
pub(crate) fn respond_outcome(outcome: ExecutionOutcome) -> HttpResponse {
    respond_replay(outcome, None)
}

/// Answers like [`respond_outcome`], with the origin of a replay.
pub(crate) fn respond_replay(
    outcome: ExecutionOutcome,
    from: Option<&ReplayedFrom>,
) -> HttpResponse {
    let (id, trace_id) = (outcome.execution_id.clone(), Arc::clone(&outcome.trace_id));
    let shown = |outcome| respond::json(ExecutionView::of_replay(&outcome, from));
    let answer = succeeded(outcome).map(shown);
    respond::traced(&trace_id, respond::about(&id, answer))
}

/// `POST /workflows/:id/stream`.
pub(crate) async fn stream(call: Call, route: StartRoute, body: Body) -> Answer {
    let Call { request, caller, runtime, settings } = &call;
    let (plan, body) = body.read_for(route.find(&call)).await?;
    let start = route.body.read(&plan.definition, &body, None, caller)?;
    drop(body);
    let origin = trace::origin_of(request.headers());
    let start = StartExecution { trace: origin.clone(), ..start };
    let stream = sse::open(request, runtime, settings, &plan.definition.id, Begin::Live)?;
    match workflows::stream(runtime, start, stream.subscriber()).await {
        Ok(id) => {
            let answer = respond::about(&id, Ok(stream.respond()));
            Ok(respond::traced(&origin.trace_id(id.as_str()), answer))
        }
        Err(refusal) => {
            stream.abandon();
            Err(refusal)
        }
    }
}

/// Returns the `Idempotency-Key`, which validation refuses if it is not visible ASCII. Repeated
/// headers are joined as RFC 9110 (5.3) reads them, so that the space between them is refused.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let keys = headers.get_all("idempotency-key");
    keys.map(|key| String::from_utf8_lossy(key.as_bytes())).reduce(|keys, key| keys + ", " + key)
}
