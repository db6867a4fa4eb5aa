//! An answer as a stream of events: bounded, kept open, and ended when its client does not read.

use std::convert::Infallible;
use std::future::pending;

use actix_web::web::Bytes;
use actix_web::{Error, HttpResponse};
use futures_util::StreamExt as _;
use greenroom_actors::observe::disconnect::Disconnect;
use serde_json::Value;
use tokio::time::{Instant, interval_at};
use tokio_util::sync::CancellationToken;

use super::session::Session;
use crate::api::ApiError;
use crate::telemetry::metrics::RequestMeter;
use crate::web::heartbeat::{Heartbeat, Reading};
use crate::web::peer::Peer;
use crate::web::pending_stream::head_of_stream;
use crate::web::settings::Settings;
use crate::web::subscriber_queue::{SubscriberQueue, Weight};

/// The events of one answer.
pub(super) struct Events {
    queue: SubscriberQueue<Bytes>,
    disconnect: Disconnect,
    /// Fires when the connection is closed.
    closed: CancellationToken,
}

impl Events {
    /// Opens the answer to a request.
    pub(super) fn open(session: &Session) -> Result<(Self, HttpResponse), ApiError> {
        let (request, settings) = (&session.call.request, &session.call.settings);
        let admitted = settings.admit_stream(request)?;
        Peer::bound_send_buffer(request);
        let queue = settings.subscriber_queue();
        let counted = settings.requests().map(RequestMeter::stream);
        let closed = CancellationToken::new();
        let closes = closed.clone();
        let body = queue.receiver(move || {
            drop((counted, admitted));
            closes.cancel();
        });
        let bytes = body.map(|delivery| Ok::<_, Error>(delivery.into_bytes()));
        let response = head_of_stream().content_type("text/event-stream").streaming(bytes);
        let disconnect = Peer::disconnect_of(request);
        Ok((Self { queue, disconnect, closed }, response))
    }

    /// Sends a message regardless of what was not read yet.
    pub(super) fn send(&self, message: &Value) {
        let (bytes, weight) = event(message);
        self.queue.push_anyway(bytes, weight);
    }

    /// Sends a message that a client that is behind may miss.
    pub(super) fn send_if_roomy(&self, message: &Value) {
        let (bytes, weight) = event(message);
        self.queue.push_if_roomy(bytes, weight);
    }

    /// Waits until the client has read most of what was sent.
    pub(super) async fn room(&self) {
        self.queue.room().await;
    }

    /// Waits until the client has closed the connection.
    pub(super) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Ends the answer after what was sent, which the client may take its time to read.
    pub(super) fn finish(&self, settings: &Settings) {
        self.queue.finish();
        let heartbeat = Heartbeat::of(&settings.config);
        heartbeat.watch_end(self.queue.clone(), self.disconnect.clone());
    }

    /// Shows proxies that the answer continues, and leaves a client that does not read.
    pub(super) async fn keep_open(&self, settings: &Settings) -> ! {
        let heartbeat = Heartbeat::of(&settings.config);
        let every = |period| interval_at(Instant::now() + period, period);
        let mut beats = every(heartbeat.interval());
        let mut looks = every(heartbeat.stall_max() / 2);
        loop {
            tokio::select! {
                _ = beats.tick() => Heartbeat::beat(&self.queue),
                _ = looks.tick() => {
                    if let Reading::Stalled(stall) = heartbeat.reading(&self.queue) {
                        log::info!("disconnected a client of MCP: it read nothing for {stall:?}");
                        (self.disconnect)();
                        break;
                    }
                }
            }
        }
        // the answer ends with its connection
        match pending::<Infallible>().await {}
    }
}

fn event(message: &Value) -> (Bytes, Weight) {
    let bytes = Bytes::from(format!("data: {message}\n\n"));
    let weight = Weight { events: 1, bytes: bytes.len() };
    (bytes, weight)
}
