//! Routes of the configuration that answer as a built-in one does, about one workflow or agent.

use actix_web::HttpRequest;
use actix_web::web::Data;
use greenroom_actors::Runtime;

use crate::api::caller::Caller;
use crate::api::workflows::StartBody;
use crate::web::body::Body;
use crate::web::custom::CustomHandler;
use crate::web::ids::Subject;
use crate::web::server::Settings;
use crate::web::workflows::Started;
use crate::web::{agents, workflows};

/// As `POST /workflows/:id/execute`.
pub(crate) fn execute(workflow: &str, body: StartBody) -> CustomHandler {
    let started = Started { workflow: Subject::fixed(workflow), body };
    CustomHandler::of(
        move |request: HttpRequest, body: Body, caller: Caller, runtime: Data<Runtime>| {
            workflows::execute(request, started.clone(), body, caller, runtime)
        },
    )
}

/// As `POST /workflows/:id/stream`.
pub(crate) fn stream(workflow: &str, body: StartBody) -> CustomHandler {
    let started = Started { workflow: Subject::fixed(workflow), body };
    CustomHandler::of(
        move |request: HttpRequest,
              body: Body,
              caller: Caller,
              runtime: Data<Runtime>,
              settings: Data<Settings>| {
            workflows::stream(request, started.clone(), body, caller, runtime, settings)
        },
    )
}

/// As `POST /agents/:id/text`.
pub(crate) fn generate_text(agent: &str) -> CustomHandler {
    let agent = Subject::fixed(agent);
    CustomHandler::of(
        move |request: HttpRequest, body: Body, caller: Caller, runtime: Data<Runtime>| {
            agents::generate_text(request, agent.clone(), body, caller, runtime)
        },
    )
}

/// As `POST /agents/:id/object`.
pub(crate) fn generate_object(agent: &str) -> CustomHandler {
    let agent = Subject::fixed(agent);
    CustomHandler::of(
        move |request: HttpRequest, body: Body, caller: Caller, runtime: Data<Runtime>| {
            agents::generate_object(request, agent.clone(), body, caller, runtime)
        },
    )
}

/// As `POST /agents/:id/stream`.
pub(crate) fn stream_text(agent: &str) -> CustomHandler {
    let agent = Subject::fixed(agent);
    CustomHandler::of(
        move |request: HttpRequest,
              body: Body,
              caller: Caller,
              runtime: Data<Runtime>,
              settings: Data<Settings>| {
            agents::stream_text(request, agent.clone(), body, caller, runtime, settings)
        },
    )
}

/// As `POST /agents/:id/chat`.
pub(crate) fn chat(agent: &str) -> CustomHandler {
    let agent = Subject::fixed(agent);
    CustomHandler::of(
        move |request: HttpRequest,
              body: Body,
              caller: Caller,
              runtime: Data<Runtime>,
              settings: Data<Settings>| {
            agents::chat(request, agent.clone(), body, caller, runtime, settings)
        },
    )
}

/// As `POST /agents/:id/stream-object`.
pub(crate) fn stream_object(agent: &str) -> CustomHandler {
    let agent = Subject::fixed(agent);
    CustomHandler::of(
        move |request: HttpRequest,
              body: Body,
              caller: Caller,
              runtime: Data<Runtime>,
              settings: Data<Settings>| {
            agents::stream_object(request, agent.clone(), body, caller, runtime, settings)
        },
    )
}
