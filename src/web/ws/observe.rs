//! `/ws/observability`: spans and log records as they happen.

use greenroom_actors::observe::span::ObserverFilter;
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::visibility::Visibility;

use crate::api::ApiError;
use crate::api::json;
use crate::api::query::{Pairs, refuse_misspelt, value_of};
use crate::api::wire::envelope::{BareFrame, ErrorFrame};
use crate::api::wire::span::{ObserverMessage, Subscribed, Welcome, filter_of};
use crate::web::ws::channel::Topic;
use crate::web::ws::client_feed::{FeedSession, TopicRequest};
use crate::web::ws::frames::text_of;
use crate::web::ws::history::History;
use crate::web::ws::replay::Replay;
use crate::web::ws::session::{Ctx, SocketHandler, send};

/// Handler that sends traces and lets the client change the filter.
pub(super) struct TraceHandler {
    feed: FeedSession,
    /// The filter that was requested last.
    filter: ObserverFilter,
}

/// Parameters of the address.
const NAMES: [&str; 5] = ["entityType", "entityId", "agentId", "since", "limit"];

/// Parses a request, limited to traces that the client may see. Unknown parameters are ignored unless they
/// look misspelt, since clients add their own.
pub(super) fn request_of(
    pairs: &Pairs,
    visibility: Visibility,
) -> Result<(ObserverFilter, TopicRequest), ApiError> {
    refuse_misspelt(pairs, &NAMES)?;
    let entity_id = value_of(pairs, "entityId").or_else(|| value_of(pairs, "agentId"));
    let entity_type = value_of(pairs, "entityType");
    let filter = filter_of(entity_type, entity_id.map(str::to_owned), visibility)?;
    let history = match Replay::parse(pairs)? {
        Some(replay) => History::Traces { filter: filter.clone(), replay },
        None => History::None,
    };
    let greeting = text_of(&Welcome::observer(&filter, SystemClock.now()));
    let topic = Topic::Traces(filter.clone());
    Ok((filter, TopicRequest { topic, history, greeting }))
}

impl TraceHandler {
    pub(super) fn new(feed: FeedSession, filter: ObserverFilter) -> Self {
        Self { feed, filter }
    }

    /// Replaces the filter by that of the message. A message without one is only confirmed: it would
    /// otherwise discard the filter of the address.
    fn subscribe(&mut self, message: ObserverMessage, ctx: &mut Ctx<Self>) {
        let filter = match message.filter(self.feed.visibility.clone()) {
            Ok(Some(filter)) => filter,
            Ok(None) => return send(ctx, &Subscribed::frame(&self.filter)),
            Err(refusal) => return send(ctx, &ErrorFrame::of(&refusal.to_string())),
        };
        let greeting = text_of(&Subscribed::frame(&filter));
        let topic = Topic::Traces(filter.clone());
        let request = TopicRequest { topic, history: History::None, greeting };
        if self.feed.change(Ok(request), ctx) {
            self.filter = filter;
        }
    }
}

impl SocketHandler for TraceHandler {
    fn opened(&mut self, ctx: &mut Ctx<Self>) {
        self.feed.start(ctx);
    }

    fn received(&mut self, text: &str, ctx: &mut Ctx<Self>) {
        let Ok(message) = json::parse::<ObserverMessage>(text.as_bytes()) else {
            send(ctx, &ErrorFrame::of("Invalid message format"));
            return;
        };
        match message.kind.as_str() {
            "PING" => send(ctx, &BareFrame::pong()),
            "SUBSCRIBE" => self.subscribe(message, ctx),
            _ => send(ctx, &ErrorFrame::of("Unknown message type")),
        }
    }
}
