//! Following an execution from code of this process, without an actor of the caller's.

use std::sync::Arc;
use std::time::Duration;

use actix::fut::ActorFutureExt as _;
use actix::{Actor, ActorContext as _, AsyncContext as _, Context, Handler, WrapFuture as _};
use futures_util::stream::{Stream, try_unfold};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::domain::fact::Recorded;
use crate::observe::forgotten::Forgotten;
use crate::requests::{
    DescribeError, EventsRecorded, ExecutionState, Subscriber, Subscription, Target, Unavailable,
};
use crate::runtime::Runtime;

/// Events of a page that is read from the store.
const PAGE_EVENTS: usize = 1000;

/// Pause before an execution whose actor was lost is followed again; doubled up to the maximum.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);

impl Runtime {
    /// Returns the durable facts of an execution whose events follow a number: those of the past,
    /// then each as it becomes durable, without gap or repetition. The first one may have events
    /// before that. Ends after the last fact of the execution, and with an error where it cannot be
    /// followed: it does not exist, its record is damaged, or the server stops.
    pub fn follow(
        &self,
        target: Target,
        after: u64,
    ) -> impl Stream<Item = Result<Recorded, DescribeError>> + Send + use<> {
        let following = Following {
            changes: Changes::new(self.clone(), target),
            after,
            read: Vec::new().into_iter(),
            has_ended: false,
        };
        try_unfold(following, |mut following| async move {
            Ok(following.next().await?.map(|fact| (fact, following)))
        })
    }

    /// Waits until the state of an execution is as wanted, or is the last one, and returns it.
    pub async fn state_when(
        &self,
        target: &Target,
        is_wanted: impl Fn(&ExecutionState) -> bool + Send,
    ) -> Result<ExecutionState, DescribeError> {
        let mut changes = Changes::new(self.clone(), target.clone());
        loop {
            // listening comes first: what happens after the reading is noticed
            changes.listen().await?;
            let state = self.describe(target).await?;
            if is_wanted(&state) || state.status.is_terminal() {
                return Ok(state);
            }
            changes.next().await;
        }
    }
}

/// The facts of an execution that have not been returned yet.
struct Following {
    changes: Changes,
    /// Number of the last event that was returned.
    after: u64,
    read: std::vec::IntoIter<Recorded>,
    has_ended: bool,
}

impl Following {
    async fn next(&mut self) -> Result<Option<Recorded>, DescribeError> {
        loop {
            if let Some(fact) = self.read.next() {
                self.after = self.after.max(fact.next_seq().saturating_sub(1));
                self.has_ended = fact.fact.end().is_some();
                return Ok(Some(fact));
            }
            if self.has_ended {
                return Ok(None);
            }
            let Changes { runtime, target, .. } = &self.changes;
            let page = runtime.events(target, self.after, PAGE_EVENTS).await?;
            let is_new = |fact: &Recorded| fact.next_seq() > self.after + 1;
            let facts: Vec<_> = page.facts.into_iter().filter(is_new).collect();
            if facts.is_empty() {
                match self.changes.listen().await? {
                    // what became durable since the reading rang no bell: read again
                    Some(Subscription { durable_seq, ended }) => {
                        self.has_ended = ended && durable_seq <= self.after;
                    }
                    None => self.changes.next().await,
                }
            }
            self.read = facts.into_iter();
        }
    }
}

/// Notices that an execution has new facts.
struct Changes {
    runtime: Runtime,
    target: Target,
    /// Rung with each batch; closed when the execution has dropped its subscriber.
    bell: Option<mpsc::Receiver<()>>,
    pause: Duration,
}

impl Changes {
    fn new(runtime: Runtime, target: Target) -> Self {
        Self { runtime, target, bell: None, pause: PAUSE_MIN }
    }

    /// Waits until there may be new facts.
    async fn next(&mut self) {
        if let Some(bell) = &mut self.bell
            && bell.recv().await.is_none()
        {
            self.bell = None;
        }
    }

    /// Begins to listen, unless that has begun. An execution that has ended has no bell.
    async fn listen(&mut self) -> Result<Option<Subscription>, DescribeError> {
        if self.bell.is_some() {
            return Ok(None);
        }
        loop {
            let arbiter = self.runtime.arbiters.handles().first();
            let arbiter = arbiter.ok_or(Unavailable::ActorLost)?;
            // one ring is enough: everything is read after it
            let (ring, bell) = mpsc::channel(1);
            let events = Bell::start_in_arbiter(arbiter, |_| Bell { ring }).recipient();
            // it is never slow to read
            let subscriber = Subscriber { events, progress: None, disconnect: Arc::new(|| {}) };
            match self.runtime.subscribe(&self.target, subscriber).await {
                Ok(subscription) => {
                    self.pause = PAUSE_MIN;
                    self.bell = (!subscription.ended).then_some(bell);
                    return Ok(Some(subscription));
                }
                Err(DescribeError::Unavailable(why)) if why.is_passing() => {
                    log::debug!("cannot follow execution {} yet: {why}", self.target.execution_id);
                    sleep(self.pause).await;
                    self.pause = (self.pause * 2).min(PAUSE_MAX);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Subscriber that reports each batch of facts, and its own end.
struct Bell {
    ring: mpsc::Sender<()>,
}

impl Actor for Bell {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let ring = self.ring.clone();
        let unheard = async move { ring.closed().await };
        ctx.spawn(unheard.into_actor(self).map(|(), _, ctx| ctx.stop()));
        // ends the actor, and with it the channel
        ctx.spawn(Forgotten::default().map(|(), _: &mut Self, ctx| ctx.stop()));
    }
}

impl Handler<EventsRecorded> for Bell {
    type Result = ();

    fn handle(&mut self, _: EventsRecorded, _: &mut Self::Context) {
        // a full channel rings already
        let _ = self.ring.try_send(());
    }
}
