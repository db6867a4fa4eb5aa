//! WebSockets: `/ws` and `/ws/observability`. The only module that names actix-web-actors.

mod bounded;
mod echo;
mod observe;
mod relay;
mod session;
mod text;

use actix_web::web::{Data, Payload};
use actix_web::{Error, HttpRequest, HttpResponse};
use actix_web_actors::ws::{HandshakeError, WsResponseBuilder};
use greenroom_actors::Runtime;
use greenroom_actors::domain::time::Timestamp;

use crate::api::ApiError;
use crate::api::caller::Caller;
use crate::api::query::value_of;
use crate::api::wire::span::filter_of;
use crate::auth::User;
use crate::web::executions::query_pairs;
use crate::web::gate::is_upgrade;
use crate::web::peer::Peer;
use crate::web::server::Settings;
use crate::web::ws::bounded::Bounded;
use crate::web::ws::echo::Echoing;
use crate::web::ws::observe::Observing;
use crate::web::ws::session::{Conversation, Session};

/// `GET /ws`.
pub(crate) async fn echo(
    request: HttpRequest,
    caller: Caller,
    payload: Payload,
    settings: Data<Settings>,
) -> Result<HttpResponse, Error> {
    let expires_at = caller.user().and_then(User::expires_at);
    let conversation = Echoing { caller };
    std::future::ready(open(conversation, expires_at, &request, payload, &settings)).await
}

/// `GET /ws/observability?entityType=&entityId=`.
pub(crate) async fn observe(
    request: HttpRequest,
    caller: Caller,
    payload: Payload,
    runtime: Data<Runtime>,
    settings: Data<Settings>,
) -> Result<HttpResponse, Error> {
    let pairs = query_pairs(&request)?;
    let entity_id = value_of(&pairs, "entityId").map(str::to_owned);
    let filter = filter_of(value_of(&pairs, "entityType"), entity_id, caller.sight())?;
    Peer::bound_send_buffer(&request);
    let settings = settings.into_inner();
    let conversation =
        Observing::new(runtime.into_inner(), &settings, filter, Peer::cut_of(&request));
    let expires_at = caller.user().and_then(User::expires_at);
    std::future::ready(open(conversation, expires_at, &request, payload, &settings)).await
}

/// `expires_at`: when the token ends that the connection was opened with.
fn open<C: Conversation>(
    conversation: C,
    expires_at: Option<Timestamp>,
    request: &HttpRequest,
    payload: Payload,
    settings: &std::sync::Arc<Settings>,
) -> Result<HttpResponse, Error>
where
    Session<C>: actix::Actor<Context = actix_web_actors::ws::WebsocketContext<Session<C>>>,
{
    // The crate takes whatever has the word in it; origins and tokens were judged by the word alone.
    if !is_upgrade(request.headers()) {
        return Err(refusal_of(HandshakeError::NoWebsocketUpgrade).into());
    }
    let cut = Peer::cut_of(request);
    let session = Session::new(conversation, expires_at, std::sync::Arc::clone(settings), cut);
    let frame_bytes_max = settings.config.websocket_frame_bytes_max;
    let bytes = Bounded::new(payload, frame_bytes_max, session.is_over());
    let opened = WsResponseBuilder::new(session, request, bytes).frame_size(frame_bytes_max);
    opened.start().map_err(|error| match error.as_error::<HandshakeError>() {
        Some(wrong) => refusal_of(*wrong).into(),
        None => error,
    })
}

/// What a request lacks that wants no WebSocket, or wants it in another way than ours.
fn refusal_of(wrong: HandshakeError) -> ApiError {
    match wrong {
        // The routes let nothing else than GET come here.
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
