//! Streams of generations while they run.
//!
//! As with executions, a connection is an actor (`actor`) in front of a bounded queue that the
//! response's body drains. Events of a generation cannot be read again, so a subscriber that falls
//! too far behind is disconnected. Most generations end with their subscriber.

mod actor;

use std::any::Any;
use std::sync::Arc;

use actix::Recipient;
use actix_web::http::header::HeaderName;
use actix_web::web::{Bytes, Data};
use actix_web::{Error, HttpRequest, HttpResponse};
use futures_util::StreamExt;
use greenroom_actors::agent::generation::{
    GenerationEvent, GenerationProgress, GenerationSubscriber,
};

use crate::api::ApiError;
use crate::api::wire::generation_stream::GenerationStream;
use crate::web::generation_stream::actor::{GenerationStreamActor, Hold};
use crate::web::peer::Watch;
use crate::web::pending_stream::PendingStream;
use crate::web::settings::Settings;
use crate::web::subscriber_queue::Delivery;

/// Version of the AI SDK's stream protocol, on chats.
const X_UI_MESSAGE_STREAM: HeaderName = HeaderName::from_static("x-vercel-ai-ui-message-stream");

/// A stream of a generation whose answer has not begun.
pub(crate) struct PendingGeneration {
    stream: PendingStream<GenerationStreamActor>,
    head: Head,
}

/// Headers of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    Events,
    Chat,
    Text,
}

/// Opens a stream in this format.
pub(crate) fn open(
    request: &HttpRequest,
    settings: &Data<Settings>,
    stream: GenerationStream,
) -> Result<PendingGeneration, ApiError> {
    let head = match stream {
        GenerationStream::Raw(_)
        | GenerationStream::Object(..)
        | GenerationStream::Completion(_) => Head::Events,
        GenerationStream::Chat(_) => Head::Chat,
        GenerationStream::ObjectText(_) => Head::Text,
    };
    let stream = PendingStream::open(request, settings, |queue, disconnect| {
        let settings = Data::clone(settings).into_inner();
        let client = Watch::of(request);
        GenerationStreamActor::new(stream, settings, queue, disconnect, client).launch()
    })?;
    Ok(PendingGeneration { stream, head })
}

impl PendingGeneration {
    /// Returns the subscriber for the generation to send its events to.
    pub(crate) fn subscriber(&self) -> GenerationSubscriber {
        let events: Recipient<GenerationProgress> = self.stream.address.clone().recipient();
        GenerationSubscriber { events, disconnect: Arc::clone(&self.stream.disconnect) }
    }

    /// Sends events that no generation sends.
    pub(crate) fn play(&self, events: Vec<GenerationEvent>) {
        if self.stream.address.try_send(GenerationProgress(events.into())).is_err() {
            (self.stream.disconnect)();
        }
    }

    /// Stops the actor of a stream that will not be sent.
    pub(crate) fn abandon(&self) {
        self.stream.abandon();
    }

    /// Returns the answer: a stream that ends with the generation. `held` is dropped when the
    /// client disconnects or the generation has ended.
    pub(crate) fn respond(self, held: impl Any + Send) -> HttpResponse {
        let Self { stream, head } = self;
        let is_lost = stream.address.try_send(Hold(Box::new(held))).is_err();
        if is_lost && !stream.queue.is_finished() {
            // The mailbox is full of events: the client cannot keep up.
            (stream.disconnect)();
        }
        let (mut response, body) = stream.into_answer();
        match head {
            Head::Events => response.content_type("text/event-stream"),
            Head::Chat => response
                .content_type("text/event-stream")
                .insert_header((X_UI_MESSAGE_STREAM, "v1")),
            Head::Text => response.content_type("text/plain; charset=utf-8"),
        };
        response.streaming(body.filter_map(|delivery| std::future::ready(bytes_of(delivery))))
    }
}

fn bytes_of(delivery: Delivery<Bytes>) -> Option<Result<Bytes, Error>> {
    match delivery {
        Delivery::Item(bytes) => Some(Ok(bytes)),
        // A subscriber that has missed events is disconnected.
        Delivery::Missed(_) => None,
    }
}

#[cfg(test)]
mod tests;
