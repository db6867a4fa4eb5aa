//! Answers in the envelope.

use std::borrow::Cow;

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT_ENCODING, ALLOW, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
    RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE, VARY, WWW_AUTHENTICATE,
};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use greenroom_actors::domain::ids::ExecutionId;
use serde::Serialize;

use crate::api::accept::PROBLEM;
use crate::api::prefer::RESPOND_ASYNC;
use crate::api::wire::envelope::{Failed, Success};
use crate::api::wire::execution::ExecutionView;
use crate::api::wire::problem::{ProblemView, RefusalDetails};
use crate::api::{ApiError, ErrorCode};

/// Id of the request.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Machine-readable code of a refusal.
pub(crate) const X_ERROR_CODE: HeaderName = HeaderName::from_static("x-error-code");
/// Id of the execution.
pub(crate) const X_EXECUTION_ID: HeaderName = HeaderName::from_static("x-execution-id");
/// Id of the generation.
pub(crate) const X_GENERATION_ID: HeaderName = HeaderName::from_static("x-generation-id");

/// Name of the fallback model that answered.
pub(crate) const X_MODEL_FALLBACK: HeaderName = HeaderName::from_static("x-model-fallback");

/// Id of the trace.
pub(crate) const X_TRACE_ID: HeaderName = HeaderName::from_static("x-trace-id");

/// Preference of the client that was followed (RFC 7240).
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Initial capacity of a body, enough for most answers.
const ANSWER_BYTES: usize = 512;

/// Returns a successful answer, serialized directly to bytes.
pub(crate) fn json<T: Serialize>(data: T) -> HttpResponse {
    written(HttpResponse::Ok(), &Success::of(data))
}

/// Returns a successful answer without the envelope.
pub(crate) fn bare<T: Serialize>(answer: &T) -> HttpResponse {
    written(HttpResponse::Ok(), answer)
}

/// Returns a successful answer with the status 201.
pub(crate) fn created<T: Serialize>(data: T) -> HttpResponse {
    written(HttpResponse::Created(), &Success::of(data))
}

/// Returns the answer to a request whose outcome its client does not wait for, with the address at
/// which the outcome will be, and the execution as far as it is known.
pub(crate) fn accepted(place: &str, now: Option<&ExecutionView<'_>>) -> HttpResponse {
    let mut answer = match now {
        Some(now) => written(HttpResponse::Accepted(), &Success::of(now)),
        None => HttpResponse::Accepted().finish(),
    };
    insert_text(&mut answer, LOCATION, place);
    insert_text(&mut answer, PREFERENCE_APPLIED, RESPOND_ASYNC);
    answer
}

fn written<T: Serialize>(mut answer: HttpResponseBuilder, body: &T) -> HttpResponse {
    let mut bytes = Vec::with_capacity(ANSWER_BYTES);
    match serde_json::to_writer(&mut bytes, body) {
        Ok(()) => answer.content_type("application/json").body(bytes),
        Err(error) => {
            log::error!("cannot serialize an answer: {error}");
            ApiError::Internal.error_response()
        }
    }
}

/// Adds the header with the execution's id to an answer or a refusal, unless it does not exist.
pub(crate) fn about(id: &ExecutionId, answer: Result<HttpResponse, ApiError>) -> HttpResponse {
    let mut response = match answer {
        Ok(response) => response,
        Err(missing @ ApiError::ExecutionNotFound(_)) => return missing.error_response(),
        Err(refusal) => refusal.error_response(),
    };
    insert_text(&mut response, X_EXECUTION_ID, id.as_str());
    response
}

/// Adds the header with the trace id.
pub(crate) fn traced(trace_id: &str, mut response: HttpResponse) -> HttpResponse {
    insert_text(&mut response, X_TRACE_ID, trace_id);
    response
}

/// Sets a header to a text. An invalid header value is left out.
pub(crate) fn insert_text(response: &mut HttpResponse, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        response.headers_mut().insert(name, value);
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let text = self.to_string();
        let mut builder = HttpResponse::build(self.status_code());
        let leaves_body = matches!(
            self,
            Self::BodyTooSlow
                | Self::BodyTooLarge { .. }
                | Self::BodyBroken(_)
                | Self::UnsupportedMediaType(_)
                | Self::FormOnly
                | Self::UnsupportedEncoding(_)
        );
        if leaves_body {
            // The rest of the body may still arrive: the connection cannot be reused.
            builder.force_close();
        }
        let details = self.details();
        let mut response = builder.json(Failed::of(&text, details.as_ref()));
        add_headers(response.headers_mut(), self);
        if let Some(allow) = self.allow() {
            insert_text(&mut response, ALLOW, allow);
        }
        if let Some(id) = self.execution_id() {
            insert_text(&mut response, X_EXECUTION_ID, id.as_str());
        }
        if let Some(id) = self.generation_id() {
            insert_text(&mut response, X_GENERATION_ID, id);
        }
        let place = self.place().map(str::to_owned);
        let refused = Refused { code: self.code(), detail: text, details, place };
        response.extensions_mut().insert(refused);
        response
    }
}

/// Adds the headers that follow from the code of a refusal.
fn add_headers(headers: &mut HeaderMap, refusal: &ApiError) {
    let code = refusal.code();
    headers.insert(X_ERROR_CODE, HeaderValue::from_static(code.as_str()));
    headers.append(VARY, HeaderValue::from_static("accept"));
    if let Some(seconds) = refusal.retry_after_s() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(challenge) = refusal.challenge() {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }
    if code == ErrorCode::UpgradeRequired {
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    }
    if code == ErrorCode::EncodingUnsupported {
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
}

/// Content of a refusal, stored with its answer: the middleware may still change its format.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) code: ErrorCode,
    pub(crate) detail: String,
    details: Option<RefusalDetails>,
    /// Path of what is wrong in the body.
    pub(crate) place: Option<String>,
}

impl Refused {
    /// Returns the text with the step that failed, for forms that have no member for it.
    pub(crate) fn with_step(&self) -> Cow<'_, str> {
        with_step(&self.detail, self.details.as_ref())
    }
}

/// Adds the step that failed to the text of a refusal.
pub(crate) fn with_step<'t>(text: &'t str, details: Option<&RefusalDetails>) -> Cow<'t, str> {
    match details.and_then(|details| details.path.as_ref()) {
        Some(path) => Cow::Owned(format!("{text}: step {path} failed")),
        None => Cow::Borrowed(text),
    }
}

/// Rewrites a refusal in the format of RFC 9457. Its headers must be complete already.
pub(crate) fn problem(response: HttpResponse, refused: &Refused) -> HttpResponse {
    let headers = response.headers();
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let problem = ProblemView::of(refused.code, response.status().as_u16(), &refused.detail);
    let problem = problem.about(text(X_REQUEST_ID), text(X_EXECUTION_ID), text(X_GENERATION_ID));
    let problem = problem.detailed(refused.details.as_ref());
    let body = serde_json::to_vec(&problem);
    rewritten(response, PROBLEM, body)
}

/// Replaces the body of a refusal by another form of it.
pub(crate) fn rewritten(
    mut response: HttpResponse,
    media_type: &'static str,
    body: serde_json::Result<Vec<u8>>,
) -> HttpResponse {
    match body {
        Ok(bytes) => {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            response.set_body(BoxBody::new(bytes))
        }
        Err(error) => {
            log::error!("cannot serialize a refusal: {error}");
            response
        }
    }
}
