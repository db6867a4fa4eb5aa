//! WebSockets: `/ws`, `/ws/logs` and `/ws/observability`. The only module that names
//! actix-web-actors.

mod bounded;
mod broadcast;
mod channel;
mod client_feed;
mod deduplicator;
mod echo;
mod frames;
mod history;
mod logs;
mod observe;
mod relay;
mod replay;
mod session;
mod text;

use std::sync::Arc;

use actix_web::http::header::SEC_WEBSOCKET_VERSION;
use actix_web::web::{Data, Payload};
use actix_web::{Error, HttpRequest, HttpResponse};
use actix_web_actors::ws::{HandshakeError, WsResponseBuilder};

use crate::api::ApiError;
use crate::api::caller::Caller;
use crate::auth::User;
use crate::web::call::Call;
use crate::web::gate::is_upgrade;
use crate::web::peer::{Peer, SendBuffer};
use crate::web::settings::Settings;
use crate::web::ws::bounded::Bounded;
use crate::web::ws::client_feed::{ClientFeed, FeedSession, Source, TopicRequest, TopicRequests};
use crate::web::ws::echo::EchoHandler;
use crate::web::ws::logs::LogHandler;
use crate::web::ws::observe::TraceHandler;
use crate::web::ws::session::{Session, SocketHandler};

pub(crate) use crate::web::ws::channel::Channels;

/// `GET /ws`.
pub(crate) async fn echo(
    request: HttpRequest,
    caller: Caller,
    payload: Payload,
    settings: Data<Settings>,
) -> Result<HttpResponse, Error> {
    let handler = EchoHandler { caller: caller.clone() };
    std::future::ready(open(handler, &caller, &request, payload, &settings)).await
}

/// Arguments of the socket of a feed, besides the call.
type Upgrade = (Payload, Data<Channels>);

/// `GET /ws/observability?entityType=&entityId=&since=&limit=`.
pub(crate) async fn observe(call: Call, upgrade: Upgrade) -> Result<HttpResponse, Error> {
    let (filter, first) = observe::request_of(&call.pairs()?, call.caller.visibility())?;
    let handler = |feed| TraceHandler::new(feed, filter);
    std::future::ready(open_feed(&call, upgrade, first, handler)).await
}

/// `GET /ws/logs?level=&agentId=&workflowId=&executionId=&since=&until=&limit=`.
pub(crate) async fn tail(call: Call, upgrade: Upgrade) -> Result<HttpResponse, Error> {
    let first = logs::request_of(&call.pairs()?, call.caller.visibility())?;
    std::future::ready(open_feed(&call, upgrade, first, LogHandler)).await
}

/// Upgrades a request and starts a session that follows a feed.
fn open_feed<C: SocketHandler>(
    call: &Call,
    (payload, channels): Upgrade,
    first: TopicRequest,
    handler: impl FnOnce(FeedSession) -> C,
) -> Result<HttpResponse, Error>
where
    Session<C>: actix::Actor<Context = actix_web_actors::ws::WebsocketContext<Session<C>>>,
{
    let feed = FeedSession::new(feed_of(call, first, channels), call.caller.visibility());
    open(handler(feed), &call.caller, &call.request, payload, &call.settings)
}

fn feed_of(
    call: &Call,
    first: TopicRequest,
    channels: Data<Channels>,
) -> (ClientFeed, TopicRequests) {
    let Call { request, runtime, settings, .. } = call;
    Peer::bound_send_buffer(request);
    let (disconnect, send_buffer) = (Peer::disconnect_of(request), SendBuffer::of(request));
    let settings = Data::clone(settings).into_inner();
    let source = Source { runtime: runtime.clone().into_inner(), channels: channels.into_inner() };
    ClientFeed::new(first, source, settings, disconnect, send_buffer)
}

/// Upgrades a request and starts its session, which ends with the caller's token.
fn open<C: SocketHandler>(
    handler: C,
    caller: &Caller,
    request: &HttpRequest,
    payload: Payload,
    settings: &Arc<Settings>,
) -> Result<HttpResponse, Error>
where
    Session<C>: actix::Actor<Context = actix_web_actors::ws::WebsocketContext<Session<C>>>,
{
    // actix-web-actors accepts any value that contains `websocket`; origins and tokens were checked
    // for the exact word.
    if !is_upgrade(request.headers()) {
        return Err(refusal_of(HandshakeError::NoWebsocketUpgrade).into());
    }
    // It also accepts drafts of the protocol.
    let version = request.headers().get(SEC_WEBSOCKET_VERSION);
    if version.is_some_and(|version| version != "13") {
        return Err(refusal_of(HandshakeError::UnsupportedVersion).into());
    }
    let admitted = settings.admit_stream(request)?;
    let disconnect = Peer::disconnect_of(request);
    let expires_at = caller.user().and_then(User::expires_at);
    let shared = Arc::clone(settings);
    let session = Session::new(handler, expires_at, shared, disconnect, admitted);
    let frame_bytes_max = settings.config.websocket_frame_bytes_max;
    let bytes = Bounded::new(payload, frame_bytes_max, session.oversized_flag());
    let opened = WsResponseBuilder::new(session, request, bytes).frame_size(frame_bytes_max);
    opened.start().map_err(|error| match error.as_error::<HandshakeError>() {
        Some(wrong) => refusal_of(*wrong).into(),
        None => error,
    })
}

/// Returns the refusal of a request without a valid handshake.
fn refusal_of(wrong: HandshakeError) -> ApiError {
    match wrong {
        // The routes only bind GET.
        HandshakeError::GetMethodRequired
        | HandshakeError::NoWebsocketUpgrade
        | HandshakeError::NoConnectionUpgrade => {
            ApiError::WebSocketOnly("send Connection: Upgrade and Upgrade: websocket")
        }
        HandshakeError::NoVersionHeader | HandshakeError::UnsupportedVersion => {
            ApiError::WebSocketOnly("send Sec-WebSocket-Version: 13")
        }
        HandshakeError::BadWebsocketKey => {
            let what = "must be sent".to_owned();
            ApiError::InvalidHeader { name: "Sec-WebSocket-Key", what }
        }
    }
}
