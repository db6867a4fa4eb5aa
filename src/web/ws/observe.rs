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
use crate::web::ws::client_feed::{FeedSession, TopicRequest};
use crate::web::ws::frames::text_of;
use crate::web::ws::history::History;
use crate::web::ws::replay::Replay;
use crate::web::ws::session::{Ctx, SocketHandler, send};

/// Handler that sends traces and lets the client change the filter.
pub(super) struct TraceHandler(pub(super) FeedSession);

/// Parses a request, limited to traces that the client may see.
pub(super) fn request_of(pairs: &Pairs, visibility: Visibility) -> Result<TopicRequest, ApiError> {
    let entity_id = value_of(pairs, "entityId").or_else(|| value_of(pairs, "agentId"));
    let entity_type = value_of(pairs, "entityType");
    let filter = filter_of(entity_type, entity_id.map(str::to_owned), visibility)?;
    let history = match Replay::parse(pairs)? {
        Some(replay) => History::Traces { filter: filter.clone(), replay },
        None => History::None,
    };
    let greeting = text_of(&Welcome::observer(&filter, SystemClock.now()));
    Ok(TopicRequest { topic: Topic::Traces(filter), history, greeting })
}

impl TraceHandler {
    fn subscribe(&self, message: ObserverMessage) -> Result<TopicRequest, ApiError> {
        let ObserverMessage { kind: _, entity_type, entity_id, agent_id } = message;
        let entity_id = entity_id.or(agent_id);
        let filter: ObserverFilter =
            filter_of(entity_type.as_deref(), entity_id, self.0.visibility.clone())?;
        let greeting = text_of(&Subscribed::frame(&filter));
        Ok(TopicRequest { topic: Topic::Traces(filter), history: History::None, greeting })
    }
}

impl SocketHandler for TraceHandler {
    fn opened(&mut self, ctx: &mut Ctx<Self>) {
        self.0.start(ctx);
    }

    fn received(&mut self, text: &str, ctx: &mut Ctx<Self>) {
        let Ok(message) = json::parse::<ObserverMessage>(text.as_bytes()) else {
            send(ctx, &ErrorFrame::of("Invalid message format"));
            return;
        };
        match message.kind.as_str() {
            "PING" => send(ctx, &BareFrame::pong()),
            "SUBSCRIBE" => self.0.change(self.subscribe(message), ctx),
            _ => send(ctx, &ErrorFrame::of("Unknown message type")),
        }
    }
}
