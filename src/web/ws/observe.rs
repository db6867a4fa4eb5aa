//! `/ws/observability`: spans and log records as they happen.

use greenroom_actors::observe::span::ObserverFilter;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::visibility::Visibility;

use crate::api::ApiError;
use crate::api::json;
use crate::api::query::{Pairs, value_of};
use crate::api::wire::envelope::{BareFrame, ErrorFrame};
use crate::api::wire::span::{ObserverMessage, Subscribed, Welcome, filter_of};
use crate::web::ws::channel::Topic;
use crate::web::ws::frames::text_of;
use crate::web::ws::history::History;
use crate::web::ws::listening::{Listening, Wish, Wishes, say_all};
use crate::web::ws::replay::Replay;
use crate::web::ws::session::{Conversation, Ctx, send};

/// Tells of traces, and lets the client change the filter.
pub(super) struct Observing {
    listening: Option<Listening>,
    wishes: Wishes,
    visibility: Visibility,
}

/// Reads what is asked for, of what the client sees anyway.
pub(super) fn wish_of(pairs: &Pairs, visibility: Visibility) -> Result<Wish, ApiError> {
    let entity_id = value_of(pairs, "entityId").or_else(|| value_of(pairs, "agentId"));
    let entity_type = value_of(pairs, "entityType");
    let filter = filter_of(entity_type, entity_id.map(str::to_owned), visibility)?;
    let history = match Replay::parse(pairs)? {
        Some(replay) => History::Traces { filter: filter.clone(), replay },
        None => History::None,
    };
    let word = text_of(&Welcome::observer(&filter, SystemClock.now()));
    Ok(Wish { topic: Topic::Traces(filter), history, word })
}

impl Observing {
    pub(super) fn new((listening, wishes): (Listening, Wishes), visibility: Visibility) -> Self {
        Self { listening: Some(listening), wishes, visibility }
    }

    fn subscribe(&self, message: ObserverMessage) -> Result<Wish, ApiError> {
        let ObserverMessage { kind: _, entity_type, entity_id, agent_id } = message;
        let entity_id = entity_id.or(agent_id);
        let filter: ObserverFilter =
            filter_of(entity_type.as_deref(), entity_id, self.visibility.clone())?;
        let word = text_of(&Subscribed::frame(&filter));
        Ok(Wish { topic: Topic::Traces(filter), history: History::None, word })
    }
}

impl Conversation for Observing {
    fn opened(&mut self, ctx: &mut Ctx<Self>) {
        if let Some(listening) = self.listening.take() {
            say_all(listening, ctx);
        }
    }

    fn heard(&mut self, text: &str, ctx: &mut Ctx<Self>) {
        let Ok(message) = json::parse::<ObserverMessage>(text.as_bytes()) else {
            send(ctx, &ErrorFrame::of("Invalid message format"));
            return;
        };
        match message.kind.as_str() {
            "PING" => send(ctx, &BareFrame::pong()),
            "SUBSCRIBE" => {
                if let Err(why) = self.wishes.tell(self.subscribe(message)) {
                    send(ctx, &ErrorFrame::of(&why));
                }
            }
            _ => send(ctx, &ErrorFrame::of("Unknown message type")),
        }
    }
}
