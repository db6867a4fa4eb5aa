//! WebSockets: `/ws`, `/ws/logs` and `/ws/observability`. The only module that names
//! actix-web-actors.

mod bounded;
mod channel;
mod echo;
mod frames;
mod history;
mod listening;
mod logs;
mod observe;
mod relay;
mod replay;
mod ring;
mod seam;
mod session;
mod text;

use actix_web::web::{Data, Payload};
use actix_web::{Error, HttpRequest, HttpResponse};
use actix_web_actors::ws::{HandshakeError, WsResponseBuilder};
use greenroom_actors::Runtime;
use greenroom_actors::domain::time::Timestamp;

use crate::api::ApiError;
use crate::api::caller::Caller;
use crate::auth::User;
use crate::web::gate::is_upgrade;
use crate::web::peer::{Peer, Room};
use crate::web::query::query_pairs;
use crate::web::settings::Settings;
use crate::web::ws::bounded::Bounded;
use crate::web::ws::echo::Echoing;
use crate::web::ws::listening::{Listening, Source, Wish, Wishes};
use crate::web::ws::logs::Tailing;
use crate::web::ws::observe::Observing;
use crate::web::ws::session::{Conversation, Session};

pub(crate) use crate::web::ws::channel::Channels;

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

/// `GET /ws/observability?entityType=&entityId=&since=&limit=`.
pub(crate) async fn observe(
    request: HttpRequest,
    caller: Caller,
    payload: Payload,
    runtime: Data<Runtime>,
    settings: Data<Settings>,
    channels: Data<Channels>,
) -> Result<HttpResponse, Error> {
    let wish = observe::wish_of(&query_pairs(&request)?, caller.visibility())?;
    let listening = listening_of(&request, wish, (runtime, channels), &settings);
    let conversation = Observing::new(listening, caller.visibility());
    let expires_at = caller.user().and_then(User::expires_at);
    std::future::ready(open(conversation, expires_at, &request, payload, &settings)).await
}

/// `GET /ws/logs?level=&agentId=&workflowId=&executionId=&since=&until=&limit=`.
pub(crate) async fn tail(
    request: HttpRequest,
    caller: Caller,
    payload: Payload,
    runtime: Data<Runtime>,
    settings: Data<Settings>,
    channels: Data<Channels>,
) -> Result<HttpResponse, Error> {
    let wish = logs::wish_of(&query_pairs(&request)?, caller.visibility())?;
    let listening = listening_of(&request, wish, (runtime, channels), &settings);
    let conversation = Tailing::new(listening, caller.visibility());
    let expires_at = caller.user().and_then(User::expires_at);
    std::future::ready(open(conversation, expires_at, &request, payload, &settings)).await
}

fn listening_of(
    request: &HttpRequest,
    first: Wish,
    (runtime, channels): (Data<Runtime>, Data<Channels>),
    settings: &Data<Settings>,
) -> (Listening, Wishes) {
    Peer::bound_send_buffer(request);
    let (disconnect, room) = (Peer::disconnect_of(request), Room::of(request));
    let settings = Data::clone(settings).into_inner();
    let source = Source { runtime: runtime.into_inner(), channels: channels.into_inner() };
    Listening::new(first, source, settings, disconnect, room)
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
    let admitted = settings.admit_stream(request)?;
    let disconnect = Peer::disconnect_of(request);
    let settings_kept = std::sync::Arc::clone(settings);
    let session = Session::new(conversation, expires_at, settings_kept, disconnect, admitted);
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
