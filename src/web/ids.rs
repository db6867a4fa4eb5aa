//! Ids in paths, read from the raw path: the decoding of actix-web accepts an encoded slash and
//! maps different ids of invalid UTF-8 to the same text.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use greenroom_actors::domain::ids::ExecutionId;
use greenroom_actors::domain::trace::is_trace_id;
use greenroom_actors::observe::span::SpanId;
use greenroom_actors::requests::Target;

use crate::api::ApiError;
use crate::api::caller::Caller;
use crate::api::ids::decode;

/// Segment of the workflow's or agent's id: `/workflows/:id/...`.
const SUBJECT: usize = 2;
/// Segment of the file: `/console/assets/:file`.
#[cfg(feature = "ui")]
const ASSET: usize = 3;
/// Segment of the execution's id: `/workflows/:id/executions/:executionId/...`.
const EXECUTION: usize = 4;
/// Segment of the conversation's id: `/agents/:id/chat/:conversationId/...`.
const CONVERSATION: usize = 4;
/// Segment of the generation's id: `/agents/:id/generations/:generationId/...`.
const GENERATION: usize = 4;

/// Workflow or agent of a route.
#[derive(Debug, Clone)]
pub(crate) enum Subject {
    /// Named by the path of each request.
    InPath,
    /// The same for every request.
    Fixed(Arc<str>),
}

impl Subject {
    pub(crate) fn fixed(id: &str) -> Self {
        Self::Fixed(id.into())
    }

    pub(crate) fn workflow<'s>(
        &'s self,
        request: &'s HttpRequest,
    ) -> Result<Cow<'s, str>, ApiError> {
        match self {
            Self::InPath => workflow(request),
            Self::Fixed(id) => Ok(Cow::Borrowed(id)),
        }
    }

    pub(crate) fn agent<'s>(&'s self, request: &'s HttpRequest) -> Result<Cow<'s, str>, ApiError> {
        match self {
            Self::InPath => agent(request),
            Self::Fixed(id) => Ok(Cow::Borrowed(id)),
        }
    }
}

/// Extracts the subject of built-in routes, which is in the path.
impl FromRequest for Subject {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(_: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self::InPath))
    }
}

/// Returns the id of the workflow.
pub(crate) fn workflow(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, SUBJECT);
    decode(raw).ok_or_else(|| ApiError::WorkflowNotFound(raw.to_owned().into()))
}

/// Returns the id of the agent.
pub(crate) fn agent(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, SUBJECT);
    decode(raw).ok_or_else(|| ApiError::AgentNotFound(raw.to_owned().into()))
}

/// Returns the id of the conversation; `None` if it cannot be decoded.
pub(crate) fn conversation(request: &HttpRequest) -> Option<Cow<'_, str>> {
    decode(segment(request, CONVERSATION))
}

/// Returns the id of the generation.
pub(crate) fn generation(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, GENERATION);
    decode(raw).ok_or_else(|| ApiError::GenerationNotFound(raw.to_owned()))
}

/// Returns the execution with its workflow, as visible to the caller.
pub(crate) fn target(request: &HttpRequest, caller: &Caller) -> Result<Target, ApiError> {
    let raw = segment(request, EXECUTION);
    let execution_id = decode(raw)
        .and_then(|id| ExecutionId::parse(&id).ok())
        .ok_or_else(|| ApiError::ExecutionNotFound(raw.to_owned()))?;
    match decode(segment(request, SUBJECT)) {
        Some(workflow_id) => {
            let (workflow_id, visibility) = (workflow_id.into_owned(), caller.visibility());
            Ok(Target { workflow_id, execution_id, visibility })
        }
        None => Err(ApiError::ExecutionNotFound(raw.to_owned())),
    }
}

/// Segment of the id in `/api/memory/conversations/:id/...` and `/api/memory/users/:userId`.
const REMEMBERED: usize = 4;

/// Returns the name of the tool.
pub(crate) fn tool(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, SUBJECT);
    decode(raw).ok_or_else(|| ApiError::ToolNotFound(raw.to_owned().into()))
}

/// Segment of the server: `/tools/mcp/:server/restart`, `/tools/mcp/:server/accept`.
const SERVER: usize = 3;

/// Returns the name of the MCP server.
pub(crate) fn server(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, SERVER);
    decode(raw).ok_or_else(|| ApiError::ServerNotFound(raw.to_owned().into()))
}

/// Returns the id of the conversation in a path of the memory API.
pub(crate) fn remembered(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    decode(segment(request, REMEMBERED)).ok_or(ApiError::ConversationNotFound)
}

/// Returns the id of the user.
pub(crate) fn user(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    decode(segment(request, REMEMBERED)).ok_or_else(|| path_not_found(request))
}

/// Segment of the id in `/observability/traces/:traceId/...` and
/// `/observability/spans/:spanId/...`.
const OBSERVED: usize = 3;

/// Returns the id of the trace.
pub(crate) fn trace(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, OBSERVED);
    let id = decode(raw).filter(|id| is_trace_id(id));
    id.ok_or_else(|| ApiError::TraceNotFound(raw.to_owned()))
}

/// Returns the id of the span.
pub(crate) fn span(request: &HttpRequest) -> Result<SpanId, ApiError> {
    let raw = segment(request, OBSERVED);
    let id = decode(raw).and_then(|id| id.parse().ok());
    id.ok_or_else(|| ApiError::SpanNotFound(raw.to_owned()))
}

/// Returns the name of the file: `/ui/:file`.
#[cfg(feature = "ui")]
pub(crate) fn file(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    decode(segment(request, SUBJECT)).ok_or_else(|| path_not_found(request))
}

/// Returns the file of the console that a path names.
#[cfg(feature = "ui")]
pub(crate) fn console_asset(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    decode(segment(request, ASSET)).ok_or_else(|| path_not_found(request))
}

/// Returns the refusal of a path that does not exist.
pub(crate) fn path_not_found(request: &HttpRequest) -> ApiError {
    ApiError::PathNotFound {
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
    }
}

pub(crate) fn segment(request: &HttpRequest, index: usize) -> &str {
    request.uri().path().split('/').nth(index).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_path_names_an_execution_under_a_workflow() {
        let caller = Caller::unchecked();
        let named = |path: &str| target(&TestRequest::with_uri(path).to_http_request(), &caller);
        let found = named("/workflows/order/executions/x%2D1/state").unwrap();
        assert_eq!((found.workflow_id.as_str(), found.execution_id.as_str()), ("order", "x-1"));
        let refused = named("/workflows/order/executions/a%20b/state").unwrap_err();
        assert_eq!(refused.to_string(), "Execution a%20b not found");
        assert!(named("/workflows/%ff/executions/x/state").is_err());
    }
}
