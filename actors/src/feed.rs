//! Fan-out of committed facts to observers, as spans. Bounded everywhere; waits for nobody.

mod settle;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use actix::dev::SendError;
use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use tokio::time::Instant;

use crate::domain::fact::Recorded;
use crate::ports::store::Header;
use crate::span::{EntityType, Observer, ObserverFilter, ObserverId, SpanEvent, SpansObserved};
use crate::trace::execution::{OpenAttempts, spans_of};

/// Commits that may wait for the feed; beyond it they are dropped and counted.
const FEED_MAILBOX: usize = 4_096;

/// The writer's side of the feed: knows whether anybody watches without asking the actor.
#[derive(Clone)]
pub(crate) struct FeedHandle {
    feed: Addr<Feed>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    observers: AtomicUsize,
    next_id: AtomicU64,
    dropped: AtomicU64,
}

pub(crate) struct Feed {
    shared: Arc<Shared>,
    observers: BTreeMap<ObserverId, Watching>,
    open: OpenAttempts,
    stall: Duration,
}

struct Watching {
    observer: Observer,
    missed: u64,
    full_since: Option<Instant>,
}

type Commit = Vec<(Arc<Header>, Arc<[Recorded]>)>;

/// Facts of one commit.
#[derive(Message)]
#[rtype(result = "()")]
struct Publish(Commit);

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
            open: OpenAttempts::default(),
            stall,
        });
        Self { feed, shared }
    }

    /// Whether anybody watches.
    pub(crate) fn is_watched(&self) -> bool {
        self.shared.observers.load(Ordering::Relaxed) > 0
    }

    /// Hands a commit over; drops it when the feed is behind, never waits.
    pub(crate) fn publish(&self, commit: Commit) {
        let executions = commit.len() as u64;
        if self.feed.try_send(Publish(commit)).is_err() {
            self.shared.dropped.fetch_add(executions, Ordering::Relaxed);
        }
    }

    pub(crate) async fn observe(&self, observer: Observer) -> ObserverId {
        self.feed.send(Observe(observer)).await.unwrap_or(ObserverId(0))
    }

    pub(crate) fn forget(&self, id: ObserverId) {
        crate::mailbox::tell(&self.feed, Forget(id));
    }
}

impl Actor for Feed {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(FEED_MAILBOX);
        // A dead observer is noticed even when nothing happens.
        ctx.run_interval(Duration::from_secs(30), |feed, _| {
            feed.observers.retain(|_, watching| watching.observer.is_connected());
            feed.count();
        });
    }
}

impl Feed {
    fn count(&mut self) {
        self.shared.observers.store(self.observers.len(), Ordering::Relaxed);
        if self.observers.is_empty() {
            self.open.clear();
        }
    }
}

impl Handler<Publish> for Feed {
    type Result = ();

    fn handle(&mut self, message: Publish, _: &mut Self::Context) {
        let stall = self.stall;
        // Commits dropped on the way here; each may have been of interest to anybody.
        let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
        self.observers.values_mut().for_each(|watching| watching.missed += dropped);
        for (header, facts) in message.0 {
            let spans = spans_of(&header, &facts, &mut self.open);
            if spans.is_empty() {
                continue;
            }
            let spans: Arc<[_]> = spans.into();
            self.observers.retain(|_, watching| {
                !matches(&watching.observer.filter, &header) || watching.offer(&spans, stall)
            });
        }
        self.count();
    }
}

impl Watching {
    /// Whether the observer stays.
    fn offer(&mut self, spans: &Arc<[SpanEvent]>, stall: Duration) -> bool {
        let message = SpansObserved { spans: Arc::clone(spans), missed: self.missed };
        let Some(recipient) = &self.observer.spans else { return true };
        match recipient.try_send(message) {
            Ok(()) => {
                self.full_since = None;
                self.missed = 0;
                true
            }
            Err(SendError::Closed(_)) => false,
            Err(SendError::Full(_)) => {
                self.missed += spans.len() as u64;
                let since = *self.full_since.get_or_insert_with(Instant::now);
                let gone = since.elapsed() >= stall;
                if gone {
                    (self.observer.cut)();
                }
                !gone
            }
        }
    }
}

/// The filter holds for children as well: it asks for the root of their trace. Its user is theirs.
fn matches(filter: &ObserverFilter, header: &Header) -> bool {
    let type_fits = filter.entity_type.is_none_or(|entity| entity == EntityType::Workflow);
    let id_fits = filter
        .entity_id
        .as_deref()
        .is_none_or(|id| id == &*header.trace.root_id || id == &*header.workflow_id);
    type_fits && id_fits && filter.sight.reaches(header.user_id.as_deref())
}

impl Handler<Observe> for Feed {
    type Result = actix::MessageResult<Observe>;

    fn handle(&mut self, message: Observe, _: &mut Self::Context) -> Self::Result {
        let id = ObserverId(self.shared.next_id.fetch_add(1, Ordering::Relaxed) + 1);
        let watching = Watching { observer: message.0, missed: 0, full_since: None };
        self.observers.insert(id, watching);
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
