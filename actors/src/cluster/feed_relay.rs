//! Spans and log records of this process, for an observer at another member.

use std::sync::Arc;

use actix::{Actor, ActorContext, Addr, ArbiterHandle, Context, Handler};
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::cluster::relay::end_with;
use crate::cluster::request::FeedWish;
use crate::cluster::said::write_observed;
use crate::observe::feed::{FeedHandle, Observed};
use crate::observe::span::{LogsObserved, Observer, ObserverId, SpansObserved};

/// Batches that wait for the link, as many as may wait for an observer here. Further ones are
/// dropped and counted.
const QUEUED_MAX: usize = 4_096;

/// Observer that passes batches on. It ends with its reader.
struct FeedRelay {
    out: mpsc::Sender<Observed>,
    feed: FeedHandle,
    /// Spans and records dropped since the last batch of their kind.
    missed_spans: u64,
    missed_logs: u64,
}

/// Batches that a relay of the feed passes on.
pub(super) struct ObservedHere {
    batches: mpsc::Receiver<Observed>,
    feed: FeedHandle,
}

/// Removes an observer when it is dropped, so that nothing is made for it.
struct Registration {
    feed: FeedHandle,
    id: ObserverId,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.feed.forget(self.id);
    }
}

impl ObservedHere {
    /// Returns the batches as messages of an exchange; the observer is removed with it.
    pub(super) fn messages(self, id: ObserverId) -> BoxStream<'static, Vec<u8>> {
        let Self { batches, feed } = self;
        let next = async |(mut batches, registration): (mpsc::Receiver<Observed>, Registration)| {
            let observed = batches.recv().await?;
            Some((write_observed(&observed), (batches, registration)))
        };
        unfold((batches, Registration { feed, id }), next).boxed()
    }
}

/// Starts a relay on a thread; returns it as an observer of spans and logs, if they are wanted.
pub(super) fn relay_feed(
    arbiter: &ArbiterHandle,
    feed: &FeedHandle,
    wish: FeedWish,
) -> (Observer, ObservedHere) {
    let FeedWish { filter, spans, logs } = wish;
    let (out, batches) = mpsc::channel(QUEUED_MAX);
    let in_actor = feed.clone();
    let relay: Addr<FeedRelay> = FeedRelay::start_in_arbiter(arbiter, |_| FeedRelay {
        out,
        feed: in_actor,
        missed_spans: 0,
        missed_logs: 0,
    });
    let spans = spans.then(|| relay.clone().recipient());
    let logs = logs.then(|| relay.recipient());
    let observer = Observer { spans, logs, filter, disconnect: Arc::new(|| {}) };
    (observer, ObservedHere { batches, feed: feed.clone() })
}

impl FeedRelay {
    /// Queues a batch of so many entries; returns the number of those that were missed.
    fn pass(&self, observed: Observed, count: usize, missed: u64, ctx: &mut Context<Self>) -> u64 {
        match self.out.try_send(observed) {
            Ok(()) => 0,
            Err(TrySendError::Full(_)) => {
                self.feed.count_dropped(count as u64);
                missed + count as u64
            }
            Err(TrySendError::Closed(_)) => {
                ctx.stop();
                0
            }
        }
    }
}

impl Actor for FeedRelay {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(QUEUED_MAX);
        end_with(self, self.out.clone(), ctx);
    }
}

impl Handler<SpansObserved> for FeedRelay {
    type Result = ();

    fn handle(&mut self, message: SpansObserved, ctx: &mut Self::Context) {
        let SpansObserved { spans, missed } = message;
        let (missed, count) = (missed + self.missed_spans, spans.len());
        self.missed_spans = self.pass(Observed::Spans { spans, missed }, count, missed, ctx);
    }
}

impl Handler<LogsObserved> for FeedRelay {
    type Result = ();

    fn handle(&mut self, message: LogsObserved, ctx: &mut Self::Context) {
        let LogsObserved { logs, missed } = message;
        let (missed, count) = (missed + self.missed_logs, logs.len());
        self.missed_logs = self.pass(Observed::Logs { logs, missed }, count, missed, ctx);
    }
}

#[cfg(test)]
mod tests {
    use actix::Arbiter;

    use super::*;
    use crate::cluster::said::Said;
    use crate::observe::log_record::LogRecord;
    use crate::observe::span::ObserverFilter;

    #[actix::test]
    async fn what_an_unread_exchange_has_no_room_for_is_counted() {
        let arbiter = Arbiter::current();
        let feed = FeedHandle::start(&arbiter, std::time::Duration::from_secs(10));
        let wish = FeedWish { filter: ObserverFilter::default(), spans: false, logs: true };
        let (observer, observed) = relay_feed(&arbiter, &feed, wish);
        let record = Arc::new(LogRecord {
            at: crate::domain::time::Timestamp(1),
            level: crate::observe::log_record::LogLevel::Info,
            target: "target".into(),
            message: "message".to_owned(),
            attributes: Vec::new(),
            scope: Arc::default(),
        });
        let relay = observer.logs.clone().unwrap();
        let mut messages = observed.messages(feed.observe(observer).await);
        let send = async |missed| {
            let logs = Arc::from([Arc::clone(&record), Arc::clone(&record)]);
            relay.send(LogsObserved { logs, missed }).await.unwrap();
        };
        for _ in 0..QUEUED_MAX + 2 {
            send(0).await;
        }
        send(5).await;
        assert_eq!(feed.dropped(), 6, "as far as it was dropped here");
        let mut next = async || match Said::read(&messages.next().await.unwrap()) {
            Some(Said::Observed(Observed::Logs { logs, missed })) => (logs.len(), missed),
            other => panic!("{other:?}"),
        };
        for _ in 0..QUEUED_MAX {
            assert_eq!(next().await, (2, 0));
        }
        send(1).await;
        assert_eq!(next().await, (2, 4 + 7 + 1));
        send(0).await;
        assert_eq!(next().await, (2, 0), "it was reported");
        drop(messages);
        feed.settled().await;
        assert_eq!(feed.observers(), 0);
    }
}
