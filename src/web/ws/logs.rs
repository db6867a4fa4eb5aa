//! `/ws/logs`: the log as it is written.

use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::ports::store::LogFilter;
use greenroom_actors::sight::Sight;

use crate::api::ApiError;
use crate::api::json;
use crate::api::query::Pairs;
use crate::api::wire::envelope::ErrorFrame;
use crate::api::wire::log::{log_filter_of, log_limit_of};
use crate::api::wire::log_frame::{LogsMessage, parameters_of};
use crate::web::ws::channel::Topic;
use crate::web::ws::history::History;
use crate::web::ws::listening::{Listening, Wish, Wishes, say_all};
use crate::web::ws::session::{Conversation, Ctx, send};

/// Tells of log records, and lets the client change the filter.
pub(super) struct Tailing {
    listening: Option<Listening>,
    wishes: Wishes,
    sight: Sight,
}

/// Reads what is asked for, of what the client sees anyway.
pub(super) fn wish_of(pairs: &Pairs, sight: Sight) -> Result<Wish, ApiError> {
    let (filter, limit) = (log_filter_of(pairs, sight)?, log_limit_of(pairs)?);
    // What comes is later than any time that has passed: such filters share a channel.
    let since = filter.since.filter(|since| *since > SystemClock.now());
    let topic = Topic::Logs(LogFilter { since, ..filter.clone() });
    Ok(Wish { topic, history: History::Logs { filter, limit }, word: None })
}

impl Tailing {
    pub(super) fn new((listening, wishes): (Listening, Wishes), sight: Sight) -> Self {
        Self { listening: Some(listening), wishes, sight }
    }

    fn update(&self, message: LogsMessage) -> Result<Wish, ApiError> {
        wish_of(&parameters_of(message.filter)?, self.sight.clone())
    }
}

impl Conversation for Tailing {
    fn opened(&mut self, ctx: &mut Ctx<Self>) {
        if let Some(listening) = self.listening.take() {
            say_all(listening, ctx);
        }
    }

    fn heard(&mut self, text: &str, ctx: &mut Ctx<Self>) {
        let Ok(message) = json::parse::<LogsMessage>(text.as_bytes()) else {
            send(ctx, &ErrorFrame::of("Invalid message format"));
            return;
        };
        if message.kind != "updateFilter" {
            send(ctx, &ErrorFrame::of("Unknown message type"));
            return;
        }
        if let Err(why) = self.wishes.tell(self.update(message)) {
            send(ctx, &ErrorFrame::of(&why));
        }
    }
}
