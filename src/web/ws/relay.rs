//! The actor that hears of spans and log records for one channel, and writes their frames.

use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::{
    Actor, ActorContext, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, Recipient,
    WrapFuture,
};
use greenroom_actors::Runtime;
use greenroom_actors::observe::disconnect::Disconnect;
use greenroom_actors::observe::span::{
    LogsObserved, Observer, ObserverFilter, ObserverId, SpansObserved,
};
use greenroom_actors::ports::clock::{Clock as _, SystemClock};
use greenroom_actors::ports::store::LogFilter;

use crate::web::ws::channel::{Channel, Topic};
use crate::web::ws::frames::Frame;

/// Batches that may wait while the worker is busy: as many as the runtime keeps for its own.
const RELAY_MAILBOX: usize = 4_096;
/// How often stalled listeners are looked for within the longest stall that is allowed.
const LOOKS_PER_STALL: u32 = 4;
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// Registers with the runtime, and tells its channel. Ends with it.
pub(super) struct Relay {
    runtime: Arc<Runtime>,
    channel: Weak<Channel>,
    registered: Option<ObserverId>,
    /// Whether spans are told with what was said in them.
    content: bool,
    stall_max: Duration,
}

impl Relay {
    /// Starts a relay on this thread, for the channel that is made with its address.
    pub(super) fn launch(
        runtime: Arc<Runtime>,
        content: bool,
        stall_max: Duration,
        channel: impl FnOnce(Addr<Self>) -> Arc<Channel>,
    ) -> Arc<Channel> {
        let mut ctx = Context::new();
        ctx.set_mailbox_capacity(RELAY_MAILBOX);
        let channel = channel(ctx.address());
        let (weak, registered) = (Arc::downgrade(&channel), None);
        ctx.run(Self { runtime, channel: weak, registered, content, stall_max });
        channel
    }

    /// The channel; nobody listens any more when there is none.
    fn channel(&self, ctx: &mut Context<Self>) -> Option<Arc<Channel>> {
        let channel = self.channel.upgrade();
        if channel.is_none() {
            ctx.stop();
        }
        channel
    }
}

impl Actor for Relay {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let Some(channel) = self.channel(ctx) else { return };
        let observer = observer_of(channel.topic(), &ctx.address(), &self.channel);
        let runtime = Arc::clone(&self.runtime);
        let observing = async move { runtime.observe(observer).await };
        ctx.spawn(observing.into_actor(self).map(|id, relay, ctx| {
            relay.registered = Some(id);
            if let Some(channel) = relay.channel(ctx) {
                channel.is_ready();
            }
        }));
        let pause = (self.stall_max / LOOKS_PER_STALL).max(SHORTEST_PAUSE);
        ctx.run_interval(pause, |relay, ctx| {
            if let Some(channel) = relay.channel(ctx) {
                channel.disconnect_stalled(relay.stall_max);
            }
        });
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        // One that was not registered yet leaves a closed mailbox, which the runtime forgets.
        if let Some(id) = self.registered.take() {
            self.runtime.forget(id);
        }
    }
}

fn observer_of(topic: &Topic, relay: &Addr<Relay>, channel: &Weak<Channel>) -> Observer {
    let channel = Weak::clone(channel);
    let disconnect: Disconnect = Arc::new(move || {
        if let Some(channel) = channel.upgrade() {
            channel.disconnect();
        }
    });
    let logs: Option<Recipient<LogsObserved>> = Some(relay.clone().recipient());
    match topic {
        Topic::Traces(filter) => {
            let spans = Some(relay.clone().recipient());
            Observer { spans, logs, filter: filter.clone(), disconnect }
        }
        Topic::Logs(LogFilter { visibility, .. }) => {
            let filter =
                ObserverFilter { visibility: visibility.clone(), ..ObserverFilter::default() };
            Observer { spans: None, logs, filter, disconnect }
        }
    }
}

impl Handler<SpansObserved> for Relay {
    type Result = ();

    fn handle(&mut self, message: SpansObserved, ctx: &mut Self::Context) {
        let (SpansObserved { spans, missed }, content) = (message, self.content);
        if let Some(channel) = self.channel(ctx) {
            channel.tell(missed, spans.iter().filter_map(|event| Frame::of_span(event, content)));
        }
    }
}

impl Handler<LogsObserved> for Relay {
    type Result = ();

    fn handle(&mut self, message: LogsObserved, ctx: &mut Self::Context) {
        let LogsObserved { logs, missed } = message;
        let Some(channel) = self.channel(ctx) else { return };
        match channel.topic() {
            Topic::Traces(_) => {
                channel.tell(missed, logs.iter().filter_map(|record| Frame::of_record(record)));
            }
            Topic::Logs(filter) => {
                let wanted = logs.iter().filter(|record| filter.admits(record));
                let now = SystemClock.now();
                channel.tell(missed, wanted.filter_map(|record| Frame::of_entry(record, now)));
            }
        }
    }
}

/// Resolves when everything that was told before has been passed on.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Flush;

impl Handler<Flush> for Relay {
    type Result = ();

    fn handle(&mut self, _: Flush, _: &mut Self::Context) {}
}

/// Nobody listens any more.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Silence;

impl Handler<Silence> for Relay {
    type Result = ();

    fn handle(&mut self, _: Silence, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
