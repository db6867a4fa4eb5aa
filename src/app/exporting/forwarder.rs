//! The actor that hears of spans for the exporter.

use actix::{Actor, Addr, Context, Handler, Message};
use greenroom_actors::observe::span::SpansObserved;

use crate::telemetry::otlp::Exporter;

/// Messages, each with the spans of one commit of one execution, that may wait.
const MAILBOX: usize = 8_192;

/// Hands on what it hears. It never waits, so its mailbox is short of room only when this thread
/// is.
pub(super) struct Forwarder {
    exporter: Exporter,
}

impl Forwarder {
    /// Starts it on this thread.
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

/// Is answered when everything that came before it was handed on.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Settle;

impl Handler<Settle> for Forwarder {
    type Result = ();

    fn handle(&mut self, _: Settle, _: &mut Self::Context) {}
}
