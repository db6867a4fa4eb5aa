//! A WebSocket session: pings, a deadline for the client's answers, limits, and closing.

use std::cell::Cell;
use std::io::ErrorKind;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, StreamHandler};
use actix_web_actors::ws::{CloseCode, CloseReason, Message, ProtocolError, WebsocketContext};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::disconnect::Disconnect;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use serde::Serialize;
use tokio::time::Instant;

use crate::api::wire::envelope::ErrorFrame;
use crate::telemetry::metrics::{Gauged, RequestMeter};
use crate::web::admission::Admitted;
use crate::web::settings::{Settings, WebConfig};
use crate::web::shutdown::SHUTTING_DOWN;
use crate::web::ws::text::{Assembler, FragmentError, Whole};

/// Mailbox capacity for messages of other actors.
const SESSION_MAILBOX: usize = 64;
/// Number of heartbeats that the client may leave unanswered.
const SILENT_BEATS_MAX: u32 = 2;

/// Context of a session.
pub(super) type Ctx<C> = WebsocketContext<Session<C>>;

/// Messages of one kind of WebSocket.
pub(super) trait SocketHandler: Sized + Unpin + 'static {
    /// Called when the connection is open.
    fn opened(&mut self, ctx: &mut Ctx<Self>);

    /// Called for each complete text message.
    fn received(&mut self, text: &str, ctx: &mut Ctx<Self>);
}

/// One WebSocket connection. Runs only while the client reads: a client that does not read is
/// disconnected from outside, through `disconnect`.
pub(super) struct Session<C> {
    pub(super) handler: C,
    /// Expiry of the token that opened the connection.
    expires_at: Option<Timestamp>,
    settings: Arc<Settings>,
    disconnect: Disconnect,
    fragments: Assembler,
    /// Pings and pongs of the client since the last heartbeat.
    controls: usize,
    received_at: Rc<Cell<Instant>>,
    is_oversized: Rc<Cell<bool>>,
    _counted: Option<Gauged>,
    _admitted: Admitted,
}

impl<C: SocketHandler> Session<C> {
    pub(super) fn new(
        handler: C,
        expires_at: Option<Timestamp>,
        settings: Arc<Settings>,
        disconnect: Disconnect,
        admitted: Admitted,
    ) -> Self {
        let WebConfig { websocket_frame_bytes_max, websocket_fragments_max, .. } = settings.config;
        let fragments = Assembler::new(websocket_frame_bytes_max, websocket_fragments_max);
        let received_at = Rc::new(Cell::new(Instant::now()));
        let is_oversized = Rc::default();
        let counted = settings.requests().map(RequestMeter::socket);
        Self {
            handler,
            expires_at,
            settings,
            disconnect,
            fragments,
            received_at,
            is_oversized,
            controls: 0,
            _counted: counted,
            _admitted: admitted,
        }
    }

    /// Returns the flag to set if a frame is too large.
    pub(super) fn oversized_flag(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.is_oversized)
    }

    /// Counts events that the client has missed.
    pub(super) fn count_missed(&self, events: u64) {
        if let Some(meter) = self.settings.requests() {
            meter.dropped().inc_by(events);
        }
    }

    /// Counts a ping or a pong; returns false if there are too many in the current message or since
    /// the last heartbeat.
    fn admits_control(&mut self) -> bool {
        self.controls += 1;
        self.controls <= self.settings.config.websocket_fragments_max
            && self.fragments.count_control().is_ok()
    }

    fn take(&mut self, whole: Whole, ctx: &mut Ctx<C>) {
        let Whole { is_text, bytes } = whole;
        match String::from_utf8(bytes) {
            Ok(text) if is_text => self.handler.received(&text, ctx),
            Err(_) if is_text => close(ctx, CloseCode::Invalid, "text is not UTF-8"),
            Ok(_) | Err(_) => refuse_binary(ctx),
        }
    }
}

impl<C: SocketHandler> Actor for Session<C> {
    type Context = WebsocketContext<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(SESSION_MAILBOX);
        let heartbeat = self.settings.config.heartbeat;
        ctx.run_interval(heartbeat, |session, ctx| {
            session.controls = 0;
            ctx.ping(b"");
        });
        watch(&self.received_at, heartbeat, Arc::clone(&self.disconnect));
        self.settings.shutdown.notify(ctx, |_: &mut Self, ctx| {
            close(ctx, CloseCode::Away, SHUTTING_DOWN);
        });
        if let Some(expires_at) = self.expires_at {
            let left = Duration::from_millis(expires_at.ms_since(SystemClock.now()));
            ctx.run_later(left, |_, ctx| close(ctx, CloseCode::Policy, "the token has expired"));
        }
        self.handler.opened(ctx);
    }
}

impl<C: SocketHandler> StreamHandler<Result<Message, ProtocolError>> for Session<C> {
    fn handle(&mut self, message: Result<Message, ProtocolError>, ctx: &mut Self::Context) {
        self.received_at.set(Instant::now());
        match message {
            Ok(Message::Ping(_) | Message::Pong(_)) if !self.admits_control() => {
                close(ctx, CloseCode::Policy, "too many pings and pongs");
            }
            Ok(Message::Ping(bytes)) => ctx.pong(&bytes),
            Ok(Message::Pong(_) | Message::Nop) => {}
            Ok(Message::Text(_) | Message::Binary(_)) if self.fragments.is_gathering() => {
                close(ctx, CloseCode::Protocol, "a message inside another");
            }
            Ok(Message::Text(text)) => self.handler.received(&text, ctx),
            Ok(Message::Binary(_)) => refuse_binary(ctx),
            Ok(Message::Continuation(fragment)) => match self.fragments.take(fragment) {
                Ok(Some(whole)) => self.take(whole, ctx),
                Ok(None) => {}
                Err(FragmentError::TooMany) => close(ctx, CloseCode::Size, "too many fragments"),
                Err(FragmentError::TooLarge) => close(ctx, CloseCode::Size, "message too large"),
                Err(FragmentError::OutOfPlace) => {
                    close(ctx, CloseCode::Protocol, "a fragment out of place");
                }
            },
            Ok(Message::Close(reason)) => {
                ctx.close(reason);
                ctx.stop();
            }
            Err(_) if self.is_oversized.get() => close(ctx, CloseCode::Size, "frame too large"),
            Err(ProtocolError::Overflow) => close(ctx, CloseCode::Size, "frame too large"),
            // actix-web-actors reports invalid UTF-8 as this error.
            Err(ProtocolError::Io(error)) if error.kind() == ErrorKind::Other => {
                close(ctx, CloseCode::Invalid, "text is not UTF-8");
            }
            Err(error) => {
                log::debug!("closing a WebSocket after a protocol error: {error}");
                close(ctx, CloseCode::Protocol, "protocol error");
            }
        }
    }
}

/// Sends a frame.
pub(super) fn send<C: SocketHandler, T: Serialize>(ctx: &mut Ctx<C>, frame: &T) {
    match serde_json::to_string(frame) {
        Ok(text) => ctx.text(text),
        Err(error) => log::error!("cannot serialize a frame: {error}"),
    }
}

fn refuse_binary<C: SocketHandler>(ctx: &mut Ctx<C>) {
    send(ctx, &ErrorFrame::of("Invalid message format: expected text"));
}

fn close<C: SocketHandler>(ctx: &mut Ctx<C>, code: CloseCode, why: &str) {
    ctx.close(Some(CloseReason { code, description: Some(why.to_owned()) }));
    ctx.stop();
}

/// Disconnects a client that has been silent for too long. Runs as a separate task, because the
/// session is not polled while its client does not read.
fn watch(received_at: &Rc<Cell<Instant>>, heartbeat: Duration, disconnect: Disconnect) {
    let received_at = Rc::downgrade(received_at);
    let silence_max = heartbeat * SILENT_BEATS_MAX + heartbeat / 2;
    actix_web::rt::spawn(async move {
        loop {
            tokio::time::sleep(heartbeat).await;
            let Some(received_at) = received_at.upgrade() else { return };
            if received_at.get().elapsed() > silence_max {
                disconnect();
                return;
            }
        }
    });
}
