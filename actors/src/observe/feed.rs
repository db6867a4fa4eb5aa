//! Fan-out of the durable facts of this process to observers, as spans. All queues are bounded, and
//! nothing waits.

mod elsewhere;
mod logs;
mod settle;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use actix::dev::SendError;
use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use tokio::time::Instant;

use crate::domain::fact::Recorded;
use crate::domain::ids::ExecutionId;
use crate::observe::disconnect::Disconnect;
use crate::observe::span::{
    EntityType, Observer, ObserverFilter, ObserverId, Owner, Span, SpanEvent, SpansObserved,
};
use crate::observe::trace::execution::SpanMemory;
use crate::ports::store::Header;

pub(crate) use elsewhere::Observed;

/// Maximum number of commits queued for the feed; further ones are dropped and counted.
const FEED_MAILBOX: usize = 4_096;

/// Writers' side of the feed: knows without asking the actor whether there are observers.
#[derive(Clone)]
pub(crate) struct FeedHandle {
    feed: Addr<Feed>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    observers: AtomicUsize,
    /// Observers of spans.
    of_spans: AtomicUsize,
    of_logs: AtomicUsize,
    next_id: AtomicU64,
    /// Number of spans dropped before the feed and not yet reported to observers.
    lost: AtomicU64,
    lost_logs: AtomicU64,
    dropped: AtomicU64,
}

/// Least interval between looks for observers that are gone.
const LOOK_EVERY: Duration = Duration::from_secs(30);

pub(crate) struct Feed {
    shared: Arc<Shared>,
    observers: BTreeMap<ObserverId, Subscription>,
    memory: SpanMemory,
    stall: Duration,
}

/// An observer and its backlog.
struct Subscription {
    observer: Observer,
    spans: Backlog,
    logs: Backlog,
}

/// Messages rejected by one mailbox of an observer.
#[derive(Default)]
struct Backlog {
    /// Not yet reported to the observer.
    missed: u64,
    full_since: Option<Instant>,
}

type Commit = Vec<(Arc<Header>, Arc<[Recorded]>)>;

/// Facts of one commit.
#[derive(Message)]
#[rtype(result = "()")]
struct Publish(Commit);

/// Spans of one owner, whose record is durable.
#[derive(Message)]
#[rtype(result = "()")]
struct PublishSpans(Arc<[SpanEvent]>);

/// Spans of an execution that were open when it was loaded.
#[derive(Message)]
#[rtype(result = "()")]
struct Recall(ExecutionId, Vec<Span>);

/// Erases a user from open spans.
#[derive(Message)]
#[rtype(result = "()")]
struct ForgetUser(Arc<str>);

#[derive(Message)]
#[rtype(result = "ObserverId")]
struct Observe(Observer);

#[derive(Message)]
#[rtype(result = "()")]
struct Forget(ObserverId);

impl FeedHandle {
    /// Starts the feed on the given arbiter.
    pub(crate) fn start(arbiter: &actix::ArbiterHandle, stall: Duration) -> Self {
        let shared = Arc::new(Shared::default());
        let in_actor = Arc::clone(&shared);
        let feed = Feed::start_in_arbiter(arbiter, move |_| Feed {
            shared: in_actor,
            observers: BTreeMap::new(),
            memory: SpanMemory::default(),
            stall,
        });
        Self { feed, shared }
    }

    /// Returns true if there are observers of spans.
    pub(crate) fn is_watched(&self) -> bool {
        self.shared.of_spans.load(Ordering::Relaxed) > 0
    }

    /// Queues a commit; drops it if the feed is behind. Never waits.
    pub(crate) fn publish(&self, commit: Commit) {
        let facts = commit.iter().map(|(_, facts)| facts.len() as u64).sum();
        if self.feed.try_send(Publish(commit)).is_err() {
            self.lose(facts);
        }
    }

    /// Queues spans of one owner, like [`Self::publish`].
    pub(crate) fn publish_spans(&self, spans: Arc<[SpanEvent]>) {
        let count = spans.len() as u64;
        if self.is_watched() && self.feed.try_send(PublishSpans(spans)).is_err() {
            self.lose(count);
        }
    }

    /// Adds the open spans of an execution, whose starts were not published, so that their ends are
    /// complete.
    pub(crate) fn recall(&self, id: &ExecutionId, open: Vec<Span>) {
        // if the feed is full, the facts of their ends suffice for most of them
        let _ = self.feed.try_send(Recall(id.clone(), open));
    }

    /// Resolves once no span that ends later can name the user.
    pub(crate) async fn forget_user(&self, user: Arc<str>) {
        // a stopped feed publishes nothing
        let _ = self.feed.send(ForgetUser(user)).await;
    }

    pub(crate) async fn observe(&self, observer: Observer) -> ObserverId {
        self.feed.send(Observe(observer)).await.unwrap_or(ObserverId(0))
    }

    pub(crate) fn forget(&self, id: ObserverId) {
        crate::mailbox::force_send(&self.feed, Forget(id));
    }

    /// Returns the number of observers.
    pub(crate) fn observers(&self) -> usize {
        self.shared.observers.load(Ordering::Relaxed)
    }

    /// Returns the number of spans and records that observers missed since the start, because they
    /// or the feed were behind.
    pub(crate) fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    fn lose(&self, count: u64) {
        self.shared.lost.fetch_add(count, Ordering::Relaxed);
        self.shared.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

impl Actor for Feed {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(FEED_MAILBOX);
        // notices disconnected observers when there are no events
        ctx.run_interval(self.stall.max(LOOK_EVERY), |feed, _| {
            feed.observers.retain(|_, subscription| subscription.observer.is_connected());
            feed.count();
        });
    }
}

impl Feed {
    fn count(&mut self) {
        let of_spans = self.observers.values().filter(|it| it.observer.spans.is_some()).count();
        let of_logs = self.observers.values().filter(|it| it.observer.logs.is_some()).count();
        self.shared.observers.store(self.observers.len(), Ordering::Relaxed);
        self.shared.of_spans.store(of_spans, Ordering::Relaxed);
        self.shared.of_logs.store(of_logs, Ordering::Relaxed);
        if of_spans == 0 {
            self.memory.clear();
        }
    }

    /// Sends spans of one owner to the observers that match.
    fn send(&mut self, spans: &Arc<[SpanEvent]>) {
        let Some(first) = spans.first() else { return };
        let lost = self.shared.lost.swap(0, Ordering::Relaxed);
        let (stall, shared) = (self.stall, &self.shared);
        let before = self.observers.len();
        self.observers.retain(|_, subscription| {
            // any observer may have wanted the lost ones
            subscription.spans.missed += lost;
            !matches(&subscription.observer.filter, &first.span.owner)
                || subscription.offer_spans(spans, stall, &shared.dropped)
        });
        if self.observers.len() < before {
            self.count();
        }
    }
}

impl Subscription {
    /// Sends spans; returns false if the observer is to be removed.
    fn offer_spans(
        &mut self,
        spans: &Arc<[SpanEvent]>,
        stall: Duration,
        dropped: &AtomicU64,
    ) -> bool {
        let Some(recipient) = &self.observer.spans else { return true };
        let message = SpansObserved { spans: Arc::clone(spans), missed: self.spans.missed };
        let outcome = recipient.try_send(message);
        if matches!(outcome, Err(SendError::Full(_))) {
            dropped.fetch_add(spans.len() as u64, Ordering::Relaxed);
        }
        self.spans.settle(&outcome, spans.len(), stall, &self.observer.disconnect)
    }
}

impl Backlog {
    /// Updates the backlog after a send, and disconnects an observer that has accepted nothing for
    /// `stall`. Returns false if the observer is to be removed.
    fn settle<M>(
        &mut self,
        outcome: &Result<(), SendError<M>>,
        count: usize,
        stall: Duration,
        disconnect: &Disconnect,
    ) -> bool {
        match outcome {
            Ok(()) => {
                *self = Self::default();
                true
            }
            Err(SendError::Closed(_)) => false,
            Err(SendError::Full(_)) => {
                self.missed += count as u64;
                let since = *self.full_since.get_or_insert_with(Instant::now);
                let has_stalled = since.elapsed() >= stall;
                if has_stalled {
                    disconnect();
                }
                !has_stalled
            }
        }
    }
}

/// Returns true if the filter selects the owner itself, or the root of its trace. Visibility is
/// that of the root's user.
fn matches(filter: &ObserverFilter, owner: &Owner) -> bool {
    let is_of = |(kind, id): (EntityType, &str)| {
        filter.entity_type.is_none_or(|wanted| wanted == kind)
            && filter.entity_id.as_deref().is_none_or(|wanted| wanted == id)
    };
    let trace = owner.trace();
    let is_selected = is_of((trace.root_type, &trace.root_id)) || is_of(owner.entity());
    is_selected && filter.visibility.allows(owner.user_id())
}

impl Handler<Publish> for Feed {
    type Result = ();

    fn handle(&mut self, message: Publish, _: &mut Self::Context) {
        for (header, facts) in message.0 {
            let spans = self.memory.apply(&header, &facts);
            self.send(&spans.into());
        }
    }
}

impl Handler<PublishSpans> for Feed {
    type Result = ();

    fn handle(&mut self, message: PublishSpans, _: &mut Self::Context) {
        self.send(&message.0);
    }
}

impl Handler<Recall> for Feed {
    type Result = ();

    fn handle(&mut self, message: Recall, _: &mut Self::Context) {
        let Recall(id, open) = message;
        self.memory.recall(&id, open);
    }
}

impl Handler<ForgetUser> for Feed {
    type Result = ();

    fn handle(&mut self, ForgetUser(user): ForgetUser, _: &mut Self::Context) {
        self.memory.forget(&user);
    }
}

impl Handler<Observe> for Feed {
    type Result = actix::MessageResult<Observe>;

    fn handle(&mut self, message: Observe, _: &mut Self::Context) -> Self::Result {
        let id = ObserverId(self.shared.next_id.fetch_add(1, Ordering::Relaxed) + 1);
        let (spans, logs) = (Backlog::default(), Backlog::default());
        let subscription = Subscription { observer: message.0, spans, logs };
        self.observers.insert(id, subscription);
        self.count();
        actix::MessageResult(id)
    }
}

impl Handler<Forget> for Feed {
    type Result = ();

    fn handle(&mut self, message: Forget, _: &mut Self::Context) {
        self.observers.remove(&message.0);
        self.count();
    }
}
