//! `/ws/observability`: spans as they happen.

use std::sync::Arc;

use actix::{Addr, AsyncContext, StreamHandler};
use bytestring::ByteString;
use greenroom_actors::Runtime;
use greenroom_actors::requests::Cut;
use greenroom_actors::span::ObserverFilter;

use crate::api::json;
use crate::api::wire::envelope::{BareFrame, DroppedFrame, ErrorFrame};
use crate::api::wire::span::{ObserverMessage, filter_of};
use crate::web::outbox::{Out, Outbox};
use crate::web::server::Settings;
use crate::web::ws::relay::{Observe, Relay, SessionEnded, Word};
use crate::web::ws::session::{Conversation, Ctx, Session, send};

/// Passes on what its relay hears, and lets the client change the filter.
pub(super) struct Observing {
    relay: Addr<Relay>,
    outbox: Outbox<ByteString>,
    filter: ObserverFilter,
}

impl Observing {
    pub(super) fn new(
        runtime: Arc<Runtime>,
        settings: &Settings,
        filter: ObserverFilter,
        cut: Cut,
    ) -> Self {
        let outbox = settings.outbox();
        let stall_max = settings.config.subscriber_stall;
        let relay = Relay::launch(runtime, outbox.clone(), cut, stall_max);
        Self { relay, outbox, filter }
    }

    fn observe(&mut self, word: Word, ctx: &mut Ctx<Self>) {
        let command = Observe { filter: self.filter.clone(), word };
        if self.relay.try_send(command).is_err() {
            send(ctx, &ErrorFrame::of("Too many messages at once"));
        }
    }
}

impl Conversation for Observing {
    fn opened(&mut self, ctx: &mut Ctx<Self>) {
        let relay = self.relay.downgrade();
        ctx.add_stream(self.outbox.reader(move || {
            if let Some(relay) = relay.upgrade() {
                // A full mailbox does as well: the next spans find the session gone.
                let _ = relay.try_send(SessionEnded);
            }
        }));
        self.observe(Word::Welcome, ctx);
    }

    fn heard(&mut self, text: &str, ctx: &mut Ctx<Self>) {
        let Ok(message) = json::parse::<ObserverMessage>(text.as_bytes()) else {
            send(ctx, &ErrorFrame::of("Invalid message format"));
            return;
        };
        match message.kind.as_str() {
            "PING" => send(ctx, &BareFrame::pong()),
            "SUBSCRIBE" => {
                let ObserverMessage { entity_type, entity_id, .. } = message;
                let sight = self.filter.sight.clone();
                match filter_of(entity_type.as_deref(), entity_id, sight) {
                    Ok(filter) => {
                        self.filter = filter;
                        self.observe(Word::Subscribed, ctx);
                    }
                    Err(refusal) => send(ctx, &ErrorFrame::of(&refusal.to_string())),
                }
            }
            _ => send(ctx, &ErrorFrame::of("Unknown message type")),
        }
    }
}

impl StreamHandler<Out<ByteString>> for Session<Observing> {
    fn handle(&mut self, out: Out<ByteString>, ctx: &mut Self::Context) {
        match out {
            Out::Item(frame) => ctx.text(frame),
            Out::Missed(count) => send(ctx, &DroppedFrame::of(count)),
        }
    }
}
