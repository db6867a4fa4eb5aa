//! `/ws/logs`: the log as it is written.

use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::ports::store::LogFilter;
use greenroom_actors::visibility::Visibility;

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
    visibility: Visibility,
}

/// Reads what is asked for, of what the client sees anyway.
pub(super) fn wish_of(pairs: &Pairs, visibility: Visibility) -> Result<Wish, ApiError> {
    let (filter, limit) = (log_filter_of(pairs, visibility)?, log_limit_of(pairs)?);
    // What comes is later than any time that has passed: such filters share a channel.
    let since = filter.since.filter(|since| *since > SystemClock.now());
    let topic = Topic::Logs(LogFilter { since, ..filter.clone() });
    Ok(Wish { topic, history: History::Logs { filter, limit }, word: None })
}

impl Tailing {
    pub(super) fn new((listening, wishes): (Listening, Wishes), visibility: Visibility) -> Self {
        Self { listening: Some(listening), wishes, visibility }
    }

    fn update(&self, message: LogsMessage) -> Result<Wish, ApiError> {
        wish_of(&parameters_of(message.filter)?, self.visibility.clone())
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
