//! The actor that forwards spans to the exporter.

use actix::{Actor, Addr, Context, Handler, Message};
use greenroom_actors::observe::span::SpansObserved;

use crate::telemetry::otlp::Exporter;

/// Capacity of the mailbox; each message has the spans of one commit of one execution.
const MAILBOX: usize = 8_192;

/// Forwards spans. It never waits, so its mailbox fills up only if its thread is overloaded.
pub(super) struct Forwarder {
    exporter: Exporter,
}

impl Forwarder {
    /// Starts the actor on this thread.
    pub(super) fn launch(exporter: Exporter) -> Addr<Self> {
        Self::create(|ctx| {
            ctx.set_mailbox_capacity(MAILBOX);
            Self { exporter }
        })
    }
}

impl Actor for Forwarder {
    type Context = Context<Self>;
}

impl Handler<SpansObserved> for Forwarder {
    type Result = ();

    fn handle(&mut self, message: SpansObserved, _: &mut Self::Context) {
        let SpansObserved { spans, missed } = message;
        self.exporter.take_spans(&spans, missed);
    }
}

/// Message that is answered once all earlier messages have been forwarded.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Settle;

impl Handler<Settle> for Forwarder {
    type Result = ();

    fn handle(&mut self, _: Settle, _: &mut Self::Context) {}
}
