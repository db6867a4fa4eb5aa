//! Routes of the configuration that answer like a built-in one, for one workflow or agent.

use std::future::Future;

use crate::api::workflows::StartBody;
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::custom::handler::CustomHandler;
use crate::web::ids::Subject;
use crate::web::workflows::StartRoute;
use crate::web::{agents, workflows};

/// Same as `POST /workflows/:id/execute`.
pub(crate) fn execute(workflow: &str, body: StartBody) -> CustomHandler {
    answered(StartRoute { workflow: Subject::fixed(workflow), body }, workflows::execute)
}

/// Same as `POST /workflows/:id/stream`.
pub(crate) fn stream(workflow: &str, body: StartBody) -> CustomHandler {
    answered(StartRoute { workflow: Subject::fixed(workflow), body }, workflows::stream)
}

/// Same as `POST /agents/:id/text`.
pub(crate) fn generate_text(agent: &str) -> CustomHandler {
    answered(Subject::fixed(agent), agents::generate_text)
}

/// Same as `POST /agents/:id/object`.
pub(crate) fn generate_object(agent: &str) -> CustomHandler {
    answered(Subject::fixed(agent), agents::generate_object)
}

/// Same as `POST /agents/:id/stream`.
pub(crate) fn stream_text(agent: &str) -> CustomHandler {
    answered(Subject::fixed(agent), agents::stream_text)
}

/// Same as `POST /agents/:id/chat`.
pub(crate) fn chat(agent: &str) -> CustomHandler {
    answered(Subject::fixed(agent), agents::chat)
}

/// Same as `POST /agents/:id/stream-object`.
pub(crate) fn stream_object(agent: &str) -> CustomHandler {
    answered(Subject::fixed(agent), agents::stream_object)
}

/// Binds a built-in handler to a fixed subject.
fn answered<S, F, R>(subject: S, handler: F) -> CustomHandler
where
    S: Clone + Send + Sync + 'static,
    F: Fn(Call, S, Body) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Answer> + 'static,
{
    CustomHandler::of(move |call: Call, body: Body| handler(call, subject.clone(), body))
}
