//! `GET /inbox/stream`: changes of asks as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, StreamHandler};
use actix_web::web::{Bytes, Data};
use actix_web::{Error, HttpRequest};
use futures_util::{StreamExt, stream};
use greenroom_actors::domain::time::Timestamp;
use greenroom_actors::observe::disconnect::Disconnect;
use greenroom_actors::runtime::AskNews;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::api::inbox::{self, Watch};
use crate::api::wire::inbox::render_news;
use crate::web::call::{Answer, Call};
use crate::web::heartbeat::{Heartbeat, Reading};
use crate::web::pending_stream::{ClientLeft, PendingStream, launch};
use crate::web::settings::Settings;
use crate::web::shutdown::SHUTTING_DOWN;
use crate::web::subscriber_queue::{SubscriberQueue, Weight};

/// Capacity of the mailbox: news come as a stream, so that only the end of the client goes there.
const MAILBOX: usize = 4;

/// Last comment to a client whose token has expired: it connects again with a new one.
const TOKEN_EXPIRED: &str = "the token has expired";

/// `GET /inbox/stream`.
pub(crate) async fn open(call: Call) -> Answer {
    let watch = Watch::parse(&call.pairs()?, &call.caller)?;
    let news = inbox::watch(&call.runtime).await?;
    let runtime = Data::clone(&call.runtime).into_inner();
    let now = Box::new(move || runtime.clock().now());
    respond(&call.request, &call.settings, watch, news, now, call.token_left())
}

/// Sends news to the client for as long as it reads, and its token is valid.
fn respond(
    request: &HttpRequest,
    settings: &Data<Settings>,
    watch: Watch,
    news: Receiver<AskNews>,
    now: Box<dyn Fn() -> Timestamp>,
    token_left: Option<Duration>,
) -> Answer {
    let stream = PendingStream::open(request, settings, |queue, disconnect| {
        let settings = Data::clone(settings).into_inner();
        let (heartbeat, news) = (Heartbeat::of(&settings.config), Some(news));
        launch(
            AskStreamActor { settings, heartbeat, queue, disconnect, watch, now, token_left, news },
            MAILBOX,
        )
    })?;
    let (mut head, body) = stream.into_answer();
    let bytes = body.map(|delivery| Ok::<_, Error>(delivery.into_bytes()));
    Ok(head.content_type("text/event-stream").streaming(bytes))
}

/// Subscriber of the news for one connection. News are taken as its queue has room, so that many at
/// once are no harm to a client that reads. They wait in the feed, which is shared by all subscribers
/// and bounded, and cannot be read again: a client that falls too far behind, or reads nothing for too
/// long, is cut; it reads the list and connects again.
pub(crate) struct AskStreamActor {
    settings: Arc<Settings>,
    heartbeat: Heartbeat,
    queue: SubscriberQueue<Bytes>,
    disconnect: Disconnect,
    watch: Watch,
    now: Box<dyn Fn() -> Timestamp>,
    /// Time until the token of the client expires, if it does.
    token_left: Option<Duration>,
    /// Taken at the start.
    news: Option<Receiver<AskNews>>,
}

/// News, or that some were missed.
struct Received(Result<AskNews, ()>);

impl AskStreamActor {
    fn beat(&mut self, ctx: &mut Context<Self>) {
        if !self.queue.has_receiver() {
            ctx.stop();
        } else {
            Heartbeat::beat(&self.queue);
        }
    }

    fn watch_for_stall(&mut self, ctx: &mut Context<Self>) {
        if let Reading::Stalled(_) = self.heartbeat.reading(&self.queue) {
            self.cut(ctx);
        }
    }

    /// Ends the stream with a comment.
    fn give_up(&self, why: &str, ctx: &mut Context<Self>) {
        self.queue.push_comment(why);
        ctx.stop();
    }

    /// Disconnects a client that does not read.
    fn cut(&self, ctx: &mut Context<Self>) {
        log::info!("disconnected a subscriber of the inbox: it fell too far behind");
        (self.disconnect)();
        ctx.stop();
    }
}

impl Actor for AskStreamActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(self.heartbeat.interval(), Self::beat);
        ctx.run_interval(self.heartbeat.stall_max() / 2, Self::watch_for_stall);
        if let Some(news) = self.news.take() {
            let start = (news, self.queue.clone());
            ctx.add_stream(stream::unfold(start, |(mut news, queue)| async move {
                queue.room().await;
                match news.recv().await {
                    Ok(news_item) => Some((Received(Ok(news_item)), (news, queue))),
                    Err(RecvError::Lagged(_)) => Some((Received(Err(())), (news, queue))),
                    Err(RecvError::Closed) => None,
                }
            }));
        }
        self.settings.shutdown.notify(ctx, |actor: &mut Self, ctx| {
            actor.give_up(SHUTTING_DOWN, ctx);
        });
        if let Some(left) = self.token_left {
            ctx.run_later(left, |actor, ctx| actor.give_up(TOKEN_EXPIRED, ctx));
        }
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        self.queue.finish();
    }
}

impl StreamHandler<Received> for AskStreamActor {
    fn handle(&mut self, Received(news): Received, ctx: &mut Self::Context) {
        if !self.queue.has_receiver() {
            ctx.stop();
            return;
        }
        let Ok(news) = news else {
            self.cut(ctx);
            return;
        };
        if !self.watch.includes(&news, (self.now)()) {
            return;
        }
        let bytes = Bytes::from(render_news(&news));
        let weight = Weight { events: 1, bytes: bytes.len() };
        // of half of the room, one event may need more; the next waits for it
        self.queue.push_anyway(bytes, weight);
    }

    fn finished(&mut self, ctx: &mut Self::Context) {
        self.give_up(SHUTTING_DOWN, ctx);
    }
}

impl Handler<ClientLeft> for AskStreamActor {
    type Result = ();

    fn handle(&mut self, _: ClientLeft, ctx: &mut Self::Context) {
        ctx.stop();
    }
}

#[cfg(test)]
mod tests;
