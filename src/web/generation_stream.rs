//! Streams of generations: a reader that follows one while it runs.
//!
//! As with executions, a connection is an actor (`reader`) in front of a bounded queue that the
//! response's body drains. Nothing of a generation is recorded to be read again, so a reader that
//! falls too far behind is cut. Most generations end with their reader.

mod reader;

use std::any::Any;
use std::sync::Arc;

use actix::{Addr, Recipient};
use actix_web::http::header::{CACHE_CONTROL, HeaderName};
use actix_web::web::{Bytes, Data};
use actix_web::{Error, HttpRequest, HttpResponse};
use futures_util::StreamExt;
use greenroom_actors::agent::generation::{GenerationProgress, GenerationSubscriber};
use greenroom_actors::observe::disconnect::Disconnect;

use crate::api::ApiError;
use crate::api::wire::generation_stream::GenerationStream;
use crate::telemetry::metrics::{Gauged, RequestMeter};
use crate::web::admission::Admitted;
use crate::web::generation_stream::reader::{GenerationReader, Hold, ReaderLeft};
use crate::web::outbox::{Out, Outbox};
use crate::web::peer::{Peer, Watch};
use crate::web::settings::Settings;
use crate::web::sse::X_ACCEL_BUFFERING;

/// Says which version of the AI SDK's stream a chat is.
const X_UI_MESSAGE_STREAM: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");

/// A reader whose answer has not begun.
pub(crate) struct Reader {
    address: Addr<GenerationReader>,
    outbox: Outbox<Bytes>,
    disconnect: Disconnect,
    head: Head,
    /// Counts it while the client reads.
    counted: Option<Gauged>,
    admitted: Admitted,
}

/// What the answer says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    Events,
    Chat,
    Text,
}

/// Starts a reader on this worker's thread.
pub(crate) fn open(
    request: &HttpRequest,
    settings: &Data<Settings>,
    stream: GenerationStream,
) -> Result<Reader, ApiError> {
    let admitted = settings.admit_stream(request)?;
    Peer::bound_send_buffer(request);
    let disconnect = Peer::disconnect_of(request);
    let outbox = settings.outbox();
    let counted = settings.requests().map(RequestMeter::stream);
    let head = match stream {
        GenerationStream::Raw(_) | GenerationStream::Object(..) => Head::Events,
        GenerationStream::Chat => Head::Chat,
        GenerationStream::ObjectText(_) => Head::Text,
    };
    let reader = GenerationReader::new(
        stream,
        Data::clone(settings).into_inner(),
        outbox.clone(),
        Arc::clone(&disconnect),
        Watch::of(request),
    );
    Ok(Reader { address: reader.launch(), outbox, disconnect, head, counted, admitted })
}

impl Reader {
    /// What the generation is told to send its events to.
    pub(crate) fn subscriber(&self) -> GenerationSubscriber {
        let events: Recipient<GenerationProgress> = self.address.clone().recipient();
        GenerationSubscriber { events, disconnect: Arc::clone(&self.disconnect) }
    }

    /// Ends a reader that nobody will listen to.
    pub(crate) fn abandon(&self) {
        // A full mailbox does as well: the reader finds its client gone.
        let _ = self.address.try_send(ReaderLeft);
    }

    /// The answer: a stream that ends with the generation. `held` is dropped when the client
    /// leaves, or when nothing more will come.
    pub(crate) fn respond(self, held: impl Any + Send) -> HttpResponse {
        let Self { address, outbox, disconnect, head, counted, admitted } = self;
        if address.try_send(Hold(Box::new(held))).is_err() && !outbox.is_finished() {
            // So many events wait already that this one found no room.
            disconnect();
        }
        let actor = address.downgrade();
        let body = outbox.reader(move || {
            drop((counted, admitted));
            if let Some(actor) = actor.upgrade() {
                // A full mailbox does as well: the next event finds the reader gone.
                let _ = actor.try_send(ReaderLeft);
            }
        });
        let mut response = HttpResponse::Ok();
        response
            .insert_header((CACHE_CONTROL, "no-cache"))
            .insert_header((X_ACCEL_BUFFERING, "no"));
        match head {
            Head::Events => response.content_type("text/event-stream"),
            Head::Chat => response
                .content_type("text/event-stream")
                .insert_header((X_UI_MESSAGE_STREAM, "v1")),
            Head::Text => response.content_type("text/plain; charset=utf-8"),
        };
        response.streaming(body.filter_map(|out| std::future::ready(bytes_of(out))))
    }
}

fn bytes_of(out: Out<Bytes>) -> Option<Result<Bytes, Error>> {
    match out {
        Out::Item(bytes) => Some(Ok(bytes)),
        // A reader that has missed something is cut.
        Out::Missed(_) => None,
    }
}

#[cfg(test)]
mod tests;
