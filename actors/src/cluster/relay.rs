//! Facts of an execution of this process, for a reader at another member.

use std::sync::Arc;

use actix::fut::ActorFutureExt as _;
use actix::{Actor, ActorContext, Addr, ArbiterHandle, AsyncContext, Context, Handler, WrapFuture};
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::cluster::order::write_facts;
use crate::observe::forgotten::Forgotten;
use crate::requests::{EventBatch, EventsRecorded, Subscriber};

/// Batches that wait for the link. Further ones are dropped: the reader notices the gap, and reads
/// the record.
const QUEUED_MAX: usize = 256;

/// Subscriber that passes facts on. It ends with its execution or with its reader.
struct Relay {
    out: mpsc::Sender<Arc<EventBatch>>,
}

/// What a relay passes on.
pub(super) struct Facts(mpsc::Receiver<Arc<EventBatch>>);

impl Facts {
    /// Returns the facts as messages of an exchange.
    pub(super) fn messages(self) -> BoxStream<'static, Vec<u8>> {
        let next = async |mut facts: Self| {
            let batch = facts.0.recv().await?;
            Some((write_facts(&batch.facts), facts))
        };
        unfold(self, next).boxed()
    }
}

/// Starts a relay on a thread; returns it as a subscriber.
pub(super) fn relay(arbiter: &ArbiterHandle) -> (Subscriber, Facts) {
    let (out, facts) = mpsc::channel(QUEUED_MAX);
    let relay: Addr<Relay> = Relay::start_in_arbiter(arbiter, |_| Relay { out });
    // an unread exchange ends by itself: this process has no connection to close
    let subscriber =
        Subscriber { events: relay.recipient(), progress: None, disconnect: Arc::new(|| {}) };
    (subscriber, Facts(facts))
}

impl Actor for Relay {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(QUEUED_MAX);
        let out = self.out.clone();
        let left = async move { out.closed().await };
        ctx.spawn(left.into_actor(self).map(|(), _, ctx| ctx.stop()));
        ctx.spawn(Forgotten::default().map(|(), _: &mut Self, ctx| ctx.stop()));
    }
}

impl Handler<EventsRecorded> for Relay {
    type Result = ();

    fn handle(&mut self, EventsRecorded(batch): EventsRecorded, ctx: &mut Self::Context) {
        if let Err(TrySendError::Closed(_)) = self.out.try_send(batch) {
            ctx.stop();
        }
    }
}
