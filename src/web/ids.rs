//! Ids in paths, read from the raw path: the framework's own decoding lets an encoded slash
//! through and makes different ids of broken UTF-8 the same.

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

/// Place of the workflow's or agent's id: `/workflows/:id/...`.
const SUBJECT: usize = 2;
/// Place of the execution's id: `/workflows/:id/executions/:executionId/...`.
const EXECUTION: usize = 4;
/// Place of the conversation's id: `/agents/:id/chat/:conversationId/...`.
const CONVERSATION: usize = 4;
/// Place of the generation's id: `/agents/:id/generations/:generationId/...`.
const GENERATION: usize = 4;

/// The workflow or the agent that a route is about.
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

/// Of a request by itself, only its path can say.
impl FromRequest for Subject {
    type Error = Infallible;
    type Future = Ready<Result<Self, Infallible>>;

    fn from_request(_: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Ok(Self::InPath))
    }
}

/// The workflow that a path names.
pub(crate) fn workflow(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, SUBJECT);
    decode(raw).ok_or_else(|| ApiError::WorkflowNotFound(raw.to_owned().into()))
}

/// The agent that a path names.
pub(crate) fn agent(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, SUBJECT);
    decode(raw).ok_or_else(|| ApiError::AgentNotFound(raw.to_owned().into()))
}

/// The conversation that a path names; `None` for what cannot be one.
pub(crate) fn conversation(request: &HttpRequest) -> Option<Cow<'_, str>> {
    decode(segment(request, CONVERSATION))
}

/// The generation that a path names.
pub(crate) fn generation(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, GENERATION);
    decode(raw).ok_or_else(|| ApiError::GenerationNotFound(raw.to_owned()))
}

/// The execution that a path names, with the workflow it is named under, for whoever asks.
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

/// Place of the id in `/api/memory/conversations/:id/...` and `/api/memory/users/:userId`.
const REMEMBERED: usize = 4;

/// The tool that a path names.
pub(crate) fn tool(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, SUBJECT);
    decode(raw).ok_or_else(|| ApiError::ToolNotFound(raw.to_owned().into()))
}

/// The conversation that a path of memory names.
pub(crate) fn remembered(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    decode(segment(request, REMEMBERED)).ok_or(ApiError::ConversationNotFound)
}

/// The user that a path names.
pub(crate) fn user(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    decode(segment(request, REMEMBERED)).ok_or_else(|| path_not_found(request))
}

/// Place of the id in `/observability/traces/:traceId/...` and `/observability/spans/:spanId/...`.
const OBSERVED: usize = 3;

/// The trace that a path names.
pub(crate) fn trace(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    let raw = segment(request, OBSERVED);
    let id = decode(raw).filter(|id| is_trace_id(id));
    id.ok_or_else(|| ApiError::TraceNotFound(raw.to_owned()))
}

/// The span that a path names.
pub(crate) fn span(request: &HttpRequest) -> Result<SpanId, ApiError> {
    let raw = segment(request, OBSERVED);
    let id = decode(raw).and_then(|id| id.parse().ok());
    id.ok_or_else(|| ApiError::SpanNotFound(raw.to_owned()))
}

/// The file that a path names: `/ui/:file`.
pub(crate) fn file(request: &HttpRequest) -> Result<Cow<'_, str>, ApiError> {
    decode(segment(request, SUBJECT)).ok_or_else(|| path_not_found(request))
}

/// Nothing is at this path.
pub(crate) fn path_not_found(request: &HttpRequest) -> ApiError {
    ApiError::PathNotFound {
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
    }
}

fn segment(request: &HttpRequest, index: usize) -> &str {
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
