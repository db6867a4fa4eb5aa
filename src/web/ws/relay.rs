//! The actor that observes spans and log records for one channel and encodes their frames.

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

/// Mailbox capacity, in batches, for while the worker is busy: the same as the runtime's queue.
const RELAY_MAILBOX: usize = 4_096;
/// Number of checks for stalled subscribers per `stall_max`.
const CHECKS_PER_STALL: u32 = 4;
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Observer of the runtime that publishes to its channel and stops with it.
pub(super) struct Relay {
    runtime: Arc<Runtime>,
    channel: Weak<Channel>,
    registered: Option<ObserverId>,
    /// True if spans include inputs and outputs.
    content: bool,
    stall_max: Duration,
}

impl Relay {
    /// Starts a relay on this thread, for the channel that `channel` creates with its address.
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

    /// Returns the channel; stops the relay if it is gone, that is, without subscribers.
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
                channel.set_ready();
            }
        }));
        let interval = (self.stall_max / CHECKS_PER_STALL).max(CHECK_INTERVAL_MIN);
        ctx.run_interval(interval, |relay, ctx| {
            if let Some(channel) = relay.channel(ctx) {
                channel.disconnect_stalled(relay.stall_max);
            }
        });
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        // Before it is registered, its closed mailbox makes the runtime forget it.
        if let Some(id) = self.registered.take() {
            self.runtime.forget(id);
        }
    }
}

fn observer_of(topic: &Topic, relay: &Addr<Relay>, channel: &Weak<Channel>) -> Observer {
    let channel = Weak::clone(channel);
    let disconnect: Disconnect = Arc::new(move || {
        if let Some(channel) = channel.upgrade() {
            channel.disconnect_all();
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
            channel
                .publish(missed, spans.iter().filter_map(|event| Frame::of_span(event, content)));
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
                channel.publish(missed, logs.iter().filter_map(|record| Frame::of_record(record)));
            }
            Topic::Logs(filter) => {
                let wanted = logs.iter().filter(|record| filter.admits(record));
                let now = SystemClock.now();
                channel.publish(missed, wanted.filter_map(|record| Frame::of_entry(record, now)));
            }
        }
    }
}

/// Resolves when all events sent before have been published.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Flush;

impl Handler<Flush> for Relay {
    type Result = ();

    fn handle(&mut self, _: Flush, _: &mut Self::Context) {}
}

/// Stops the relay of a channel without subscribers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(super) struct Stop;

impl Handler<Stop> for Relay {
    type Result = ();

    fn handle(&mut self, _: Stop, ctx: &mut Self::Context) {
        ctx.stop();
    }
}
