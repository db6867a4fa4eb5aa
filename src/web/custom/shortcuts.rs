//! Routes of the configuration that answer as a built-in one does, about one workflow or agent.

use std::future::Future;

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use greenroom_actors::Runtime;

use crate::api::ApiError;
use crate::api::caller::Caller;
use crate::api::workflows::StartBody;
use crate::web::body::Body;
use crate::web::custom::handler::CustomHandler;
use crate::web::ids::Subject;
use crate::web::settings::Settings;
use crate::web::workflows::Started;
use crate::web::{agents, workflows};

type Answer = Result<HttpResponse, ApiError>;

/// As `POST /workflows/:id/execute`.
pub(crate) fn execute(workflow: &str, body: StartBody) -> CustomHandler {
    answered(Started { workflow: Subject::fixed(workflow), body }, workflows::execute)
}

/// As `POST /workflows/:id/stream`.
pub(crate) fn stream(workflow: &str, body: StartBody) -> CustomHandler {
    streamed(Started { workflow: Subject::fixed(workflow), body }, workflows::stream)
}

/// As `POST /agents/:id/text`.
pub(crate) fn generate_text(agent: &str) -> CustomHandler {
    answered(Subject::fixed(agent), agents::generate_text)
}

/// As `POST /agents/:id/object`.
pub(crate) fn generate_object(agent: &str) -> CustomHandler {
    answered(Subject::fixed(agent), agents::generate_object)
}

/// As `POST /agents/:id/stream`.
pub(crate) fn stream_text(agent: &str) -> CustomHandler {
    streamed(Subject::fixed(agent), agents::stream_text)
}

/// As `POST /agents/:id/chat`.
pub(crate) fn chat(agent: &str) -> CustomHandler {
    streamed(Subject::fixed(agent), agents::chat)
}

/// As `POST /agents/:id/stream-object`.
pub(crate) fn stream_object(agent: &str) -> CustomHandler {
    streamed(Subject::fixed(agent), agents::stream_object)
}

/// A built-in handler, told its subject.
fn answered<S, F, R>(subject: S, handler: F) -> CustomHandler
where
    S: Clone + Send + Sync + 'static,
    F: Fn(HttpRequest, S, Body, Caller, Data<Runtime>) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Answer> + 'static,
{
    CustomHandler::of(
        move |request: HttpRequest, body: Body, caller: Caller, runtime: Data<Runtime>| {
            handler(request, subject.clone(), body, caller, runtime)
        },
    )
}

/// The same for those whose answer goes on for long.
fn streamed<S, F, R>(subject: S, handler: F) -> CustomHandler
where
    S: Clone + Send + Sync + 'static,
    F: Fn(HttpRequest, S, Body, Caller, Data<Runtime>, Data<Settings>) -> R
        + Clone
        + Send
        + Sync
        + 'static,
    R: Future<Output = Answer> + 'static,
{
    CustomHandler::of(
        move |request: HttpRequest,
              body: Body,
              caller: Caller,
              runtime: Data<Runtime>,
              settings: Data<Settings>| {
            handler(request, subject.clone(), body, caller, runtime, settings)
        },
    )
}
