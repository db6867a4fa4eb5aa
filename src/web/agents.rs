//! Handlers of agents.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::header::ACCEPT;
use actix_web::{HttpRequest, HttpResponse, ResponseError, web};
use greenroom_actors::Runtime;
use greenroom_actors::agent::AgentDefinition;
use greenroom_actors::agent::generation::{Begins, Generation, GenerationRequest};
use greenroom_actors::requests::TraceOrigin;
use greenroom_actors::runtime::ContinuedChat;

use crate::api::agents::{RequestKind, read_request};
use crate::api::error::Product;
use crate::api::ids::encode;
use crate::api::wire::agent::{CancelledGenerationView, TextView, WaitingObjectView};
use crate::api::wire::generation_stream::GenerationStream;
use crate::api::wire::history::HistoryEntryView;
use crate::api::wire::message::{Replies, replies_of};
use crate::api::wire::pending_ask::ApprovalForm;
use crate::api::{ApiError, agents};
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::ids::Subject;
use crate::web::peer::cancel_on_disconnect;
use crate::web::settings::Settings;
use crate::web::{generation_stream, ids, inbox, prefer, respond, trace};

/// `GET /agents`.
pub(crate) async fn list(
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> HttpResponse {
    let is_telemetry_enabled = settings.config.is_telemetry_enabled;
    let activity = runtime.activity().await;
    respond::json(agents::list(&activity, &runtime.registry(), is_telemetry_enabled))
}

/// `GET /agents/:id`.
pub(crate) async fn describe(
    request: HttpRequest,
    runtime: web::Data<Runtime>,
    settings: web::Data<Settings>,
) -> Answer {
    let id = ids::agent(&request)?;
    let registry = runtime.registry();
    let activity = runtime.activity().await;
    let is_telemetry_enabled = settings.config.is_telemetry_enabled;
    agents::describe(&activity, &registry, &id, is_telemetry_enabled).map(respond::json)
}

/// `POST /agents/:id/text`.
pub(crate) async fn generate_text(call: Call, subject: Subject, body: Body) -> Answer {
    generate(&call, &subject, body, RequestKind::Text).await
}

/// `POST /agents/:id/object`.
pub(crate) async fn generate_object(call: Call, subject: Subject, body: Body) -> Answer {
    generate(&call, &subject, body, RequestKind::Object).await
}

/// `POST /agents/:id/stream`.
pub(crate) async fn stream_text(call: Call, subject: Subject, body: Body) -> Answer {
    stream(&call, &subject, body, RequestKind::Text, GenerationStream::raw()).await
}

/// `POST /agents/:id/chat`.
pub(crate) async fn chat(call: Call, subject: Subject, body: Body) -> Answer {
    let (agent, body) = body.read_for(find(&subject, &call)).await?;
    let generation = read_request(&agent.id, RequestKind::Chat, &body, &call.caller)?;
    drop(body);
    let approvals = ApprovalForm::of(&agent);
    let replies = replies_of(&generation.input);
    if !replies.all.is_empty()
        && let Some(response) = continue_chat(&call, &generation, replies, approvals).await?
    {
        return Ok(response);
    }
    follow(&call, generation, GenerationStream::Chat(approvals)).await
}

/// Continues the generation that waits for the answers in a chat; `None` if they are none.
async fn continue_chat(
    call: &Call,
    generation: &GenerationRequest,
    replies: Replies,
    approvals: ApprovalForm,
) -> Result<Option<HttpResponse>, ApiError> {
    let Call { request, caller, runtime, settings } = call;
    let stream = generation_stream::open(request, settings, GenerationStream::Chat(approvals))?;
    let subscriber = stream.subscriber();
    let answering = (caller, call.permissions());
    let continuing = agents::continue_chat(runtime, generation, replies, answering, subscriber);
    match cancel_on_disconnect(request, continuing).await {
        Ok(Some(ContinuedChat::Streams(streamed))) => {
            let id = Arc::clone(&streamed.id);
            Ok(Some(with_id(&id, stream.respond(streamed))))
        }
        Ok(Some(ContinuedChat::Waits(waiting))) => {
            let id = waiting.generation_id.clone();
            stream.play(agents::waiting_events(waiting));
            Ok(Some(with_id(&id, stream.respond(()))))
        }
        Ok(None) => {
            stream.abandon();
            Ok(None)
        }
        Err(refusal) => {
            stream.abandon();
            Err(refusal)
        }
    }
}

/// `POST /agents/:id/stream-object`.
pub(crate) async fn stream_object(call: Call, subject: Subject, body: Body) -> Answer {
    let (agent, body) = body.read_for(find(&subject, &call)).await?;
    let mut generation = read_request(&agent.id, RequestKind::Object, &body, &call.caller)?;
    drop(body);
    let accept = call.request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let stream = agents::object_stream(&mut generation, accept, &call.pairs()?)?;
    follow(&call, generation, stream).await
}

/// `GET /agents/:id/chat/:conversationId/stream`. 204 if no generation is running there.
pub(crate) async fn attach_to_chat(call: Call) -> Answer {
    let Call { request, caller, runtime, settings } = &call;
    let agent = find(&Subject::InPath, &call)?;
    let query = call.pairs()?;
    let Some(conversation) = ids::conversation(request) else {
        return Ok(HttpResponse::NoContent().finish());
    };
    let format = GenerationStream::Chat(ApprovalForm::of(&agent));
    let stream = generation_stream::open(request, settings, format)?;
    let subscriber = stream.subscriber();
    match agents::attach(runtime, &agent, &conversation, &query, caller, subscriber).await {
        Some(id) => Ok(with_id(&id, stream.respond(()))),
        None => {
            stream.abandon();
            Ok(HttpResponse::NoContent().finish())
        }
    }
}

/// `POST /agents/:id/generations/:generationId/cancel`.
pub(crate) async fn cancel_generation(call: Call, body: Body) -> Answer {
    let subject = find(&Subject::InPath, &call)
        .and_then(|agent| ids::generation(&call.request).map(|generation| (agent, generation)));
    let ((agent, generation), body) = body.take_for(subject).await?;
    let body = body.as_deref();
    agents::cancel(&call.runtime, &agent, &generation, body, &call.caller).await?;
    Ok(with_id(&generation, respond::json(CancelledGenerationView::of(&generation))))
}

/// `POST /agents/:id/generations/:generationId/approve`.
pub(crate) async fn approve(call: Call, body: Body) -> Answer {
    let subject = find(&Subject::InPath, &call)
        .and_then(|agent| ids::generation(&call.request).map(|generation| (agent, generation)));
    let ((agent, generation), body) = body.take_for(subject).await?;
    let (body, answering) = (body.as_deref(), (&call.caller, call.permissions()));
    let approving = agents::approve(&call.runtime, &agent, &generation, body, answering);
    Ok(with_id(&generation, inbox::shown(&approving.await?)))
}

fn find(subject: &Subject, call: &Call) -> Result<Arc<AgentDefinition>, ApiError> {
    agents::find(&call.runtime, &subject.agent(&call.request)?)
}

/// Answers when a generation has ended. It is cancelled if its client disconnects.
async fn generate(call: &Call, subject: &Subject, body: Body, kind: RequestKind) -> Answer {
    let (agent, body) = body.read_for(find(subject, call)).await?;
    let request = read_request(&agent.id, kind, &body, &call.caller)?;
    drop(body);
    let origin = trace::origin_of(call.request.headers());
    let request = GenerationRequest { trace: origin.clone(), ..request };
    let answer = match prefer::wait_of(&call.request) {
        Some(wait) => begin(call, request, wait).await,
        None => {
            let product = agents::product_of(&request);
            let generating = agents::generate(&call.runtime, request);
            let answer = cancel_on_disconnect(&call.request, generating).await;
            answer.map(|generation| generated(product, &generation))
        }
    };
    Ok(traced(&origin, answer))
}

/// Starts a generation, and answers with its outcome only if that is there in time.
async fn begin(call: &Call, generation: GenerationRequest, wait: Duration) -> Answer {
    let Call { request, runtime, .. } = call;
    let (agent, product) = (generation.agent_id.clone(), agents::product_of(&generation));
    let beginning = agents::begin(runtime, generation);
    let begun = cancel_on_disconnect(request, beginning).await?;
    let id = Arc::clone(&begun.id);
    let response = match prefer::outcome_within(request, wait, begun.outcome()).await? {
        Some(outcome) => match agents::finished(product, outcome) {
            Ok(generation) => generated(product, &generation),
            // It is recorded, whatever the reason of the refusal.
            Err(refusal) => refusal.error_response(),
        },
        None => {
            let place = format!("/agents/{}/generations/{}", encode(&agent), encode(&id));
            respond::accepted(&place, None)
        }
    };
    Ok(with_id(&id, response))
}

/// `GET /agents/:id/generations/:generationId`.
pub(crate) async fn describe_generation(call: Call) -> Answer {
    let agent = find(&Subject::InPath, &call)?;
    let id = ids::generation(&call.request)?;
    let entry = agents::generation(&call.runtime, &agent, &id, &call.caller).await?;
    let trace_id = Arc::clone(&entry.record.trace.id);
    let asks = agents::asks(&call.runtime, &entry).await?;
    let view = HistoryEntryView::of(&entry).waiting_for(&asks);
    let response = with_id(&id, respond::json(view));
    Ok(respond::traced(&trace_id, response))
}

async fn stream(
    call: &Call,
    subject: &Subject,
    body: Body,
    kind: RequestKind,
    stream: GenerationStream,
) -> Answer {
    let (agent, body) = body.read_for(find(subject, call)).await?;
    let generation = read_request(&agent.id, kind, &body, &call.caller)?;
    drop(body);
    follow(call, generation, stream).await
}

/// Streams a generation to the client. The generation ends when its client disconnects, unless its
/// agent has resumable chats.
pub(crate) async fn follow(
    call: &Call,
    generation: GenerationRequest,
    stream: GenerationStream,
) -> Answer {
    let origin = match &generation.trace {
        TraceOrigin::New => trace::origin_of(call.request.headers()),
        given => given.clone(),
    };
    // Bare text cannot report a failure later: there the status waits for the first output.
    let begins = if stream.is_events() { Begins::OnceRecorded } else { Begins::WithFirstWord };
    let generation = GenerationRequest { trace: origin.clone(), begins, ..generation };
    let stream = generation_stream::open(&call.request, &call.settings, stream)?;
    let starting = agents::stream(&call.runtime, generation, stream.subscriber());
    let answer = match cancel_on_disconnect(&call.request, starting).await {
        Ok(streamed) => {
            let id = Arc::clone(&streamed.id);
            Ok(with_id(&id, stream.respond(streamed)))
        }
        Err(refusal) => {
            stream.abandon();
            Err(refusal)
        }
    };
    Ok(traced(&origin, answer))
}

/// Shows the object or the text, or what the generation waits for, with the headers of the generation's id and, if a fallback
/// answered, its model.
fn generated(product: Product, generation: &Generation) -> HttpResponse {
    let response = match &generation.object {
        Some(object) => respond::json(object),
        None if product == Product::Object => respond::json(WaitingObjectView::of(generation)),
        None => respond::json(TextView::of(generation)),
    };
    let mut response = with_id(&generation.id, response);
    if let Some(served) = &generation.stand_in {
        respond::insert_text(&mut response, respond::X_MODEL_FALLBACK, &served.model);
    }
    response
}

/// Adds the header with the generation's id.
fn with_id(id: &str, mut response: HttpResponse) -> HttpResponse {
    respond::insert_text(&mut response, respond::X_GENERATION_ID, id);
    response
}

/// Adds the header with the trace id to an answer or a refusal that has a generation id.
fn traced(origin: &TraceOrigin, answer: Answer) -> HttpResponse {
    let response = answer.unwrap_or_else(|refusal| refusal.error_response());
    let id = response.headers().get(respond::X_GENERATION_ID);
    match id.and_then(|id| id.to_str().ok()).map(|id| origin.trace_id(id)) {
        Some(trace_id) => respond::traced(&trace_id, response),
        None => response,
    }
}
