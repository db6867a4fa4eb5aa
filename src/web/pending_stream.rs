//! Streams over HTTP whose answer has not begun: what executions and generations have in common.

use actix::{Actor, Addr, Context, Handler, Message};
use actix_web::http::header::{CACHE_CONTROL, HeaderName};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use greenroom_actors::observe::disconnect::Disconnect;

use crate::api::ApiError;
use crate::telemetry::metrics::{Gauged, RequestMeter};
use crate::web::admission::Admitted;
use crate::web::peer::Peer;
use crate::web::settings::Settings;
use crate::web::subscriber_queue::{QueueReceiver, SubscriberQueue};

/// Asks proxies not to buffer the stream.
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The actor of a stream, and its queue towards the client.
pub(crate) struct PendingStream<A: Actor> {
    pub(crate) address: Addr<A>,
    pub(crate) queue: SubscriberQueue<Bytes>,
    pub(crate) disconnect: Disconnect,
    /// Counted in the metrics as long as the client is connected.
    counted: Option<Gauged>,
    admitted: Admitted,
}

/// Reports to the actor of a stream that its client has disconnected.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct ClientLeft;

/// Starts an actor on this thread, with a mailbox of this capacity.
pub(crate) fn launch<A: Actor<Context = Context<A>>>(actor: A, mailbox: usize) -> Addr<A> {
    A::create(|ctx| {
        ctx.set_mailbox_capacity(mailbox);
        actor
    })
}

impl<A> PendingStream<A>
where
    A: Actor<Context = Context<A>> + Handler<ClientLeft>,
{
    /// Admits a stream and launches its actor on this worker's thread.
    pub(crate) fn open(
        request: &HttpRequest,
        settings: &Settings,
        launch: impl FnOnce(SubscriberQueue<Bytes>, Disconnect) -> Addr<A>,
    ) -> Result<Self, ApiError> {
        let admitted = settings.admit_stream(request)?;
        Peer::bound_send_buffer(request);
        let (queue, disconnect) = (settings.subscriber_queue(), Peer::disconnect_of(request));
        let counted = settings.requests().map(RequestMeter::stream);
        let address = launch(queue.clone(), disconnect.clone());
        Ok(Self { address, queue, disconnect, counted, admitted })
    }

    /// Stops the actor of a stream that will not be sent.
    pub(crate) fn abandon(&self) {
        // If the mailbox is full, the actor notices by itself that the queue has no receiver.
        let _ = self.address.try_send(ClientLeft);
    }

    /// Returns the head of the answer and its body, which stops the actor when it is dropped.
    pub(crate) fn into_answer(self) -> (HttpResponseBuilder, QueueReceiver<Bytes>) {
        let Self { address, queue, disconnect: _, counted, admitted } = self;
        let actor = address.downgrade();
        let body = queue.receiver(move || {
            drop((counted, admitted));
            if let Some(actor) = actor.upgrade() {
                // If the mailbox is full, the next event finds the receiver gone.
                let _ = actor.try_send(ClientLeft);
            }
        });
        (head_of_stream(), body)
    }
}

/// Returns the head of an answer that proxies do not keep.
pub(crate) fn head_of_stream() -> HttpResponseBuilder {
    let mut head = HttpResponse::Ok();
    head.insert_header((CACHE_CONTROL, "no-cache")).insert_header((X_ACCEL_BUFFERING, "no"));
    head
}
