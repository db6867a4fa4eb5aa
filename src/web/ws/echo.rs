//! `/ws`: a connection test. Every JSON message comes back.

use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use serde::de::IgnoredAny;

use crate::api::caller::Caller;
use crate::api::wire::envelope::{ErrorFrame, Frame};
use crate::api::wire::span::Welcome;
use crate::web::ws::session::{Ctx, SocketHandler, send};

/// Handler that returns every message.
#[derive(Debug)]
pub(super) struct EchoHandler {
    pub(super) caller: Caller,
}

impl SocketHandler for EchoHandler {
    fn opened(&mut self, ctx: &mut Ctx<Self>) {
        send(ctx, &Welcome::echo(self.caller.user(), SystemClock.now()));
    }

    fn received(&mut self, text: &str, ctx: &mut Ctx<Self>) {
        match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => ctx.text(Frame::written("ECHO", text)),
            Err(error) => {
                send(ctx, &ErrorFrame::of(&format!("Invalid message format: {error}")));
            }
        }
    }
}
