//! `/ws/logs`: the log as it is written.

use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::ports::store::LogFilter;
use greenroom_actors::visibility::Visibility;

use crate::api::ApiError;
use crate::api::json;
use crate::api::query::{Pairs, refuse_misspelt, refuse_unknown};
use crate::api::wire::envelope::ErrorFrame;
use crate::api::wire::log::{log_filter_of, log_limit_of};
use crate::api::wire::log_frame::{LogsMessage, parameters_of};
use crate::web::ws::channel::Topic;
use crate::web::ws::client_feed::{FeedSession, TopicRequest};
use crate::web::ws::history::History;
use crate::web::ws::session::{Ctx, SocketHandler, send};

/// Handler that sends log records and lets the client change the filter.
pub(super) struct LogHandler(pub(super) FeedSession);

/// Parameters of the address, and keys of a filter.
const NAMES: [&str; 8] =
    ["level", "agentId", "workflowId", "executionId", "conversationId", "since", "until", "limit"];

/// Parses a request, limited to records that the client may see. Unknown parameters are ignored unless
/// they look misspelt, since clients add their own.
pub(super) fn request_of(pairs: &Pairs, visibility: Visibility) -> Result<TopicRequest, ApiError> {
    refuse_misspelt(pairs, &NAMES)?;
    let (filter, limit) = (log_filter_of(pairs, visibility)?, log_limit_of(pairs)?);
    // Live records are later than any past time: filters that differ only in that share a channel.
    let since = filter.since.filter(|since| *since > SystemClock.now());
    let topic = Topic::Logs(LogFilter { since, ..filter.clone() });
    Ok(TopicRequest { topic, history: History::Logs { filter, limit }, greeting: None })
}

impl LogHandler {
    fn update(&self, message: LogsMessage) -> Result<TopicRequest, ApiError> {
        let parameters = parameters_of(message.filter)?;
        refuse_unknown(&parameters, &NAMES)?;
        request_of(&parameters, self.0.visibility.clone())
    }
}

impl SocketHandler for LogHandler {
    fn opened(&mut self, ctx: &mut Ctx<Self>) {
        self.0.start(ctx);
    }

    fn received(&mut self, text: &str, ctx: &mut Ctx<Self>) {
        let Ok(message) = json::parse::<LogsMessage>(text.as_bytes()) else {
            send(ctx, &ErrorFrame::of("Invalid message format"));
            return;
        };
        if message.kind != "updateFilter" {
            send(ctx, &ErrorFrame::of("Unknown message type"));
            return;
        }
        self.0.change(self.update(message), ctx);
    }
}
