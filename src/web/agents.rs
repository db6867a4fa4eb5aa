//! Handlers of agents.

use std::sync::Arc;

use actix_web::http::header::ACCEPT;
use actix_web::{HttpRequest, HttpResponse, ResponseError, web};
use greenroom_actors::Runtime;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::agent::generation::{Begins, Generation, GenerationRequest};
use greenroom_actors::requests::TraceOrigin;

use crate::api::agents::{RequestKind, read_request};
use crate::api::caller::Caller;
use crate::api::wire::agent::{CancelledGenerationView, TextView};
use crate::api::wire::generation_stream::GenerationStream;
use crate::api::{ApiError, agents};
use crate::web::body::Body;
use crate::web::ids::Subject;
use crate::web::peer::unless_gone;
use crate::web::query::query_pairs;
use crate::web::settings::Settings;
use crate::web::{generation_stream, ids, respond, trace};

/// `GET /agents`.
pub(crate) async fn list(
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> HttpResponse {
    let is_telemetry_enabled = settings.config.is_telemetry_enabled;
    std::future::ready(respond::json(agents::list(
        &runtime,
        &runtime.registry(),
        is_telemetry_enabled,
    )))
    .await
}

/// `GET /agents/:id`.
pub(crate) async fn describe(
    request: HttpRequest,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let id = ids::agent(&request)?;
    let registry = runtime.registry();
    let described =
        agents::describe(&runtime, &registry, &id, settings.config.is_telemetry_enabled);
    std::future::ready(described.map(respond::json)).await
}

/// `POST /agents/:id/text`.
pub(crate) async fn generate_text(
    request: HttpRequest,
    subject: Subject,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (agent, body) = body.read_for(find_subject(&subject, &request, &runtime)).await?;
    let origin = trace::origin_of(request.headers());
    let generating = agents::generate_text(&runtime, &agent, &body, &caller, origin.clone());
    let answer = unless_gone(&request, generating)
        .await
        .map(|generation| generated(&generation, respond::json(TextView::of(&generation))));
    Ok(traced(&origin, answer))
}

/// `POST /agents/:id/object`.
pub(crate) async fn generate_object(
    request: HttpRequest,
    subject: Subject,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let (agent, body) = body.read_for(find_subject(&subject, &request, &runtime)).await?;
    let origin = trace::origin_of(request.headers());
    let generating = agents::generate_object(&runtime, &agent, &body, &caller, origin.clone());
    let answer = unless_gone(&request, generating)
        .await
        .map(|(object, generation)| generated(&generation, respond::json(object)));
    Ok(traced(&origin, answer))
}

/// `POST /agents/:id/stream`.
pub(crate) async fn stream_text(
    request: HttpRequest,
    subject: Subject,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let (agent, body) = body.read_for(find_subject(&subject, &request, &runtime)).await?;
    let asked = read_request(&agent.id, RequestKind::Text, &body, &caller)?;
    follow(&request, &runtime, &settings, asked, GenerationStream::raw()).await
}

/// `POST /agents/:id/chat`.
pub(crate) async fn chat(
    request: HttpRequest,
    subject: Subject,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let (agent, body) = body.read_for(find_subject(&subject, &request, &runtime)).await?;
    let asked = read_request(&agent.id, RequestKind::Chat, &body, &caller)?;
    follow(&request, &runtime, &settings, asked, GenerationStream::Chat).await
}

/// `POST /agents/:id/stream-object`.
pub(crate) async fn stream_object(
    request: HttpRequest,
    subject: Subject,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let (agent, body) = body.read_for(find_subject(&subject, &request, &runtime)).await?;
    let mut asked = read_request(&agent.id, RequestKind::Object, &body, &caller)?;
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let stream = agents::object_stream(&mut asked, accept, &query_pairs(&request)?)?;
    follow(&request, &runtime, &settings, asked, stream).await
}

/// `GET /agents/:id/chat/:conversationId/stream`. 204 when nothing runs there.
pub(crate) async fn attach_to_chat(
    request: HttpRequest,
    caller: Caller,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Result<HttpResponse, ApiError> {
    let agent = find(&request, &runtime)?;
    let query = query_pairs(&request)?;
    let Some(conversation) = ids::conversation(&request) else {
        return Ok(HttpResponse::NoContent().finish());
    };
    let reader = generation_stream::open(&request, &settings, GenerationStream::Chat)?;
    let subscriber = reader.subscriber();
    match agents::attach(&runtime, &agent, &conversation, &query, &caller, subscriber).await {
        Some(id) => Ok(about(&id, reader.respond(()))),
        None => {
            reader.abandon();
            Ok(HttpResponse::NoContent().finish())
        }
    }
}

/// `POST /agents/:id/generations/:generationId/cancel`.
pub(crate) async fn cancel_generation(
    request: HttpRequest,
    body: Body,
    caller: Caller,
    runtime: web::Data<Runtime>,
) -> Result<HttpResponse, ApiError> {
    let subject = find(&request, &runtime)
        .and_then(|agent| ids::generation(&request).map(|generation| (agent, generation)));
    let ((agent, generation), body) = body.read_for(subject).await?;
    agents::cancel(&runtime, &agent, &generation, &body, &caller).await?;
    Ok(about(&generation, respond::json(CancelledGenerationView::of(&generation))))
}

fn find(request: &HttpRequest, runtime: &Runtime) -> Result<Arc<AgentDefinition>, ApiError> {
    find_subject(&Subject::InPath, request, runtime)
}

fn find_subject(
    subject: &Subject,
    request: &HttpRequest,
    runtime: &Runtime,
) -> Result<Arc<AgentDefinition>, ApiError> {
    agents::find(runtime, &subject.agent(request)?)
}

/// Answers with a generation while it runs. It ends when its client leaves, unless its agent
/// lets chats go on.
async fn follow(
    request: &HttpRequest,
    runtime: &Runtime,
    settings: &web::Data<Settings>,
    asked: GenerationRequest,
    stream: GenerationStream,
) -> Result<HttpResponse, ApiError> {
    let origin = trace::origin_of(request.headers());
    // bare text has no way to tell of a failure: there the status waits for the first word
    let begins = if stream.is_events() { Begins::OnceRecorded } else { Begins::WithFirstWord };
    let asked = GenerationRequest { trace: origin.clone(), begins, ..asked };
    let reader = generation_stream::open(request, settings, stream)?;
    let starting = agents::stream(runtime, asked, reader.subscriber());
    let answer = match unless_gone(request, starting).await {
        Ok(streamed) => {
            let id = Arc::clone(&streamed.id);
            Ok(about(&id, reader.respond(streamed)))
        }
        Err(refusal) => {
            reader.abandon();
            Err(refusal)
        }
    };
    Ok(traced(&origin, answer))
}

/// Names the generation in an answer, and the model that stood in for the configured one.
fn generated(generation: &Generation, response: HttpResponse) -> HttpResponse {
    let mut response = about(&generation.id, response);
    if let Some(served) = &generation.stand_in {
        respond::insert_text(&mut response, respond::X_MODEL_FALLBACK, &served.model);
    }
    response
}

/// Names the generation in an answer.
fn about(id: &str, mut response: HttpResponse) -> HttpResponse {
    respond::insert_text(&mut response, respond::X_GENERATION_ID, id);
    response
}

/// Names the trace in an answer that names its generation, success and refusal alike.
fn traced(origin: &TraceOrigin, answer: Result<HttpResponse, ApiError>) -> HttpResponse {
    let response = answer.unwrap_or_else(|refusal| refusal.error_response());
    let id = response.headers().get(respond::X_GENERATION_ID);
    match id.and_then(|id| id.to_str().ok()).map(|id| origin.trace_id(id)) {
        Some(trace_id) => respond::traced(&trace_id, response),
        None => response,
    }
}
