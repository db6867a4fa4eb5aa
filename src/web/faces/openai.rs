//! Handlers for clients of OpenAI.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use greenroom_actors::agent::generation::{
    FailureKind, GenerationEvent, GenerationProgress, GenerationRequest,
};
use greenroom_actors::requests::{StartExecution, Target};
use greenroom_actors::visibility::Visibility;
use tokio::task::AbortHandle;

use crate::api::catalogue::RouteName;
use crate::api::faces::openai::{
    CONVERSATION, Model, answer_of, check_key, conversation_of, read_generation, read_start,
    stream_of,
};
use crate::api::ids::decode;
use crate::api::wire::generation_stream::GenerationStream;
use crate::api::wire::openai::{
    CompletionBody, CompletionChunks, CompletionHead, CompletionView, FailureView, ModelView,
    ModelsView, Subject,
};
use crate::api::{ApiError, ErrorCode, agents, json, workflows};
use crate::faces::{OPENAI_VIA, OpenAiFace};
use crate::web::agents::follow;
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::peer::{cancel_on_disconnect, stop_waiting_on_disconnect};
use crate::web::respond::Refused;
use crate::web::settings::Settings;
use crate::web::workflows::idempotency_key;
use crate::web::{generation_stream, ids, respond, trace};

/// Says to OpenAI's clients whether to repeat a request.
const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// `GET /v1/models`.
pub(crate) async fn models(call: Call) -> Answer {
    let face = face_of(&call)?;
    let models = face.models(&call.runtime.registry()).into_iter();
    let open = models.filter(|model| check_model(&call, model).is_ok());
    let shown = open.map(|model| ModelView::of(model.name(), call.settings.started_s));
    Ok(respond::bare(&ModelsView::of(shown.collect())))
}

/// `GET /v1/models/:name`, where the name may have a slash.
pub(crate) async fn model(call: Call) -> Answer {
    let face = face_of(&call)?;
    let raw = call.request.uri().path().splitn(4, '/').last().unwrap_or_default();
    let name: Option<Vec<_>> = raw
        .replace("%2F", "/")
        .replace("%2f", "/")
        .split('/')
        .map(|it| decode(it).map(String::from))
        .collect();
    let name = name.map_or_else(|| raw.to_owned(), |segments| segments.join("/"));
    let model = face.find(&call.runtime.registry(), &name)?;
    check_model(&call, &model)?;
    Ok(respond::bare(&ModelView::of(model.name(), call.settings.started_s)))
}

/// `POST /v1/chat/completions`.
pub(crate) async fn complete(call: Call, body: Body) -> Answer {
    let (face, bytes) = body.read_for(face_of(&call)).await?;
    let body: CompletionBody = json::parse(&bytes)?;
    let model = face.find(&call.runtime.registry(), &body.model)?;
    check_model(&call, &model)?;
    let conversation = conversation_of(conversation(call.request.headers()))?;
    let (is_stream, has_usage) = (body.stream == Some(true), includes_usage(&body));
    let subject = match model {
        Model::Agent(_) => Subject::Agent,
        Model::Workflow(_) => Subject::Workflow,
    };
    let created_s = call.runtime.clock().now().0 / 1000;
    let head = CompletionHead { subject, model: body.model.clone(), created_s };
    let trace = trace::origin_of(call.request.headers()).through(OPENAI_VIA);
    let key = idempotency_key(call.request.headers());
    match model {
        Model::Agent(agent) => {
            let sent = (conversation, key.as_deref());
            let generation = read_generation(&face, &agent.id, body, sent, &call.caller)?;
            drop(bytes);
            check_key(&call.runtime, &generation).await?;
            let generation = GenerationRequest { trace, ..generation };
            if is_stream {
                let stream = stream_of(head, has_usage, &generation);
                return follow(&call, generation, stream).await;
            }
            generate(&call, &head, generation).await
        }
        Model::Workflow(plan) => {
            let sent = (key.as_deref(), &*bytes);
            let start = read_start(&plan.definition, body, conversation, sent, &call.caller)?;
            drop(bytes);
            let start = StartExecution { trace, ..start };
            match is_stream {
                true => stream(&call, head, has_usage, start).await,
                false => execute(&call, &head, start).await,
            }
        }
    }
}

/// Returns true if a request is about OpenAI's API, also a part of it that is not served, and the
/// face is open: refusals then have OpenAI's form.
pub(crate) fn answers(request: &HttpRequest) -> bool {
    let is_ours = request.uri().path().starts_with("/v1/");
    let settings = || request.app_data::<Data<Settings>>();
    is_ours && settings().is_some_and(|settings| settings.config.openai.is_some())
}

/// Rewrites a refusal in OpenAI's form. Its headers must be complete already. Clients repeat failed
/// requests by themselves, which they must not where work has begun.
pub(crate) fn refusal(mut response: HttpResponse, refused: &Refused) -> HttpResponse {
    if refused.code == ErrorCode::ExecutionFailed {
        // clients that do not know the header repeat what fails with 5xx
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    let headers = response.headers_mut();
    let has_begun = headers.contains_key(respond::X_EXECUTION_ID)
        || headers.contains_key(respond::X_GENERATION_ID);
    // libraries repeat what fails with 409
    if has_begun || refused.code == ErrorCode::IdempotencyKeyReused {
        headers.insert(X_SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    let place = match refused.code {
        // the last message is the input
        ErrorCode::InputInvalid => Some("messages"),
        _ => refused.place.as_deref(),
    };
    let text = refused.with_step();
    let view = FailureView::of(refused.code, &text, place);
    let body = serde_json::to_vec(&view);
    respond::rewritten(response, "application/json", body)
}

/// Returns the settings. Without them the routes do not exist.
fn face_of(call: &Call) -> Result<Arc<OpenAiFace>, ApiError> {
    let face = call.settings.config.openai.as_ref();
    face.map(Arc::clone).ok_or_else(|| ids::path_not_found(&call.request))
}

/// Refuses a caller who may not use the own route of an agent or a workflow.
fn check_model(call: &Call, model: &Model) -> Result<(), ApiError> {
    let (route, id) = match model {
        Model::Agent(agent) => (RouteName::GenerateText, &agent.id),
        Model::Workflow(plan) => (RouteName::ExecuteWorkflow, &plan.definition.id),
    };
    call.check_like(route, &[(":id", id)])
}

fn conversation(headers: &HeaderMap) -> Option<&str> {
    // an unreadable one is refused as an empty one
    headers.get(CONVERSATION).map(|value| value.to_str().unwrap_or_default())
}

fn includes_usage(body: &CompletionBody) -> bool {
    let options = body.stream_options.as_ref();
    options.is_some_and(|json::Object(options)| options.include_usage == Some(true))
}

/// Answers when the generation has ended. It is cancelled if its client disconnects.
async fn generate(call: &Call, head: &CompletionHead, request: GenerationRequest) -> Answer {
    let (origin, client_tools) = (request.trace.clone(), request.client_tools.clone());
    let generating = agents::generate(&call.runtime, request);
    let generation = cancel_on_disconnect(&call.request, generating).await?;
    let view = CompletionView::of_generation(head, &generation, &client_tools);
    let mut response = respond::bare(&view);
    respond::insert_text(&mut response, respond::X_GENERATION_ID, &generation.id);
    Ok(respond::traced(&origin.trace_id(&generation.id), response))
}

/// Answers when the execution has ended or waits. It continues if its client disconnects.
async fn execute(call: &Call, head: &CompletionHead, start: StartExecution) -> Answer {
    let executing = workflows::execute(&call.runtime, start);
    let outcome = stop_waiting_on_disconnect(&call.request, executing).await?;
    let (id, trace_id) = (outcome.execution_id.clone(), Arc::clone(&outcome.trace_id));
    let answer = answer_of(outcome).map(|answer| {
        let (text, asks) = (answer.text, &answer.asks);
        respond::bare(&CompletionView::of_execution(head, id.as_str(), text, asks))
    });
    Ok(respond::traced(&trace_id, respond::about(&id, answer)))
}

/// Starts an execution, and streams its answer once there is one.
async fn stream(
    call: &Call,
    head: CompletionHead,
    has_usage: bool,
    start: StartExecution,
) -> Answer {
    let Call { request, runtime, settings, .. } = call;
    let (origin, workflow_id) = (start.trace.clone(), start.workflow_id.clone());
    let chunks = CompletionChunks::new(head, has_usage);
    let stream = GenerationStream::Completion(Box::new(chunks));
    let stream = generation_stream::open(request, settings, stream)?;
    let beginning = workflows::begin(runtime, start);
    let execution_id = match stop_waiting_on_disconnect(request, beginning).await {
        Ok(id) => id,
        Err(refusal) => {
            stream.abandon();
            return Err(refusal);
        }
    };
    let generation_id: Arc<str> = execution_id.as_str().into();
    let begun = GenerationEvent::Start { message_id: Arc::clone(&generation_id), generation_id };
    stream.play(vec![begun]);
    let subscriber = stream.subscriber();
    // The caller started it: now, or earlier with this key, whose scope has the user.
    let visibility = Visibility::Everything;
    let target = Target { workflow_id, execution_id: execution_id.clone(), visibility };
    let runtime = runtime.clone();
    let waiting = actix_web::rt::spawn(async move {
        let outcome = runtime.first_outcome(&target).await;
        let outcome = outcome.map_err(|error| ApiError::from_describe(&target.execution_id, error));
        let events = match outcome.and_then(answer_of) {
            Ok(answer) => answer.events(),
            Err(refusal) => vec![failed(&refusal)],
        };
        if subscriber.events.try_send(GenerationProgress(events.into())).is_err() {
            (subscriber.disconnect)();
        }
    });
    let response = stream.respond(Waiting(waiting.abort_handle()));
    let response = respond::about(&execution_id, Ok(response));
    Ok(respond::traced(&origin.trace_id(execution_id.as_str()), response))
}

fn failed(refusal: &ApiError) -> GenerationEvent {
    let kind = match refusal {
        ApiError::ExecutionFailed { .. } => FailureKind::Agent,
        ApiError::Draining { .. } => FailureKind::Draining,
        ApiError::StoreUnavailable { .. } => FailureKind::Store,
        _ => FailureKind::Server,
    };
    let message = respond::with_step(&refusal.to_string(), refusal.details().as_ref()).into_owned();
    GenerationEvent::Error { message, kind }
}

/// Stops waiting for an outcome when its stream has ended.
struct Waiting(AbortHandle);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.abort();
    }
}
