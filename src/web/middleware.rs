//! Middleware around every request: its id, checks of hosts and origins, panics, errors of
//! actix-web, and the headers that every answer has.

mod unread_body;

use std::io;
use std::panic::AssertUnwindSafe;

use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, CONTENT_LENGTH, HOST, HeaderMap,
    HeaderValue, ORIGIN, TRANSFER_ENCODING, VARY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::http::{ConnectionType, Method, StatusCode, Version};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpRequest, HttpResponse, ResponseError};
use futures_util::FutureExt;

use crate::api::accept::prefers_problem;
use crate::api::{ApiError, ErrorCode};
use crate::web::admission;
use crate::web::compress;
use crate::web::custom::payload;
use crate::web::faces::openai;
use crate::web::gate::is_upgrade;
use crate::web::origin::Origins;
use crate::web::pieces::in_pieces;
use crate::web::request_ids;
use crate::web::respond::{Refused, X_REQUEST_ID, problem};
use crate::web::scope::{RequestLine, scope_of};
use crate::web::settings::Settings;

use self::unread_body::{last, leave_body};

const REQUEST_ID_CHARS_MAX: usize = 128;
/// Headers that pages of other origins may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-request-id, x-execution-id, x-generation-id, x-trace-id, x-error-code, x-model-fallback, \
     retry-after, location, preference-applied, etag",
);
/// Headers that pages of other origins may send, if the preflight names none.
const HEADERS_ALLOWED: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, if-match, last-event-id, prefer, traceparent, \
     tracestate, x-api-key, x-request-id",
);
const METHODS_ALLOWED: HeaderValue =
    HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");

/// Outcome of checking `Origin` and `Host`.
#[derive(Debug)]
enum OriginCheck {
    /// No page, or one whose browser must not show it the answer.
    Plain,
    /// Page that may read the answer.
    Allowed(HeaderValue),
    /// Page that may not send the request.
    Refused(ApiError),
    /// Preflight of an allowed page.
    Preflight(HeaderValue),
}

/// Handles what is common to all requests.
pub(crate) async fn around<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let line = RequestLine::begin(&request);
    let takes_gzip = compress::is_asked_for(request.headers())
        && request.app_data::<Data<Settings>>().is_some_and(|it| it.config.compression);
    let answer = match answer(request, next).await {
        Ok(response) if takes_gzip => Ok(compress::compressed(response).await),
        answer => answer,
    }
    .map(paced)
    .map(unchunked)
    .map(last);
    if let Some(line) = line {
        line.end(&answer);
    }
    answer
}

async fn answer<B: MessageBody + 'static>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let form = RefusalForm::of(request.request());
    let mut headers = ResponseHeaders { id: request_id(request.headers()), cors: None, form };
    if let Some(refusal) = admission::refusal_of(&request) {
        let mut response = headers.refusal(refusal.error_response());
        response.head_mut().set_connection_type(ConnectionType::Close);
        return Ok(request.into_response(response));
    }
    let check = match request.app_data::<Data<Settings>>() {
        Some(settings) if is_unknown_host(&settings.origins, &request) => {
            OriginCheck::Refused(ApiError::HostNotAllowed)
        }
        // The form of a page without referrer has the origin `null`, and no other page knows a link.
        Some(_) if request.method() == Method::POST && admission::is_link(request.path()) => {
            OriginCheck::Plain
        }
        Some(settings) => check_origin(&settings.origins, request.method(), request.headers()),
        None => OriginCheck::Plain,
    };
    // An unread body makes actix-web close the connection after the answer, which therefore has
    // `connection: close`.
    let leaves_body = has_body(request.headers());
    let may_read = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH);
    match check {
        OriginCheck::Plain => {}
        OriginCheck::Allowed(origin) => headers.cors = Some(origin),
        OriginCheck::Refused(refusal) => {
            let response = headers.refusal(refusal.error_response());
            if leaves_body {
                leave_body(request.request());
            }
            return Ok(request.into_response(response));
        }
        OriginCheck::Preflight(origin) => {
            headers.cors = Some(origin);
            let mut response = preflight(request.headers());
            headers.add_to(response.headers_mut());
            return Ok(request.into_response(response));
        }
    }
    let work = AssertUnwindSafe(next.call(request)).catch_unwind();
    match scope_of(&headers.id).during(work).await {
        Ok(Ok(response)) => {
            let mut response = in_envelope(response);
            let is_left = || {
                let known = payload::is_unread(response.request());
                known.unwrap_or_else(|| !may_read || is_unread(response.response()))
            };
            if leaves_body && is_left() {
                leave_body(response.request());
            }
            if response.status().as_u16() < 400 {
                headers.add_to(response.headers_mut());
                return Ok(response);
            }
            let (request, response) = response.into_parts();
            Ok(ServiceResponse::new(request, headers.refusal(response)))
        }
        // The request is gone: only an error can still transport the answer.
        Ok(Err(error)) => Err(carried(headers.refusal(own_answer(&error)))),
        Err(_) => {
            log::error!("a request handler panicked; request id {:?}", headers.id);
            Err(carried(headers.refusal(ApiError::Internal.error_response())))
        }
    }
}

/// Headers of the answer to one request.
#[derive(Debug)]
struct ResponseHeaders {
    id: HeaderValue,
    /// Origin that may read the answer.
    cors: Option<HeaderValue>,
    form: RefusalForm,
}

/// Form of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalForm {
    Envelope,
    /// `application/problem+json`, which the client prefers.
    Problem,
    /// That of OpenAI's API, on its routes.
    OpenAi,
}

impl RefusalForm {
    fn of(request: &HttpRequest) -> Self {
        if openai::answers(request) {
            return Self::OpenAi;
        }
        if wants_problem(request.headers()) { Self::Problem } else { Self::Envelope }
    }
}

impl ResponseHeaders {
    fn add_to(self, headers: &mut HeaderMap) {
        let Self { id, cors, form: _ } = self;
        headers.insert(X_REQUEST_ID, id);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // Also without an allowed origin: a cache could give such an answer to a page that may read it.
        headers.append(VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = cors {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }

    /// Completes an answer that may be a refusal, in the format that the client prefers.
    fn refusal(self, mut response: HttpResponse) -> HttpResponse {
        let form = self.form;
        self.add_to(response.headers_mut());
        let refused = response.extensions_mut().remove::<Refused>();
        match (refused, form) {
            (Some(refused), RefusalForm::Problem) => problem(response, &refused),
            (Some(refused), RefusalForm::OpenAi) => openai::refusal(response, &refused),
            (Some(_), RefusalForm::Envelope) | (None, _) => response,
        }
    }
}

fn wants_problem(headers: &HeaderMap) -> bool {
    prefers_problem(&headers.get_all(ACCEPT).filter_map(|line| line.to_str().ok()))
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
        || headers.get(CONTENT_LENGTH).is_some_and(|length| length != "0")
}

/// Returns true if the answer was given before the whole body was read.
fn is_unread<B>(response: &HttpResponse<B>) -> bool {
    let extensions = response.extensions();
    let code = extensions.get::<Refused>().map(|refused| refused.code);
    code.is_some_and(|code| {
        matches!(
            code,
            ErrorCode::NotFound
                | ErrorCode::MethodNotAllowed
                | ErrorCode::RequestRefused
                | ErrorCode::AuthRequired
                | ErrorCode::TokenExpired
                | ErrorCode::TokenInvalid
                | ErrorCode::AuthUnavailable
                | ErrorCode::RoleMissing
                | ErrorCode::LocalOnly
                | ErrorCode::MediaTypeUnsupported
                | ErrorCode::EncodingUnsupported
                | ErrorCode::BodyTooLarge
                | ErrorCode::BodyTooSlow
        )
    })
}

/// Puts errors of actix-web and of added handlers into the envelope.
fn in_envelope<B: MessageBody + 'static>(response: ServiceResponse<B>) -> ServiceResponse<BoxBody> {
    let Some(error) = response.response().error() else { return response.map_into_boxed_body() };
    if error.as_error::<ApiError>().is_some() {
        return response.map_into_boxed_body();
    }
    let refusal = foreign(error, response.status(), Some(response.request()));
    response.into_response(refusal.error_response())
}

/// Returns the answer to an error of a failed request.
fn own_answer(error: &Error) -> HttpResponse {
    let response = error.error_response();
    if response.extensions().contains::<Refused>() {
        return response;
    }
    foreign(error, response.status(), None).error_response()
}

/// Maps an error that is not an [`ApiError`].
fn foreign(error: &Error, status: StatusCode, request: Option<&HttpRequest>) -> ApiError {
    if !status.is_client_error() {
        log::error!("a handler failed; answering 500: {error}");
        return ApiError::Internal;
    }
    match request {
        // Error of a file: the answer names its address and not its path on disk.
        Some(request) if error.as_error::<io::Error>().is_some() => ApiError::PathNotFound {
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
        },
        Some(_) | None => ApiError::ByHandler { status: status.as_u16(), text: error.to_string() },
    }
}

/// Sends large answers in pieces, as the client reads them.
fn paced(response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let (request, response) = response.into_parts();
    let Some(settings) = request.app_data::<Data<Settings>>() else {
        return ServiceResponse::new(request, response);
    };
    // Changes are always answered, and so are health checks.
    let is_only_read = matches!(*request.method(), Method::GET | Method::HEAD);
    let may_refuse = is_only_read && !admission::is_control(request.path());
    let paced = in_pieces(response, may_refuse, &settings.answers);
    let response = paced.unwrap_or_else(|head| {
        let id = head.headers().get(X_REQUEST_ID).cloned();
        let id = id.unwrap_or_else(request_ids::next);
        let cors = head.headers().get(ACCESS_CONTROL_ALLOW_ORIGIN).cloned();
        let headers = ResponseHeaders { id, cors, form: RefusalForm::of(&request) };
        headers.refusal(settings.answers.refusal(settings.requests()).error_response())
    });
    ServiceResponse::new(request, response)
}

/// Ends a streamed answer to a client of HTTP/1.0 with its connection, since that version has no chunks
/// (RFC 9112, 6.1).
fn unchunked(mut response: ServiceResponse<BoxBody>) -> ServiceResponse<BoxBody> {
    let is_streamed = response.response().body().size() == BodySize::Stream;
    if is_streamed && response.request().version() < Version::HTTP_11 {
        let head = response.response_mut().head_mut();
        head.no_chunking(true);
        head.set_connection_type(ConnectionType::Close);
    }
    response
}

fn carried(response: HttpResponse) -> Error {
    InternalError::from_response("answered", response).into()
}

/// Returns the caller's request id if it is short and printable, else a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let is_fit = |value: &&HeaderValue| {
        let bytes = value.as_bytes();
        (1..=REQUEST_ID_CHARS_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    headers.get(X_REQUEST_ID).filter(is_fit).cloned().unwrap_or_else(request_ids::next)
}

/// Returns true if a request names a host that the server does not answer to. A proxy may keep the
/// host under which people reach the pages of links, whose addresses only their holders know.
/// Requests without a host do not come from browsers, and health checks are always answered.
fn is_unknown_host(origins: &Origins, request: &ServiceRequest) -> bool {
    let is_link = admission::is_link(request.path());
    let is_known = |host: &HeaderValue| {
        let host = host.to_str();
        host.is_ok_and(|host| origins.answer_to(host) || (is_link && origins.is_of_links(host)))
    };
    !request.headers().get_all(HOST).all(is_known)
        && !matches!(request.path(), "/livez" | "/readyz")
}

fn check_origin(origins: &Origins, method: &Method, headers: &HeaderMap) -> OriginCheck {
    let Some(origin) = headers.get(ORIGIN) else { return OriginCheck::Plain };
    let host = headers.get(HOST).and_then(|value| value.to_str().ok());
    let is_allowed = origin.to_str().is_ok_and(|origin| origins.allow(origin, host));
    let is_preflight =
        method == Method::OPTIONS && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let is_reading = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let is_upgrade = is_upgrade(headers);
    let shown = || {
        if origins.allow_all() { HeaderValue::from_static("*") } else { origin.clone() }
    };
    match (is_allowed, is_preflight) {
        (true, true) => OriginCheck::Preflight(shown()),
        (true, false) => OriginCheck::Allowed(shown()),
        (false, true) => OriginCheck::Refused(ApiError::OriginNotAllowed),
        // The browser hides the answer from the page, since no header allows it to be read.
        (false, false) if is_reading && !is_upgrade => OriginCheck::Plain,
        (false, false) => OriginCheck::Refused(ApiError::OriginNotAllowed),
    }
}

fn preflight(asked: &HeaderMap) -> HttpResponse {
    let headers = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    HttpResponse::NoContent()
        .insert_header((ACCESS_CONTROL_ALLOW_METHODS, METHODS_ALLOWED))
        .insert_header((ACCESS_CONTROL_ALLOW_HEADERS, headers.unwrap_or(HEADERS_ALLOWED)))
        .insert_header((ACCESS_CONTROL_MAX_AGE, "600"))
        .finish()
}

#[cfg(test)]
mod tests;
