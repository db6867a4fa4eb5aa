//! `POST /mcp` and `POST /mcp/:name/mcp`: clients of MCP, and where they get a token.

mod agents;
mod answering;
mod asks;
mod direct;
mod events;
mod feed;
mod listen;
mod resources;
mod session;
mod tasks;
mod workflows;

use std::sync::Arc;

use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use greenroom_actors::observe::log_record::LogScope;
use serde_json::Value;

use self::feed::Feed;
use self::listen::listen;
use self::session::Session;
use crate::api::ApiError;
use crate::api::faces::mcp::{
    Headers, Members, Message, Refusal, ServedFace, answered, discovered, initialized, listed,
    resource_templates, resources,
};
use crate::api::ids::decode;
use crate::auth::RequestHead;
use crate::web::body::Body;
use crate::web::call::{Answer, Call};
use crate::web::ids::{path_not_found, segment};
use crate::web::respond::{Refused, X_ERROR_CODE, X_EXECUTION_ID, X_GENERATION_ID, insert_text};
use crate::web::settings::Settings;

/// Segment of the face's name: `/mcp/:name/mcp`.
const NAME: usize = 2;

/// The same after [`WELL_KNOWN`].
const DESCRIBED_NAME: usize = 4;

/// Members of a result, or the refusal.
type Outcome = Result<Members, Refusal>;

/// `POST /mcp` and `POST /mcp/:name/mcp`.
pub(crate) async fn post(call: Call, body: Body) -> Answer {
    let (server, bytes) = body.take_for(server_of(&call.request, &call.settings, NAME)).await?;
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(refusal) => return Ok(unread(&refusal)),
    };
    let message = Message::read(headers_of(&call.request), &bytes);
    drop(bytes);
    Ok(match message {
        Ok(Message::Request(request)) => answer(Session::new(call, server, request)).await,
        Ok(Message::Unanswered) => HttpResponse::Accepted().finish(),
        Err(refusal) => refused(&refusal),
    })
}

/// `GET /.well-known/oauth-protected-resource/mcp`, and the same for a face with a name.
pub(crate) async fn describe(request: HttpRequest, settings: Data<Settings>) -> Answer {
    let server = server_of(&request, &settings, DESCRIBED_NAME)?;
    let protection = server.protection.as_ref().ok_or_else(|| path_not_found(&request))?;
    Ok(respond(StatusCode::OK, &protection.describe()))
}

/// Adds to the challenge of a refusal where clients of a face get a token.
pub(crate) fn challenge(request: &HttpRequest, response: &mut HttpResponse) {
    let settings = request.app_data::<Data<Settings>>();
    let server = settings.and_then(|settings| server_of(request, settings, NAME).ok());
    let protection = server.as_ref().and_then(|server| server.protection.as_ref());
    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|it| it.to_str().ok());
    if let Some((protection, challenge)) = protection.zip(challenge) {
        let whole = protection.challenge(challenge);
        insert_text(response, WWW_AUTHENTICATE, &whole);
    }
}

fn server_of(
    request: &HttpRequest,
    settings: &Settings,
    place: usize,
) -> Result<Arc<ServedFace>, ApiError> {
    let unknown = || path_not_found(request);
    // the route says whether there is a name: one that cannot be decoded is still a name
    let name = match request.match_info().get("name") {
        Some(_) => Some(decode(segment(request, place)).ok_or_else(unknown)?),
        None => None,
    };
    let found = settings.config.mcp.iter().find(|it| it.name.as_deref() == name.as_deref());
    found.cloned().ok_or_else(unknown)
}

fn headers_of(request: &HttpRequest) -> Headers<'_> {
    let header = |name| RequestHead::header(request, name);
    Headers {
        version: header("mcp-protocol-version"),
        method: header("mcp-method"),
        name: header("mcp-name"),
    }
}

/// Answers a request, with events if its client wants to see progress.
async fn answer(mut session: Session) -> HttpResponse {
    if session.request.method == "subscriptions/listen" && !session.request.is_legacy() {
        return listen(session).await;
    }
    let wants_events = session.request.method == "tools/call"
        && session.request.progress_token().is_some()
        && takes_events(session.call.request.headers());
    if wants_events {
        return match Feed::open(&session) {
            Ok((feed, response)) => {
                let running = feed.run(session);
                match LogScope::current() {
                    Some(scope) => drop(actix_web::rt::spawn(scope.during(running))),
                    None => drop(actix_web::rt::spawn(running)),
                }
                response
            }
            Err(refusal) => refused(&session.request.refused(&refusal)),
        };
    }
    match carry_out(&mut session, None).await {
        Ok(body) => respond(StatusCode::OK, &body),
        Err(refusal) => refused(&refusal),
    }
}

/// Carries a request out and returns the message with its result.
async fn carry_out(session: &mut Session, feed: Option<&Feed>) -> Result<Value, Refusal> {
    let method = session.request.method.clone();
    let has_resources = session.server.has_resources;
    let result = match (method.as_str(), session.request.is_legacy()) {
        ("initialize", true) => initialized(&session.request, &session.server),
        ("ping", true) => Members::new(),
        ("server/discover", false) => discovered(&session.request, &session.server),
        ("tools/list", _) => list(session)?,
        ("tools/call", _) => session.call_tool(feed).await?,
        ("resources/list", _) if has_resources => resources(&session.request),
        ("resources/templates/list", _) if has_resources => resource_templates(&session.request),
        ("resources/read", _) if has_resources => session.read_resource().await?,
        ("tasks/get", false) => session.show_task().await?,
        ("tasks/update", false) => session.update_task().await?,
        ("tasks/cancel", false) => session.cancel_task().await?,
        _ => return Err(session.request.unknown_method()),
    };
    Ok(answered(&session.request, result))
}

fn list(session: &Session) -> Outcome {
    if session.request.params.contains_key("cursor") {
        return Err(session.request.invalid("unknown cursor: this server does not paginate"));
    }
    Ok(listed(&session.request, &session.tools(), !session.call.caller.is_auth_off()))
}

fn takes_events(headers: &HeaderMap) -> bool {
    let mut ranges = headers.get_all(ACCEPT).filter_map(|line| line.to_str().ok());
    ranges.any(|line| line.contains("text/event-stream") || line.contains("*/*"))
}

/// Refuses a body that could not be read, and closes the connection if the rest may still arrive.
fn unread(refusal: &ApiError) -> HttpResponse {
    let mut response = refusal.error_response();
    let body = Refusal::unread(refusal).body().to_string();
    // it has its form already
    let _ = response.extensions_mut().remove::<Refused>();
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response.set_body(BoxBody::new(body))
}

fn refused(refusal: &Refusal) -> HttpResponse {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::OK);
    let mut response = respond(status, &refusal.body());
    for (key, header) in [
        ("code", X_ERROR_CODE),
        ("retryAfter", RETRY_AFTER),
        ("executionId", X_EXECUTION_ID),
        ("generationId", X_GENERATION_ID),
    ] {
        if let Some(text) = refusal.detail(key) {
            insert_text(&mut response, header, &text);
        }
    }
    response
}

fn respond(status: StatusCode, body: &Value) -> HttpResponse {
    HttpResponse::build(status).content_type("application/json").body(body.to_string())
}
