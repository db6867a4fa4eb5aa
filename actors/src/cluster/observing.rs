//! Spans and log records of all other members, for an observer of this process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{BoxStream, FuturesUnordered, SelectAll, StreamExt as _, once};
use tokio::sync::{oneshot, watch};

use crate::cluster::request::{FeedWish, MemberAnswer, Request, ask, others_of};
use crate::cluster::said::Said;
use crate::domain::cluster::NodeId;
use crate::observe::feed::{FeedHandle, Observed};
use crate::observe::span::{Observer, ObserverId};
use crate::ports::links::{Exchange, LinkError, Links};
use crate::ports::members::View;
use crate::requests::Unavailable;
use crate::shared::Shared;

/// The feeds of the other members, for one observer. Keeps nothing of this process alive but its
/// feed.
pub(crate) struct Watch {
    links: Arc<dyn Links>,
    views: watch::Receiver<Option<Arc<View>>>,
    own: NodeId,
    /// Time in which a member that can be reached answers.
    patience: Duration,
    feed: FeedHandle,
    observer: ObserverId,
    /// True if the observer wants spans, and perhaps logs; else it wants logs.
    wants_spans: bool,
    request: Bytes,
    /// Members that were asked and have not been lost.
    asked: BTreeSet<NodeId>,
    answers: FuturesUnordered<BoxFuture<'static, Opened>>,
    messages: SelectAll<BoxStream<'static, Message>>,
}

/// The answer of a member.
type Opened = (NodeId, MemberAnswer<Result<(), Unavailable>>);

/// A message of a member; `None` at the end.
type Message = (NodeId, Option<Result<Vec<u8>, LinkError>>);

impl Watch {
    /// Returns the feeds of the other members, for a registered observer; `None` if this process is
    /// alone.
    pub(crate) fn of(shared: &Shared, observer: &Observer, id: ObserverId) -> Option<Self> {
        let Observer { spans, logs, filter, .. } = observer;
        let (filter, spans, logs) = (filter.clone(), spans.is_some(), logs.is_some());
        let members = shared.ownership.members()?;
        Some(Self {
            links: Arc::clone(shared.ownership.links()?),
            views: members.views(),
            own: members.own(),
            patience: members.lease().length(),
            feed: shared.feed.clone(),
            observer: id,
            wants_spans: spans,
            request: Request::FollowFeed(FeedWish { filter, spans, logs }).write().ok()?,
            asked: BTreeSet::new(),
            answers: FuturesUnordered::new(),
            messages: SelectAll::new(),
        })
    }

    /// Passes on what other members send, until the observer is removed. `ready` is dropped once the
    /// members that are known at the beginning have answered.
    pub(crate) async fn pass(mut self, ready: oneshot::Sender<()>) {
        let mut ready = Some(ready);
        self.ask_others();
        loop {
            if self.answers.is_empty() {
                ready = None;
            }
            let is_wanted = tokio::select! {
                Some((node, answer)) = self.answers.next() => {
                    self.follow(node, answer);
                    true
                }
                Some((node, message)) = self.messages.next() => self.take(node, message).await,
                changed = self.views.changed() => {
                    self.ask_others();
                    changed.is_ok() && self.feed.is_registered(self.observer).await
                }
            };
            if !is_wanted {
                return drop(ready);
            }
        }
    }

    /// Asks the members that were not asked yet, or did not answer, or were lost.
    fn ask_others(&mut self) {
        let others = others_of(self.views.borrow_and_update().as_deref(), self.own);
        for node in others.into_iter().filter(|node| self.asked.insert(*node)) {
            let (links, request) = (Arc::clone(&self.links), self.request.clone());
            let patience = self.patience;
            let asked = async move { (node, ask(&*links, node, request, patience).await) };
            self.answers.push(Box::pin(asked));
        }
    }

    /// Follows a member that has answered.
    fn follow(&mut self, node: NodeId, answer: MemberAnswer<Result<(), Unavailable>>) {
        match answer {
            Some((Ok(()), exchange)) => self.messages.push(messages_of(node, exchange)),
            Some((Err(_), _)) | None => drop(self.asked.remove(&node)),
        }
    }

    /// Passes a message on; returns false if the observer is removed.
    async fn take(&mut self, node: NodeId, message: Option<Result<Vec<u8>, LinkError>>) -> bool {
        let observed = match message {
            None => {
                self.asked.remove(&node);
                return true;
            }
            Some(Ok(message)) => match Said::read(&message) {
                Some(Said::Observed(observed)) => observed,
                // of another version
                _ => self.gap(),
            },
            Some(Err(_)) => self.gap(),
        };
        self.feed.pass(self.observer, observed).await
    }

    /// Returns a report of at least one lost span or record: how many there are is unknown.
    fn gap(&self) -> Observed {
        let missed = 1;
        if self.wants_spans {
            Observed::Spans { spans: Arc::from([]), missed }
        } else {
            Observed::Logs { logs: Arc::from([]), missed }
        }
    }
}

fn messages_of(node: NodeId, exchange: Exchange) -> BoxStream<'static, Message> {
    let messages = exchange.map(move |message| (node, Some(message)));
    messages.chain(once(ready((node, None)))).boxed()
}
